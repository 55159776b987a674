//! permessage-deflate (RFC 7692) without context takeover: every message is compressed by itself.
//!
//! So one compressed frame fits every connection that negotiated the extension. Connections have no compression state
//! of their own: one [`Deflater`] and one [`Inflater`] serve all connections of a thread.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::error::DecodeError;
use crate::frame::{FrameHeader, Opcode};

/// RFC 7692 §7.2.1: every message ends with an empty stored block, whose last four bytes stay off the wire.
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
/// Appended to a received message: its tail, and an empty last block (RFC 1951 §3.2.4). The inflater does not find this
/// block if the message ends inside another one, which shows that it is incomplete.
const TAIL_AND_END: [u8; 9] = [0, 0, 0xff, 0xff, 1, 0, 0, 0xff, 0xff];
/// Largest buffer kept for the next message; a larger one is freed with its message.
const KEPT_BYTES: usize = 256 << 10;
/// First size of the buffer that messages are decompressed into.
const FIRST_BYTES: usize = 16 << 10;

/// Most compressed bytes of a message of `max_message_bytes`. Incompressible data grows by five bytes per stored block
/// (RFC 1951 §3.2.4), and a compressor with little memory makes small blocks.
pub(crate) fn max_deflated_bytes(max_message_bytes: u32) -> u32 {
    max_message_bytes.saturating_add(max_message_bytes / 64).saturating_add(64)
}

/// Compresses messages, one by one. Holds about 300 KB from the first message on.
#[derive(Default)]
pub struct Deflater {
    stream: Option<Compress>,
    output: Vec<u8>,
}

impl Deflater {
    /// The compressed frame of a message, unmasked and unfragmented; `None` when it would not be smaller than the plain
    /// one.
    ///
    /// Cost: gives up as soon as the output has the size of the input.
    #[must_use = "compressing is expensive"]
    pub fn encode_frame(&mut self, opcode: Opcode, payload: &[u8]) -> Option<Box<[u8]>> {
        let frame = self.deflate(payload).map(|deflated| {
            let header = FrameHeader::new(opcode, deflated.len()).deflated();
            [header.as_bytes(), deflated].concat().into()
        });
        trim(&mut self.output);
        frame
    }

    fn deflate(&mut self, payload: &[u8]) -> Option<&[u8]> {
        // A flush is complete only if room is left. So this is room for a tail and one byte less than the payload.
        let room = payload.len() + TAIL.len();
        if self.output.len() < room {
            self.output.resize(room, 0);
        }
        let stream = self.stream.get_or_insert_with(|| Compress::new(Compression::default(), false));
        stream.reset();
        stream.compress(payload, &mut self.output[..room], FlushCompress::Sync).ok()?;
        let output = &self.output[..stream.total_out() as usize];
        let is_complete = stream.total_in() == payload.len() as u64 && output.len() < room;
        output.strip_suffix(&TAIL).filter(|_| is_complete)
    }
}

/// Decompresses messages, one by one. Holds about 50 KB from the first message on, and a buffer of the size of the
/// largest message; between messages at most 256 KiB.
#[derive(Default)]
pub struct Inflater {
    stream: Option<Decompress>,
    output: Vec<u8>,
}

impl Inflater {
    /// Passes the message of a compressed payload to `read`.
    ///
    /// # Errors
    /// The error of `read`; or the payload is not DEFLATE, or it exceeds `max_bytes`. At most one byte beyond the limit
    /// is decompressed.
    pub(crate) fn inflate<R>(
        &mut self,
        deflated: &[u8],
        max_bytes: u32,
        read: impl FnOnce(&[u8]) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        let result = self.inflate_into_output(deflated, max_bytes).and_then(read);
        trim(&mut self.output);
        result
    }

    fn inflate_into_output(&mut self, deflated: &[u8], max_bytes: u32) -> Result<&[u8], DecodeError> {
        // Some compressors flush an empty message to nothing.
        if deflated.is_empty() {
            return Ok(&[]);
        }
        let stream = self.stream.get_or_insert_with(|| Decompress::new(false));
        stream.reset(false);
        let output = Output { bytes: &mut self.output, max_bytes };
        let mut inflation = Inflation { stream, output };
        let has_ended = match inflation.feed(deflated)? {
            Fed::All => inflation.feed(&TAIL_AND_END)? == Fed::Ended { rest: 0 },
            // RFC 7692 §7.2.3.4: a sender may mark its last block as the last, and then adds a byte of zero.
            Fed::Ended { rest } => rest == 0 || (rest == 1 && deflated.ends_with(&[0])),
        };
        if !has_ended {
            return Err(DecodeError::DeflateInvalid);
        }
        let count = inflation.stream.total_out() as usize;
        Ok(&self.output[..count])
    }
}

/// Frees the buffer of a large message.
fn trim(output: &mut Vec<u8>) {
    if output.len() > KEPT_BYTES {
        *output = Vec::new();
    }
}

/// The outcome of a piece of input.
#[derive(PartialEq, Eq)]
enum Fed {
    All,
    /// The last block ended, `rest` bytes before the end of the piece.
    Ended {
        rest: usize,
    },
}

struct Inflation<'a> {
    stream: &'a mut Decompress,
    output: Output<'a>,
}

impl Inflation<'_> {
    /// Decompresses a piece of input completely.
    fn feed(&mut self, mut input: &[u8]) -> Result<Fed, DecodeError> {
        loop {
            let (before_in, before_out) = (self.stream.total_in(), self.stream.total_out());
            let room = self.output.room(before_out as usize)?;
            let room_bytes = room.len() as u64;
            let status = self.stream.decompress(input, room, FlushDecompress::Sync);
            input = &input[(self.stream.total_in() - before_in) as usize..];
            let is_full = self.stream.total_out() - before_out == room_bytes;
            match status {
                Ok(Status::StreamEnd) => {
                    self.output.check(self.stream.total_out())?;
                    return Ok(Fed::Ended { rest: input.len() });
                }
                Ok(Status::Ok | Status::BufError) if is_full => {}
                Ok(Status::Ok | Status::BufError) if input.is_empty() => return Ok(Fed::All),
                Ok(Status::Ok | Status::BufError) | Err(_) => return Err(DecodeError::DeflateInvalid),
            }
        }
    }
}

/// Output buffer: grows with the message, to one byte over its limit.
struct Output<'a> {
    bytes: &'a mut Vec<u8>,
    max_bytes: u32,
}

impl Output<'_> {
    /// Room for more than `used` bytes.
    fn room(&mut self, used: usize) -> Result<&mut [u8], DecodeError> {
        self.check(used as u64)?;
        let end = self.max_bytes as usize + 1;
        if self.bytes.len() <= used {
            self.bytes.resize((2 * used).max(FIRST_BYTES).min(end), 0);
        }
        let end = self.bytes.len().min(end);
        Ok(&mut self.bytes[used..end])
    }

    fn check(&self, used: u64) -> Result<(), DecodeError> {
        if used <= u64::from(self.max_bytes) {
            return Ok(());
        }
        Err(DecodeError::MessageTooLarge { announced_bytes: used, max_message_bytes: self.max_bytes })
    }
}

#[cfg(test)]
#[path = "deflate_test.rs"]
mod tests;
