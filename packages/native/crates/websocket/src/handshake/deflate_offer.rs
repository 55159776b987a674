use super::request_head::RequestHead;

const NAME: &str = "permessage-deflate";
/// RFC 7692 §7.1.2.1: the window of every DEFLATE, and the one that our frames are compressed with.
const MAX_WINDOW_BITS: u8 = 15;

/// permessage-deflate as it was agreed on: no context takeover in either direction, windows of 32 KiB.
///
/// Both are what makes one compressed frame fit every receiver, and compression cost no memory per connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedDeflate {
    /// The client named a size for our window, so the answer has to name it, too.
    names_server_window: bool,
}

impl AcceptedDeflate {
    /// The value of `Sec-WebSocket-Extensions` that accepts.
    #[must_use]
    pub fn response(self) -> &'static str {
        if self.names_server_window {
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=15"
        } else {
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
        }
    }
}

impl RequestHead<'_> {
    /// The first offer of permessage-deflate that can be accepted (RFC 7692 §5, §7.1).
    ///
    /// Declines offers with an unknown, repeated or malformed parameter, and those with a `server_max_window_bits`
    /// below 15, because all clients get the same compressed frame. A declined client is served without compression.
    #[must_use]
    pub fn accept_deflate(&self) -> Option<AcceptedDeflate> {
        // A quoted comma cuts an element in two, and neither half is a valid offer.
        self.list("sec-websocket-extensions").find_map(|offer| accept(std::str::from_utf8(offer).ok()?))
    }
}

fn accept(offer: &str) -> Option<AcceptedDeflate> {
    let mut parts = offer.split(';').map(str::trim);
    if !parts.next()?.eq_ignore_ascii_case(NAME) {
        return None;
    }
    let mut seen = Vec::new();
    let mut names_server_window = false;
    for part in parts {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(unquoted(value.trim_start()))),
            None => (part, None),
        };
        let is_fine = match (name, value) {
            ("server_no_context_takeover" | "client_no_context_takeover" | "client_max_window_bits", None) => true,
            // The client may use a smaller window: ours decompresses it.
            ("client_max_window_bits", Some(value)) => window_bits(value).is_some(),
            ("server_max_window_bits", Some(value)) => {
                names_server_window = true;
                window_bits(value) == Some(MAX_WINDOW_BITS)
            }
            _ => false,
        };
        if !is_fine || seen.contains(&name) {
            return None;
        }
        seen.push(name);
    }
    Some(AcceptedDeflate { names_server_window })
}

/// RFC 6455 §9.1: a value may be quoted, and must be a token then too.
fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// RFC 7692 §7.1.2: a decimal number from 8 to 15 without leading zeroes.
fn window_bits(value: &str) -> Option<u8> {
    let is_decimal = value.bytes().all(|byte| byte.is_ascii_digit()) && !value.starts_with('0');
    value.parse().ok().filter(|bits| is_decimal && (8..=MAX_WINDOW_BITS).contains(bits))
}

#[cfg(test)]
mod tests {
    use super::super::request_head::{ParsedHead, parse_request_head};

    /// The answer to these values of `Sec-WebSocket-Extensions`.
    fn answer(values: &[&str]) -> Option<&'static str> {
        let lines: String = values.iter().map(|value| format!("Sec-WebSocket-Extensions: {value}\r\n")).collect();
        let input = format!("GET / HTTP/1.1\r\n{lines}\r\n");
        match parse_request_head(input.as_bytes(), 8_192) {
            Ok(ParsedHead::Complete { head, .. }) => head.accept_deflate().map(super::AcceptedDeflate::response),
            other => panic!("{other:?}"),
        }
    }

    const PLAIN: Option<&str> = Some("permessage-deflate; server_no_context_takeover; client_no_context_takeover");

    #[test]
    fn what_browsers_and_libraries_offer_is_accepted_without_context_takeover() {
        for offer in [
            "permessage-deflate",
            "permessage-deflate; client_max_window_bits",
            "permessage-deflate;client_max_window_bits=9",
            "permessage-deflate; client_max_window_bits=\"15\"",
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
            "PerMessage-Deflate ; client_max_window_bits = 10",
            "x-webkit-deflate-frame, permessage-deflate",
        ] {
            assert_eq!(answer(&[offer]), PLAIN, "{offer}");
        }
    }

    #[test]
    fn a_window_that_the_client_names_is_named_in_the_answer() {
        let expected =
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=15";
        assert_eq!(answer(&["permessage-deflate; server_max_window_bits=15"]), Some(expected));
        assert_eq!(answer(&["permessage-deflate; server_max_window_bits=\"15\""]), Some(expected));
    }

    #[test]
    fn the_first_offer_that_can_be_accepted_is_taken() {
        assert_eq!(answer(&["permessage-deflate; server_max_window_bits=10, permessage-deflate"]), PLAIN);
        assert_eq!(answer(&["permessage-deflate; unknown", "permessage-deflate"]), PLAIN);
        assert_eq!(answer(&["permessage-deflate, permessage-deflate; server_max_window_bits=15"]), PLAIN);
    }

    #[test]
    fn what_cannot_be_accepted_is_declined() {
        for offer in [
            "",
            "deflate",
            "permessage-bzip2",
            "permessage-deflate; server_max_window_bits=14",
            "permessage-deflate; server_max_window_bits",
            "permessage-deflate; server_max_window_bits=016",
            "permessage-deflate; server_max_window_bits=015",
            "permessage-deflate; client_max_window_bits=7",
            "permessage-deflate; client_max_window_bits=16",
            "permessage-deflate; client_max_window_bits=+9",
            "permessage-deflate; client_max_window_bits=",
            "permessage-deflate; client_max_window_bits; client_max_window_bits=10",
            "permessage-deflate; server_no_context_takeover=1",
            "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
            "permessage-deflate; window=\"a, permessage-deflate\"",
            "permessage-deflate;",
        ] {
            assert_eq!(answer(&[offer]), None, "{offer}");
        }
        assert_eq!(answer(&[]), None);
    }
}
