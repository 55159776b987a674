use std::ops::Range;
use std::sync::{Arc, OnceLock};

use webmq_websocket::{Deflater, FrameHeader, MAX_FRAME_HEADER_BYTES, Opcode};

use crate::bridge::command::{self, Fields, MalformedBatch};

/// A frame of at least this size may be referred to instead of copied.
const MIN_SHARED_BYTES: usize = 16 << 10;
/// Commands, and bytes of them, that the event loop applies inline: about as much work as waking the shard's thread.
const MAX_INLINE_COMMANDS: usize = 16;
const MAX_INLINE_BYTES: usize = 16 << 10;

/// The commands of one JavaScript turn, as packed there, with the header of every frame filled in.
///
/// All shards read the same batch; a frame is encoded once, whatever the number of its receivers and threads.
#[derive(Debug)]
pub(crate) struct Batch {
    bytes: Box<[u8]>,
    /// Has commands that may not be held back: all but multicasts, and urgent multicasts.
    is_urgent: bool,
    has_multicasts: bool,
    command_count: usize,
    /// Frames that are large enough to be compressed, in their order.
    deflatable: Vec<Deflatable>,
}

/// A frame of a batch and its compressed form, made by the first shard that has a receiver for it.
#[derive(Debug)]
struct Deflatable {
    /// Where the frame begins in the batch.
    start: usize,
    opcode: Opcode,
    payload: Range<usize>,
    /// `None` inside: compressed it would not be smaller.
    frame: OnceLock<Option<Box<[u8]>>>,
}

impl Batch {
    /// Copies packed commands, checks them and encodes the frame headers into the gaps that were left for them. Payloads of
    /// `deflate_from_bytes` and more may be compressed.
    ///
    /// Cost: one copy and one walk over the commands. Nothing is compressed here.
    ///
    /// # Errors
    /// A command is cut, or its kind is not known. Nothing of the batch is applied then.
    pub(crate) fn new(packed: &[u8], deflate_from_bytes: Option<usize>) -> Result<Self, MalformedBatch> {
        let deflate_from_bytes = deflate_from_bytes.unwrap_or(usize::MAX);
        let mut deflatable = Vec::new();
        let mut is_urgent = false;
        let mut has_multicasts = false;
        let mut command_count = 0;
        let mut bytes: Box<[u8]> = packed.into();
        let mut start = 0;
        while start < bytes.len() {
            let fields = Fields::read(&bytes, start)?;
            is_urgent |= !fields.may_be_held();
            has_multicasts |= fields.is_multicast();
            command_count += 1;
            if let Some((opcode, payload)) = fields.payload(&bytes)? {
                let header = FrameHeader::new(opcode, payload.len());
                let header = header.as_bytes();
                let start = payload.start - header.len();
                bytes[start..payload.start].copy_from_slice(header);
                if payload.len() >= deflate_from_bytes {
                    deflatable.push(Deflatable { start, opcode, payload, frame: OnceLock::new() });
                }
            }
            start = fields.end();
        }
        Ok(Self { bytes, is_urgent, has_multicasts, command_count, deflatable })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    pub(crate) fn has_multicasts(&self) -> bool {
        self.has_multicasts
    }

    /// Whether the event loop may apply it inline: a few small commands, and nothing to compress.
    pub(crate) fn is_small(&self) -> bool {
        self.command_count <= MAX_INLINE_COMMANDS && self.bytes.len() <= MAX_INLINE_BYTES && self.deflatable.is_empty()
    }

    /// The commands in the order they were made, from the one that begins at `start` on.
    pub(crate) fn commands_from(self: &Arc<Self>, start: usize) -> command::Commands<'_> {
        command::Commands::new(self, start)
    }

    #[cfg(test)]
    pub(crate) fn commands(self: &Arc<Self>) -> command::Commands<'_> {
        self.commands_from(0)
    }

    /// The encoded frame around a payload.
    pub(crate) fn frame(self: &Arc<Self>, opcode: Opcode, payload: Range<usize>) -> Frame<'_> {
        let header_bytes = FrameHeader::new(opcode, payload.len()).as_bytes().len();
        debug_assert!(header_bytes <= MAX_FRAME_HEADER_BYTES);
        let range = payload.start - header_bytes..payload.end;
        Frame { bytes: &self.bytes[range.clone()], header_bytes, source: Some((self, range.start)) }
    }
}

/// One encoded frame on its way into logs and outboxes.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    bytes: &'a [u8],
    header_bytes: usize,
    source: Option<(&'a Arc<Batch>, usize)>,
}

impl<'a> Frame<'a> {
    /// A frame that is not in a batch, and so is always copied. Bytes without a header if it is for an event stream.
    pub(crate) fn copied(bytes: &'a [u8]) -> Self {
        Self { bytes, header_bytes: 0, source: None }
    }

    /// The same without its header, as event streams get it.
    pub(crate) fn payload(&self) -> Self {
        let source = self.source.map(|(batch, start)| (batch, start + self.header_bytes));
        Self { bytes: &self.bytes[self.header_bytes..], header_bytes: 0, source }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The same message compressed, if it is large enough for that and becomes smaller by it.
    ///
    /// Cost: compressed once, whatever the number of shards and receivers; a shard that comes second waits for the first.
    pub(crate) fn deflated(&self, deflater: &mut Deflater) -> Option<Self> {
        let (batch, start) = self.source.filter(|(batch, _)| !batch.deflatable.is_empty())?;
        let index = batch.deflatable.binary_search_by_key(&start, |deflatable| deflatable.start).ok()?;
        let Deflatable { opcode, payload, frame, .. } = &batch.deflatable[index];
        let frame = frame.get_or_init(|| deflater.encode_frame(*opcode, &batch.bytes[payload.clone()]));
        frame.as_deref().map(Self::copied)
    }

    /// Whether referring to the frame is better than copying it: it is large, and most of what it keeps alive.
    pub(crate) fn is_shared(&self) -> bool {
        self.bytes.len() >= MIN_SHARED_BYTES
            && self.source.is_some_and(|(batch, _)| 2 * self.bytes.len() >= batch.bytes.len())
    }

    /// A reference that outlives the batch's turn, if that is worth it.
    pub(crate) fn share(&self) -> Option<SharedFrame> {
        let (batch, start) = self.source.filter(|_| self.is_shared())?;
        Some(SharedFrame { batch: Arc::clone(batch), range: start..start + self.bytes.len() })
    }
}

/// A frame in a batch that it keeps alive.
pub(crate) struct SharedFrame {
    batch: Arc<Batch>,
    range: Range<usize>,
}

impl SharedFrame {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.batch.bytes[self.range.clone()]
    }
}
