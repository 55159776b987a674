use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Header, Malformed, UNKNOWN};

pub(super) const PREFIX: &[u8] = b"PROXY ";
const LINE_END: &[u8] = b"\r\n";
/// [PROXY §2.1]: the longest line, its end included.
const MAX_LINE_BYTES: usize = 107;

pub(super) fn parse(bytes: &[u8]) -> Result<Header, Malformed> {
    let line = &bytes[..bytes.len().min(MAX_LINE_BYTES)];
    let Some(end) = line.windows(LINE_END.len()).position(|window| window == LINE_END) else {
        return if line.len() < MAX_LINE_BYTES { Ok(Header::Incomplete) } else { Err(Malformed::Invalid) };
    };
    let text = std::str::from_utf8(&line[PREFIX.len()..end]).map_err(|_| Malformed::Invalid)?;
    let client = client(text).ok_or(Malformed::Invalid)?;
    Ok(Header::Complete { client: Some(client), length: end + LINE_END.len() })
}

/// Reads `TCP4 192.0.2.1 198.51.100.1 56324 443`. `None`: it is malformed.
fn client(text: &str) -> Option<SocketAddr> {
    let mut words = text.split(' ');
    let protocol = words.next()?;
    if protocol == "UNKNOWN" {
        // What follows is ignored.
        return Some(UNKNOWN);
    }
    let [source, destination, source_port, destination_port] =
        [words.next()?, words.next()?, words.next()?, words.next()?];
    if words.next().is_some() {
        return None;
    }
    let address = |text: &str| match protocol {
        "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::from),
        "TCP6" => text.parse::<Ipv6Addr>().ok().map(IpAddr::from),
        _ => None,
    };
    address(destination)?;
    port(destination_port)?;
    Some(SocketAddr::new(address(source)?, port(source_port)?))
}

/// Digits alone: `parse` would take a sign.
fn port(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn a_line_names_the_client() {
        for (line, client) in [
            ("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n", "192.0.2.1:56324"),
            ("PROXY TCP6 2001:db8::1 2001:db8::2 0 65535\r\n", "[2001:db8::1]:0"),
            ("PROXY UNKNOWN\r\n", "0.0.0.0:0"),
            ("PROXY UNKNOWN ffff:f...f:ffff 65535 65535\r\n", "0.0.0.0:0"),
        ] {
            let client = Some(client.parse().expect("an address"));
            let with_more = format!("{line}GET / HTTP/1.1\r\n");
            for bytes in [line, &with_more] {
                assert_eq!(parse(bytes.as_bytes()), Ok(Header::Complete { client, length: line.len() }), "{line}");
            }
            for length in 0..line.len() {
                assert_eq!(parse(&line.as_bytes()[..length]), Ok(Header::Incomplete), "{length} bytes of {line}");
            }
        }
    }

    #[test]
    fn a_malformed_line_is_refused() {
        for line in [
            "PROXY \r\n",
            "PROXY TCP4\r\n",
            "PROXY UDP4 192.0.2.1 198.51.100.1 56324 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 1\r\n",
            "PROXY TCP4  192.0.2.1 198.51.100.1 56324 443\r\n",
            "PROXY TCP4 192.0.2.256 198.51.100.1 56324 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 65536 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 +1 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1  443\r\n",
            "PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",
            "PROXY TCP6 192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY TCP6 2001:db8::1 ::g 1 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\n\r\n",
        ] {
            assert_eq!(parse(line.as_bytes()), Err(Malformed::Invalid), "{line}");
        }
        let endless = format!("PROXY UNKNOWN {}", "x".repeat(MAX_LINE_BYTES));
        assert_eq!(parse(endless.as_bytes()), Err(Malformed::Invalid));
        assert_eq!(parse(b"GET / HTTP/1.1\r\n"), Err(Malformed::Absent));
        assert_eq!(parse(b"\x16\x03\x01"), Err(Malformed::Absent));
    }
}
