//! Any bytes as a request, and the answer that the codec gives to it.
//!
//! Input: two bytes of limit, one that chooses a prefix, then the request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use webmq_websocket::handshake::{
    HandshakeError, Intent, MAX_HEADER_COUNT, ParsedHead, RequestHead, encode_refusal, encode_switching_protocols,
    parse_request_head,
};

fuzz_target!(|data: &[u8]| {
    let [high, low, cut, bytes @ ..] = data else { return };
    let limit = usize::from(u16::from_be_bytes([*high, *low]));
    match parse_request_head(bytes, limit) {
        Ok(ParsedHead::Incomplete) => assert!(bytes.len() <= limit),
        Ok(ParsedHead::Complete { head, head_bytes }) => {
            assert!(head_bytes <= limit && head_bytes <= bytes.len() && head.headers.len() <= MAX_HEADER_COUNT);
            let prefix = &bytes[..head_bytes * usize::from(*cut) / 256];
            assert_eq!(parse_request_head(prefix, limit), Ok(ParsedHead::Incomplete), "complete only at its end");
            let alone = parse_request_head(&bytes[..head_bytes], limit);
            answer(&head);
            assert_eq!(alone, Ok(ParsedHead::Complete { head, head_bytes }), "what follows changes nothing");
        }
        Err(error) => refuse(&error),
    }
});

fn answer(head: &RequestHead<'_>) {
    let target = head.target;
    assert!(target.contains(head.path()) || head.path() == "/");
    assert!(target.contains(head.query()));
    match head.intent() {
        Ok(Intent::Http) => {}
        Ok(Intent::Upgrade(accept_key)) => {
            assert!(head.has_token("upgrade", "websocket") && head.has_token("connection", "upgrade"));
            for subprotocol in head.subprotocols() {
                let subprotocol = subprotocol.expect("intent refuses the others");
                let mut out = Vec::new();
                let written =
                    encode_switching_protocols(&accept_key, Some(subprotocol), head.accept_deflate(), [], &mut out);
                assert_eq!(written, Ok(()), "what was offered can be accepted");
            }
        }
        Err(error) => refuse(&error),
    }
}

fn refuse(error: &HandshakeError) {
    let mut out = Vec::new();
    encode_refusal(error, &mut out);
    let mut headers = [httparse::EMPTY_HEADER; 8];
    let mut response = httparse::Response::new(&mut headers);
    assert!(response.parse(&out).is_ok_and(|status| status.is_complete()));
    assert_eq!(response.code, Some(error.status()));
}
