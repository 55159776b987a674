//! The decoder against exact bytes.
#![allow(clippy::expect_used, reason = "helpers of tests fail the test")]

use webmq_websocket::{
    CloseCode, DecodeError, Decoder, Event, MessageKind, Opcode, Role, encode_frame, encode_masked_frame,
};

const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];
const LIMIT: u32 = 1_000;

/// An event with its own bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
}

impl From<Event<'_>> for Seen {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Message { kind: MessageKind::Text, data } => {
                Self::Text(String::from_utf8(data.to_vec()).expect("text is UTF-8"))
            }
            Event::Message { kind: MessageKind::Binary, data } => Self::Binary(data.to_vec()),
            Event::Ping(payload) => Self::Ping(payload.to_vec()),
            Event::Pong(payload) => Self::Pong(payload.to_vec()),
            Event::Close { code, reason } => Self::Close(code.map(CloseCode::value), reason.to_owned()),
        }
    }
}

fn text(data: &str) -> Seen {
    Seen::Text(data.to_owned())
}

fn server() -> Decoder {
    Decoder::new(Role::Server, LIMIT)
}

/// Feeds the pieces one after the other and returns the events and the outcome of the last piece.
fn feed(decoder: &mut Decoder, pieces: &[&[u8]]) -> (Vec<Seen>, Result<usize, DecodeError>) {
    let mut seen = Vec::new();
    let mut outcome = Ok(0);
    for piece in pieces {
        outcome = decoder.decode(&mut piece.to_vec(), None, &mut |event| seen.push(event.into()));
    }
    (seen, outcome)
}

/// The events of valid bytes, whole and byte by byte.
fn events(bytes: &[u8]) -> Vec<Seen> {
    let (seen, outcome) = feed(&mut server(), &[bytes]);
    assert_eq!(outcome, Ok(bytes.len()));
    let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(feed(&mut server(), &pieces).0, seen, "byte by byte");
    seen
}

/// The error of invalid bytes, whole and byte by byte.
fn error(bytes: &[u8]) -> DecodeError {
    let (_, outcome) = feed(&mut server(), &[bytes]);
    let mut decoder = server();
    let one_by_one = bytes.iter().find_map(|byte| decoder.decode(&mut [*byte], None, &mut |_| {}).err());
    let error = outcome.expect_err("must be refused");
    assert_eq!(one_by_one, Some(error), "byte by byte");
    assert!(decoder.is_finished());
    assert_eq!(decoder.allocated_bytes(), 0);
    error
}

/// A masked frame with any first byte.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_masked_frame(Opcode::Binary, payload, MASK, &mut out);
    out[0] = first;
    out
}

const FIN: u8 = 0x80;
const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

#[test]
fn the_masked_hello_of_rfc_6455_section_5_7_is_a_text_message() {
    let bytes = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(events(&bytes), [text("Hello")]);
}

#[test]
fn several_frames_in_one_read_are_several_events_in_order() {
    let bytes = [frame(FIN | TEXT, b"a"), frame(PING, b"p"), frame(FIN | BINARY, b"\xff"), frame(PONG, b"")].concat();
    assert_eq!(
        events(&bytes),
        [text("a"), Seen::Ping(b"p".to_vec()), Seen::Binary(vec![0xff]), Seen::Pong(Vec::new())]
    );
}

#[test]
fn empty_messages_are_messages() {
    assert_eq!(events(&frame(FIN | TEXT, b"")), [text("")]);
    assert_eq!(events(&[frame(BINARY, b""), frame(FIN, b"")].concat()), [Seen::Binary(Vec::new())]);
}

#[test]
fn payloads_of_every_length_encoding_arrive_whole() {
    for len in [125, 126, 127, 1_000] {
        assert_eq!(events(&frame(FIN | BINARY, &vec![7; len])), [Seen::Binary(vec![7; len])]);
    }
    let mut decoder = Decoder::new(Role::Server, 100_000);
    let (seen, _) = feed(&mut decoder, &[&frame(FIN | BINARY, &vec![7; 65_536])]);
    assert_eq!(seen, [Seen::Binary(vec![7; 65_536])]);
}

#[test]
fn fragments_are_one_message_of_the_first_ones_kind() {
    let bytes = [frame(TEXT, b"He"), frame(CONTINUATION, b""), frame(CONTINUATION, b"ll"), frame(FIN, b"o")].concat();
    assert_eq!(events(&bytes), [text("Hello")]);
    let bytes = [frame(BINARY, b"\xff"), frame(FIN, b"\xfe")].concat();
    assert_eq!(events(&bytes), [Seen::Binary(vec![0xff, 0xfe])]);
}

#[test]
fn control_frames_between_fragments_come_first_and_leave_the_message_alone() {
    let bytes = [frame(TEXT, b"He"), frame(PING, b"ping"), frame(PONG, b""), frame(FIN, b"llo")].concat();
    assert_eq!(events(&bytes), [Seen::Ping(b"ping".to_vec()), Seen::Pong(Vec::new()), text("Hello")]);
}

#[test]
fn a_character_may_be_cut_by_fragments_and_reads() {
    let euro = "€".as_bytes();
    assert_eq!(events(&[frame(TEXT, &euro[..1]), frame(FIN, &euro[1..])].concat()), [text("€")]);
    assert_eq!(events(&frame(FIN | TEXT, "κόσμε".as_bytes())), [text("κόσμε")]);
}

#[test]
fn text_is_refused_at_its_first_bad_byte_before_the_frame_is_complete() {
    let bytes = frame(FIN | TEXT, b"abc\xffdefgh");
    let mut decoder = server();
    assert_eq!(feed(&mut decoder, &[&bytes[..6 + 3]]).1, Ok(9));
    assert_eq!(feed(&mut decoder, &[&bytes[9..10]]).1, Err(DecodeError::TextNotUtf8));
    assert_eq!(error(&frame(TEXT, b"\xed\xa0")), DecodeError::TextNotUtf8);
    assert_eq!(error(&[frame(TEXT, b"\xf4"), frame(CONTINUATION, b"\x90")].concat()), DecodeError::TextNotUtf8);
}

#[test]
fn text_that_ends_inside_a_character_is_refused() {
    assert_eq!(error(&frame(FIN | TEXT, b"a\xe2\x82")), DecodeError::TextNotUtf8);
    assert_eq!(error(&[frame(TEXT, b"a\xe2\x82"), frame(FIN, b"")].concat()), DecodeError::TextNotUtf8);
}

#[test]
fn binary_is_not_validated() {
    assert_eq!(events(&frame(FIN | BINARY, b"\xc0\xff")), [Seen::Binary(vec![0xc0, 0xff])]);
}

#[test]
fn continuation_without_a_beginning_and_a_beginning_without_an_end_are_refused() {
    assert_eq!(error(&frame(FIN, b"x")), DecodeError::UnexpectedContinuation);
    assert_eq!(error(&frame(CONTINUATION, b"x")), DecodeError::UnexpectedContinuation);
    assert_eq!(error(&[frame(TEXT, b"x"), frame(FIN | TEXT, b"y")].concat()), DecodeError::UnfinishedMessage);
    assert_eq!(error(&[frame(BINARY, b""), frame(BINARY, b"y")].concat()), DecodeError::UnfinishedMessage);
    let bytes = [frame(FIN | TEXT, b"x"), frame(FIN, b"y")].concat();
    assert_eq!(error(&bytes), DecodeError::UnexpectedContinuation);
}

#[test]
fn malformed_headers_are_refused_with_1002() {
    for (bytes, expected) in [
        (&[0xc1, 0x80][..], DecodeError::ReservedBits),
        (&[0x83, 0x80], DecodeError::ReservedOpcode(3)),
        (&[0x8b, 0x80], DecodeError::ReservedOpcode(11)),
        (&[0x81, 0x05], DecodeError::Unmasked),
        (&[0x09, 0x80], DecodeError::FragmentedControl),
        (&[0x89, 0xfe, 0, 126], DecodeError::ControlTooLong),
        (&[0x81, 0xfe, 0, 1], DecodeError::LengthNotMinimal),
        (&[0x81, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0], DecodeError::LengthOutOfRange),
    ] {
        let error = error(bytes);
        assert_eq!(error, expected);
        assert_eq!((error.code(), error.close_code().value()), ("E_FRAME_INVALID", 1002));
    }
}

#[test]
fn a_close_frame_ends_the_decoder_and_what_follows_is_left() {
    let close = frame(CLOSE, b"\x03\xe8bye");
    let mut decoder = server();
    let (seen, outcome) = feed(&mut decoder, &[&[&close[..], b"garbage"].concat()]);
    assert_eq!((seen, outcome), (vec![Seen::Close(Some(1000), "bye".to_owned())], Ok(close.len())));
    assert!(decoder.is_finished());
    assert_eq!(feed(&mut decoder, &[&frame(FIN | TEXT, b"late")]), (Vec::new(), Ok(0)));
}

#[test]
fn a_close_frame_may_be_empty_and_may_come_between_fragments() {
    assert_eq!(events(&frame(CLOSE, b"")), [Seen::Close(None, String::new())]);
    let bytes = [frame(TEXT, b"never finished"), frame(CLOSE, b"\x0f\xa0")].concat();
    assert_eq!(events(&bytes), [Seen::Close(Some(4000), String::new())]);
}

#[test]
fn malformed_close_frames_are_refused_with_their_codes() {
    for (payload, expected, close_code) in [
        (&b"\x03"[..], DecodeError::CloseTruncated, 1002),
        (b"\x03\xe7", DecodeError::CloseCodeInvalid(999), 1002),
        (b"\x03\xed", DecodeError::CloseCodeInvalid(1005), 1002),
        (b"\x0b\xb7", DecodeError::CloseCodeInvalid(2999), 1002),
        (b"\x13\x88", DecodeError::CloseCodeInvalid(5000), 1002),
        (b"\x03\xe8\xce", DecodeError::CloseReasonNotUtf8, 1007),
    ] {
        let error = error(&frame(CLOSE, payload));
        assert_eq!((error, error.close_code().value()), (expected, close_code));
    }
}

#[test]
fn a_message_over_the_limit_is_refused_by_its_header_alone() {
    let too_large = DecodeError::MessageTooLarge { announced_bytes: 1_001, max_message_bytes: LIMIT };
    let header = &frame(FIN | BINARY, &[0; 1_001])[..8];
    assert_eq!(error(header), too_large);
    assert_eq!((too_large.code(), too_large.close_code().value()), ("E_MESSAGE_TOO_LARGE", 1009));
    let enormous = [&[0x82, 0xff, 0x7f][..], &[0xff; 7], &MASK].concat();
    assert!(matches!(error(&enormous), DecodeError::MessageTooLarge { announced_bytes: 0x7fff_ffff_ffff_ffff, .. }));
}

#[test]
fn the_limit_holds_for_the_sum_of_the_fragments() {
    let bytes = [frame(BINARY, &[1; 600]), frame(PING, &[2; 125]), frame(FIN, &[3; 400])].concat();
    assert_eq!(events(&bytes).len(), 2, "exactly the limit passes");
    let too_large = DecodeError::MessageTooLarge { announced_bytes: 1_001, max_message_bytes: LIMIT };
    let bytes = [frame(BINARY, &[1; 600]), frame(CONTINUATION, &[3; 400]), frame(FIN, b"x")].concat();
    assert_eq!(error(&bytes[..bytes.len() - 1]), too_large);
}

#[test]
fn an_announced_length_takes_no_memory_until_the_bytes_come() {
    let mut decoder = Decoder::new(Role::Server, 1 << 30);
    let mut bytes = [&[0x82, 0xff, 0, 0, 0, 0, 0x3f, 0, 0, 0][..], &MASK, b"first bytes"].concat();
    assert_eq!(decoder.decode(&mut bytes, None, &mut |_| {}), Ok(bytes.len()));
    assert!(decoder.allocated_bytes() <= 64, "{}", decoder.allocated_bytes());
}

#[test]
fn nothing_stays_allocated_between_messages() {
    let bytes = [frame(BINARY, &[1; 500]), frame(PING, b"ping"), frame(FIN, &[3; 500])].concat();
    let mut decoder = server();
    for piece in bytes.chunks(7) {
        assert!(feed(&mut decoder, &[piece]).1.is_ok());
        assert!(decoder.allocated_bytes() <= LIMIT as usize + 125);
    }
    assert_eq!(decoder.allocated_bytes(), 0);
    assert_eq!(feed(&mut decoder, &[&frame(PING, b"ping")[..8]]).1, Ok(8));
    assert!(decoder.allocated_bytes() > 0, "half a ping waits");
    assert_eq!(feed(&mut decoder, &[&frame(PING, b"ping")[8..]]).1, Ok(2));
    assert_eq!(decoder.allocated_bytes(), 0);
}

#[test]
fn an_idle_decoder_fits_a_cache_line() {
    assert!(size_of::<Decoder>() <= 64, "{} bytes", size_of::<Decoder>());
}

#[test]
fn a_message_in_one_frame_is_a_slice_of_the_input() {
    let mut bytes = [frame(FIN | TEXT, b"one"), frame(FIN | TEXT, b"two")].concat();
    let range = bytes.as_ptr_range();
    let mut count = 0;
    let outcome = server().decode(&mut bytes, None, &mut |event| {
        let Event::Message { data, .. } = event else { panic!("{event:?}") };
        assert!(range.contains(&data.as_ptr()));
        count += 1;
    });
    assert_eq!((outcome, count), (Ok(18), 2));
}

#[test]
fn a_client_takes_unmasked_frames_and_refuses_masked_ones() {
    let mut bytes = Vec::new();
    encode_frame(Opcode::Text, b"Hello", &mut bytes);
    let mut client = Decoder::new(Role::Client, LIMIT);
    assert_eq!(feed(&mut client, &[&bytes[..3], &bytes[3..]]), (vec![text("Hello")], Ok(4)));
    assert_eq!(feed(&mut client, &[&frame(FIN | TEXT, b"x")]).1, Err(DecodeError::Masked));
}
