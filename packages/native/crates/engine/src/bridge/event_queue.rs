use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::bridge::event::{Block, CUT_BYTES, Events, event_len};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// A block of this size leaves before the end of its turn: JavaScript begins with it, and its memory is filled again soon.
pub(crate) const FULL_BLOCK_BYTES: usize = 256 << 10;
/// Memory of blocks that are kept to be filled again: as much as may wait, and as much as has been read.
const MAX_KEPT_BYTES: usize = 4 << 20;
/// A larger block is not kept.
const MAX_KEPT_BLOCK_BYTES: usize = 512 << 10;

/// Nobody waits.
const NO_POSITION: u64 = u64::MAX;

#[derive(Default)]
struct Blocks {
    waiting: VecDeque<Block>,
    /// Empty ones.
    kept: Vec<Block>,
    kept_bytes: usize,
}

impl Blocks {
    fn keep(&mut self, mut block: Block) {
        let bytes = block.bytes.capacity();
        if bytes <= MAX_KEPT_BLOCK_BYTES && self.kept_bytes + bytes <= MAX_KEPT_BYTES {
            block.bytes.clear();
            block.cuts.clear();
            self.kept_bytes += bytes;
            self.kept.push(block);
        }
    }

    fn empty(&mut self) -> Block {
        let block = self.kept.pop().unwrap_or_default();
        self.kept_bytes -= block.bytes.capacity();
        block
    }
}

/// Events on their way from one shard to JavaScript.
pub(crate) struct EventQueue {
    blocks: Mutex<Blocks>,
    /// Position in the stream of the shard's events up to which JavaScript has read.
    read_position: AtomicU64,
    /// Position up to which JavaScript has handled the events: what it answered at once has been submitted.
    handled_position: AtomicU64,
    /// The shard waits until `read_position` is here.
    awaited_position: AtomicU64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            blocks: Mutex::default(),
            read_position: AtomicU64::new(0),
            handled_position: AtomicU64::new(0),
            awaited_position: AtomicU64::new(NO_POSITION),
        }
    }
}

impl EventQueue {
    /// Position up to which JavaScript has read.
    pub(crate) fn read_position(&self) -> u64 {
        self.read_position.load(Ordering::SeqCst)
    }

    /// Position up to which JavaScript has handled events.
    pub(crate) fn handled_position(&self) -> u64 {
        self.handled_position.load(Ordering::SeqCst)
    }

    /// JavaScript has handled what it has read, and has submitted its commands.
    pub(crate) fn note_handled(&self) {
        self.handled_position.store(self.read_position(), Ordering::SeqCst);
    }

    /// Requests a wake-up of the shard when JavaScript has read up to here. Holds until the shard takes it back.
    pub(crate) fn await_position(&self, position: u64) {
        self.awaited_position.store(position, Ordering::SeqCst);
    }

    /// Takes the request back. Only the shard does: JavaScript could take back one that has just replaced the one it saw.
    pub(crate) fn await_nothing(&self) {
        if self.awaited_position.load(Ordering::Relaxed) != NO_POSITION {
            self.await_position(NO_POSITION);
        }
    }

    /// Appends the events of a turn.
    pub(crate) fn put(&self, events: &mut Events) {
        if events.len() == 0 {
            return;
        }
        let mut blocks = self.lock();
        let empty = blocks.empty();
        let mut block = events.take(empty);
        match blocks.waiting.back_mut() {
            // Turns of a few events make one block: it needs no cut.
            Some(last) if last.bytes.len() + block.bytes.len() <= CUT_BYTES => {
                last.bytes.append(&mut block.bytes);
                blocks.keep(block);
            }
            _ => blocks.waiting.push_back(block),
        }
    }

    /// Notes that `bytes` were read; `true` when the shard waits for that.
    fn note_read(&self, bytes: usize) -> bool {
        let position = self.read_position.fetch_add(bytes as u64, Ordering::SeqCst) + bytes as u64;
        self.awaited_position.load(Ordering::SeqCst) <= position
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// JavaScript's end of an event queue.
#[derive(Default)]
pub(crate) struct EventReader {
    blocks: VecDeque<Block>,
    /// Where the unread events of the first block begin.
    start: usize,
    /// Read whole, to be filled again.
    done: Vec<Block>,
}

/// What a drain of one queue came to.
pub(crate) struct Drained {
    /// Bytes copied: whole events.
    pub(crate) bytes: usize,
    /// Size of the next event, if it did not fit.
    pub(crate) next_bytes: Option<usize>,
    /// The caller must wake the shard: it waits for room.
    pub(crate) wakes_shard: bool,
}

impl EventReader {
    /// Copies as many whole events into `target` as fit.
    pub(crate) fn drain(&mut self, queue: &EventQueue, target: &mut [u8]) -> Drained {
        let mut copied = 0;
        let mut next_bytes = None;
        loop {
            if self.blocks.is_empty() {
                self.refill(queue);
            }
            let Some(block) = self.blocks.front() else { break };
            let rest = &block.bytes[self.start..];
            let room = target.len() - copied;
            let fitting = match rest.len() <= room {
                true => rest.len(),
                // A walk from event to event touches memory that is in no cache yet.
                false => match cut_within(block, self.start, room) {
                    0 if copied == 0 => whole_events(rest, room),
                    fitting => fitting,
                },
            };
            target[copied..copied + fitting].copy_from_slice(&rest[..fitting]);
            copied += fitting;
            self.start += fitting;
            if fitting < rest.len() {
                next_bytes = Some(event_len(&rest[fitting..]));
                break;
            }
            self.start = 0;
            self.done.extend(self.blocks.pop_front());
        }
        let wakes_shard = copied > 0 && queue.note_read(copied);
        Drained { bytes: copied, next_bytes, wakes_shard }
    }

    fn refill(&mut self, queue: &EventQueue) {
        let mut blocks = queue.lock();
        self.done.drain(..).for_each(|block| blocks.keep(block));
        std::mem::swap(&mut blocks.waiting, &mut self.blocks);
    }
}

/// Bytes from `start` to the last cut that fits into `room`; 0 if none does.
fn cut_within(block: &Block, start: usize, room: usize) -> usize {
    let count = block.cuts.partition_point(|cut| *cut <= start + room);
    block.cuts[..count].last().map_or(0, |cut| cut.saturating_sub(start))
}

/// Bytes of the whole events at the start of `events` that fit into `room`.
fn whole_events(events: &[u8], room: usize) -> usize {
    let mut end = 0;
    while end < events.len() {
        let next = end + event_len(&events[end..]);
        if next > room {
            break;
        }
        end = next;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ConnectionId, ShardId, Slot};

    fn events(count: u32, data: &[u8]) -> Events {
        let mut events = Events::default();
        for slot in 0..count {
            events.message(ConnectionId::new(ShardId(0), Slot(slot), 0), data, true);
        }
        events
    }

    #[test]
    fn events_leave_whole_and_in_order() {
        let queue = EventQueue::default();
        queue.put(&mut events(3, b"abc"));
        queue.put(&mut events(2, b"defg"));
        let (mut reader, mut target, mut all) = (EventReader::default(), [0; 50], Vec::new());
        loop {
            let drained = reader.drain(&queue, &mut target);
            all.extend_from_slice(&target[..drained.bytes]);
            if drained.bytes == 0 {
                break;
            }
        }
        assert_eq!(all, [events(3, b"abc").block.bytes, events(2, b"defg").block.bytes].concat());
        assert_eq!(queue.read_position(), all.len() as u64);
    }

    #[test]
    fn messages_of_one_connection_share_events_that_stay_small() {
        let id = |slot| ConnectionId::new(ShardId(0), Slot(slot), 0);
        let (mut events, queue) = (Events::default(), EventQueue::default());
        for (slot, count) in [(0, 3), (1, 2), (0, 1_000), (1, 1)] {
            (0..count).for_each(|_| events.message(id(slot), &[7; 96], false));
        }
        let mut ends = vec![0];
        while ends[ends.len() - 1] < events.len() {
            let start = ends[ends.len() - 1];
            ends.push(start + event_len(&events.block.bytes[start..]));
        }
        let sizes: Vec<usize> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(sizes, [316, 216, 32_816, 32_816, 32_816, 1_616, 116]);
        assert!(events.block.cuts.iter().all(|cut| ends.contains(cut)), "{:?}", events.block.cuts);
        events.drop_unfinished();
        assert_eq!(events.len(), *ends.last().expect("an end"));
        queue.put(&mut events);
        // A new block begins with an event of its own.
        events.message(id(1), &[7; 96], true);
        assert_eq!(event_len(&events.block.bytes), 116);
    }

    #[test]
    fn an_event_that_does_not_fit_says_how_much_it_needs() {
        let queue = EventQueue::default();
        queue.put(&mut events(1, &[0; 100]));
        let drained = EventReader::default().drain(&queue, &mut [0; 50]);
        assert_eq!((drained.bytes, drained.next_bytes), (0, Some(120)));
    }

    #[test]
    fn a_shard_that_waits_for_a_position_is_woken_when_it_is_read_and_until_it_waits_no_more() {
        let queue = EventQueue::default();
        queue.put(&mut events(4, &[0; 5]));
        queue.await_position(50);
        let (mut reader, mut target) = (EventReader::default(), [0; 25]);
        let woken: Vec<bool> = (0..3).map(|_| reader.drain(&queue, &mut target).wakes_shard).collect();
        assert_eq!(woken, [false, true, true]);
        queue.await_nothing();
        assert!(!reader.drain(&queue, &mut target).wakes_shard);
    }

    #[test]
    fn large_blocks_leave_by_their_cuts_and_nothing_is_lost() {
        let queue = EventQueue::default();
        let (mut reader, mut target, mut all, mut sent) =
            (EventReader::default(), vec![0; 128 << 10], Vec::new(), Vec::new());
        for turn in 0..50_u8 {
            for size in [1, 300, 40_000, 200_000_usize] {
                let mut turn_events = events(3, &vec![turn; size / (1 + usize::from(turn % 7))]);
                sent.extend_from_slice(&turn_events.block.bytes);
                queue.put(&mut turn_events);
            }
            for _ in 0..turn % 5 {
                let drained = reader.drain(&queue, &mut target);
                all.extend_from_slice(&target[..drained.bytes]);
                target.resize(drained.next_bytes.unwrap_or(0).max(128 << 10), 0);
            }
        }
        loop {
            let drained = reader.drain(&queue, &mut target);
            all.extend_from_slice(&target[..drained.bytes]);
            target.resize(drained.next_bytes.unwrap_or(0).max(128 << 10), 0);
            if drained.bytes == 0 && drained.next_bytes.is_none() {
                break;
            }
        }
        assert!(all == sent);
        assert_eq!(queue.read_position(), sent.len() as u64);
    }
}
