//! The server's half of the opening handshake, which accepts everyone.

use webmq_websocket::handshake::{Intent, ParsedHead, encode_switching_protocols, parse_request_head};

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
