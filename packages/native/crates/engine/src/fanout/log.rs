use std::collections::VecDeque;
use std::rc::Rc;

use super::chain::Piece;
use super::chunk::Chunk;
use super::pool::{ChunkPool, SizeClass};
use super::records::{Droppable, Records};

/// Entries that a log keeps room for while it is empty; beyond it the memory goes back.
const KEPT_ENTRIES: usize = 4;

/// Append-only output of a cohort: ranges of chunks, one after another. Positions count its bytes since it began; readers
/// are cursors kept elsewhere.
///
/// Holds memory only for what some cursor has not passed.
#[derive(Default)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    end: u64,
    class: SizeClass,
    pub(crate) records: Records,
}

/// Whole frames of a chunk, from `from` on, which are the log's from `start` on.
struct Entry {
    start: u64,
    chunk: Rc<Chunk>,
    from: u32,
}

impl Log {
    /// Position of the next byte.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Adds whole frames. Cost: constant, nothing is copied.
    pub(crate) fn append(&mut self, piece: &Piece) {
        let start = self.end;
        self.end += piece.len() as u64;
        let goes_on = self.entries.back().is_some_and(|tail| {
            Rc::ptr_eq(&tail.chunk, &piece.chunk)
                && u64::from(tail.from) + (start - tail.start) == u64::from(piece.from)
        });
        if !goes_on {
            self.entries.push_back(Entry { start, chunk: Rc::clone(&piece.chunk), from: piece.from });
        }
    }

    /// Notes what a group says about the frame of `len` bytes that was appended last. It goes first for this frame.
    pub(crate) fn note_first_group(&mut self, len: usize, droppable: Option<Droppable>) {
        if let Some(droppable) = droppable {
            self.records.push(self.end - len as u64, len as u32, droppable);
        }
    }

    /// Notes what one more group says about the frame of `len` bytes that was appended last.
    pub(crate) fn note_other_group(&mut self, len: usize, droppable: Option<Droppable>) {
        if !self.records.is_empty() {
            self.records.add_group(self.end - len as u64, droppable);
        }
    }

    /// The contiguous bytes at `from`, up to `to`. `from` has not been released.
    pub(crate) fn piece(&self, from: u64, to: u64) -> Option<Piece> {
        if from >= to {
            return None;
        }
        let index = self.entries.partition_point(|entry| entry.start <= from).checked_sub(1)?;
        let entry = self.entries.get(index)?;
        let in_chunk = |position: u64| entry.from + (position - entry.start) as u32;
        Some(Piece { chunk: Rc::clone(&entry.chunk), from: in_chunk(from), to: in_chunk(to.min(self.end_of(index))) })
    }

    /// Lets go of the entries that end at or before `position`, which no cursor will ask for again.
    pub(crate) fn release_before(&mut self, position: u64, pool: &mut ChunkPool) {
        while !self.entries.is_empty() && self.end_of(0) <= position {
            if let Some(entry) = self.entries.pop_front() {
                pool.give(entry.chunk);
            }
        }
        self.records.release_before(position);
        if self.entries.is_empty() {
            self.class = SizeClass::default();
            if self.entries.capacity() > KEPT_ENTRIES {
                self.entries = VecDeque::new();
            }
        }
    }

    /// Copies what lies in the memory of this turn into chunks of the log's own, which grow with what it holds.
    pub(crate) fn secure(&mut self, pool: &mut ChunkPool) {
        let Some(first) = self.entries.iter().position(|entry| entry.chunk.is_transient()) else { return };
        let (end, fresh) = (self.end, self.entries.split_off(first));
        let ends: Vec<u64> = fresh.iter().skip(1).map(|entry| entry.start).chain([end]).collect();
        for (entry, end) in fresh.into_iter().zip(ends) {
            self.end = entry.start;
            let to = entry.from + (end - entry.start) as u32;
            if entry.chunk.is_transient() {
                entry.chunk.with(entry.from as usize, to as usize, |frames| self.append_copy(frames, pool));
            } else {
                self.append(&Piece { chunk: entry.chunk, from: entry.from, to });
            }
        }
    }

    fn append_copy(&mut self, frames: &[u8], pool: &mut ChunkPool) {
        if let Some(tail) = self.entries.back() {
            let ends_at_tail = u64::from(tail.from) + (self.end - tail.start) == tail.chunk.len() as u64;
            if ends_at_tail && tail.chunk.append(frames).is_some() {
                self.end += frames.len() as u64;
                return;
            }
            self.class = pool.larger(self.class);
        }
        let chunk = pool.chunk_with(frames, self.class);
        self.append(&Piece { chunk, from: 0, to: frames.len() as u32 });
    }

    fn end_of(&self, index: usize) -> u64 {
        self.entries.get(index + 1).map_or(self.end, |next| next.start)
    }
}

#[cfg(test)]
mod tests {
    use super::super::arena::Arena;
    use super::*;
    use crate::bridge::batch::Frame;

    fn read(log: &Log, mut from: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(piece) = log.piece(from, log.end()) {
            from += piece.len() as u64;
            piece.with(|slice| bytes.extend_from_slice(slice));
        }
        bytes
    }

    struct Bench {
        log: Log,
        arena: Arena,
        pool: ChunkPool,
    }

    impl Bench {
        fn new() -> Self {
            Self { log: Log::default(), arena: Arena::default(), pool: ChunkPool::new(1 << 20) }
        }

        fn append(&mut self, frame: &[u8]) {
            let piece = self.arena.put(&Frame::copied(frame), &mut self.pool);
            self.log.append(&piece);
        }

        fn end_turn(&mut self, oldest: u64) {
            self.log.release_before(oldest, &mut self.pool);
            self.log.secure(&mut self.pool);
            self.arena.reset(&mut self.pool);
        }
    }

    #[test]
    fn frames_of_a_turn_are_one_contiguous_range() {
        let mut bench = Bench::new();
        (0..100_u8).for_each(|byte| bench.append(&[byte; 300]));
        assert_eq!(bench.log.piece(0, bench.log.end()).map(|piece| piece.len()), Some(30_000));
        bench.end_turn(30_000);
        assert_eq!(bench.pool.gauge().bytes(), 0);
    }

    #[test]
    fn a_cursor_reads_on_over_the_ends_of_chunks_and_turns() {
        let mut bench = Bench::new();
        let frames: Vec<Vec<u8>> = (0..1_000).map(|number| vec![number as u8; 300]).collect();
        for (number, frame) in frames.iter().enumerate() {
            bench.append(frame);
            if number % 7 == 0 {
                bench.end_turn(0);
            }
        }
        bench.end_turn(0);
        let all = frames.concat();
        assert_eq!(read(&bench.log, 0), all);
        assert_eq!(read(&bench.log, 123_456), all[123_456..]);
        assert_eq!(bench.pool.gauge().bytes(), all.len());
    }

    #[test]
    fn memory_is_freed_chunk_by_chunk() {
        let mut bench = Bench::new();
        for _ in 0..1_000 {
            bench.append(&[7; 300]);
            bench.end_turn(0);
        }
        bench.end_turn(200_000);
        assert!(bench.pool.gauge().bytes() < 100_000 + (1 << 16) + 300);
        assert_eq!(read(&bench.log, 200_000).len(), 100_000);
        bench.end_turn(300_000);
        assert_eq!(bench.pool.gauge().bytes(), 0);
    }

    #[test]
    fn a_range_that_somebody_holds_outlives_its_log() {
        let mut bench = Bench::new();
        bench.append(b"\x82\x01a");
        bench.end_turn(0);
        let piece = bench.log.piece(0, 3).expect("three bytes");
        bench.end_turn(3);
        bench.append(b"\x82\x01b");
        bench.end_turn(0);
        assert_eq!(piece.with(<[u8]>::to_vec), b"\x82\x01a");
    }
}
