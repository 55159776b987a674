//! The server messages that a client needs (docs/protocol.md).

use memchr::memchr;

/// One message of the server, borrowed from the read buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming<'a> {
    Welcome,
    Ok {
        id: &'a [u8],
    },
    Error {
        id: &'a [u8],
        code: &'a [u8],
    },
    Message {
        key: &'a [u8],
        payload: &'a [u8],
    },
    Gap,
    /// `pong`, `bye`, and what later versions of the protocol add [P-11.2].
    Other,
}

impl<'a> Incoming<'a> {
    /// Reads one message; `None` when it violates the protocol.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let line_end = memchr(b'\n', bytes).unwrap_or(bytes.len());
        let (line, body) = (&bytes[..line_end], bytes.get(line_end + 1..).unwrap_or_default());
        let mut fields = line.split(|byte| *byte == b' ');
        match fields.next()? {
            b"message" => Some(Self::Message { key: fields.next()?, payload: body }),
            b"ok" => Some(Self::Ok { id: fields.next()? }),
            b"error" => Some(Self::Error { id: fields.next()?, code: fields.next()? }),
            b"welcome" => Some(Self::Welcome),
            b"gap" => Some(Self::Gap),
            b"" => None,
            _ => Some(Self::Other),
        }
    }
}

/// The number of a key of the pool, such as 17 of `bench.17`; `None` for other keys.
pub(super) fn key_number(key: &[u8], prefix: &[u8]) -> Option<u32> {
    let text = key.strip_prefix(prefix)?.strip_prefix(b".")?;
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit) && (text == b"0" || text[0] != b'0');
    if is_number { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_server_are_read_whatever_options_they_have() {
        let message = Incoming::Message { key: b"bench.1", payload: b"{}" };
        assert_eq!(Incoming::parse(b"message bench.1 m:1 replay\n{}"), Some(message));
        let message = Incoming::Message { key: b"bench.1", payload: b"" };
        assert_eq!(Incoming::parse(b"message bench.1 -"), Some(message));
        assert_eq!(Incoming::parse(b"ok p2 position=a:1"), Some(Incoming::Ok { id: b"p2" }));
        let error = Incoming::Error { id: b"p2", code: b"E_FORBIDDEN" };
        assert_eq!(Incoming::parse(b"error p2 E_FORBIDDEN\n{}"), Some(error));
        assert_eq!(Incoming::parse(b"gap bench.1 restart"), Some(Incoming::Gap));
        assert_eq!(Incoming::parse(b"welcome\n{}"), Some(Incoming::Welcome));
        assert_eq!(Incoming::parse(b"pong"), Some(Incoming::Other));
        for wrong in [&b""[..], b"message", b"ok", b"error p2", b" "] {
            assert_eq!(Incoming::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn keys_of_the_pool_have_a_number_and_others_have_none() {
        assert_eq!(key_number(b"bench.0", b"bench"), Some(0));
        assert_eq!(key_number(b"bench.170", b"bench"), Some(170));
        for wrong in [&b"bench"[..], b"bench.", b"bench.01", b"bench.1a", b"bench.-1", b"other.1", b"bench.99999999999"]
        {
            assert_eq!(key_number(wrong, b"bench"), None, "{wrong:?}");
        }
    }
}
