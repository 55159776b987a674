//! The decoder of a connection that negotiated permessage-deflate.
#![allow(clippy::expect_used, reason = "helpers of tests fail the test")]

use proptest::prelude::*;
use webmq_websocket::{
    DecodeError, Decoder, Deflater, Event, Inflater, MessageKind, Opcode, Role, encode_frame, encode_masked_frame,
};

const LIMIT: u32 = 1_000;
const MASK: [u8; 4] = [9, 8, 7, 6];
/// RFC 7692 §7.2.3.1.
const HELLO: [u8; 7] = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
const RSV1: u8 = 0x40;
const FIN: u8 = 0x80;

/// Appends a masked frame with other bits in its first byte.
fn frame(bits: u8, opcode: Opcode, payload: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    encode_masked_frame(opcode, payload, MASK, out);
    out[start] = bits | opcode as u8;
}

fn frames(frames: &[(u8, Opcode, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    frames.iter().for_each(|(bits, opcode, payload)| frame(*bits, *opcode, payload, &mut out));
    out
}

/// The payload of a compressed message.
fn deflated(message: &[u8]) -> Vec<u8> {
    let frame = Deflater::default().encode_frame(Opcode::Binary, message).expect("it compresses");
    let header_bytes = match frame[1] {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    frame[header_bytes..].to_vec()
}

/// Decodes `bytes` in pieces of these sizes, over and over.
fn decode(bytes: &[u8], sizes: &[usize]) -> (Vec<String>, Option<DecodeError>) {
    let (mut decoder, mut inflater) = (Decoder::new(Role::Server, LIMIT), Inflater::default());
    let mut seen = Vec::new();
    let mut rest = bytes.to_vec();
    for size in sizes.iter().copied().cycle() {
        if rest.is_empty() {
            break;
        }
        let after = rest.split_off(size.clamp(1, rest.len()));
        if let Err(error) = decoder.decode(&mut rest, Some(&mut inflater), &mut |event| {
            seen.push(format!("{event:?}"));
        }) {
            return (seen, Some(error));
        }
        assert!(decoder.allocated_bytes() <= LIMIT as usize + 79 + 125);
        rest = after;
    }
    (seen, None)
}

/// The outcome of bytes, which is the same whole and byte by byte.
fn outcome(bytes: &[u8]) -> (Vec<String>, Option<DecodeError>) {
    let whole = decode(bytes, &[usize::MAX]);
    assert_eq!(decode(bytes, &[1]), whole, "byte by byte");
    whole
}

fn message(kind: MessageKind, data: &[u8]) -> String {
    format!("{:?}", Event::Message { kind, data })
}

fn text(data: &str) -> String {
    message(MessageKind::Text, data.as_bytes())
}

#[test]
fn compressed_and_plain_messages_come_in_order() {
    let bytes = frames(&[
        (FIN | RSV1, Opcode::Text, &HELLO),
        (FIN, Opcode::Text, b"plain"),
        (FIN | RSV1, Opcode::Binary, &HELLO),
        (FIN, Opcode::Ping, b"?"),
        (FIN | RSV1, Opcode::Text, &HELLO),
    ]);
    let expected = vec![
        text("Hello"),
        text("plain"),
        message(MessageKind::Binary, b"Hello"),
        format!("{:?}", Event::Ping(b"?")),
        text("Hello"),
    ];
    assert_eq!(outcome(&bytes), (expected, None));
}

#[test]
fn a_compressed_message_may_come_in_fragments_with_control_frames_between() {
    let bytes = frames(&[
        (RSV1, Opcode::Text, &HELLO[..3]),
        (FIN, Opcode::Ping, b"?"),
        (0, Opcode::Continuation, &[]),
        (FIN, Opcode::Continuation, &HELLO[3..]),
        (0, Opcode::Text, b"pla"),
        (FIN, Opcode::Continuation, b"in"),
    ]);
    let expected = vec![format!("{:?}", Event::Ping(b"?")), text("Hello"), text("plain")];
    assert_eq!(outcome(&bytes), (expected, None));
}

#[test]
fn the_bit_is_refused_where_it_was_not_negotiated() {
    let mut bytes = frames(&[(FIN | RSV1, Opcode::Text, &HELLO)]);
    let decoded = Decoder::new(Role::Server, LIMIT).decode(&mut bytes, None, &mut |event| panic!("{event:?}"));
    assert_eq!(decoded, Err(DecodeError::ReservedBits));
}

#[test]
fn the_bit_is_refused_on_control_frames_and_continuations() {
    for bytes in [
        frames(&[(FIN | RSV1, Opcode::Ping, b"")]),
        frames(&[(FIN | RSV1, Opcode::Close, b"")]),
        frames(&[(RSV1, Opcode::Text, &HELLO[..3]), (FIN | RSV1, Opcode::Continuation, &HELLO[3..])]),
        frames(&[(FIN | 0x20, Opcode::Text, b"")]),
    ] {
        assert_eq!(outcome(&bytes), (vec![], Some(DecodeError::ReservedBits)));
    }
}

#[test]
fn a_bomb_is_refused_with_1009() {
    let bomb = deflated(&vec![0; 500_000]);
    assert!(bomb.len() < LIMIT as usize);
    let (seen, error) = outcome(&frames(&[(FIN | RSV1, Opcode::Text, &bomb)]));
    assert_eq!(seen, Vec::<String>::new());
    assert_eq!(error.map(|error| error.close_code().value()), Some(1009));
}

#[test]
fn what_arrives_of_a_compressed_message_is_bounded_too() {
    let first = (RSV1, Opcode::Binary, &[0_u8; 1_000][..]);
    for (rest, is_within) in [(79, true), (80, false)] {
        let (_, error) = decode(&frames(&[first, (FIN, Opcode::Continuation, &vec![0; rest])]), &[usize::MAX]);
        let is_too_large = matches!(error, Some(DecodeError::MessageTooLarge { .. }));
        assert_eq!(is_too_large, !is_within, "{rest} bytes after 1,000");
    }
}

#[test]
fn what_is_no_deflate_is_refused_with_1002() {
    let (_, error) = outcome(&frames(&[(FIN | RSV1, Opcode::Text, b"\xff\xff\xff")]));
    assert_eq!(error, Some(DecodeError::DeflateInvalid));
    let error = error.expect("refused");
    assert_eq!((error.close_code().value(), error.code()), (1002, "E_FRAME_INVALID"));
}

#[test]
fn text_is_validated_after_it_was_decompressed() {
    let mut bad = b"abc ".repeat(20);
    bad.push(0xff);
    let payload = deflated(&bad);
    assert_eq!(outcome(&frames(&[(FIN | RSV1, Opcode::Text, &payload)])), (vec![], Some(DecodeError::TextNotUtf8)));
    let expected = vec![message(MessageKind::Binary, &bad)];
    assert_eq!(outcome(&frames(&[(FIN | RSV1, Opcode::Binary, &payload)])), (expected, None));
}

#[test]
fn nothing_stays_allocated_between_compressed_messages() {
    let (mut decoder, mut inflater) = (Decoder::new(Role::Server, LIMIT), Inflater::default());
    for byte in frames(&[(FIN | RSV1, Opcode::Text, &HELLO)]) {
        decoder.decode(&mut [byte], Some(&mut inflater), &mut |_| {}).expect("valid");
    }
    assert_eq!(decoder.allocated_bytes(), 0);
}

/// A message and its form on the wire: compressed or not, cut into fragments at these offsets.
type Sent = (String, bool, Vec<usize>);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn messages_survive_any_mixture_any_fragmentation_and_any_cut(
        sent in prop::collection::vec(("[a-e]{0,200}|\\PC{0,60}", any::<bool>(), prop::collection::vec(0_usize..200, 0..3)), 0..6),
        sizes in prop::collection::vec(1_usize..200, 1..6),
    ) {
        let mut deflater = Deflater::default();
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for (data, wants_deflate, cuts) in &sent as &[Sent] {
            let frame = if *wants_deflate { deflater.encode_frame(Opcode::Text, data.as_bytes()) } else { None };
            let (first_bits, payload) = match &frame {
                Some(frame) => (RSV1, &frame[if frame[1] == 126 { 4 } else { 2 }..]),
                None => (0, data.as_bytes()),
            };
            let mut ends: Vec<_> = cuts.iter().map(|cut| cut % (payload.len() + 1)).chain([payload.len()]).collect();
            ends.sort_unstable();
            let mut start = 0;
            for (index, end) in ends.iter().copied().enumerate() {
                let fin = if index + 1 == ends.len() { FIN } else { 0 };
                let (bits, opcode) = if index == 0 { (first_bits, Opcode::Text) } else { (0, Opcode::Continuation) };
                self::frame(fin | bits, opcode, &payload[start..end], &mut bytes);
                start = end;
            }
            expected.push(text(data));
        }
        prop_assert_eq!(decode(&bytes, &sizes), (expected, None));
    }

    #[test]
    fn bytes_that_were_damaged_give_the_same_outcome_however_they_are_cut(
        data in "[a-e]{0,300}",
        sizes in prop::collection::vec(1_usize..50, 1..6),
        damage in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = frames(&[(FIN | RSV1, Opcode::Text, &deflated(&[data.as_bytes(), &[b'a'; 20]].concat()))]);
        encode_frame(Opcode::Ping, b"", &mut bytes);
        for (at, value) in damage {
            let len = bytes.len();
            bytes[at % len] = value;
        }
        prop_assert_eq!(decode(&bytes, &sizes), decode(&bytes, &[usize::MAX]));
    }
}
