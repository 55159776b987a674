use std::net::{IpAddr, SocketAddr};

use super::{Header, MAX_BYTES, Malformed, UNKNOWN};

pub(super) const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family and protocol, and the length of what follows.
const FIXED_BYTES: usize = 16;
const VERSION: u8 = 2;

/// The connection is the proxy's own.
const LOCAL: u8 = 0;
const PROXY: u8 = 1;

const INET: u8 = 1;
const INET6: u8 = 2;
const UNIX: u8 = 3;
/// Two addresses of 4, 16 or 108 bytes, and two ports where there are any.
const INET_BYTES: usize = 12;
const INET6_BYTES: usize = 36;
const UNIX_BYTES: usize = 216;

const STREAM: u8 = 1;
const DATAGRAM: u8 = 2;

/// Type and length of a TLV.
const TLV_HEAD_BYTES: usize = 3;

pub(super) fn parse(bytes: &[u8]) -> Result<Header, Malformed> {
    let Some(&[version_and_command, family_and_protocol, high, low]) =
        bytes.get(SIGNATURE.len()..FIXED_BYTES).and_then(<[u8]>::first_chunk)
    else {
        return Ok(Header::Incomplete);
    };
    let length = FIXED_BYTES + usize::from(u16::from_be_bytes([high, low]));
    let command = version_and_command & 0xf;
    if version_and_command >> 4 != VERSION || command > PROXY {
        return Err(Malformed::Invalid);
    }
    if length > MAX_BYTES {
        return Err(Malformed::TooLong);
    }
    let Some(rest) = bytes.get(FIXED_BYTES..length) else { return Ok(Header::Incomplete) };
    if command == LOCAL {
        // [PROXY §2.2]: the rest is skipped, whatever it is.
        return Ok(Header::Complete { client: None, length });
    }
    let client = client(family_and_protocol >> 4, family_and_protocol & 0xf, rest).ok_or(Malformed::Invalid)?;
    Ok(Header::Complete { client: Some(client), length })
}

/// `None`: it is malformed.
fn client(family: u8, protocol: u8, rest: &[u8]) -> Option<SocketAddr> {
    let address_bytes = match family {
        0 => 0,
        INET => INET_BYTES,
        INET6 => INET6_BYTES,
        UNIX => UNIX_BYTES,
        _ => return None,
    };
    if protocol > DATAGRAM || rest.len() < address_bytes {
        return None;
    }
    let (addresses, tlvs) = rest.split_at(address_bytes);
    if !is_well_formed(tlvs) {
        return None;
    }
    if protocol != STREAM {
        return Some(UNKNOWN);
    }
    Some(match family {
        INET => SocketAddr::new(IpAddr::from(*addresses.first_chunk::<4>()?), port(addresses, 8)?),
        INET6 => SocketAddr::new(IpAddr::from(*addresses.first_chunk::<16>()?), port(addresses, 32)?),
        _ => UNKNOWN,
    })
}

fn port(addresses: &[u8], at: usize) -> Option<u16> {
    addresses.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u16::from_be_bytes(*bytes))
}

/// Whether TLVs fill the bytes. What they say does not matter here.
fn is_well_formed(mut tlvs: &[u8]) -> bool {
    while let Some(&[_, high, low]) = tlvs.first_chunk::<TLV_HEAD_BYTES>() {
        let end = TLV_HEAD_BYTES + usize::from(u16::from_be_bytes([high, low]));
        let Some(after) = tlvs.get(end..) else { return false };
        tlvs = after;
    }
    tlvs.is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const INET_ADDRESSES: &[u8] = &[192, 0, 2, 1, 198, 51, 100, 1, 0xdc, 0x04, 1, 187];

    fn header(version_and_command: u8, family_and_protocol: u8, rest: &[u8]) -> Vec<u8> {
        let length = (rest.len() as u16).to_be_bytes();
        [SIGNATURE, &[version_and_command, family_and_protocol], &length, rest].concat()
    }

    fn client_of(bytes: &[u8]) -> Option<String> {
        match parse(bytes) {
            Ok(Header::Complete { client, length }) => {
                assert_eq!(length, bytes.len());
                client.map(|client| client.to_string())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_header_names_the_client() {
        let v6 = [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[1], &[0; 16], &[0, 7, 0, 9]].concat();
        let tlvs = [INET_ADDRESSES, &[1, 0, 2, b'h', b'2', 4, 0, 0]].concat();
        assert_eq!(client_of(&header(0x21, 0x11, INET_ADDRESSES)).as_deref(), Some("192.0.2.1:56324"));
        assert_eq!(client_of(&header(0x21, 0x11, &tlvs)).as_deref(), Some("192.0.2.1:56324"));
        assert_eq!(client_of(&header(0x21, 0x21, &v6)).as_deref(), Some("[2001:db8::1]:7"));
    }

    #[test]
    fn a_connection_of_the_proxy_itself_names_nobody() {
        assert_eq!(client_of(&header(0x20, 0, &[])), None);
        assert_eq!(client_of(&header(0x20, 0x11, INET_ADDRESSES)), None);
        assert_eq!(client_of(&header(0x20, 0xff, b"anything")), None);
    }

    #[test]
    fn a_client_without_an_address_is_not_the_proxy() {
        for header in [header(0x21, 0, &[]), header(0x21, 0x12, INET_ADDRESSES), header(0x21, 0x31, &[0; UNIX_BYTES])] {
            assert_eq!(client_of(&header).as_deref(), Some("0.0.0.0:0"));
        }
    }

    #[test]
    fn a_part_of_a_header_is_incomplete() {
        let whole = header(0x21, 0x11, &[INET_ADDRESSES, &[4, 0, 3, 1, 2, 3]].concat());
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), Ok(Header::Incomplete), "{length} bytes");
        }
        let with_more = [&whole[..], b"GET /"].concat();
        assert!(matches!(parse(&with_more), Ok(Header::Complete { length, .. }) if length == whole.len()));
    }

    #[test]
    fn a_malformed_header_is_refused() {
        for (what, bytes) in [
            ("version 1", header(0x11, 0x11, INET_ADDRESSES)),
            ("an unknown command", header(0x22, 0x11, INET_ADDRESSES)),
            ("an unknown family", header(0x21, 0x41, INET_ADDRESSES)),
            ("an unknown protocol", header(0x21, 0x13, INET_ADDRESSES)),
            ("no room for the addresses", header(0x21, 0x21, INET_ADDRESSES)),
            ("a part of a TLV", header(0x21, 0x11, &[INET_ADDRESSES, &[1, 0]].concat())),
            ("a TLV beyond the end", header(0x21, 0x11, &[INET_ADDRESSES, &[1, 0, 9, b'h']].concat())),
        ] {
            assert_eq!(parse(&bytes), Err(Malformed::Invalid), "{what}");
        }
        let most = MAX_BYTES - FIXED_BYTES;
        assert_eq!(client_of(&header(0x20, 0, &vec![0; most])), None);
        let too_long = header(0x20, 0, &vec![0; most + 1]);
        assert_eq!(parse(&too_long), Err(Malformed::TooLong));
        // Before the rest has come.
        assert_eq!(parse(&too_long[..FIXED_BYTES]), Err(Malformed::TooLong));
    }
}
