use std::rc::Rc;

use super::chain::Piece;
use super::chunk::Chunk;
use super::pool::ChunkPool;
use crate::bridge::batch::Frame;

/// Frames of this turn, one copy each, in the order they were made.
///
/// Logs and chains refer to ranges of it, and neighbours become one range. So the output of a connection in a turn is mostly
/// contiguous and is written from here. Bytes that a full socket did not take are copied out when the turn ends: this memory
/// is reused, and a slow reader never holds it.
#[derive(Default)]
pub(crate) struct Arena {
    current: Option<Rc<Chunk>>,
    bytes: usize,
    is_stream: bool,
}

impl Arena {
    /// For the bytes of event streams, which are never in one chunk with frames.
    pub(crate) fn of_streams() -> Self {
        Self { is_stream: true, ..Self::default() }
    }

    /// Keeps a frame: copies it, or refers to it where it is if it is large.
    pub(crate) fn put(&mut self, frame: &Frame<'_>, pool: &mut ChunkPool) -> Piece {
        let bytes = frame.bytes();
        let to = bytes.len() as u32;
        self.bytes += bytes.len();
        if let Some(shared) = frame.share() {
            let chunk = Rc::new(Chunk::shared(shared, pool.gauge()));
            chunk.set_stream(self.is_stream);
            return Piece { chunk, from: 0, to };
        }
        if let Some(chunk) = &self.current
            && let Some(from) = chunk.append(bytes)
        {
            return Piece { chunk: Rc::clone(chunk), from, to: from + to };
        }
        let chunk = pool.chunk_with(bytes, pool.transient());
        chunk.set_transient(true);
        chunk.set_stream(self.is_stream);
        self.current = Some(Rc::clone(&chunk));
        Piece { chunk, from: 0, to }
    }

    /// Bytes of this turn's frames.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Ends the turn: nothing refers to its frames any more.
    pub(crate) fn reset(&mut self, pool: &mut ChunkPool) {
        self.bytes = 0;
        if let Some(chunk) = self.current.take() {
            debug_assert_eq!(Rc::strong_count(&chunk), 1, "somebody still waits for frames of this turn");
            pool.give(chunk);
        }
    }
}
