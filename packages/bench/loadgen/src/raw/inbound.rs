//! What subscribers send: an upgrade, which everyone gets; then messages, counted and answered where the bench needs it.

use webmq_websocket::handshake::{Intent, ParsedHead, encode_switching_protocols, parse_request_head};
use webmq_websocket::{Opcode, encode_frame, unmask};

use crate::header::Header;

const MAX_HEAD_BYTES: usize = 16 << 10;
const SUBPROTOCOL: &str = "webmq.v1";

/// The outcome of the first bytes of a connection.
pub(crate) enum Upgrade {
    Incomplete,
    /// The response, and where the frames begin.
    Accepted {
        response: Vec<u8>,
        head_bytes: usize,
    },
    Refused,
}

pub(crate) fn upgrade(bytes: &[u8]) -> Upgrade {
    let (head, head_bytes) = match parse_request_head(bytes, MAX_HEAD_BYTES) {
        Ok(ParsedHead::Complete { head, head_bytes }) => (head, head_bytes),
        Ok(ParsedHead::Incomplete) => return Upgrade::Incomplete,
        Err(_) => return Upgrade::Refused,
    };
    let Ok(Intent::Upgrade(accept_key)) = head.intent() else { return Upgrade::Refused };
    let chosen = head.subprotocols().flatten().find(|name| *name == SUBPROTOCOL);
    let mut response = Vec::new();
    match encode_switching_protocols(&accept_key, chosen, None, [], &mut response) {
        Ok(()) => Upgrade::Accepted { response, head_bytes },
        Err(_) => Upgrade::Refused,
    }
}

/// The outcome of received bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) consumed_bytes: usize,
    pub(crate) message_count: u64,
    /// The connection is over: a close frame, or an invalid client frame.
    pub(crate) is_over: bool,
}

/// Handles the complete frames at the start of `bytes` and appends their answers to `answers`.
pub(crate) fn receive(bytes: &mut [u8], answers: &mut Vec<u8>) -> Received {
    let mut received = Received::default();
    while let Some(header) = Header::parse(&bytes[received.consumed_bytes..]) {
        let rest = &mut bytes[received.consumed_bytes..];
        let Some(mask) = header.mask else {
            received.is_over = true;
            return received;
        };
        if header.frame_bytes() > rest.len() as u64 {
            return received;
        }
        let frame_bytes = header.frame_bytes() as usize;
        let payload = &mut rest[usize::from(header.header_bytes)..frame_bytes];
        unmask(payload, mask);
        received.consumed_bytes += frame_bytes;
        match header.opcode() {
            0x0..=0x2 => {
                received.message_count += u64::from(header.is_final());
                answer(payload, answers);
            }
            0x8 => {
                encode_frame(Opcode::Close, payload, answers);
                received.is_over = true;
                return received;
            }
            0x9 => encode_frame(Opcode::Pong, payload, answers),
            _ => {}
        }
    }
    received
}

/// Answers the verbs of webmq.v1 that the bench needs.
fn answer(payload: &[u8], answers: &mut Vec<u8>) {
    if payload == b"ping" {
        encode_frame(Opcode::Text, b"pong", answers);
    } else if let Some(rest) = payload.strip_prefix(b"listen ") {
        let id = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
        encode_frame(Opcode::Text, &[b"ok ", id].concat(), answers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webmq_websocket::encode_masked_frame;

    fn frames(messages: &[(Opcode, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (opcode, payload) in messages {
            encode_masked_frame(*opcode, payload.as_bytes(), [1, 2, 3, 4], &mut bytes);
        }
        bytes
    }

    #[test]
    fn messages_are_counted_and_the_verbs_answered_however_the_bytes_are_cut() {
        let messages = [(Opcode::Text, "listen 1 bench.#"), (Opcode::Text, "hello"), (Opcode::Text, "ping")];
        let bytes = frames(&[&messages[..], &[(Opcode::Ping, "?"), (Opcode::Close, "")]].concat());
        let mut expected = Vec::new();
        encode_frame(Opcode::Text, b"ok 1", &mut expected);
        encode_frame(Opcode::Text, b"pong", &mut expected);
        encode_frame(Opcode::Pong, b"?", &mut expected);
        encode_frame(Opcode::Close, b"", &mut expected);
        for cut in 0..bytes.len() {
            let (mut answers, mut count) = (Vec::new(), 0);
            let mut first = bytes[..cut].to_vec();
            let received = receive(&mut first, &mut answers);
            assert!(!received.is_over);
            count += received.message_count;
            let mut second = bytes[received.consumed_bytes..].to_vec();
            let received = receive(&mut second, &mut answers);
            assert_eq!((count + received.message_count, received.is_over), (3, true), "cut at {cut}");
            assert_eq!(answers, expected);
        }
    }

    #[test]
    fn a_frame_without_a_mask_ends_the_connection() {
        let received = receive(&mut [0x81, 0x00], &mut Vec::new());
        assert!(received.is_over);
    }
}
