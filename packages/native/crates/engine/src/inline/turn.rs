use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::io::Errno;

use super::policy::InlinePolicy;
use crate::bridge::batch::Batch;
use crate::id::Slot;
use crate::shard::Shard;
use crate::shard::connection::Phase;

/// What a shard keeps for inline mode.
#[derive(Default)]
pub(crate) struct InlineState {
    pub(crate) policy: InlinePolicy,
    /// The event loop runs the shard in this moment.
    pub(crate) is_running: bool,
    /// The only connection with events in the last inline turn. The next event is likely to be its own, too.
    likely: Option<Slot>,
    /// The last inline turn did not ask the poller.
    is_poll_due: bool,
}

/// Who runs the shard after a step of the event loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The event loop goes on.
    Stay,
    /// The shard's thread takes it back.
    TakeBack,
}

impl Shard {
    /// Hands the shard over to the event loop if it was quiet for long enough. The caller must not touch it afterwards.
    pub(crate) fn hand_over(&mut self) -> bool {
        if !self.can_go_inline() || !self.inline.policy.time_to_inline(self.now_ms).is_zero() {
            return false;
        }
        // JavaScript has not answered the last wake-up, or not handled what it took: the event loop is busy.
        if self.shared.waker.is_pending() || self.shared.is_reading.load(Ordering::Acquire) {
            self.inline.policy.note_busy(self.now_ms);
            return false;
        }
        let is_inline = self.handle().mailbox.hand_over();
        if is_inline {
            self.inline.policy.handed_over(self.now_ms);
            self.inline.likely = None;
        }
        is_inline
    }

    /// Time until the shard may go inline; `None`: it may not.
    pub(crate) fn time_to_inline(&self) -> Option<Duration> {
        self.can_go_inline().then(|| self.inline.policy.time_to_inline(self.now_ms))
    }

    fn can_go_inline(&self) -> bool {
        self.shared.is_inline_enabled.load(Ordering::Relaxed)
            && self.inline.policy.needs_javascript()
            && self.is_at_rest()
            && !self.is_shutting_down
            && !self.is_aborted
    }

    /// Nothing is half done: all further work is announced by the poller, by a deadline or by mail.
    fn is_at_rest(&self) -> bool {
        self.inbox.batches.is_empty()
            && self.readable.is_empty()
            && self.held.is_empty()
            && !self.fanout.is_dirty()
            && self.fanout.blocked_count() == 0
    }

    /// Does what sockets and deadlines ask for, in the event loop. Returns who goes on, and whether there are events.
    ///
    /// Reads the likely connection before asking the poller. If it had something, the poller is asked after the answer, in
    /// [`finish_inline_turn`](Self::finish_inline_turn): one system call less before the answer.
    pub(super) fn inline_turn(&mut self) -> (Next, bool) {
        self.inline_step(|shard| {
            shard.look_at_clock();
            shard.note_handled_position();
            let likely = shard.inline.likely.take().filter(|slot| shard.is_open(*slot) && shard.has_inbound_room());
            if let Some(slot) = likely {
                shard.receive(slot);
            }
            if shard.has_read() {
                (shard.inline.likely, shard.inline.is_poll_due) = (likely, true);
                shard.inline.policy.note_events(shard.front.len() + shard.events.len(), shard.now_ms);
                return Ok(());
            }
            let only = shard.inline_poll()?;
            shard.inline.likely = only.filter(|_| shard.has_read());
            Ok(())
        })
    }

    /// The turn has read something: JavaScript has events, or an answer waits.
    fn has_read(&self) -> bool {
        self.has_events() || self.fanout.is_urgent()
    }

    /// Finishes an [`inline_turn`](Self::inline_turn). `None`: it was complete.
    pub(super) fn finish_inline_turn(&mut self) -> Option<(Next, bool)> {
        std::mem::take(&mut self.inline.is_poll_due).then(|| self.inline_step(|shard| shard.inline_poll().map(drop)))
    }

    /// Reads from the ready connections, if they are few. Returns the connection if it was only one.
    fn inline_poll(&mut self) -> Result<Option<Slot>, Errno> {
        self.inline.is_poll_due = false;
        self.note_handled_position();
        self.poll(Some(Duration::ZERO))?;
        self.note_ready();
        let only = self.readable.front().copied().filter(|_| self.readable.len() == 1);
        if self.receive_counted() {
            self.tick();
        }
        Ok(only)
    }

    /// Reads from the ready connections; in the event loop, only if they are few. Returns whether it did.
    pub(crate) fn receive_counted(&mut self) -> bool {
        let count = self.readable.len();
        let is_allowed = self.inline.policy.allows_reads(count, self.now_ms) || !self.inline.is_running;
        if is_allowed {
            let position = |shard: &Self| shard.front.position() + shard.events.position();
            let begin = position(self);
            self.receive_all();
            if count > 0 {
                self.inline.policy.note_events((position(self) - begin) as usize, self.now_ms);
            }
        }
        is_allowed
    }

    fn is_open(&self, slot: Slot) -> bool {
        self.table.get(slot).is_some_and(|connection| {
            connection.phase == Phase::Open && connection.opening.is_none() && !connection.is_paused
        })
    }

    /// Applies commands of the event loop. Returns who goes on, and whether there are events.
    pub(super) fn apply_inline(&mut self, batch: &Arc<Batch>) -> (Next, bool) {
        self.inline_step(|shard| {
            shard.look_at_clock();
            shard.inbox.batches.push_back((Arc::clone(batch), 0));
            shard.apply_batches();
            // Reads bytes that arrived before a connection was open.
            shard.receive_counted();
            Ok(())
        })
    }

    /// A step of the event loop, and the writes that it caused, if they are few.
    fn inline_step(&mut self, act: impl FnOnce(&mut Self) -> Result<(), Errno>) -> (Next, bool) {
        self.inline.is_running = true;
        let may_stay = self.guarded(|shard| {
            #[cfg(test)]
            assert!(!shard.handle().panics.swap(false, Ordering::SeqCst), "as the test wishes");
            act(shard)?;
            let writes = shard.fanout.pending_writes();
            if shard.hold_time().is_none() && shard.inline.policy.allows_writes(writes, shard.now_ms) {
                shard.write();
            }
            Ok(!shard.inline.policy.take_was_busy() && shard.is_at_rest() && !shard.is_done())
        });
        self.inline.is_running = false;
        let next = if may_stay == Some(true) { Next::Stay } else { Next::TakeBack };
        // After a panic, the shard's thread tells what happened.
        (next, may_stay.is_some() && self.publish())
    }

    /// Does the work that the event loop has left undone, on the shard's thread. Returns whether there was any, and whether
    /// there are events.
    pub(super) fn stand_in(&mut self) -> (bool, bool) {
        let is_late = self.guarded(|shard| {
            shard.poll(Some(Duration::ZERO))?;
            let is_late = !shard.ready.is_empty();
            shard.work();
            Ok(is_late)
        });
        if is_late.is_none() || !self.is_at_rest() || self.is_done() {
            self.handle().mailbox.wake();
        }
        (is_late == Some(true), is_late.is_some() && self.publish())
    }

    /// Time to the next deadline; `None`: there is none.
    pub(super) fn time_to_deadline(&mut self) -> Option<Duration> {
        self.look_at_clock();
        self.due_time()
    }

    /// When the next deadline is, in milliseconds since the engine began; the largest number if there is none.
    pub(super) fn deadline_ms(&self) -> u64 {
        self.due_time().map_or(u64::MAX, |time| self.now_ms + time.as_millis() as u64)
    }
}
