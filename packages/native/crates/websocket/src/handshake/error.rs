/// Why the codec refuses a request by itself.
///
/// [`encode_refusal`](super::encode_refusal) makes the response. The connection is closed after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// RFC 9112 §2: the bytes are not an HTTP request.
    #[error("request head is not HTTP/1.1: {0}")]
    Malformed(&'static str),
    /// RFC 9112 §2.3: another major version than 1.
    #[error("only HTTP/1.1 is spoken here")]
    VersionUnsupported,
    /// The head is longer than the limit.
    #[error("request head exceeds {max_head_bytes} bytes")]
    HeadTooLarge {
        /// The limit that was given to the parser.
        max_head_bytes: usize,
    },
    /// The head has too many headers.
    #[error("request has more than {} headers", super::MAX_HEADER_COUNT)]
    TooManyHeaders,
    /// RFC 6455 §4.1: the method of a handshake is GET.
    #[error("a WebSocket handshake is a GET request")]
    MethodNotAllowed,
    /// RFC 6455 §4.1: a handshake is HTTP/1.1 at least.
    #[error("a WebSocket handshake needs HTTP/1.1, this request is HTTP/1.0")]
    HttpTooOld,
    /// RFC 9112 §3.2: a request has one `Host`.
    #[error("this request needs exactly one Host header")]
    HostInvalid,
    /// RFC 6455 §4.2.1: `Upgrade: websocket` is required.
    #[error("Upgrade: websocket is missing, though Sec-WebSocket-Key is there: does a proxy in between remove it?")]
    UpgradeMissing,
    /// RFC 6455 §4.2.1: `Connection: Upgrade` is required.
    #[error("Connection: Upgrade is missing: does a proxy in between remove it?")]
    ConnectionMissing,
    /// RFC 6455 §4.2.1: version 13 is required.
    #[error("Sec-WebSocket-Version is missing or was sent twice")]
    WebSocketVersionInvalid,
    /// RFC 6455 §4.4: the version is another.
    #[error("only version 13 of WebSocket is spoken here")]
    WebSocketVersionUnsupported,
    /// RFC 6455 §4.2.1: one key of 16 bytes in base64 is required.
    #[error("Sec-WebSocket-Key is not exactly one key of 16 bytes in base64")]
    KeyInvalid,
    /// RFC 6455 §4.1: subprotocols are tokens.
    #[error("Sec-WebSocket-Protocol is not a list of tokens")]
    SubprotocolsInvalid,
    /// One end would read a body as frames and the other as a body.
    #[error("this request has no body")]
    BodyNotAllowed,
}

impl HandshakeError {
    /// Code in the error table of WebMQ.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::HeadTooLarge { .. } | Self::TooManyHeaders => "E_HEADERS_TOO_LARGE",
            _ => "E_HANDSHAKE_INVALID",
        }
    }

    /// Status of the response.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::MethodNotAllowed => 405,
            Self::WebSocketVersionUnsupported => 426,
            Self::HeadTooLarge { .. } | Self::TooManyHeaders => 431,
            Self::VersionUnsupported => 505,
            _ => 400,
        }
    }

    /// Headers that this status requires.
    #[must_use]
    pub fn headers(&self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::MethodNotAllowed => &[("Allow", "GET")],
            // RFC 6455 §4.4 and RFC 9110 §15.5.22
            Self::WebSocketVersionUnsupported => &[("Sec-WebSocket-Version", "13"), ("Upgrade", "websocket")],
            _ => &[],
        }
    }
}
