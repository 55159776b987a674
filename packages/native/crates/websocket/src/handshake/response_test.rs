use super::super::request_head::{ParsedHead, parse_request_head};
use super::*;

fn accept_key() -> AcceptKey {
    AcceptKey::from_key(b"dGhlIHNhbXBsZSBub25jZQ==").expect("valid key")
}

#[test]
fn an_event_stream_begins_with_these_bytes() {
    let mut out = Vec::new();
    assert_eq!(encode_event_stream([("Vary", "Origin")], &mut out), Ok(()));
    let expected = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store, no-transform\r\n\
        X-Accel-Buffering: no\r\nConnection: close\r\nVary: Origin\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&out), expected);
    for (name, value) in [("Content-Type", "a"), ("connection", "a"), ("a", "b\r\nc: d"), ("a b", "c")] {
        let mut out = Vec::new();
        assert!(encode_event_stream([(name, value)], &mut out).is_err(), "{name}");
        assert!(out.is_empty());
    }
}

#[test]
fn a_handshake_is_accepted_with_these_bytes() {
    let mut out = Vec::new();
    let headers = [("X-Node", "a")];
    assert_eq!(encode_switching_protocols(&accept_key(), Some("webmq.v1"), None, headers, &mut out), Ok(()));
    let expected = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: webmq.v1\r\nX-Node: a\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

#[test]
fn what_was_agreed_on_about_compression_is_in_the_answer() {
    let input = b"GET / HTTP/1.1\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n";
    let Ok(ParsedHead::Complete { head, .. }) = parse_request_head(input, 8_192) else { panic!("refused") };
    let mut out = Vec::new();
    assert_eq!(encode_switching_protocols(&accept_key(), None, head.accept_deflate(), [], &mut out), Ok(()));
    let expected = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
        Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

#[test]
fn a_refusal_has_these_bytes() {
    let mut out = Vec::new();
    assert_eq!(encode_response(403, [("X-A", "b")], "no", &mut out), Ok(()));
    let expected = "HTTP/1.1 403 Forbidden\r\nX-A: b\r\nContent-Type: text/plain; charset=utf-8\r\n\
        Content-Length: 2\r\nConnection: close\r\n\r\nno";
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

#[test]
fn a_refusal_without_a_body_has_no_content_type_and_a_given_one_is_kept() {
    let mut out = Vec::new();
    assert_eq!(encode_response(599, [], "", &mut out), Ok(()));
    assert_eq!(out, b"HTTP/1.1 599 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    out.clear();
    assert_eq!(encode_response(400, [("content-type", "application/json")], "{}", &mut out), Ok(()));
    assert_eq!(String::from_utf8_lossy(&out).to_lowercase().matches("content-type").count(), 1);
}

#[test]
fn another_version_is_told_which_one_is_spoken() {
    let mut out = Vec::new();
    encode_refusal(&HandshakeError::WebSocketVersionUnsupported, &mut out);
    let text = String::from_utf8_lossy(&out);
    assert!(text.starts_with("HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n"));
    assert!(text.contains("\r\nContent-Type: application/json; charset=utf-8\r\n"), "{text}");
    let body = concat!(
        r#"{"code":"E_HANDSHAKE_INVALID","message":"only version 13 of WebSocket is spoken here","#,
        r#""docs":"https://github.com/webmq/webmq/blob/main/docs/errors.md#e_handshake_invalid"}"#,
    );
    assert!(text.trim_end().ends_with(body), "{text}");
    assert_eq!(
        refusal_body("E", r#"a "b" \ c"#),
        "{\"code\":\"E\",\"message\":\"a \\\"b\\\" \\\\ c\",\"docs\":\"https://github.com/webmq/webmq/blob/main/docs/errors.md#e\"}\n"
    );
}

#[test]
fn what_would_break_out_of_a_header_is_refused_and_leaves_nothing_behind() {
    for (name, value, error) in [
        ("X-A", "b\r\nSet-Cookie: c", ResponseError::ValueInvalid("X-A".into())),
        ("X-A", "b\nc", ResponseError::ValueInvalid("X-A".into())),
        ("X-A", "b\0", ResponseError::ValueInvalid("X-A".into())),
        ("X-A: b\r\nX", "c", ResponseError::NameInvalid("X-A: b\r\nX".into())),
        ("", "c", ResponseError::NameInvalid(String::new())),
        ("Sec-WebSocket-Accept", "c", ResponseError::NameReserved("Sec-WebSocket-Accept".into())),
        ("transfer-encoding", "chunked", ResponseError::NameReserved("transfer-encoding".into())),
    ] {
        let mut out = b"kept".to_vec();
        let headers = [("X-Before", "x"), (name, value)];
        assert_eq!(encode_switching_protocols(&accept_key(), None, None, headers, &mut out), Err(error.clone()));
        assert_eq!(encode_response(400, headers, "", &mut out), Err(error));
        assert_eq!(out, b"kept");
    }
}

#[test]
fn a_subprotocol_that_is_no_token_and_a_status_that_does_not_refuse_are_refused() {
    let mut out = Vec::new();
    let refused = encode_switching_protocols(&accept_key(), Some("a\r\nb"), None, [], &mut out);
    assert_eq!(refused, Err(ResponseError::SubprotocolInvalid("a\r\nb".into())));
    assert_eq!(encode_response(200, [], "", &mut out), Err(ResponseError::StatusInvalid(200)));
    assert!(out.is_empty());
}
