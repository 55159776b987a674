use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::bridge::event::{Events, event_len};

/// Buffers up to this size are kept for the next turn.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// Wakes JavaScript, once until it looks.
pub(crate) struct Bell {
    has_rung: AtomicBool,
    ring: Box<dyn Fn() + Send + Sync>,
}

impl Bell {
    pub(crate) fn new(ring: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { has_rung: AtomicBool::new(false), ring }
    }

    pub(crate) fn ring(&self) {
        if !self.has_rung.swap(true, Ordering::AcqRel) {
            (self.ring)();
        }
    }

    /// JavaScript has not looked since it was rung up.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.has_rung.load(Ordering::Acquire)
    }

    /// JavaScript looks now: what comes from here on rings again. A swap, so that it sees what was put before the ring.
    pub(crate) fn answer(&self) {
        self.has_rung.swap(false, Ordering::AcqRel);
    }
}

/// Events on their way from one shard to JavaScript.
#[derive(Default)]
pub(crate) struct Outlet {
    queue: Mutex<Vec<u8>>,
    /// Bytes that the shard has handed over and JavaScript has not taken.
    undrained_bytes: AtomicUsize,
    /// The shard waits for `undrained_bytes` to fall.
    is_awaited: AtomicBool,
}

impl Outlet {
    pub(crate) fn undrained_bytes(&self) -> usize {
        self.undrained_bytes.load(Ordering::SeqCst)
    }

    /// Asks for the shard to be woken when half of the room is free again.
    pub(crate) fn await_room(&self) {
        self.is_awaited.store(true, Ordering::SeqCst);
    }

    /// Hands the events of a turn over.
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

    /// Notes that `bytes` were taken; `true` when the shard waits for that.
    fn taken(&self, bytes: usize, max_bytes: usize) -> bool {
        let left = self.undrained_bytes.fetch_sub(bytes, Ordering::SeqCst) - bytes;
        left <= max_bytes / 2 && self.is_awaited.swap(false, Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// JavaScript's end of an outlet.
#[derive(Default)]
pub(crate) struct Taken {
    bytes: Vec<u8>,
    start: usize,
}

/// What a drain of one outlet came to.
pub(crate) struct Drained {
    /// Bytes that were copied: whole events.
    pub(crate) bytes: usize,
    /// Size of the next event, when it did not fit.
    pub(crate) next_bytes: Option<usize>,
    /// The shard is to be woken: it waits for room.
    pub(crate) wakes_shard: bool,
}

impl Taken {
    /// Copies as many whole events into `target` as fit.
    pub(crate) fn drain(&mut self, outlet: &Outlet, max_bytes: usize, target: &mut [u8]) -> Drained {
        let mut copied = 0;
        let mut next_bytes = None;
        loop {
            if self.start == self.bytes.len() {
                self.refill(outlet);
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
        let wakes_shard = copied > 0 && outlet.taken(copied, max_bytes);
        Drained { bytes: copied, next_bytes, wakes_shard }
    }

    fn refill(&mut self, outlet: &Outlet) {
        self.start = 0;
        self.bytes.clear();
        if self.bytes.capacity() > MAX_KEPT_BYTES {
            self.bytes = Vec::new();
        }
        std::mem::swap(&mut *outlet.lock(), &mut self.bytes);
    }
}

/// Bytes of the events at the start of `events` that fit into `room`.
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
        let outlet = Outlet::default();
        outlet.put(&mut events(3, b"abc"));
        outlet.put(&mut events(2, b"defg"));
        let (mut taken, mut target, mut all) = (Taken::default(), [0; 45], Vec::new());
        loop {
            let drained = taken.drain(&outlet, 1_000, &mut target);
            all.extend_from_slice(&target[..drained.bytes]);
            if drained.bytes == 0 {
                break;
            }
        }
        assert_eq!(all, [events(3, b"abc").bytes, events(2, b"defg").bytes].concat());
        assert_eq!(outlet.undrained_bytes(), 0);
    }

    #[test]
    fn an_event_that_does_not_fit_says_how_much_it_needs() {
        let outlet = Outlet::default();
        outlet.put(&mut events(1, &[0; 100]));
        let drained = Taken::default().drain(&outlet, 1_000, &mut [0; 50]);
        assert_eq!((drained.bytes, drained.next_bytes), (0, Some(116)));
    }

    #[test]
    fn a_shard_that_waits_is_woken_when_half_of_the_room_is_free() {
        let outlet = Outlet::default();
        outlet.put(&mut events(4, &[0; 9]));
        outlet.await_room();
        let (mut taken, mut target) = (Taken::default(), [0; 25]);
        let woken: Vec<bool> = (0..4).map(|_| taken.drain(&outlet, 100, &mut target).wakes_shard).collect();
        assert_eq!(woken, [false, true, false, false]);
    }
}
