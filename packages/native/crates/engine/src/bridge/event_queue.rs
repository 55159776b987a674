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
    /// The front lane.
    front: VecDeque<Block>,
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

    fn append(&mut self, mut block: Block, lane: impl Fn(&mut Self) -> &mut VecDeque<Block>) {
        match lane(self).back_mut() {
            // Turns of a few events make one block: it needs no cut.
            Some(last) if last.bytes.len() + block.bytes.len() <= CUT_BYTES => {
                last.bytes.append(&mut block.bytes);
                self.keep(block);
            }
            _ => lane(self).push_back(block),
        }
    }

    fn empty(&mut self) -> Block {
        let block = self.kept.pop().unwrap_or_default();
        self.kept_bytes -= block.bytes.capacity();
        block
    }
}

/// How far JavaScript is in the events of a lane, in bytes since the engine began.
#[derive(Default)]
pub(crate) struct Progress {
    read: AtomicU64,
    handled: AtomicU64,
}

impl Progress {
    /// Position up to which JavaScript has read.
    pub(crate) fn read_position(&self) -> u64 {
        self.read.load(Ordering::SeqCst)
    }

    /// Position up to which JavaScript has handled the events: what it answered at once has been submitted.
    pub(crate) fn handled_position(&self) -> u64 {
        self.handled.load(Ordering::SeqCst)
    }

    /// JavaScript has handled what it has read, and has submitted its commands.
    fn note_handled(&self) {
        self.handled.store(self.read_position(), Ordering::SeqCst);
    }

    /// Notes that `bytes` were read; returns the position.
    fn note_read(&self, bytes: usize) -> u64 {
        self.read.fetch_add(bytes as u64, Ordering::SeqCst) + bytes as u64
    }
}

/// Events on their way from one shard to JavaScript, in two lanes. In the front lane are those of connections that had
/// nothing else to be handled: JavaScript takes them before those of connections that send much. The messages of a connection
/// keep their order: none is put in front while JavaScript has an earlier one in the other lane to handle, and a reader of the
/// other lane has taken all earlier events of the front lane.
pub(crate) struct EventQueue {
    blocks: Mutex<Blocks>,
    pub(crate) front: Progress,
    pub(crate) rest: Progress,
    /// The shard waits until JavaScript has read the rest up to here.
    awaited_position: AtomicU64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            blocks: Mutex::default(),
            front: Progress::default(),
            rest: Progress::default(),
            awaited_position: AtomicU64::new(NO_POSITION),
        }
    }
}

impl EventQueue {
    /// JavaScript has handled what it has read of both lanes, and has submitted its commands.
    pub(crate) fn note_handled(&self) {
        self.front.note_handled();
        self.rest.note_handled();
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

    /// Appends events of a turn to both lanes, at once.
    pub(crate) fn put(&self, front: &mut Events, rest: &mut Events) {
        if front.len() + rest.len() == 0 {
            return;
        }
        let mut blocks = self.lock();
        if front.len() > 0 {
            let block = front.take(blocks.empty());
            blocks.append(block, |blocks| &mut blocks.front);
        }
        if rest.len() > 0 {
            let block = rest.take(blocks.empty());
            blocks.append(block, |blocks| &mut blocks.waiting);
        }
    }

    /// Notes that `bytes` of the rest were read; `true` when the shard waits for that.
    fn note_read(&self, bytes: usize) -> bool {
        let position = self.rest.note_read(bytes);
        self.awaited_position.load(Ordering::SeqCst) <= position
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Blocks of a lane that JavaScript reads.
#[derive(Default)]
struct Reading {
    blocks: VecDeque<Block>,
    /// Where the unread events of the first block begin.
    start: usize,
}

impl Reading {
    /// Copies as many whole events into `target` as fit. Returns their bytes, and the size of the next one if it did not fit.
    fn copy(&mut self, target: &mut [u8], done: &mut Vec<Block>) -> (usize, Option<usize>) {
        let mut copied = 0;
        while let Some(block) = self.blocks.front() {
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
                return (copied, Some(event_len(&rest[fitting..])));
            }
            self.start = 0;
            done.extend(self.blocks.pop_front());
        }
        (copied, None)
    }
}

/// JavaScript's end of an event queue.
#[derive(Default)]
pub(crate) struct EventReader {
    front: Reading,
    rest: Reading,
    /// Read whole, to be filled again.
    done: Vec<Block>,
}

/// What a drain of one queue came to.
#[derive(Default)]
pub(crate) struct Drained {
    /// Bytes copied: whole events.
    pub(crate) bytes: usize,
    /// Size of the next event, if it did not fit.
    pub(crate) next_bytes: Option<usize>,
    /// Something was left of an earlier drain, and what has come since was not taken.
    pub(crate) is_behind: bool,
    /// The caller must wake the shard: it waits for room.
    pub(crate) wakes_shard: bool,
}

impl EventReader {
    /// The first step of a drain: takes what waits, unless some of what was taken before is left, and copies as many whole
    /// events of the front lane into `target` as fit.
    pub(crate) fn copy_front(&mut self, queue: &EventQueue, target: &mut [u8]) -> Drained {
        let is_behind = !(self.front.blocks.is_empty() && self.rest.blocks.is_empty());
        if !is_behind {
            self.refill(queue, true);
        }
        let (bytes, next_bytes) = self.front.copy(target, &mut self.done);
        queue.front.note_read(bytes);
        Drained { bytes, next_bytes, is_behind, wakes_shard: false }
    }

    /// The second step, once nothing is left in front: the same of the rest.
    pub(crate) fn copy_rest(&mut self, queue: &EventQueue, target: &mut [u8]) -> Drained {
        let (bytes, next_bytes) = self.rest.copy(target, &mut self.done);
        Drained { bytes, next_bytes, is_behind: false, wakes_shard: bytes > 0 && queue.note_read(bytes) }
    }

    /// Both steps, of one queue alone.
    #[cfg(test)]
    pub(crate) fn drain(&mut self, queue: &EventQueue, target: &mut [u8]) -> Drained {
        let front = self.copy_front(queue, target);
        if front.next_bytes.is_some() {
            return front;
        }
        let rest = self.copy_rest(queue, &mut target[front.bytes..]);
        Drained { bytes: front.bytes + rest.bytes, ..rest }
    }

    /// Copies as many whole events into `target` as fit, of those in front alone. The caller has handled those that it was
    /// given before.
    pub(crate) fn drain_front(&mut self, queue: &EventQueue, target: &mut [u8]) -> usize {
        queue.front.note_handled();
        if self.front.blocks.is_empty() {
            self.refill(queue, false);
        }
        let (bytes, _) = self.front.copy(target, &mut self.done);
        queue.front.note_read(bytes);
        bytes
    }

    /// Takes what waits in front, and the rest: never that alone.
    fn refill(&mut self, queue: &EventQueue, with_rest: bool) {
        let mut blocks = queue.lock();
        self.done.drain(..).for_each(|block| blocks.keep(block));
        std::mem::swap(&mut blocks.front, &mut self.front.blocks);
        if with_rest {
            std::mem::swap(&mut blocks.waiting, &mut self.rest.blocks);
        }
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

    fn put(queue: &EventQueue, mut rest: Events) {
        queue.put(&mut Events::default(), &mut rest);
    }

    /// The connections whose events are there, in order.
    fn slots(mut packed: &[u8]) -> Vec<u32> {
        let mut slots = Vec::new();
        while !packed.is_empty() {
            let id = f64::from_le_bytes(*packed[8..].first_chunk().expect("an id"));
            slots.push(ConnectionId::from_number(id).expect("an id").slot().0);
            packed = &packed[event_len(packed)..];
        }
        slots
    }

    fn event_of(slot: u32) -> Events {
        let mut events = Events::default();
        events.message(ConnectionId::new(ShardId(0), Slot(slot), 0), b"abc", false);
        events
    }

    #[test]
    fn the_front_lane_leaves_first_and_the_rest_never_before_what_was_put_in_front_of_it() {
        let (queue, mut reader, mut target) = (EventQueue::default(), EventReader::default(), [0; 1_000]);
        put(&queue, events(2, &[0; 500]));
        assert_eq!(reader.drain(&queue, &mut target).bytes, 520);
        queue.put(&mut event_of(7), &mut Events::default());
        queue.put(&mut event_of(8), &mut event_of(9));
        assert_eq!(queue.front.handled_position(), 0);
        let bytes = reader.drain_front(&queue, &mut target);
        assert_eq!(slots(&target[..bytes]), [7, 8]);
        assert_eq!((queue.front.handled_position(), queue.rest.handled_position()), (0, 0));
        queue.put(&mut event_of(10), &mut event_of(7));
        let bytes = reader.drain_front(&queue, &mut target[..30]);
        assert_eq!((slots(&target[..bytes]), queue.front.handled_position()), (vec![10], 46));
        queue.put(&mut event_of(11), &mut event_of(10));
        // The rest of the first block was taken before anything was put in front.
        let before = reader.drain(&queue, &mut target);
        assert_eq!((slots(&target[..before.bytes]), before.next_bytes), (vec![1], None));
        let bytes = reader.drain(&queue, &mut target).bytes;
        assert_eq!(slots(&target[..bytes]), [11, 9, 7, 10]);
        queue.note_handled();
        assert_eq!(queue.front.handled_position(), queue.front.read_position());
        assert_eq!(queue.rest.handled_position(), queue.rest.read_position());
    }

    #[test]
    fn events_leave_whole_and_in_order() {
        let queue = EventQueue::default();
        put(&queue, events(3, b"abc"));
        put(&queue, events(2, b"defg"));
        let (mut reader, mut target, mut all) = (EventReader::default(), [0; 50], Vec::new());
        loop {
            let drained = reader.drain(&queue, &mut target);
            all.extend_from_slice(&target[..drained.bytes]);
            if drained.bytes == 0 {
                break;
            }
        }
        assert_eq!(all, [events(3, b"abc").block.bytes, events(2, b"defg").block.bytes].concat());
        assert_eq!(queue.rest.read_position(), all.len() as u64);
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
        queue.put(&mut Events::default(), &mut events);
        // A new block begins with an event of its own.
        events.message(id(1), &[7; 96], true);
        assert_eq!(event_len(&events.block.bytes), 116);
    }

    #[test]
    fn an_event_that_does_not_fit_says_how_much_it_needs() {
        let queue = EventQueue::default();
        put(&queue, events(1, &[0; 100]));
        let drained = EventReader::default().drain(&queue, &mut [0; 50]);
        assert_eq!((drained.bytes, drained.next_bytes), (0, Some(120)));
    }

    #[test]
    fn a_shard_that_waits_for_a_position_is_woken_when_it_is_read_and_until_it_waits_no_more() {
        let queue = EventQueue::default();
        put(&queue, events(4, &[0; 5]));
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
                queue.put(&mut Events::default(), &mut turn_events);
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
        assert_eq!(queue.rest.read_position(), sent.len() as u64);
    }
}
