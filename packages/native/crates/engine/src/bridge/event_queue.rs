use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::bridge::event::{Events, event_len};

/// Buffers up to this size are kept for the next turn.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// Wakes JavaScript, once until it drains.
pub(crate) struct Waker {
    is_pending: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Waker {
    pub(crate) fn new(wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { is_pending: AtomicBool::new(false), wake }
    }

    pub(crate) fn wake(&self) {
        if !self.is_pending.swap(true, Ordering::AcqRel) {
            (self.wake)();
        }
    }

    /// JavaScript has not drained since it was woken.
    pub(crate) fn is_pending(&self) -> bool {
        self.is_pending.load(Ordering::Acquire)
    }

    /// JavaScript drains now; the next event wakes it again. A swap, so that it sees what was put before the wake-up.
    pub(crate) fn acknowledge(&self) {
        self.is_pending.swap(false, Ordering::AcqRel);
    }
}

/// Events on their way from one shard to JavaScript.
#[derive(Default)]
pub(crate) struct EventQueue {
    queue: Mutex<Vec<u8>>,
    /// Bytes that JavaScript has not read.
    undrained_bytes: AtomicUsize,
    /// The shard waits for `undrained_bytes` to fall.
    is_awaited: AtomicBool,
}

impl EventQueue {
    pub(crate) fn undrained_bytes(&self) -> usize {
        self.undrained_bytes.load(Ordering::SeqCst)
    }

    /// Requests a wake-up of the shard when half of the room is free again.
    pub(crate) fn await_room(&self) {
        self.is_awaited.store(true, Ordering::SeqCst);
    }

    /// Appends the events of a turn.
    pub(crate) fn put(&self, events: &mut Events) {
        self.undrained_bytes.fetch_add(events.len(), Ordering::SeqCst);
        let mut queue = self.lock();
        if queue.is_empty() {
            std::mem::swap(&mut *queue, &mut events.bytes);
        } else {
            queue.append(&mut events.bytes);
        }
        drop(queue);
        if events.bytes.capacity() > MAX_KEPT_BYTES {
            events.bytes = Vec::new();
        }
    }

    /// Notes that `bytes` were read; `true` when the shard waits for that.
    fn note_read(&self, bytes: usize, max_bytes: usize) -> bool {
        let left = self.undrained_bytes.fetch_sub(bytes, Ordering::SeqCst) - bytes;
        left <= max_bytes / 2 && self.is_awaited.swap(false, Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// JavaScript's end of an event queue.
#[derive(Default)]
pub(crate) struct EventReader {
    bytes: Vec<u8>,
    start: usize,
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
    pub(crate) fn drain(&mut self, queue: &EventQueue, max_bytes: usize, target: &mut [u8]) -> Drained {
        let mut copied = 0;
        let mut next_bytes = None;
        loop {
            if self.start == self.bytes.len() {
                self.refill(queue);
                if self.bytes.is_empty() {
                    break;
                }
            }
            let rest = &self.bytes[self.start..];
            let room = target.len() - copied;
            let fitting = if rest.len() <= room { rest.len() } else { whole_events(rest, room) };
            target[copied..copied + fitting].copy_from_slice(&rest[..fitting]);
            self.start += fitting;
            copied += fitting;
            if self.start < self.bytes.len() {
                next_bytes = Some(event_len(&self.bytes[self.start..]));
                break;
            }
        }
        let wakes_shard = copied > 0 && queue.note_read(copied, max_bytes);
        Drained { bytes: copied, next_bytes, wakes_shard }
    }

    fn refill(&mut self, queue: &EventQueue) {
        self.start = 0;
        self.bytes.clear();
        if self.bytes.capacity() > MAX_KEPT_BYTES {
            self.bytes = Vec::new();
        }
        std::mem::swap(&mut *queue.lock(), &mut self.bytes);
    }
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
        let (mut reader, mut target, mut all) = (EventReader::default(), [0; 45], Vec::new());
        loop {
            let drained = reader.drain(&queue, 1_000, &mut target);
            all.extend_from_slice(&target[..drained.bytes]);
            if drained.bytes == 0 {
                break;
            }
        }
        assert_eq!(all, [events(3, b"abc").bytes, events(2, b"defg").bytes].concat());
        assert_eq!(queue.undrained_bytes(), 0);
    }

    #[test]
    fn an_event_that_does_not_fit_says_how_much_it_needs() {
        let queue = EventQueue::default();
        queue.put(&mut events(1, &[0; 100]));
        let drained = EventReader::default().drain(&queue, 1_000, &mut [0; 50]);
        assert_eq!((drained.bytes, drained.next_bytes), (0, Some(116)));
    }

    #[test]
    fn a_shard_that_waits_is_woken_when_half_of_the_room_is_free() {
        let queue = EventQueue::default();
        queue.put(&mut events(4, &[0; 9]));
        queue.await_room();
        let (mut reader, mut target) = (EventReader::default(), [0; 25]);
        let woken: Vec<bool> = (0..4).map(|_| reader.drain(&queue, 100, &mut target).wakes_shard).collect();
        assert_eq!(woken, [false, true, false, false]);
    }
}
