//! Any bytes, in any pieces, at both ends of a connection.
//!
//! Input: one byte of flags (bit 0: role, the rest: limit), three piece sizes, then the bytes of the connection.
#![no_main]

use libfuzzer_sys::fuzz_target;
use webmq_websocket::{
    DecodeError, Decoder, Event, MAX_CLOSE_REASON_BYTES, MAX_CONTROL_PAYLOAD_BYTES, MessageKind, Opcode, Role,
    encode_close, encode_frame,
};

/// What a decoder said: every event, put back on the wire, and how it ended.
type Outcome = (Vec<u8>, Option<DecodeError>, bool);

fuzz_target!(|data: &[u8]| {
    let [flags, a, b, c, bytes @ ..] = data else { return };
    let role = if flags & 1 == 0 { Role::Server } else { Role::Client };
    let limit = u32::from(flags >> 1) * 8;

    let whole = decode(role, limit, bytes, &[usize::MAX]);
    let pieces = decode(role, limit, bytes, &[*a, *b, *c].map(|size| usize::from(size).max(1)));
    assert_eq!(whole, pieces, "cutting changes nothing");

    let again = decode(Role::Client, limit, &whole.0, &[usize::MAX]);
    assert_eq!(again, (whole.0, None, again.2), "events survive the wire");
});

fn decode(role: Role, limit: u32, bytes: &[u8], sizes: &[usize]) -> Outcome {
    let mut decoder = Decoder::new(role, limit);
    let mut said = Vec::new();
    let mut rest = bytes.to_vec();
    let mut sizes = sizes.iter().copied().cycle();
    while !rest.is_empty() {
        let size = sizes.next().unwrap_or(1).min(rest.len());
        let after = rest.split_off(size);
        match decoder.decode(&mut rest, &mut |event| write(event, limit, &mut said)) {
            Ok(consumed) if decoder.is_finished() => {
                assert!(consumed <= size);
                assert_eq!(decoder.decode(&mut rest, &mut |event| panic!("after the end: {event:?}")), Ok(0));
            }
            Ok(consumed) => assert_eq!(consumed, size),
            Err(error) => {
                assert!(decoder.is_finished());
                assert_eq!(decoder.allocated_bytes(), 0);
                return (said, Some(error), true);
            }
        }
        assert!(decoder.allocated_bytes() <= limit as usize + MAX_CONTROL_PAYLOAD_BYTES);
        rest = after;
    }
    (said, None, decoder.is_finished())
}

fn write(event: Event<'_>, limit: u32, out: &mut Vec<u8>) {
    match event {
        Event::Message { kind, data } => {
            assert!(data.len() <= limit as usize);
            let opcode = match kind {
                MessageKind::Text => Opcode::Text,
                MessageKind::Binary => Opcode::Binary,
            };
            assert!(kind == MessageKind::Binary || std::str::from_utf8(data).is_ok());
            encode_frame(opcode, data, out);
        }
        Event::Ping(payload) => encode_frame(Opcode::Ping, payload, out),
        Event::Pong(payload) => encode_frame(Opcode::Pong, payload, out),
        Event::Close { code, reason } => {
            assert!(reason.len() <= MAX_CLOSE_REASON_BYTES);
            encode_close(code, reason, out);
        }
    }
}
