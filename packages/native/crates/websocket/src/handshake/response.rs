use std::fmt::Display;

use super::accept_key::AcceptKey;
use super::deflate_offer::AcceptedDeflate;
use super::error::HandshakeError;
use super::upgrade::is_token;

/// Headers that the codec writes itself; a second one would contradict it.
const OWN_HEADERS: [&str; 7] = [
    "connection",
    "content-length",
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-protocol",
    "transfer-encoding",
    "upgrade",
];

/// Headers of a 101 response that the codec writes and a refusal may carry (426 requires `Upgrade`).
const REFUSAL_HEADERS: [&str; 1] = ["upgrade"];

/// Why a response cannot be written. Nothing was appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// RFC 9110 §5.1: a name is a token.
    #[error("header name {0:?} is not a token")]
    NameInvalid(String),
    /// RFC 9110 §5.5: a line end or another control character would start a new header or response.
    #[error("value of header {0} has a control character")]
    ValueInvalid(String),
    /// The codec writes this header itself.
    #[error("header {0} is written by the transport")]
    NameReserved(String),
    /// RFC 6455 §4.2.2: a subprotocol is a token.
    #[error("subprotocol {0:?} is not a token")]
    SubprotocolInvalid(String),
    /// A refusal has a status from 300 to 599.
    #[error("status {0} does not refuse")]
    StatusInvalid(u16),
}

impl ResponseError {
    /// Code in the error table of WebMQ.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "E_OPTION_INVALID"
    }
}

/// Appends the 101 response that accepts a handshake (RFC 6455 §4.2.2).
///
/// `subprotocol` must be one that the client offered, and `deflate` the result of
/// [`RequestHead::accept_deflate`](super::RequestHead::accept_deflate). Otherwise clients drop the connection.
///
/// # Errors
/// A name or value that may not be sent. Nothing was appended.
pub fn encode_switching_protocols<'h>(
    accept_key: &AcceptKey,
    subprotocol: Option<&str>,
    deflate: Option<AcceptedDeflate>,
    headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    if let Some(subprotocol) = subprotocol
        && !is_token(subprotocol)
    {
        return Err(ResponseError::SubprotocolInvalid(subprotocol.to_owned()));
    }
    append(out, |out| {
        out.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n");
        out.extend_from_slice(b"Sec-WebSocket-Accept: ");
        out.extend_from_slice(accept_key.as_bytes());
        out.extend_from_slice(b"\r\n");
        if let Some(subprotocol) = subprotocol {
            header_line("Sec-WebSocket-Protocol", subprotocol, out);
        }
        if let Some(deflate) = deflate {
            header_line("Sec-WebSocket-Extensions", deflate.response(), out);
        }
        checked_headers(headers, |_| false, out)?;
        out.extend_from_slice(b"\r\n");
        Ok(())
    })
}

/// Headers of an event stream that the codec writes.
const STREAM_HEADERS: [&str; 3] = ["cache-control", "content-type", "x-accel-buffering"];

/// Appends the response that begins an event stream (WHATWG HTML §9.2). Its body ends with the connection, so that all streams
/// get the same bytes, and HTTP/1.0 gets them too. `X-Accel-Buffering` keeps nginx from holding events back.
///
/// # Errors
/// A name or value that may not be sent. Nothing was appended.
pub fn encode_event_stream<'h>(
    headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    append(out, |out| {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n");
        // A proxy that compresses holds events back until it has a block.
        out.extend_from_slice(b"Cache-Control: no-store, no-transform\r\n");
        out.extend_from_slice(b"X-Accel-Buffering: no\r\nConnection: close\r\n");
        let headers = headers.into_iter().map(|(name, value)| {
            let is_own = STREAM_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name));
            if is_own { Err(ResponseError::NameReserved(name.to_owned())) } else { Ok((name, value)) }
        });
        for header in headers {
            checked_headers([header?], |_| false, out)?;
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    })
}

/// Appends a refusal with `Content-Length` and `Connection: close`. The caller closes after it.
///
/// A body without a `Content-Type` among `headers` is plain text.
///
/// # Errors
/// A status that does not refuse, or a name or value that may not be sent. Nothing was appended.
pub fn encode_response<'h>(
    status: u16,
    headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    body: &str,
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    if !(300..=599).contains(&status) {
        return Err(ResponseError::StatusInvalid(status));
    }
    append(out, |out| {
        let mut has_content_type = false;
        out.extend_from_slice(format!("HTTP/1.1 {status} {}\r\n", reason_phrase(status)).as_bytes());
        let headers = headers.into_iter().inspect(|(name, _)| {
            has_content_type |= name.eq_ignore_ascii_case("content-type");
        });
        checked_headers(headers, |name| REFUSAL_HEADERS.contains(&name), out)?;
        if !has_content_type && !body.is_empty() {
            header_line("Content-Type", "text/plain; charset=utf-8", out);
        }
        header_line("Content-Length", &body.len().to_string(), out);
        out.extend_from_slice(b"Connection: close\r\n\r\n");
        out.extend_from_slice(body.as_bytes());
        Ok(())
    })
}

/// Appends the response to a request that the codec refuses by itself, with a [`refusal_body`].
pub fn encode_refusal(error: &HandshakeError, out: &mut Vec<u8>) {
    let headers = error.headers().iter().copied().chain([JSON]);
    let written = encode_response(error.status(), headers, &refusal_body(error.code(), error), out);
    debug_assert_eq!(written, Ok(()), "the table of HandshakeError is valid");
}

/// The header that goes with a [`refusal_body`].
pub const JSON: (&str, &str) = ("Content-Type", "application/json; charset=utf-8");

/// Where users read about errors; `docs-url.ts` of the client has the same address.
const ERRORS_PAGE: &str = "https://github.com/webmq/webmq/blob/main/docs/errors.md";

/// The body of a refusal [P-1.4]: code, sentence and a link to their explanation, as JSON.
#[must_use]
pub fn refusal_body(code: &str, message: impl Display) -> String {
    let message = message.to_string().replace('\\', "\\\\").replace('"', "\\\"");
    let anchor = code.to_ascii_lowercase();
    format!("{{\"code\":\"{code}\",\"message\":\"{message}\",\"docs\":\"{ERRORS_PAGE}#{anchor}\"}}\n")
}

/// Removes the appended bytes when writing fails.
fn append(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), ResponseError>,
) -> Result<(), ResponseError> {
    let start = out.len();
    write(out).inspect_err(|_| out.truncate(start))
}

fn header_line(name: &str, value: &str, out: &mut Vec<u8>) {
    for part in [name, ": ", value, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn checked_headers<'h>(
    headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    may_be_own: impl Fn(&str) -> bool,
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    for (name, value) in headers {
        if !is_token(name) {
            return Err(ResponseError::NameInvalid(name.to_owned()));
        }
        let lower = name.to_ascii_lowercase();
        if OWN_HEADERS.contains(&lower.as_str()) && !may_be_own(&lower) {
            return Err(ResponseError::NameReserved(name.to_owned()));
        }
        if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
            return Err(ResponseError::ValueInvalid(name.to_owned()));
        }
        header_line(name, value, out);
    }
    Ok(())
}

/// RFC 9110 §15 for the statuses of refusals. The phrase may be empty.
fn reason_phrase(status: u16) -> &'static str {
    match status {
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
#[path = "response_test.rs"]
mod tests;
