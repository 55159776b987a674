use std::collections::VecDeque;

use crate::bridge::event::{Block, event_len};
use crate::bridge::event_queue::EventQueue;

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
        queue.swap(&mut self.done, &mut self.front.blocks, with_rest.then_some(&mut self.rest.blocks));
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
#[path = "event_reader_test.rs"]
mod tests;
