use std::collections::VecDeque;
use std::rc::Rc;

use super::chain::Piece;
use super::chunk::Chunk;
use super::pool::{ChunkPool, SizeClass};
use crate::batch::Frame;

/// Append-only output of a cohort. Positions count its bytes since it began; readers are cursors kept elsewhere.
///
/// Holds memory only for what some cursor has not passed.
#[derive(Default)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    end: u64,
    class: SizeClass,
}

struct Entry {
    start: u64,
    chunk: Rc<Chunk>,
}

impl Log {
    /// Position of the next byte.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn append(&mut self, frame: &Frame<'_>, pool: &mut ChunkPool) {
        let start = self.end;
        self.end += frame.bytes().len() as u64;
        if let Some(tail) = self.entries.back() {
            if !frame.is_shared() && tail.chunk.append(frame) {
                return;
            }
            self.class = pool.larger(self.class);
        }
        self.entries.push_back(Entry { start, chunk: pool.chunk_with(frame, self.class) });
    }

    /// The contiguous bytes at `from`, up to `to`. `from` has not been released.
    pub(crate) fn piece(&self, from: u64, to: u64) -> Option<Piece> {
        if from >= to {
            return None;
        }
        let index = self.entries.partition_point(|entry| entry.start <= from).checked_sub(1)?;
        let entry = self.entries.get(index)?;
        let chunk_end = self.entries.get(index + 1).map_or(self.end, |next| next.start);
        let (from, to) = ((from - entry.start) as u32, (to.min(chunk_end) - entry.start) as u32);
        Some(Piece { chunk: Rc::clone(&entry.chunk), from, to })
    }

    /// Lets go of the chunks that end at or before `position`, which no cursor will ask for again.
    pub(crate) fn release_before(&mut self, position: u64, pool: &mut ChunkPool) {
        let first = self.entries.front().map_or(self.end, |entry| entry.start);
        while !self.entries.is_empty() {
            let chunk_end = self.entries.get(1).map_or(self.end, |next| next.start);
            if chunk_end > position {
                break;
            }
            if let Some(entry) = self.entries.pop_front() {
                pool.give(entry.chunk);
            }
        }
        if self.entries.is_empty() && first < self.end {
            self.class = self.class.after_use((self.end - first) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(log: &Log, mut from: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(piece) = log.piece(from, log.end()) {
            from += piece.len() as u64;
            piece.with(|slice| bytes.extend_from_slice(slice));
        }
        bytes
    }

    #[test]
    fn a_cursor_reads_on_over_chunk_ends() {
        let (mut log, mut pool) = (Log::default(), ChunkPool::new(1 << 20));
        let frames: Vec<Vec<u8>> = (0..100_u8).map(|byte| vec![byte; 300]).collect();
        frames.iter().for_each(|frame| log.append(&Frame::copied(frame), &mut pool));
        let all = frames.concat();
        assert_eq!(read(&log, 0), all);
        assert_eq!(read(&log, 12_345), all[12_345..]);
        assert_eq!(pool.gauge().bytes(), all.len());
    }

    #[test]
    fn memory_is_freed_chunk_by_chunk_and_wholly_at_the_end() {
        let (mut log, mut pool) = (Log::default(), ChunkPool::new(1 << 20));
        (0..100_u8).for_each(|byte| log.append(&Frame::copied(&[byte; 300]), &mut pool));
        log.release_before(20_000, &mut pool);
        assert!(pool.gauge().bytes() < 30_000);
        assert_eq!(read(&log, 20_000).len(), 10_000);
        log.release_before(log.end(), &mut pool);
        assert_eq!(pool.gauge().bytes(), 0);
        assert_eq!(log.entries.len(), 0);
    }

    #[test]
    fn a_range_that_somebody_holds_outlives_its_log() {
        let (mut log, mut pool) = (Log::default(), ChunkPool::new(1 << 20));
        log.append(&Frame::copied(b"\x82\x01a"), &mut pool);
        let piece = log.piece(0, 3).expect("three bytes");
        log.release_before(3, &mut pool);
        log.append(&Frame::copied(b"\x82\x01b"), &mut pool);
        assert_eq!(piece.with(<[u8]>::to_vec), b"\x82\x01a");
    }

    #[test]
    fn chunks_grow_with_the_traffic_and_shrink_without() {
        let (mut log, mut pool) = (Log::default(), ChunkPool::new(1 << 20));
        for _ in 0..10 {
            (0..200).for_each(|_| log.append(&Frame::copied(&[0; 300]), &mut pool));
            log.release_before(log.end(), &mut pool);
        }
        (0..200).for_each(|_| log.append(&Frame::copied(&[0; 300]), &mut pool));
        assert_eq!(log.entries.len(), 1);
        log.release_before(log.end(), &mut pool);
        for _ in 0..10 {
            log.append(&Frame::copied(&[0; 10]), &mut pool);
            log.release_before(log.end(), &mut pool);
        }
        assert_eq!(log.class, SizeClass::default());
    }
}
