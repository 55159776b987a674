use proptest::prelude::*;

use super::*;

fn deflated(payload: &[u8]) -> Vec<u8> {
    // Room enough for incompressible data.
    let mut stream = Compress::new(Compression::default(), false);
    let mut output = Vec::with_capacity(payload.len() + payload.len() / 8 + 64);
    stream.compress_vec(payload, &mut output, FlushCompress::Sync).expect("valid state");
    output.strip_suffix(&TAIL).expect("flushed").to_vec()
}

impl Inflater {
    fn inflated(&mut self, deflated: &[u8], max_bytes: u32) -> Result<Vec<u8>, DecodeError> {
        self.inflate(deflated, max_bytes, |message| Ok(message.to_vec()))
    }
}

fn inflated(deflated: &[u8], max_bytes: u32) -> Result<Vec<u8>, DecodeError> {
    Inflater::default().inflated(deflated, max_bytes)
}

/// Bytes that do not compress.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn the_examples_of_rfc_7692_section_7_2_3_are_hello() {
    for payload in [
        &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..], // 7.2.3.1: one block
        &[0x00, 0x05, 0x00, 0xfa, 0xff, b'H', b'e', b'l', b'l', b'o', 0x00], // 7.2.3.3: not compressed
        &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00], // 7.2.3.4: marked as the last block
        &[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00], // 7.2.3.5: two blocks
    ] {
        assert_eq!(inflated(payload, 5).as_deref(), Ok(&b"Hello"[..]), "{payload:x?}");
    }
    assert_eq!(inflated(&[0x00], 0).as_deref(), Ok(&b""[..]), "7.2.3.6: nothing");
}

#[test]
fn an_empty_message_may_be_no_bytes_at_all() {
    assert_eq!(inflated(&[], 0), Ok(Vec::new()));
}

#[test]
fn a_frame_says_that_it_is_compressed_and_is_smaller_than_the_plain_one() {
    let payload = b"abcdefgh".repeat(100);
    let frame = Deflater::default().encode_frame(Opcode::Text, &payload).expect("it compresses");
    assert_eq!((frame[0], usize::from(frame[1])), (0xc1, frame.len() - 2));
    assert_eq!(inflated(&frame[2..], 800), Ok(payload));
}

#[test]
fn what_does_not_become_smaller_is_not_compressed() {
    let mut deflater = Deflater::default();
    for payload in [&b""[..], b"a", b"ab", &noise(100), &noise(100_000)] {
        assert_eq!(deflater.encode_frame(Opcode::Binary, payload), None, "{} bytes", payload.len());
    }
    assert!(deflater.encode_frame(Opcode::Binary, &[7; 100]).is_some(), "the next is not hurt by it");
}

#[test]
fn a_bomb_is_given_up_at_its_limit() {
    let bomb = deflated(&vec![0; 100 << 20]);
    assert!(bomb.len() < 110_000);
    let mut inflater = Inflater::default();
    let error = DecodeError::MessageTooLarge { announced_bytes: 270_337, max_message_bytes: 270_336 };
    let inflated = inflater.inflate_into_output(&bomb, 270_336).map(<[u8]>::len);
    assert_eq!(inflated, Err(error));
    assert!(inflater.output.capacity() <= 2 * 270_337);
}

#[test]
fn the_limit_is_met_exactly() {
    for len in [0, 1, FIRST_BYTES - 1, FIRST_BYTES, FIRST_BYTES + 1, 3 * FIRST_BYTES, 100_000] {
        let payload = vec![b'a'; len];
        assert_eq!(inflated(&deflated(&payload), len as u32), Ok(payload), "{len} bytes");
        let (announced_bytes, max_message_bytes) = (len as u64 + 1, len as u32);
        let error = Err(DecodeError::MessageTooLarge { announced_bytes, max_message_bytes });
        assert_eq!(inflated(&deflated(&vec![b'a'; len + 1]), len as u32), error, "{len} bytes");
    }
}

#[test]
fn memory_of_a_large_message_goes_with_it() {
    let (mut deflater, mut inflater) = (Deflater::default(), Inflater::default());
    let large = vec![1; 4 << 20];
    let frame = deflater.encode_frame(Opcode::Binary, &large).expect("it compresses");
    assert_eq!(inflater.inflated(&frame[4..], 4 << 20), Ok(large));
    assert!(deflater.output.capacity() <= KEPT_BYTES && inflater.output.capacity() <= KEPT_BYTES);
}

#[test]
fn what_is_no_deflate_or_ends_early_is_refused() {
    let whole = deflated(&noise(300));
    for payload in [&[0xff][..], &[0x07], &[6, 7, 8], &[1, 1, 0, 0, 0], &whole[..200], &whole[..whole.len() - 1]] {
        assert_eq!(inflated(payload, 1_000), Err(DecodeError::DeflateInvalid), "{payload:x?}");
    }
}

#[test]
fn nothing_but_one_byte_of_zero_follows_a_block_that_is_marked_as_the_last() {
    let marked = [0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    assert_eq!(inflated(&marked, 5).as_deref(), Ok(&b"Hello"[..]));
    for rest in [&[1][..], &[0, 0], &[0, 0, 0xff, 0xff], &marked] {
        assert_eq!(inflated(&[&marked, rest].concat(), 100), Err(DecodeError::DeflateInvalid), "{rest:x?}");
    }
}

#[test]
fn what_cannot_be_compressed_stays_within_the_limit_of_what_arrives() {
    for len in [0, 1, 100, 1_000, 65_535, 1 << 20] {
        assert!(deflated(&noise(len)).len() <= max_deflated_bytes(len as u32) as usize, "{len} bytes");
    }
    assert_eq!(max_deflated_bytes(u32::MAX), u32::MAX);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn messages_survive_one_deflater_and_one_inflater_in_any_order(
        payloads in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..3_000),
                prop::collection::vec(0_u8..4, 0..60_000),
                "[a-f ]{0,2000}".prop_map(String::into_bytes),
            ],
            1..8,
        ),
        level in 0_u32..=9,
    ) {
        let (mut deflater, mut inflater) = (Deflater::default(), Inflater::default());
        for payload in payloads {
            let max_bytes = payload.len() as u32;
            if let Some(frame) = deflater.encode_frame(Opcode::Binary, &payload) {
                let header_bytes = FrameHeader::new(Opcode::Binary, 0).as_bytes().len()
                    + match frame[1] { 126 => 2, 127 => 8, _ => 0 };
                prop_assert!(frame.len() - header_bytes < payload.len());
                prop_assert_eq!(inflater.inflated(&frame[header_bytes..], max_bytes), Ok(payload.clone()));
            }
            let mut stream = Compress::new(Compression::new(level), false);
            let mut other = Vec::with_capacity(payload.len() + payload.len() / 8 + 64);
            stream.compress_vec(&payload, &mut other, FlushCompress::Sync).expect("valid state");
            prop_assert_eq!(inflater.inflated(&other[..other.len() - 4], max_bytes), Ok(payload.clone()));
        }
    }

    #[test]
    fn no_bytes_make_it_panic_or_exceed_its_limit(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        max_bytes in 0_u32..1_000,
    ) {
        let mut inflater = Inflater::default();
        if let Ok(message) = inflater.inflated(&bytes, max_bytes) {
            prop_assert!(message.len() <= max_bytes as usize);
        }
        let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
        prop_assert_eq!(inflater.inflated(&hello, 5), Ok(b"Hello".to_vec()), "the next is not hurt by it");
    }
}
