//! Any bytes, in any pieces, at both ends of a connection, with and without permessage-deflate.
//!
//! Input: one byte of flags (bit 0: role, bit 1: deflate, the rest: limit), three piece sizes, then the bytes of the
//! connection.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use webmq_websocket::{
    DecodeError, Decoder, Deflater, Event, Inflater, MAX_CLOSE_REASON_BYTES, MAX_CONTROL_PAYLOAD_BYTES, MessageKind,
    Opcode, Role, encode_close, encode_frame,
};

/// What a decoder said: every event, put back on the wire, and how it ended.
type Outcome = (Vec<u8>, Option<DecodeError>, bool);

/// How a connection is decoded.
#[derive(Clone, Copy)]
struct Setting {
    role: Role,
    is_deflate_negotiated: bool,
    limit: u32,
}

fuzz_target!(|data: &[u8]| {
    let [flags, a, b, c, bytes @ ..] = data else { return };
    let role = if flags & 1 == 0 { Role::Server } else { Role::Client };
    let setting = Setting { role, is_deflate_negotiated: flags & 2 != 0, limit: u32::from(flags >> 2) * 16 };

    let whole = decode(setting, bytes, &[usize::MAX]);
    let pieces = decode(setting, bytes, &[*a, *b, *c].map(|size| usize::from(size).max(1)));
    assert_eq!(whole, pieces, "cutting changes nothing");
    assert_eq!(whole, decode_one_by_one(setting, bytes), "and neither does breaking off after every event");

    let receiver = Setting { role: Role::Client, ..setting };
    let plain = decode(Setting { is_deflate_negotiated: false, ..receiver }, &whole.0, &[usize::MAX]);
    assert_eq!(plain, (whole.0.clone(), None, plain.2), "events survive the wire");
    if setting.is_deflate_negotiated {
        let compressed = decode(receiver, &compressed(&whole.0, setting.limit), &[usize::MAX]);
        assert_eq!(compressed, plain, "and being compressed");
    }
});

/// The frames with every message compressed that becomes smaller by it.
fn compressed(frames: &[u8], limit: u32) -> Vec<u8> {
    let (mut deflater, mut out) = (Deflater::default(), Vec::new());
    let decoded = Decoder::new(Role::Client, limit).decode(&mut frames.to_vec(), None, &mut |event| {
        if let Event::Message { kind, data } = event
            && let Some(frame) = deflater.encode_frame(opcode_of(kind), data)
        {
            out.extend_from_slice(&frame);
        } else {
            write(event, limit, &mut out);
        }
    });
    assert!(decoded.is_ok());
    out
}

fn decode(Setting { role, is_deflate_negotiated, limit }: Setting, bytes: &[u8], sizes: &[usize]) -> Outcome {
    let mut decoder = Decoder::new(role, limit);
    let mut inflater = Inflater::default();
    let mut said = Vec::new();
    let mut rest = bytes.to_vec();
    let mut sizes = sizes.iter().copied().cycle();
    while !rest.is_empty() {
        let size = sizes.next().unwrap_or(1).min(rest.len());
        let after = rest.split_off(size);
        let mut on_event = |event: Event<'_>| write(event, limit, &mut said);
        match decoder.decode(&mut rest, is_deflate_negotiated.then_some(&mut inflater), &mut on_event) {
            Ok(consumed) if decoder.is_finished() => {
                assert!(consumed <= size);
                assert_eq!(decoder.decode(&mut rest, None, &mut |event| panic!("after the end: {event:?}")), Ok(0));
            }
            Ok(consumed) => assert_eq!(consumed, size),
            Err(error) => {
                assert!(decoder.is_finished());
                assert_eq!(decoder.allocated_bytes(), 0);
                return (said, Some(error), true);
            }
        }
        let growth = if is_deflate_negotiated { limit / 64 + 64 } else { 0 };
        assert!(decoder.allocated_bytes() <= (limit + growth) as usize + MAX_CONTROL_PAYLOAD_BYTES);
        rest = after;
    }
    (said, None, decoder.is_finished())
}

/// Breaks off after every event and goes on behind it.
fn decode_one_by_one(Setting { role, is_deflate_negotiated, limit }: Setting, bytes: &[u8]) -> Outcome {
    let mut decoder = Decoder::new(role, limit);
    let mut inflater = is_deflate_negotiated.then(Inflater::default);
    let mut said = Vec::new();
    let mut rest = bytes.to_vec();
    while !rest.is_empty() && !decoder.is_finished() {
        let mut count = 0;
        let mut on_event = |event: Event<'_>| {
            count += 1;
            write(event, limit, &mut said);
            ControlFlow::Break(())
        };
        let decoded = decoder.decode_until(&mut rest, inflater.as_mut(), &mut on_event);
        assert!(count <= 1, "it broke off");
        match decoded {
            Ok(consumed) => {
                assert!(consumed > 0);
                assert!(consumed == rest.len() || count == 1);
                assert!(count == 0 || decoder.is_inside_message() || !decoder.is_inside());
                rest.drain(..consumed);
            }
            Err(error) => return (said, Some(error), true),
        }
    }
    (said, None, decoder.is_finished())
}

fn write(event: Event<'_>, limit: u32, out: &mut Vec<u8>) {
    match event {
        Event::Message { kind, data } => {
            assert!(data.len() <= limit as usize);
            assert!(kind == MessageKind::Binary || std::str::from_utf8(data).is_ok());
            encode_frame(opcode_of(kind), data, out);
        }
        Event::Ping(payload) => encode_frame(Opcode::Ping, payload, out),
        Event::Pong(payload) => encode_frame(Opcode::Pong, payload, out),
        Event::Close { code, reason } => {
            assert!(reason.len() <= MAX_CLOSE_REASON_BYTES);
            encode_close(code, reason, out);
        }
    }
}

fn opcode_of(kind: MessageKind) -> Opcode {
    match kind {
        MessageKind::Text => Opcode::Text,
        MessageKind::Binary => Opcode::Binary,
    }
}
