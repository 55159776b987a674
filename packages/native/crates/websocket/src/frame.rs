/// RFC 6455 §5.5: a control frame carries at most 125 bytes.
pub const MAX_CONTROL_PAYLOAD_BYTES: usize = 125;

/// Largest header of an unmasked frame: two bytes and a 64-bit length.
pub const MAX_FRAME_HEADER_BYTES: usize = 10;

pub(crate) const FIN: u8 = 0x80;
/// Marks a compressed message, once permessage-deflate was negotiated (RFC 7692 §6).
pub(crate) const RSV1: u8 = 0x40;
pub(crate) const MASKED: u8 = 0x80;
/// Lengths up to here are in the second byte itself.
pub(crate) const MAX_LEN_7: usize = 125;
/// Second byte that announces a 16-bit length.
pub(crate) const LEN_16: u8 = 126;
/// Second byte that announces a 64-bit length.
pub(crate) const LEN_64: u8 = 127;

/// Opcode of a frame (RFC 6455 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// Continues the message of an earlier frame.
    Continuation = 0x0,
    /// Starts a text message.
    Text = 0x1,
    /// Starts a binary message.
    Binary = 0x2,
    /// Ends the connection.
    Close = 0x8,
    /// Requests a pong.
    Ping = 0x9,
    /// Answers a ping, or is an unsolicited heartbeat.
    Pong = 0xA,
}

impl Opcode {
    /// The opcode of four bits, or `None` when they are reserved.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0x0 => Some(Self::Continuation),
            0x1 => Some(Self::Text),
            0x2 => Some(Self::Binary),
            0x8 => Some(Self::Close),
            0x9 => Some(Self::Ping),
            0xA => Some(Self::Pong),
            _ => None,
        }
    }

    /// Close, ping or pong.
    #[must_use]
    pub const fn is_control(self) -> bool {
        self as u8 & 0x8 != 0
    }
}

/// Header of an unmasked, unfragmented frame, for callers that write header and payload separately.
#[derive(Debug, Clone, Copy)]
pub struct FrameHeader {
    bytes: [u8; MAX_FRAME_HEADER_BYTES],
    len: u8,
}

impl FrameHeader {
    /// Header for a payload of `payload_bytes` bytes.
    ///
    /// The payload of a control frame must not exceed [`MAX_CONTROL_PAYLOAD_BYTES`]; peers refuse it.
    #[must_use]
    pub fn new(opcode: Opcode, payload_bytes: usize) -> Self {
        debug_assert!(!opcode.is_control() || payload_bytes <= MAX_CONTROL_PAYLOAD_BYTES);
        let mut bytes = [0; MAX_FRAME_HEADER_BYTES];
        bytes[0] = FIN | opcode as u8;
        let len = if payload_bytes <= MAX_LEN_7 {
            bytes[1] = payload_bytes as u8;
            2
        } else if let Ok(short) = u16::try_from(payload_bytes) {
            bytes[1] = LEN_16;
            bytes[2..4].copy_from_slice(&short.to_be_bytes());
            4
        } else {
            bytes[1] = LEN_64;
            bytes[2..10].copy_from_slice(&(payload_bytes as u64).to_be_bytes());
            10
        };
        Self { bytes, len }
    }

    /// The same header for a compressed payload (RFC 7692 §6).
    #[must_use]
    pub(crate) fn deflated(mut self) -> Self {
        self.bytes[0] |= RSV1;
        self
    }

    /// The header as it goes on the wire.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Appends one unfragmented frame as a server sends it: unmasked. One allocation at most.
pub fn encode_frame(opcode: Opcode, payload: &[u8], out: &mut Vec<u8>) {
    let header = FrameHeader::new(opcode, payload.len());
    out.reserve(header.as_bytes().len() + payload.len());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(payload);
}

/// Appends one unfragmented frame as a client sends it: masked with `mask`.
///
/// RFC 6455 §5.3: a real client takes `mask` from a strong source of entropy, a new one per frame.
pub fn encode_masked_frame(opcode: Opcode, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) {
    let mut header = FrameHeader::new(opcode, payload.len());
    header.bytes[1] |= MASKED;
    out.reserve(header.as_bytes().len() + mask.len() + payload.len());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(&mask);
    let start = out.len();
    out.extend_from_slice(payload);
    crate::mask::unmask(&mut out[start..], mask);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(payload_bytes: usize) -> Vec<u8> {
        FrameHeader::new(Opcode::Binary, payload_bytes).as_bytes().to_vec()
    }

    #[test]
    fn a_text_frame_matches_the_example_of_rfc_6455_section_5_7() {
        let mut out = Vec::new();
        encode_frame(Opcode::Text, b"Hello", &mut out);
        assert_eq!(out, b"\x81\x05Hello");
    }

    #[test]
    fn a_masked_text_frame_matches_the_example_of_rfc_6455_section_5_7() {
        let mut out = Vec::new();
        encode_masked_frame(Opcode::Text, b"Hello", [0x37, 0xfa, 0x21, 0x3d], &mut out);
        assert_eq!(out, [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
    }

    #[test]
    fn a_length_takes_the_fewest_bytes_that_hold_it() {
        assert_eq!(header(0), [0x82, 0]);
        assert_eq!(header(125), [0x82, 125]);
        assert_eq!(header(126), [0x82, 126, 0, 126]);
        assert_eq!(header(65_535), [0x82, 126, 0xff, 0xff]);
        assert_eq!(header(65_536), [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn frames_are_appended_to_what_the_buffer_holds() {
        let mut out = b"before".to_vec();
        encode_frame(Opcode::Pong, b"", &mut out);
        assert_eq!(out, b"before\x8a\x00");
    }

    #[test]
    fn every_opcode_survives_the_wire_and_the_reserved_ones_are_none() {
        for bits in 0..16 {
            match Opcode::from_bits(bits) {
                Some(opcode) => assert_eq!(opcode as u8, bits),
                None => assert!(matches!(bits, 3..=7 | 11..=15)),
            }
        }
    }
}
