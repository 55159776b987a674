use super::error::HandshakeError;

/// Headers of one request; more are refused with 431.
pub const MAX_HEADER_COUNT: usize = 100;

/// One header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// A token in its original case; names are compared without case (RFC 9110 §5.1).
    pub name: &'a str,
    /// Without white space around it. Bytes over 0x7f are allowed; by convention they are read as Latin-1.
    pub value: &'a [u8],
}

/// A request up to its empty line, borrowed from the bytes it was parsed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// `GET`, case-sensitive.
    pub method: &'a str,
    /// Request target as sent, not percent-decoded.
    pub target: &'a str,
    /// 1 for HTTP/1.1, 0 for HTTP/1.0.
    pub minor_version: u8,
    /// In order, including repeated ones.
    pub headers: Vec<Header<'a>>,
}

/// The state of a request after the bytes so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedHead<'a> {
    /// Read more, then parse all bytes again from the first.
    Incomplete,
    /// The head, and where it ends in the input.
    Complete {
        /// The parsed head.
        head: RequestHead<'a>,
        /// Bytes of the head, its empty line included.
        head_bytes: usize,
    },
}

/// Parses the request head at the start of `input`, which holds everything received since the request began.
///
/// Cost: linear in `input`, one allocation when complete. A peer that sends byte by byte costs at most
/// `max_head_bytes` squared over two.
///
/// # Errors
/// The bytes are not HTTP/1.x, or exceed `max_head_bytes` or [`MAX_HEADER_COUNT`]. Reported as early as possible,
/// before the head is complete.
pub fn parse_request_head(input: &[u8], max_head_bytes: usize) -> Result<ParsedHead<'_>, HandshakeError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADER_COUNT];
    let mut request = httparse::Request::new(&mut headers);
    let within_limit = &input[..input.len().min(max_head_bytes)];
    let head_bytes = match request.parse(within_limit).map_err(|error| refusal(error, input))? {
        httparse::Status::Complete(head_bytes) => head_bytes,
        httparse::Status::Partial if input.len() <= max_head_bytes => return Ok(ParsedHead::Incomplete),
        httparse::Status::Partial => return Err(HandshakeError::HeadTooLarge { max_head_bytes }),
    };
    let (Some(method), Some(target), Some(minor_version)) = (request.method, request.path, request.version) else {
        return Err(HandshakeError::Malformed("request line is incomplete"));
    };
    let headers = request.headers.iter().map(|header| Header { name: header.name, value: header.value }).collect();
    Ok(ParsedHead::Complete { head: RequestHead { method, target, minor_version, headers }, head_bytes })
}

/// `input` tells another version of HTTP from a target with a space in it.
fn refusal(error: httparse::Error, input: &[u8]) -> HandshakeError {
    use httparse::Error;
    match error {
        Error::TooManyHeaders => HandshakeError::TooManyHeaders,
        Error::Version if input.split(|byte| *byte == b' ').nth(2).is_some_and(|word| word.starts_with(b"HTTP/")) => {
            HandshakeError::VersionUnsupported
        }
        Error::HeaderName => HandshakeError::Malformed("invalid header name"),
        Error::HeaderValue => HandshakeError::Malformed("invalid header value"),
        Error::NewLine => HandshakeError::Malformed("invalid line end"),
        Error::Token | Error::Status | Error::Version => HandshakeError::Malformed("invalid request line"),
    }
}

impl<'a> RequestHead<'a> {
    /// Path without the query, as sent; `/` when the target has none.
    #[must_use]
    pub fn path(&self) -> &'a str {
        let origin = self.origin_form();
        match origin.split_once('?').map_or(origin, |(path, _)| path) {
            "" => "/",
            path => path,
        }
    }

    /// Query without `?`, as sent; empty when absent.
    #[must_use]
    pub fn query(&self) -> &'a str {
        self.origin_form().split_once('?').map_or("", |(_, query)| query)
    }

    /// Values of every header with this name (in any case), in order.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    }

    /// The value of a header that came exactly once.
    #[must_use]
    pub fn single(&self, name: &str) -> Option<&'a [u8]> {
        let mut values = self.values(name);
        let value = values.next();
        if values.next().is_some() { None } else { value }
    }

    /// Whether the comma-separated lists under this name hold `token`, in any case (RFC 9110 §5.6.1).
    #[must_use]
    pub fn has_token(&self, name: &str, token: &str) -> bool {
        self.list(name).any(|element| element.eq_ignore_ascii_case(token.as_bytes()))
    }

    /// Non-empty elements of the comma-separated lists under this name.
    pub(super) fn list(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.values(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|element| !element.is_empty())
    }

    /// The target without scheme and authority: a server must take the absolute form too (RFC 9112 §3.2.2).
    fn origin_form(&self) -> &'a str {
        if self.target.starts_with('/') {
            return self.target;
        }
        match self.target.split_once("://") {
            Some((_, rest)) => rest.find(['/', '?']).map_or("/", |start| &rest[start..]),
            None => self.target,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(input: &str) -> RequestHead<'_> {
        match parse_request_head(input.as_bytes(), 8_192) {
            Ok(ParsedHead::Complete { head, head_bytes }) if head_bytes == input.len() => head,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_head_is_incomplete_until_its_empty_line() {
        let input = b"GET /ws?a=1 HTTP/1.1\r\nHost: example.com\r\n\r\n";
        for len in 0..input.len() {
            assert_eq!(parse_request_head(&input[..len], 8_192), Ok(ParsedHead::Incomplete), "{len} bytes");
        }
    }

    #[test]
    fn what_follows_the_head_is_not_part_of_it() {
        let input = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\x81\x85";
        let Ok(ParsedHead::Complete { head, head_bytes }) = parse_request_head(input, 8_192) else {
            panic!("not complete")
        };
        assert_eq!(head_bytes, input.len() - 2);
        assert_eq!((head.method, head.target, head.minor_version), ("GET", "/", 1));
        assert_eq!(head.headers, [Header { name: "Host", value: b"a" }]);
    }

    #[test]
    fn path_and_query_are_as_sent() {
        for (target, path, query) in [
            ("/", "/", ""),
            ("/ws", "/ws", ""),
            ("/a%20b?x=1&y=?", "/a%20b", "x=1&y=?"),
            ("/?", "/", ""),
            ("http://example.com", "/", ""),
            ("http://example.com?q", "/", "q"),
            ("ws://example.com:80/ws?q", "/ws", "q"),
            ("*", "*", ""),
            ("/go?to=http://x/y", "/go", "to=http://x/y"),
        ] {
            let input = format!("GET {target} HTTP/1.1\r\n\r\n");
            let head = head(&input);
            assert_eq!((head.path(), head.query()), (path, query), "{target}");
        }
    }

    #[test]
    fn header_names_are_compared_without_case_and_values_are_trimmed() {
        let head = head("GET / HTTP/1.1\r\nX-A:  one \r\nx-a:two\r\nX-B: \t\r\n\r\n");
        assert_eq!(head.values("X-a").collect::<Vec<_>>(), [&b"one"[..], b"two"]);
        assert_eq!(head.single("x-a"), None);
        assert_eq!(head.single("x-b"), Some(&b""[..]));
        assert_eq!(head.single("x-c"), None);
    }

    #[test]
    fn tokens_are_found_in_lists_over_several_headers() {
        let head = head("GET / HTTP/1.1\r\nConnection: keep-alive, \r\nconnection: UPGRADE\r\n\r\n");
        assert!(head.has_token("Connection", "upgrade") && head.has_token("Connection", "Keep-Alive"));
        assert!(!head.has_token("Connection", "up") && !head.has_token("Connection", ""));
    }

    #[test]
    fn a_head_over_the_limit_is_refused_before_and_after_its_end() {
        let input = b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n";
        let refused = Err(HandshakeError::HeadTooLarge { max_head_bytes: 20 });
        assert_eq!(parse_request_head(input, 20), refused);
        assert_eq!(parse_request_head(&input[..21], 20), refused);
        assert_eq!(parse_request_head(&input[..20], 20), Ok(ParsedHead::Incomplete));
        assert!(matches!(parse_request_head(input, input.len()), Ok(ParsedHead::Complete { .. })));
    }

    #[test]
    fn a_hundred_headers_pass_and_one_more_does_not() {
        let request = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(count));
        assert_eq!(head(&request(100)).headers.len(), 100);
        assert_eq!(parse_request_head(request(101).as_bytes(), 8_192), Err(HandshakeError::TooManyHeaders));
    }

    #[test]
    fn what_is_not_http_is_refused_as_soon_as_it_shows() {
        for (input, status) in [
            (&b"\x16\x03\x01\x02\x00\x01"[..], 400), // a TLS hello
            (b"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nA : b\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nA: b\0\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", 400),
            (b"GET /a b HTTP/1.1\r\n\r\n", 400),
            (b"GET / HTTP/2.0\r\n\r\n", 505),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        ] {
            let error = parse_request_head(input, 8_192).expect_err("must be refused");
            assert_eq!(error.status(), status, "{}", input.escape_ascii());
            assert_eq!(error.code(), "E_HANDSHAKE_INVALID");
        }
    }
}
