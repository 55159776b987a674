//! Properties that hold for any messages, any cuts and any bytes.

use std::ops::ControlFlow;

use proptest::prelude::*;
use webmq_websocket::handshake::parse_request_head;
use webmq_websocket::{
    CloseCode, DecodeError, Decoder, Event, MessageKind, Opcode, Rest, Role, encode_close, encode_frame,
    encode_masked_frame,
};

const LIMIT: u32 = 300;

/// One message or control frame, and its form on the wire.
#[derive(Debug, Clone)]
enum Sent {
    /// A message, cut into fragments at these offsets, with a ping before every fragment but the first.
    Message {
        kind: MessageKind,
        data: Vec<u8>,
        cuts: Vec<usize>,
        ping_between: bool,
    },
    Pong(Vec<u8>),
}

/// A line per event: enough to compare.
fn line(event: Event<'_>) -> String {
    format!("{event:?}")
}

fn sent() -> impl Strategy<Value = Sent> {
    let text = "\\PC{0,70}".prop_map(|text| (MessageKind::Text, text.into_bytes()));
    let binary = prop::collection::vec(any::<u8>(), 0..LIMIT as usize).prop_map(|data| (MessageKind::Binary, data));
    let message = (prop_oneof![text, binary], prop::collection::vec(0_usize..300, 0..4), any::<bool>())
        .prop_map(|((kind, data), cuts, ping_between)| Sent::Message { kind, data, cuts, ping_between });
    prop_oneof![4 => message, 1 => prop::collection::vec(any::<u8>(), 0..126).prop_map(Sent::Pong)]
}

/// Appends one frame, masked for a server or plain for a client, with the FIN bit and opcode as given.
fn put(role: Role, fin: bool, opcode: Opcode, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) {
    let start = out.len();
    match role {
        Role::Server => encode_masked_frame(opcode, payload, mask, out),
        Role::Client => encode_frame(opcode, payload, out),
    }
    if !fin {
        out[start] &= 0x7f;
    }
}

/// The wire bytes of what was sent, and the events it must become.
fn wire(role: Role, sent: &[Sent], mask: [u8; 4]) -> (Vec<u8>, Vec<String>) {
    let (mut bytes, mut expected) = (Vec::new(), Vec::new());
    for sent in sent {
        match sent {
            Sent::Pong(payload) => {
                put(role, true, Opcode::Pong, payload, mask, &mut bytes);
                expected.push(line(Event::Pong(payload)));
            }
            Sent::Message { kind, data, cuts, ping_between } => {
                let mut ends: Vec<_> = cuts.iter().map(|cut| cut % (data.len() + 1)).chain([data.len()]).collect();
                ends.sort_unstable();
                let mut start = 0;
                for (index, end) in ends.iter().copied().enumerate() {
                    if index > 0 && *ping_between {
                        put(role, true, Opcode::Ping, b"between", mask, &mut bytes);
                        expected.push(line(Event::Ping(b"between")));
                    }
                    let opcode = match (index, kind) {
                        (0, MessageKind::Text) => Opcode::Text,
                        (0, MessageKind::Binary) => Opcode::Binary,
                        _ => Opcode::Continuation,
                    };
                    put(role, index + 1 == ends.len(), opcode, &data[start..end], mask, &mut bytes);
                    start = end;
                }
                expected.push(line(Event::Message { kind: *kind, data }));
            }
        }
    }
    (bytes, expected)
}

/// Decodes `bytes` in pieces of these sizes, over and over; checks what holds after every piece.
fn decode(role: Role, bytes: &[u8], sizes: &[usize]) -> (Vec<String>, Option<DecodeError>) {
    let mut decoder = Decoder::new(role, LIMIT);
    let mut events = Vec::new();
    let mut rest = bytes.to_vec();
    for size in sizes.iter().copied().cycle() {
        if rest.is_empty() {
            break;
        }
        let after = rest.split_off(size.clamp(1, rest.len()));
        let piece_bytes = rest.len();
        match decoder.decode(&mut rest, None, &mut |event| events.push(line(event))) {
            Ok(consumed) => assert!(consumed == piece_bytes || decoder.is_finished() && consumed < piece_bytes),
            Err(error) => return (events, Some(error)),
        }
        assert!(decoder.allocated_bytes() <= LIMIT as usize + 125);
        rest = after;
    }
    (events, None)
}

/// The same, but messages of which only the end of a frame is missing are completed in place.
fn decode_in_place(bytes: &[u8], sizes: &[usize]) -> (Vec<String>, Option<DecodeError>) {
    let mut decoder = Decoder::new(Role::Server, LIMIT);
    let mut events = Vec::new();
    let mut rest = bytes.to_vec();
    for size in sizes.iter().copied().cycle() {
        let missing = decoder.rest().filter(|message| message.missing_bytes <= rest.len());
        let decoded = if let Some(Rest { kind, received, missing_bytes }) = missing {
            let mut data = received.to_vec();
            data.extend(rest.drain(..missing_bytes));
            decoder.complete(&mut data).map(|()| events.push(line(Event::Message { kind, data: &data })))
        } else if rest.is_empty() {
            break;
        } else {
            let mut piece: Vec<u8> = rest.drain(..size.clamp(1, rest.len())).collect();
            decoder.decode(&mut piece, None, &mut |event| events.push(line(event))).map(drop)
        };
        if let Err(error) = decoded {
            assert!(decoder.is_finished());
            return (events, Some(error));
        }
    }
    (events, None)
}

proptest! {
    #[test]
    fn a_message_that_is_completed_in_place_is_the_same(
        sent in prop::collection::vec(sent(), 0..6),
        mask: [u8; 4],
        sizes in prop::collection::vec(1_usize..200, 1..6),
        damage in prop::option::of((any::<usize>(), any::<u8>())),
    ) {
        let (mut bytes, _) = wire(Role::Server, &sent, mask);
        if let Some((at, value)) = damage.filter(|_| !bytes.is_empty()) {
            let len = bytes.len();
            bytes[at % len] = value;
        }
        prop_assert_eq!(decode_in_place(&bytes, &sizes), decode(Role::Server, &bytes, &[usize::MAX]));
    }

    #[test]
    fn breaking_off_after_every_event_changes_nothing(
        sent in prop::collection::vec(sent(), 0..6),
        mask: [u8; 4],
        size in 1_usize..500,
    ) {
        let (bytes, expected) = wire(Role::Server, &sent, mask);
        let mut decoder = Decoder::new(Role::Server, LIMIT);
        let mut events = Vec::new();
        for piece in bytes.chunks(size) {
            let mut rest = piece.to_vec();
            while !rest.is_empty() {
                let before = events.len();
                let consumed = decoder.decode_until(&mut rest, None, &mut |event| {
                    events.push(line(event));
                    ControlFlow::Break(())
                });
                rest.drain(..consumed.expect("valid"));
                prop_assert!(events.len() == before + 1 || rest.is_empty());
                if !rest.is_empty() {
                    prop_assert!(decoder.is_inside_message() || !decoder.is_inside());
                }
            }
        }
        prop_assert_eq!(events, expected);
        prop_assert!(!decoder.is_inside());
    }

    #[test]
    fn messages_survive_any_fragmentation_any_cut_and_any_mask(
        sent in prop::collection::vec(sent(), 0..6),
        mask: [u8; 4],
        sizes in prop::collection::vec(1_usize..200, 1..6),
        is_server: bool,
    ) {
        let role = if is_server { Role::Server } else { Role::Client };
        let (bytes, expected) = wire(role, &sent, mask);
        prop_assert_eq!(decode(role, &bytes, &sizes), (expected, None));
    }

    #[test]
    fn bytes_that_were_damaged_give_the_same_events_and_the_same_error_however_they_are_cut(
        sent in prop::collection::vec(sent(), 1..4),
        mask: [u8; 4],
        sizes in prop::collection::vec(1_usize..50, 1..6),
        damage in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4),
    ) {
        let (mut bytes, _) = wire(Role::Server, &sent, mask);
        for (at, value) in damage {
            let len = bytes.len();
            bytes[at % len] = value;
        }
        prop_assert_eq!(decode(Role::Server, &bytes, &sizes), decode(Role::Server, &bytes, &[usize::MAX]));
    }

    #[test]
    fn any_bytes_give_the_same_events_and_the_same_error_however_they_are_cut(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        sizes in prop::collection::vec(1_usize..50, 1..6),
    ) {
        prop_assert_eq!(decode(Role::Client, &bytes, &sizes), decode(Role::Client, &bytes, &[usize::MAX]));
    }

    #[test]
    fn every_close_that_is_encoded_is_decoded(code in prop::option::of(0_u16..), reason in "\\PC{0,80}") {
        let code = code.and_then(CloseCode::new);
        let mut bytes = Vec::new();
        encode_close(code, &reason, &mut bytes);
        let mut count = 0;
        let outcome = Decoder::new(Role::Client, 0).decode(&mut bytes, None, &mut |event| {
            let Event::Close { code: decoded, reason: start } = event else { panic!("{event:?}") };
            assert_eq!(decoded, code);
            assert!(reason.starts_with(start));
            assert!(code.is_none() || start.len() == reason.len() || start.len() > 123 - 4);
            count += 1;
        });
        prop_assert_eq!((outcome, count), (Ok(bytes.len()), 1));
    }

    #[test]
    fn the_head_parser_takes_any_bytes_and_keeps_its_limit(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "(GET|POST) /[a-z?]{0,9} HTTP/1.[01]\r\n([A-Za-z-]{1,9}: {0,2}[ -~]{0,9}\r\n){0,9}(\r\n)?".prop_map(String::into_bytes),
        ],
        max_head_bytes in 0_usize..150,
    ) {
        use webmq_websocket::handshake::ParsedHead;
        match parse_request_head(&bytes, max_head_bytes) {
            Ok(ParsedHead::Complete { head, head_bytes }) => {
                prop_assert!(head_bytes <= max_head_bytes.min(bytes.len()));
                prop_assert!(head.intent().is_ok() || head.has_token("upgrade", "websocket") || head.single("sec-websocket-key").is_some());
            }
            Ok(ParsedHead::Incomplete) => prop_assert!(bytes.len() <= max_head_bytes),
            Err(error) => prop_assert!((400..600).contains(&error.status())),
        }
    }
}
