use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

/// RFC 6455 §1.3: appended to the client's key so that only a WebSocket server can answer.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// 16 bytes in base64.
const KEY_CHARS: usize = 24;

/// 20 bytes in base64.
const ACCEPT_CHARS: usize = 28;

/// Base64 that ignores the four unused bits of a key: some clients make keys of 22 random characters and `==`, and
/// nothing depends on those bits.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Value of `Sec-WebSocket-Accept`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AcceptKey([u8; ACCEPT_CHARS]);

impl AcceptKey {
    /// The answer to a `Sec-WebSocket-Key`, or `None` when that is not 16 bytes in base64 (RFC 6455 §4.2.1).
    #[must_use]
    pub fn from_key(key: &[u8]) -> Option<Self> {
        let mut nonce = [0; 18];
        if key.len() != KEY_CHARS || LENIENT.decode_slice(key, &mut nonce) != Ok(16) {
            return None;
        }
        let mut sha1 = sha1_smol::Sha1::new();
        sha1.update(key);
        sha1.update(GUID);
        let mut accept = [0; ACCEPT_CHARS];
        let encoded = STANDARD.encode_slice(sha1.digest().bytes(), &mut accept);
        debug_assert_eq!(encoded, Ok(ACCEPT_CHARS));
        Some(Self(accept))
    }

    /// The value as it goes on the wire.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for AcceptKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AcceptKey({})", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_rfc_6455_section_1_3_gets_its_answer() {
        let accept = AcceptKey::from_key(b"dGhlIHNhbXBsZSBub25jZQ==").expect("valid key");
        assert_eq!(accept.as_bytes(), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn a_key_of_any_other_length_or_alphabet_is_refused() {
        for key in [
            "",
            "dGhlIHNhbXBsZSBub25jZQ",
            "dGhlIHNhbXBsZSBub25jZQ=",
            "dGhlIHNhbXBsZSBub25jZQ===",
            "AAAA",
            "dGhlIHNhbXBsZSBub25jZSE=",
            "dGhlIHNhbXBsZSBub25jZSEh",
            "dGhlIHNhbXBs-SBub25jZQ==",
            "dGhlIHNhbXBsZSBub25j\u{e9}==",
        ] {
            assert_eq!(AcceptKey::from_key(key.as_bytes()), None, "{key}");
        }
    }

    #[test]
    fn the_unused_bits_of_a_key_may_be_set() {
        assert!(AcceptKey::from_key(b"dGhlIHNhbXBsZSBub25jZR==").is_some());
    }
}
