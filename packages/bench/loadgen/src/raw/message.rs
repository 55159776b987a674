//! The message of the fan-out test, as a server's text frame.

use std::io::Write;

use webmq_websocket::{FrameHeader, Opcode};

/// Fits a number of ten digits and a time of twelve.
pub(crate) const MIN_PAYLOAD_BYTES: usize = 96;

const BEFORE_PAD: &[u8] = b",\"pad\":\"";
const AFTER_PAD: &[u8] = b"\"}}";

/// Makes frames of one size.
pub(crate) struct Messages {
    header: FrameHeader,
    payload_bytes: usize,
    frame: Vec<u8>,
}

impl Messages {
    /// Messages of `payload_bytes`, at least [`MIN_PAYLOAD_BYTES`].
    pub(crate) fn new(payload_bytes: usize) -> Self {
        let payload_bytes = payload_bytes.max(MIN_PAYLOAD_BYTES);
        let header = FrameHeader::new(Opcode::Text, payload_bytes);
        Self { header, payload_bytes, frame: Vec::new() }
    }

    pub(crate) fn frame_bytes(&self) -> usize {
        self.header.as_bytes().len() + self.payload_bytes
    }

    pub(crate) fn frame(&mut self, sequence: u64, sent_us: u64) -> &[u8] {
        let frame = &mut self.frame;
        frame.clear();
        frame.extend_from_slice(self.header.as_bytes());
        // Writing to a vector does not fail.
        let _ = write!(
            frame,
            "{{\"t\":\"fanout_tick\",\"p\":{{\"seq\":{sequence},\"ts_us\":{sent_us},\"s\":\"ES\",\"px\":5234.75,\"q\":2"
        );
        let end = self.header.as_bytes().len() + self.payload_bytes;
        if frame.len() + BEFORE_PAD.len() + AFTER_PAD.len() <= end {
            frame.extend_from_slice(BEFORE_PAD);
            frame.resize(end - AFTER_PAD.len(), b'x');
            frame.extend_from_slice(AFTER_PAD);
        } else {
            frame.resize(end - 2, b' ');
            frame.extend_from_slice(b"}}");
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_json_of_exactly_the_size_that_was_asked_for() {
        for payload_bytes in [MIN_PAYLOAD_BYTES, 100, 175, 1_024, 65_536] {
            let mut messages = Messages::new(payload_bytes);
            for (sequence, sent_us) in [(1, 1), (9_999_999_999, 999_999_999_999)] {
                let frame_bytes = messages.frame_bytes();
                let frame = messages.frame(sequence, sent_us);
                assert_eq!(frame.len(), frame_bytes);
                let json: serde_json::Value =
                    serde_json::from_slice(&frame[frame.len() - payload_bytes..]).expect("JSON");
                assert_eq!((json["p"]["seq"].as_u64(), json["p"]["ts_us"].as_u64()), (Some(sequence), Some(sent_us)));
            }
        }
        assert_eq!(Messages::new(1).frame_bytes(), 2 + MIN_PAYLOAD_BYTES);
    }
}
