use std::collections::VecDeque;
use std::rc::Rc;

use super::chunk::Chunk;
use super::pool::{ChunkPool, SizeClass};

/// Pieces that may wait for one connection, whatever their size. Each costs 16 bytes besides the bytes it refers to.
pub(crate) const MAX_PIECES: usize = 1 << 16;

/// A range of one chunk.
#[derive(Clone)]
pub(crate) struct Piece {
    pub(crate) chunk: Rc<Chunk>,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Piece {
    pub(crate) fn len(&self) -> usize {
        (self.to - self.from) as usize
    }

    pub(crate) fn with<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        self.chunk.with(self.from as usize, self.to as usize, read)
    }
}

/// Output of one connection that goes before its cursor in a log: direct frames, and ranges of logs that it has left.
#[derive(Default)]
pub(crate) struct Chain {
    pieces: VecDeque<Piece>,
    bytes: usize,
    /// Pieces may refer to the memory of this turn.
    has_turn_memory: bool,
}

impl Chain {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(crate) fn is_overlong(&self) -> bool {
        self.pieces.len() > MAX_PIECES
    }

    pub(crate) fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter()
    }

    pub(crate) fn first(&self) -> Option<&Piece> {
        self.pieces.front()
    }

    /// Adds a range. A range that begins where the last one ends becomes a part of it.
    pub(crate) fn push_piece(&mut self, piece: Piece) {
        self.bytes += piece.len();
        match self.pieces.back_mut() {
            Some(last) if Rc::ptr_eq(&last.chunk, &piece.chunk) && last.to == piece.from => last.to = piece.to,
            _ => self.pieces.push_back(piece),
        }
    }

    /// Adds bytes that are not whole frames.
    pub(crate) fn push_raw(&mut self, bytes: Box<[u8]>, pool: &ChunkPool) {
        let to = bytes.len() as u32;
        self.push_piece(Piece { chunk: Rc::new(Chunk::raw(bytes, pool.gauge())), from: 0, to });
    }

    /// Removes the first `count` bytes after they were written. Returns how many of `count` were not in the chain.
    pub(crate) fn consume(&mut self, mut count: usize, pool: &mut ChunkPool) -> usize {
        while let Some(piece) = self.pieces.front_mut() {
            if count < piece.len() {
                piece.from += count as u32;
                self.bytes -= count;
                return 0;
            }
            count -= piece.len();
            self.bytes -= piece.len();
            if let Some(piece) = self.pieces.pop_front() {
                pool.give(piece.chunk);
            }
        }
        // Not kept for the next piece: it would be a third of the memory of an idle connection, and costs little beside a write.
        self.pieces = VecDeque::new();
        count
    }

    /// Notes that pieces may refer to the memory of this turn. Returns whether that is new.
    #[must_use = "the chain must be secured when the turn ends"]
    pub(crate) fn note_turn_memory(&mut self) -> bool {
        !std::mem::replace(&mut self.has_turn_memory, true)
    }

    /// Copies what lies in the memory of this turn into chunks of the chain's own.
    pub(crate) fn secure(&mut self, pool: &mut ChunkPool) {
        self.has_turn_memory = false;
        if !self.pieces.iter().any(|piece| piece.chunk.is_transient()) {
            return;
        }
        self.bytes = 0;
        for Piece { chunk, from, to } in std::mem::take(&mut self.pieces) {
            if !chunk.is_transient() {
                self.push_piece(Piece { chunk, from, to });
                continue;
            }
            // Only the first piece can begin inside a frame.
            let boundary = if self.pieces.is_empty() { chunk.frame_end(from as usize) as u32 } else { from };
            if from < boundary {
                self.push_raw(chunk.with(from as usize, boundary as usize, |rest| rest.into()), pool);
            }
            if boundary < to {
                let is_stream = chunk.is_stream();
                chunk.with(boundary as usize, to as usize, |frames| self.push_copy(frames, is_stream, pool));
            }
        }
    }

    /// Appends a copy of whole frames: to the last chunk if this chain alone refers to it, otherwise to a new one.
    fn push_copy(&mut self, frames: &[u8], is_stream: bool, pool: &mut ChunkPool) {
        let len = frames.len() as u32;
        if let Some(last) = self.pieces.back_mut()
            && Rc::strong_count(&last.chunk) == 1
            && last.to as usize == last.chunk.len()
            && last.chunk.append(frames).is_some()
        {
            last.to += len;
            self.bytes += frames.len();
            return;
        }
        let class = if self.pieces.is_empty() { SizeClass::default() } else { pool.larger(SizeClass::default()) };
        let chunk = pool.chunk_with(frames, class);
        chunk.set_stream(is_stream);
        self.push_piece(Piece { chunk, from: 0, to: len });
    }

    /// Drops everything except the rest of a frame that was written in part. A frame may follow.
    pub(crate) fn cut_to_current_frame(&mut self, pool: &ChunkPool) {
        let pieces = std::mem::take(&mut self.pieces);
        self.bytes = 0;
        let Some(first) = pieces.front() else { return };
        let (from, to) = (first.from as usize, first.chunk.frame_end(first.from as usize));
        if from < to {
            // Copied: the chunk may be a thousand times as large as this rest.
            self.push_raw(first.chunk.with(from, to, |bytes| bytes.into()), pool);
        }
    }
}
