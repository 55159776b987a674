use super::accept_key::AcceptKey;
use super::error::HandshakeError;
use super::request_head::RequestHead;

/// The intent of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// A valid handshake; accepted with this key.
    Upgrade(AcceptKey),
    /// Any other valid HTTP request, including an upgrade to another protocol.
    Http,
}

impl<'a> RequestHead<'a> {
    /// Distinguishes a handshake from plain HTTP by the rules of RFC 6455 §4.2.1.
    ///
    /// A request asks for WebSocket when `Upgrade` names it, or when it has a `Sec-WebSocket-Key`, which no script can
    /// set: the second catches proxies that remove `Upgrade`, the most frequent fault of a deployment.
    ///
    /// # Errors
    /// The request is an invalid WebSocket handshake.
    pub fn intent(&self) -> Result<Intent, HandshakeError> {
        let names_websocket = self.has_token("upgrade", "websocket");
        if !names_websocket && self.values("sec-websocket-key").next().is_none() {
            return Ok(Intent::Http);
        }
        if self.method != "GET" {
            return Err(HandshakeError::MethodNotAllowed);
        }
        if self.minor_version == 0 {
            return Err(HandshakeError::HttpTooOld);
        }
        if !names_websocket {
            return Err(HandshakeError::UpgradeMissing);
        }
        if !self.has_token("connection", "upgrade") {
            return Err(HandshakeError::ConnectionMissing);
        }
        if self.single("host").is_none() {
            return Err(HandshakeError::HostInvalid);
        }
        match self.single("sec-websocket-version") {
            Some(b"13") => {}
            Some(_) => return Err(HandshakeError::WebSocketVersionUnsupported),
            None => return Err(HandshakeError::WebSocketVersionInvalid),
        }
        let key = self.single("sec-websocket-key").ok_or(HandshakeError::KeyInvalid)?;
        let accept_key = AcceptKey::from_key(key).ok_or(HandshakeError::KeyInvalid)?;
        if self.subprotocols().any(|subprotocol| subprotocol.is_none()) {
            return Err(HandshakeError::SubprotocolsInvalid);
        }
        self.check_body()?;
        Ok(Intent::Upgrade(accept_key))
    }

    /// Whether the request asks for the event stream at `path`: a GET of it. Only for one that is [`Intent::Http`].
    ///
    /// # Errors
    /// It does, with two hosts or none, or with a body.
    pub fn asks_for_event_stream(&self, path: &str) -> Result<bool, HandshakeError> {
        if self.method != "GET" || self.path() != path {
            return Ok(false);
        }
        if self.single("host").is_none() {
            return Err(HandshakeError::HostInvalid);
        }
        self.check_body()?;
        Ok(true)
    }

    fn check_body(&self) -> Result<(), HandshakeError> {
        let has_body = self.values("content-length").any(|value| value != b"0")
            || self.values("transfer-encoding").next().is_some();
        if has_body { Err(HandshakeError::BodyNotAllowed) } else { Ok(()) }
    }

    /// Offered subprotocols in order of preference. `None` stands for one that is not a token, which
    /// [`intent`](Self::intent) refuses.
    pub fn subprotocols(&self) -> impl Iterator<Item = Option<&'a str>> {
        self.list("sec-websocket-protocol")
            .map(|element| std::str::from_utf8(element).ok().filter(|element| is_token(element)))
    }
}

/// RFC 9110 §5.6.2.
pub(super) fn is_token(text: &str) -> bool {
    let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

#[cfg(test)]
mod tests {
    use super::super::request_head::{ParsedHead, parse_request_head};
    use super::*;

    const LINES: [&str; 6] = [
        "GET /ws HTTP/1.1",
        "Host: example.com",
        "Upgrade: websocket",
        "Connection: keep-alive, Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];

    fn intent_of(lines: &[&str]) -> Result<Intent, HandshakeError> {
        let input = format!("{}\r\n\r\n", lines.join("\r\n"));
        match parse_request_head(input.as_bytes(), 8_192) {
            Ok(ParsedHead::Complete { head, .. }) => head.intent(),
            other => panic!("{other:?}"),
        }
    }

    /// The valid handshake with its line `index` replaced; without it when `line` is empty.
    fn changed(index: usize, line: &str) -> Result<Intent, HandshakeError> {
        let mut lines = LINES.to_vec();
        lines[index] = line;
        lines.retain(|line| !line.is_empty());
        intent_of(&lines)
    }

    /// The valid handshake with a line more.
    fn with(line: &str) -> Result<Intent, HandshakeError> {
        intent_of(&[&LINES[..], &[line]].concat())
    }

    #[test]
    fn a_handshake_that_follows_the_rules_is_an_upgrade() {
        let Ok(Intent::Upgrade(accept_key)) = intent_of(&LINES) else { panic!("refused") };
        assert_eq!(accept_key.as_bytes(), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(matches!(changed(2, "UPGRADE: foo, WebSocket"), Ok(Intent::Upgrade(_))));
        assert!(matches!(with("Content-Length: 0"), Ok(Intent::Upgrade(_))));
    }

    #[test]
    fn requests_that_do_not_ask_for_websocket_are_plain_http() {
        assert_eq!(intent_of(&["GET / HTTP/1.1", "Host: a"]), Ok(Intent::Http));
        assert_eq!(intent_of(&["POST /api HTTP/1.0", "Content-Length: 5"]), Ok(Intent::Http));
        assert_eq!(intent_of(&["GET / HTTP/1.1", "Connection: Upgrade", "Upgrade: h2c"]), Ok(Intent::Http));
    }

    #[test]
    fn each_broken_rule_has_its_own_refusal() {
        use HandshakeError as E;
        for (result, error, status) in [
            (changed(0, "POST /ws HTTP/1.1"), E::MethodNotAllowed, 405),
            (changed(0, "GET /ws HTTP/1.0"), E::HttpTooOld, 400),
            (changed(1, ""), E::HostInvalid, 400),
            (with("Host: other"), E::HostInvalid, 400),
            (changed(2, ""), E::UpgradeMissing, 400),
            (changed(2, "Upgrade: websockets"), E::UpgradeMissing, 400),
            (changed(3, ""), E::ConnectionMissing, 400),
            (changed(3, "Connection: keep-alive"), E::ConnectionMissing, 400),
            (changed(4, ""), E::WebSocketVersionInvalid, 400),
            (with("Sec-WebSocket-Version: 13"), E::WebSocketVersionInvalid, 400),
            (changed(4, "Sec-WebSocket-Version: 8"), E::WebSocketVersionUnsupported, 426),
            (changed(5, ""), E::KeyInvalid, 400),
            (changed(5, "Sec-WebSocket-Key: short"), E::KeyInvalid, 400),
            (with("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="), E::KeyInvalid, 400),
            (with("Sec-WebSocket-Protocol: a b"), E::SubprotocolsInvalid, 400),
            (with("Content-Length: 5"), E::BodyNotAllowed, 400),
            (with("Transfer-Encoding: chunked"), E::BodyNotAllowed, 400),
        ] {
            assert_eq!(result, Err(error));
            assert_eq!((error.status(), error.code()), (status, "E_HANDSHAKE_INVALID"));
        }
    }

    #[test]
    fn a_get_of_the_path_asks_for_an_event_stream() {
        let asks = |lines: &[&str]| {
            let input = format!("{}\r\n\r\n", lines.join("\r\n"));
            match parse_request_head(input.as_bytes(), 8_192) {
                Ok(ParsedHead::Complete { head, .. }) => head.asks_for_event_stream("/sse"),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(asks(&["GET /sse?listen=a HTTP/1.1", "Host: a", "Content-Length: 0"]), Ok(true));
        assert_eq!(asks(&["GET /sse HTTP/1.0", "Host: a"]), Ok(true));
        assert_eq!(asks(&["GET /sse/ HTTP/1.1", "Host: a"]), Ok(false));
        assert_eq!(asks(&["GET /SSE HTTP/1.1", "Host: a"]), Ok(false));
        assert_eq!(asks(&["POST /sse HTTP/1.1", "Content-Length: 5"]), Ok(false));
        assert_eq!(asks(&["GET /sse HTTP/1.1"]), Err(HandshakeError::HostInvalid));
        assert_eq!(asks(&["GET /sse HTTP/1.1", "Host: a", "Host: b"]), Err(HandshakeError::HostInvalid));
        assert_eq!(asks(&["GET /sse HTTP/1.1", "Host: a", "Content-Length: 5"]), Err(HandshakeError::BodyNotAllowed));
    }

    #[test]
    fn subprotocols_come_in_the_order_they_were_offered() {
        let input = "GET / HTTP/1.1\r\nSec-WebSocket-Protocol: webmq.v1, webmq.bearer.a-b_c\r\nsec-websocket-protocol: x\r\n\r\n";
        let Ok(ParsedHead::Complete { head, .. }) = parse_request_head(input.as_bytes(), 8_192) else {
            panic!("refused")
        };
        let offered: Vec<_> = head.subprotocols().flatten().collect();
        assert_eq!(offered, ["webmq.v1", "webmq.bearer.a-b_c", "x"]);
    }
}
