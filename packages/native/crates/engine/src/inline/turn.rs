//! Turns of a shard that has little to do, on the thread of a guest: JavaScript's. It spares the two thread hops that an
//! answer otherwise takes, which cost more than all the rest of it.
//!
//! The shard's own thread is parked meanwhile and looks in now and then ([`Shard::watch`]), for a guest may be held up. It
//! takes the shard back as soon as there is more to do than a guest should.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::io::Errno;

use super::policy::WATCH_INTERVAL;
use crate::bridge::batch::Batch;
use crate::id::Slot;
use crate::shard::Shard;
use crate::shard::connection::Phase;

/// What becomes of a shard after a visit of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The guest goes on.
    Stay,
    /// Its own thread is to take it back.
    Return,
}

impl Shard {
    /// Lends the shard if it was quiet for long enough. Whoever runs it has to leave it alone then.
    pub(crate) fn lend(&mut self) -> bool {
        if !self.wants_guest() || self.now_ms < self.lending.lends_at_ms() {
            return false;
        }
        // JavaScript has not answered the last ring: it would not come in time.
        if self.shared.bell.is_unanswered() {
            self.lending.busy(self.now_ms);
            return false;
        }
        let is_lent = self.port().mailbox.lend();
        if is_lent {
            self.lending.lent(self.now_ms);
            self.likely = None;
        }
        is_lent
    }

    /// Time until the shard may be lent; `None`: it may not.
    pub(crate) fn lend_time(&self) -> Option<Duration> {
        self.wants_guest().then(|| Duration::from_millis(self.lending.lends_at_ms().saturating_sub(self.now_ms)))
    }

    fn wants_guest(&self) -> bool {
        self.shared.has_guest.load(Ordering::Relaxed) && self.is_at_rest() && !self.is_shutting_down && !self.is_aborted
    }

    /// Nothing is half done: what is to come is said by epoll, by the clock or by mail.
    fn is_at_rest(&self) -> bool {
        self.batches.is_empty() && self.readable.is_empty() && !self.fanout.is_dirty() && !self.fanout.has_blocked()
    }

    pub(crate) fn has_connections(&self) -> bool {
        self.table.len() > 0
    }

    /// A guest does what the sockets and the clock ask for. Tells whether there are events, too.
    ///
    /// The connection that had something to say last is read from before epoll is asked who has. If it has, epoll is asked
    /// when that is answered, in [`guest_rest`](Self::guest_rest): one system call less before the answer.
    pub(crate) fn guest_turn(&mut self) -> (Next, bool) {
        self.visited(|shard| {
            shard.look_at_clock();
            let likely = shard.likely.take().filter(|slot| shard.is_open(*slot) && shard.has_inbound_room());
            if let Some(slot) = likely {
                shard.receive(slot);
            }
            if shard.events.len() > 0 {
                (shard.likely, shard.is_poll_due) = (likely, true);
                shard.lending.received(shard.events.len(), shard.now_ms);
                return Ok(());
            }
            let only = shard.guest_poll()?;
            shard.likely = only.filter(|_| shard.events.len() > 0);
            Ok(())
        })
    }

    /// A guest does what [`guest_turn`](Self::guest_turn) has put off.
    pub(crate) fn guest_rest(&mut self) -> Option<(Next, bool)> {
        std::mem::take(&mut self.is_poll_due).then(|| self.visited(|shard| shard.guest_poll().map(drop)))
    }

    /// Reads from who is ready, if they are few; returns who it was if it was one.
    fn guest_poll(&mut self) -> Result<Option<Slot>, Errno> {
        self.is_poll_due = false;
        self.poll(Some(Duration::ZERO))?;
        self.note_ready();
        let only = self.readable.front().copied().filter(|_| self.readable.len() == 1);
        if self.guest_receive() {
            self.tick();
        }
        Ok(only)
    }

    /// Reads from who is ready, if they are few.
    fn guest_receive(&mut self) -> bool {
        let are_few = self.lending.receives(self.readable.len(), self.now_ms);
        if are_few {
            self.receive_all();
            self.lending.received(self.events.len(), self.now_ms);
        }
        are_few
    }

    fn is_open(&self, slot: Slot) -> bool {
        self.table.get(slot).is_some_and(|connection| connection.phase == Phase::Open && connection.opening.is_none())
    }

    /// A guest applies commands of its own. Tells whether there are events, too.
    pub(crate) fn guest_apply(&mut self, batch: &Arc<Batch>) -> (Next, bool) {
        self.visited(|shard| {
            shard.look_at_clock();
            shard.batches.push_back((Arc::clone(batch), 0));
            shard.apply_batches();
            // What came before a connection was open.
            shard.guest_receive();
            Ok(())
        })
    }

    /// What a guest does, and the writes that come of it, if they are few.
    fn visited(&mut self, act: impl FnOnce(&mut Self) -> Result<(), Errno>) -> (Next, bool) {
        self.is_guest = true;
        let may_stay = self.guarded(|shard| {
            #[cfg(test)]
            assert!(!shard.port().panics.swap(false, Ordering::SeqCst), "as the test wishes");
            act(shard)?;
            let writes = shard.fanout.pending_writes();
            if shard.hold().is_none() && shard.lending.writes(writes, shard.now_ms) {
                shard.write();
            }
            Ok(!shard.lending.take_was_busy() && shard.is_at_rest() && !shard.is_done())
        });
        self.is_guest = false;
        let next = if may_stay == Some(true) { Next::Stay } else { Next::Return };
        // What a panic has left half done is told by the own thread.
        (next, may_stay.is_some() && self.publish())
    }

    /// The own thread, parked, does what a guest has left undone. Tells whether there was something, and whether there are
    /// events.
    pub(crate) fn watch(&mut self) -> (bool, bool) {
        let is_late = self.guarded(|shard| {
            shard.poll(Some(Duration::ZERO))?;
            let is_late = !shard.ready.is_empty();
            shard.go_on();
            Ok(is_late)
        });
        if is_late.is_none() || !self.is_at_rest() || self.is_done() {
            self.port().mailbox.wake();
        }
        (is_late == Some(true), is_late.is_some() && self.publish())
    }

    /// Time for which the own thread may be parked before it looks in; `None`: until it is woken, for there are no
    /// connections.
    pub(crate) fn watch_time(&mut self) -> Option<Duration> {
        self.look_at_clock();
        self.due_time().map(|time| time.min(WATCH_INTERVAL))
    }
}
