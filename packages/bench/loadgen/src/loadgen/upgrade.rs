//! The client's half of the opening handshake (RFC 6455 §4.1).

use std::collections::BTreeMap;

use webmq_websocket::handshake::AcceptKey;

/// 16 bytes in base64, the same for all connections: it only proves that the server speaks WebSocket.
const KEY: &str = "d2VibXEtbG9hZGdlbiEhIQ==";
const OFFERED_COMPRESSION: &str = "permessage-deflate; client_no_context_takeover; server_no_context_takeover";
/// Longest head of a response.
pub(crate) const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_HEADER_COUNT: usize = 64;

/// The variable parts of the request.
pub(crate) struct Request<'a> {
    /// Host and port, for the header `Host`.
    pub(crate) authority: &'a str,
    pub(crate) path: &'a str,
    pub(crate) subprotocol: Option<&'a str>,
    pub(crate) token: Option<&'a str>,
    pub(crate) headers: &'a BTreeMap<String, String>,
    pub(crate) compression: bool,
}

impl Request<'_> {
    /// The request as it goes on the wire.
    ///
    /// # Errors
    /// A value with a line end.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, String> {
        let mut lines = vec![
            format!("GET {} HTTP/1.1", self.path),
            format!("Host: {}", self.authority),
            "Upgrade: websocket".to_owned(),
            "Connection: Upgrade".to_owned(),
            format!("Sec-WebSocket-Key: {KEY}"),
            "Sec-WebSocket-Version: 13".to_owned(),
        ];
        lines.extend(self.subprotocol.map(|name| format!("Sec-WebSocket-Protocol: {name}")));
        lines.extend(self.token.map(|token| format!("Authorization: Bearer {token}")));
        lines.extend(self.compression.then(|| format!("Sec-WebSocket-Extensions: {OFFERED_COMPRESSION}")));
        lines.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        if lines.iter().any(|line| line.contains(['\r', '\n'])) {
            return Err("authority, path, subprotocol, token and headers have no line ends".to_owned());
        }
        Ok((lines.join("\r\n") + "\r\n\r\n").into_bytes())
    }
}

/// The state of a response after the bytes so far.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Response {
    Incomplete,
    Upgraded {
        head_bytes: usize,
        is_compressed: bool,
    },
    /// Why there is no connection.
    Refused(String),
}

/// Reads the response at the start of `bytes`.
pub(crate) fn parse_response(bytes: &[u8], subprotocol: Option<&str>) -> Response {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADER_COUNT];
    let mut response = httparse::Response::new(&mut headers);
    let head_bytes = match response.parse(bytes) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) if bytes.len() <= MAX_HEAD_BYTES => return Response::Incomplete,
        Ok(httparse::Status::Partial) | Err(_) => return Response::Refused("handshake".to_owned()),
    };
    if response.code != Some(101) {
        return Response::Refused(format!("http {}", response.code.unwrap_or(0)));
    }
    let value = |name: &str| {
        let mut named = response.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        named.next().map(|header| header.value.trim_ascii())
    };
    let accept = AcceptKey::from_key(KEY.as_bytes());
    if value("sec-websocket-accept") != accept.as_ref().map(AcceptKey::as_bytes) {
        return Response::Refused("handshake".to_owned());
    }
    if !is_offered(value("sec-websocket-protocol"), subprotocol) {
        return Response::Refused("subprotocol".to_owned());
    }
    let extensions = value("sec-websocket-extensions").unwrap_or_default();
    Response::Upgraded { head_bytes, is_compressed: extensions.starts_with(b"permessage-deflate") }
}

/// Whether the server chose one of the offered subprotocols, or none when none was offered.
fn is_offered(chosen: Option<&[u8]>, offered: Option<&str>) -> bool {
    match (chosen, offered) {
        (None, None) => true,
        (Some(chosen), Some(offered)) => offered.split(',').any(|name| name.trim().as_bytes() == chosen),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webmq_websocket::handshake::{Intent, ParsedHead, encode_switching_protocols, parse_request_head};

    fn request() -> Vec<u8> {
        let request = Request {
            authority: "127.0.0.1:80",
            path: "/ws",
            subprotocol: Some("webmq.v1"),
            token: Some("abc"),
            headers: &BTreeMap::from([("X-A".to_owned(), "b".to_owned())]),
            compression: true,
        };
        request.encode().expect("valid")
    }

    fn response(subprotocol: Option<&str>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let accept = AcceptKey::from_key(KEY.as_bytes()).expect("valid");
        encode_switching_protocols(&accept, subprotocol, None, [], &mut bytes).expect("valid");
        bytes
    }

    #[test]
    fn the_request_is_one_that_the_server_upgrades() {
        let bytes = request();
        let Ok(ParsedHead::Complete { head, head_bytes }) = parse_request_head(&bytes, 8_192) else {
            panic!("no head")
        };
        assert_eq!(head_bytes, bytes.len());
        assert!(matches!(head.intent(), Ok(Intent::Upgrade(_))));
        assert_eq!(head.single("authorization"), Some(&b"Bearer abc"[..]));
        assert_eq!(head.single("x-a"), Some(&b"b"[..]));
    }

    #[test]
    fn the_response_is_understood_when_it_is_complete() {
        let bytes = response(Some("webmq.v1"));
        for len in 0..bytes.len() {
            assert_eq!(parse_response(&bytes[..len], Some("webmq.v1")), Response::Incomplete);
        }
        let more = [bytes.clone(), b"\x81\x00".to_vec()].concat();
        let upgraded = Response::Upgraded { head_bytes: bytes.len(), is_compressed: false };
        assert_eq!(parse_response(&more, Some("webmq.v1")), upgraded);
    }

    #[test]
    fn what_is_no_upgrade_says_why() {
        let refused = |bytes: &[u8], subprotocol| match parse_response(bytes, subprotocol) {
            Response::Refused(reason) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(b"HTTP/1.1 503 Busy\r\n\r\n", None), "http 503");
        assert_eq!(refused(b"HTTP/1.1 101 Switching\r\n\r\n", None), "handshake");
        assert_eq!(refused(b"SSH-2.0\r\n\r\n", None), "handshake");
        assert_eq!(refused(&response(None), Some("webmq.v1")), "subprotocol");
        assert_eq!(refused(&response(Some("other")), Some("webmq.v1")), "subprotocol");
    }
}
