//! Frame headers, read in place.
//!
//! `webmq_websocket::Decoder` validates frames and assembles messages, which costs a copy. Here frames are only
//! counted.

/// RFC 6455 §5.2: two bytes, a 64-bit length and a mask.
pub(crate) const MAX_HEADER_BYTES: usize = 14;

/// Opcodes (RFC 6455 §5.2).
pub(crate) const CONTINUATION: u8 = 0x0;
pub(crate) const TEXT: u8 = 0x1;
pub(crate) const BINARY: u8 = 0x2;
pub(crate) const CLOSE: u8 = 0x8;
pub(crate) const PING: u8 = 0x9;
pub(crate) const PONG: u8 = 0xA;

const FIN: u8 = 0x80;
const RSV1: u8 = 0x40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    first: u8,
    pub(crate) header_bytes: u8,
    pub(crate) mask: Option<[u8; 4]>,
    pub(crate) payload_bytes: u64,
}

impl Header {
    /// The header at the start of `bytes`; `None` when it is not complete yet.
    #[inline]
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let [first, second, rest @ ..] = bytes else { return None };
        let (payload_bytes, extended, rest) = match second & 0x7f {
            126 => {
                let (length, rest) = rest.split_first_chunk::<2>()?;
                (u64::from(u16::from_be_bytes(*length)), 2, rest)
            }
            127 => {
                let (length, rest) = rest.split_first_chunk::<8>()?;
                (u64::from_be_bytes(*length), 8, rest)
            }
            short => (u64::from(short), 0, rest),
        };
        if second & 0x80 == 0 {
            return Some(Self { first: *first, header_bytes: 2 + extended, mask: None, payload_bytes });
        }
        let mask = *rest.first_chunk::<4>()?;
        Some(Self { first: *first, header_bytes: 6 + extended, mask: Some(mask), payload_bytes })
    }

    #[inline]
    pub(crate) fn opcode(self) -> u8 {
        self.first & 0x0f
    }

    #[inline]
    pub(crate) fn is_compressed(self) -> bool {
        self.first & RSV1 != 0
    }

    #[inline]
    pub(crate) fn is_final(self) -> bool {
        self.first & FIN != 0
    }

    /// Length of header and payload. It saturates, so no length can wrap around.
    #[inline]
    pub(crate) fn frame_bytes(self) -> u64 {
        self.payload_bytes.saturating_add(u64::from(self.header_bytes))
    }
}

/// Marks the payload of an encoded frame as deflated (RFC 7692 §6).
pub(crate) fn mark_compressed(frame: &mut [u8]) {
    if let Some(first) = frame.first_mut() {
        *first |= RSV1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webmq_websocket::{Opcode, encode_frame, encode_masked_frame};

    #[test]
    fn headers_are_read_as_the_codec_writes_them_and_not_before_they_are_complete() {
        for payload_bytes in [0, 1, 125, 126, 65_535, 65_536] {
            let payload = vec![b'a'; payload_bytes];
            for mask in [None, Some([1, 2, 3, 4])] {
                let mut frame = Vec::new();
                match mask {
                    None => encode_frame(Opcode::Text, &payload, &mut frame),
                    Some(mask) => encode_masked_frame(Opcode::Text, &payload, mask, &mut frame),
                }
                let header = Header::parse(&frame).expect("complete");
                assert_eq!((header.payload_bytes, header.mask, header.opcode()), (payload_bytes as u64, mask, 1));
                assert_eq!(header.frame_bytes(), frame.len() as u64);
                assert!(header.is_final() && !header.is_compressed());
                for len in 0..usize::from(header.header_bytes) {
                    assert_eq!(Header::parse(&frame[..len]), None);
                }
                mark_compressed(&mut frame);
                assert!(Header::parse(&frame).is_some_and(Header::is_compressed));
            }
        }
    }
}
