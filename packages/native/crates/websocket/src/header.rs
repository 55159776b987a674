use crate::error::DecodeError;
use crate::event::Role;
use crate::frame::{FIN, LEN_16, LEN_64, MASKED, MAX_CONTROL_PAYLOAD_BYTES, MAX_LEN_7, Opcode, RSV1};

/// Two bytes, a 64-bit length and a mask.
pub(crate) const MAX_RECEIVED_HEADER_BYTES: usize = 14;

/// Reserved bits of a connection without an extension: RSV1-3.
pub(crate) const RESERVED: u8 = 0x70;
/// Reserved bits of a connection with permessage-deflate, which owns RSV1 (RFC 7692 §6).
pub(crate) const RESERVED_BUT_DEFLATE: u8 = RESERVED & !RSV1;

/// The header of a frame as received, checked as far as a header can be checked by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReceivedHeader {
    pub(crate) fin: bool,
    pub(crate) opcode: Opcode,
    /// The first frame of a compressed message.
    pub(crate) is_deflated: bool,
    pub(crate) payload_bytes: u64,
    /// Zero for an unmasked frame, which leaves the bytes unchanged.
    pub(crate) mask: [u8; 4],
    pub(crate) header_bytes: usize,
}

/// Reads the header at the start of `bytes`; `None` when it is not complete yet. No bit of `reserved` may be set.
#[inline]
pub(crate) fn parse(bytes: &[u8], role: Role, reserved: u8) -> Result<Option<ReceivedHeader>, DecodeError> {
    let [first, second, rest @ ..] = bytes else {
        return Ok(None);
    };
    if first & reserved != 0 {
        return Err(DecodeError::ReservedBits);
    }
    let opcode = Opcode::from_bits(first & 0xf).ok_or(DecodeError::ReservedOpcode(first & 0xf))?;
    let is_deflated = first & RSV1 != 0;
    // RFC 7692 §6.1: the bit belongs to the message, and so to its first frame.
    if is_deflated && !matches!(opcode, Opcode::Text | Opcode::Binary) {
        return Err(DecodeError::ReservedBits);
    }
    let fin = first & FIN != 0;
    let is_masked = second & MASKED != 0;
    match role {
        Role::Server if !is_masked => return Err(DecodeError::Unmasked),
        Role::Client if is_masked => return Err(DecodeError::Masked),
        _ => {}
    }
    let short_len = second & !MASKED;
    if opcode.is_control() {
        if !fin {
            return Err(DecodeError::FragmentedControl);
        }
        if usize::from(short_len) > MAX_CONTROL_PAYLOAD_BYTES {
            return Err(DecodeError::ControlTooLong);
        }
    }
    let Some((payload_bytes, rest)) = extended_len(short_len, rest)? else {
        return Ok(None);
    };
    let (mask, rest) = match rest.split_first_chunk::<4>() {
        _ if !is_masked => ([0; 4], rest),
        Some((mask, rest)) => (*mask, rest),
        None => return Ok(None),
    };
    let header_bytes = bytes.len() - rest.len();
    Ok(Some(ReceivedHeader { fin, opcode, is_deflated, payload_bytes, mask, header_bytes }))
}

/// Payload length, and what follows it; `None` when it is not complete yet.
#[inline]
fn extended_len(short_len: u8, rest: &[u8]) -> Result<Option<(u64, &[u8])>, DecodeError> {
    let (len, shortest, rest) = match short_len {
        LEN_16 => match rest.split_first_chunk() {
            Some((bytes, rest)) => (u64::from(u16::from_be_bytes(*bytes)), MAX_LEN_7 as u64 + 1, rest),
            None => return Ok(None),
        },
        LEN_64 => match rest.split_first_chunk() {
            Some((bytes, rest)) => (u64::from_be_bytes(*bytes), u64::from(u16::MAX) + 1, rest),
            None => return Ok(None),
        },
        len => (u64::from(len), 0, rest),
    };
    if len < shortest {
        return Err(DecodeError::LengthNotMinimal);
    }
    if len >> 63 != 0 {
        return Err(DecodeError::LengthOutOfRange);
    }
    Ok(Some((len, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> Result<Option<ReceivedHeader>, DecodeError> {
        parse(bytes, Role::Server, RESERVED)
    }

    #[test]
    fn a_header_is_none_until_its_last_byte_is_there() {
        for header in [
            &[0x81, 0x85, 1, 2, 3, 4][..],
            &[0x02, 0xfe, 0, 126, 1, 2, 3, 4],
            &[0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3, 4],
        ] {
            for len in 0..header.len() {
                assert_eq!(parsed(&header[..len]), Ok(None), "{len} bytes of {header:x?}");
            }
            let complete = parsed(header).expect("valid").expect("complete");
            assert_eq!((complete.header_bytes, complete.mask), (header.len(), [1, 2, 3, 4]));
        }
    }

    #[test]
    fn what_follows_the_header_is_left_alone() {
        let header = parsed(b"\x89\x82\x01\x02\x03\x04payload").expect("valid").expect("complete");
        let expected = ReceivedHeader {
            fin: true,
            opcode: Opcode::Ping,
            is_deflated: false,
            payload_bytes: 2,
            mask: [1, 2, 3, 4],
            header_bytes: 6,
        };
        assert_eq!(header, expected);
    }

    #[test]
    fn each_reserved_bit_is_refused() {
        for bit in [0x40, 0x20, 0x10] {
            assert_eq!(parsed(&[0x81 | bit, 0x80]), Err(DecodeError::ReservedBits));
        }
    }

    #[test]
    fn with_deflate_the_first_bit_is_allowed_where_a_message_begins_and_nowhere_else() {
        let parsed = |first: u8| parse(&[first, 0x80, 0, 0, 0, 0], Role::Server, RESERVED_BUT_DEFLATE);
        for (first, is_deflated) in [(0xc1, true), (0xc2, true), (0x41, true), (0x81, false), (0x80, false)] {
            assert_eq!(parsed(first).map(|header| header.map(|header| header.is_deflated)), Ok(Some(is_deflated)));
        }
        for first in [0xc0, 0x40, 0xc8, 0xc9, 0xca, 0xa1, 0x91, 0xe1] {
            assert_eq!(parsed(first), Err(DecodeError::ReservedBits), "{first:x}");
        }
    }

    #[test]
    fn reserved_opcodes_are_refused() {
        for opcode in (3..=7).chain(11..=15) {
            assert_eq!(parsed(&[0x80 | opcode, 0x80]), Err(DecodeError::ReservedOpcode(opcode)));
        }
    }

    #[test]
    fn the_mask_is_where_the_role_wants_it() {
        assert_eq!(parse(&[0x81, 0x00], Role::Server, RESERVED), Err(DecodeError::Unmasked));
        assert_eq!(parse(&[0x81, 0x80], Role::Client, RESERVED), Err(DecodeError::Masked));
        assert!(matches!(parse(&[0x81, 0x00], Role::Client, RESERVED), Ok(Some(_))));
    }

    #[test]
    fn control_frames_are_short_and_whole() {
        assert_eq!(parsed(&[0x09, 0x80]), Err(DecodeError::FragmentedControl));
        assert_eq!(parsed(&[0x89, 0xfe]), Err(DecodeError::ControlTooLong));
        assert_eq!(parsed(&[0x88, 0xff]), Err(DecodeError::ControlTooLong));
    }

    #[test]
    fn a_length_in_more_bytes_than_it_needs_is_refused() {
        assert_eq!(parsed(&[0x82, 0xfe, 0, 125]), Err(DecodeError::LengthNotMinimal));
        assert_eq!(parsed(&[0x82, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff]), Err(DecodeError::LengthNotMinimal));
    }

    #[test]
    fn a_length_with_its_highest_bit_set_is_refused() {
        assert_eq!(parsed(&[0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0]), Err(DecodeError::LengthOutOfRange));
    }
}
