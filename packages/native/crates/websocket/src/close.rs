use std::fmt;

use crate::error::DecodeError;
use crate::frame::{MAX_CONTROL_PAYLOAD_BYTES, Opcode, encode_frame};
use crate::utf8;

/// RFC 6455 §5.5: a control frame carries at most 125 bytes, two of which are the close code.
pub const MAX_CLOSE_REASON_BYTES: usize = MAX_CONTROL_PAYLOAD_BYTES - 2;

/// A close code that may be on the wire (RFC 6455 §7.4): 1000-1003, 1007-1014 and 3000-4999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloseCode(u16);

impl CloseCode {
    /// 1000: the purpose is fulfilled.
    pub const NORMAL: Self = Self(1000);
    /// 1001: the server goes down or the page was left.
    pub const GOING_AWAY: Self = Self(1001);
    /// 1002: the peer violated RFC 6455.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// 1007: a text is not UTF-8.
    pub const PAYLOAD_INVALID: Self = Self(1007);
    /// 1009: a message is larger than the limit.
    pub const MESSAGE_TOO_LARGE: Self = Self(1009);

    /// The code as a `CloseCode`, or `None` when it may not be sent (1005, 1006 and 1015 among others).
    #[must_use]
    pub const fn new(code: u16) -> Option<Self> {
        match code {
            1000..=1003 | 1007..=1014 | 3000..=4999 => Some(Self(code)),
            _ => None,
        }
    }

    /// The number on the wire.
    #[must_use]
    pub const fn value(self) -> u16 {
        self.0
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Appends an unmasked close frame; a reason over [`MAX_CLOSE_REASON_BYTES`] is cut at a character boundary.
///
/// Without a code the frame is empty and the reason is left out: a reason cannot stand alone (RFC 6455 §5.5.1).
pub fn encode_close(code: Option<CloseCode>, reason: &str, out: &mut Vec<u8>) {
    let Some(code) = code else {
        return encode_frame(Opcode::Close, &[], out);
    };
    let mut reason_bytes = reason.len().min(MAX_CLOSE_REASON_BYTES);
    while !reason.is_char_boundary(reason_bytes) {
        reason_bytes -= 1;
    }
    let reason = &reason[..reason_bytes];
    let mut payload = [0; MAX_CONTROL_PAYLOAD_BYTES];
    payload[..2].copy_from_slice(&code.value().to_be_bytes());
    payload[2..2 + reason.len()].copy_from_slice(reason.as_bytes());
    encode_frame(Opcode::Close, &payload[..2 + reason.len()], out);
}

/// Code and reason of an unmasked close payload; an empty one has neither.
pub(crate) fn parse_close(payload: &[u8]) -> Result<(Option<CloseCode>, &str), DecodeError> {
    match payload {
        [] => Ok((None, "")),
        [_] => Err(DecodeError::CloseTruncated),
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            let code = CloseCode::new(code).ok_or(DecodeError::CloseCodeInvalid(code))?;
            let reason = utf8::validate(reason).map_err(|_| DecodeError::CloseReasonNotUtf8)?;
            Ok((Some(code), reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(code: Option<CloseCode>, reason: &str) -> Vec<u8> {
        let mut out = Vec::new();
        encode_close(code, reason, &mut out);
        out
    }

    #[test]
    fn code_and_reason_are_on_the_wire_in_this_order() {
        assert_eq!(encoded(Some(CloseCode::NORMAL), "bye"), b"\x88\x05\x03\xe8bye");
    }

    #[test]
    fn a_close_without_a_code_is_empty() {
        assert_eq!(encoded(None, "ignored"), b"\x88\x00");
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let frame = encoded(Some(CloseCode::GOING_AWAY), &"€".repeat(50));
        assert_eq!(frame[1], 2 + 123);
        assert_eq!(parse_close(&frame[2..]), Ok((Some(CloseCode::GOING_AWAY), "€".repeat(41).as_str())));
        let frame = encoded(Some(CloseCode::GOING_AWAY), &format!("a{}", "€".repeat(50)));
        assert_eq!(frame[1], 2 + 121, "the 41st euro sign would end at byte 124");
    }

    #[test]
    fn only_codes_that_rfc_6455_section_7_4_allows_may_be_sent() {
        let allowed = |code: u16| CloseCode::new(code).is_some();
        assert!([1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 3999, 4000, 4999].into_iter().all(allowed));
        assert!(![0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].into_iter().any(allowed));
    }

    #[test]
    fn a_payload_of_one_byte_a_bad_code_and_a_bad_reason_are_refused() {
        assert_eq!(parse_close(b"\x03"), Err(DecodeError::CloseTruncated));
        assert_eq!(parse_close(b"\x03\xed"), Err(DecodeError::CloseCodeInvalid(1005)));
        assert_eq!(parse_close(b"\x03\xe8\xff"), Err(DecodeError::CloseReasonNotUtf8));
    }
}
