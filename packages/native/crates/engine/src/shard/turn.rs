//! The order of a turn of the shard's thread: wait, note the ready sockets, take mail, read, write, report.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::io::Errno;

use super::Shard;
use super::accept::Listener;
use crate::backpressure::OutputLoad;
use crate::id::ConnectionId;
use crate::readiness::{Flags, Ready};
use crate::shard::connection::Phase;

impl Shard {
    /// Runs on the shard's thread until it goes inline (`true`) or ends. Starts again after a failure.
    pub(crate) fn run_until_inline(&mut self) -> bool {
        loop {
            self.look_at_clock();
            self.inline.policy.taken_back(self.now_ms);
            let is_inline = self.failure.is_none()
                && self.guarded(|shard| {
                    while !shard.is_done() {
                        shard.turn()?;
                        if shard.hand_over() {
                            return Ok(true);
                        }
                    }
                    Ok(false)
                }) == Some(true);
            if is_inline {
                return true;
            }
            if !self.restart() {
                self.conclude();
                return false;
            }
        }
    }

    /// Runs code that may panic. A panic is noted and does not unwind further. `None`: the shard has failed.
    pub(crate) fn guarded<R>(&mut self, act: impl FnOnce(&mut Self) -> Result<R, Errno>) -> Option<R> {
        let failure = match catch_unwind(AssertUnwindSafe(|| act(self))) {
            Ok(Ok(done)) => return Some(done),
            Ok(Err(errno)) => format!("an I/O thread cannot wait for its sockets: {errno}"),
            Err(panic) => format!("an I/O thread panicked: {}", panic_message(panic.as_ref())),
        };
        self.failure = Some(failure);
        None
    }

    fn conclude(&mut self) {
        let failure = self.failure.take();
        self.handle().mailbox.close();
        // The state may be what made it panic: nothing of it is used but the list of connections.
        let ended = catch_unwind(AssertUnwindSafe(|| self.end(failure.as_deref())));
        if ended.is_err() {
            self.events.ended(self.id);
            self.report();
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_aborted
            || (self.is_shutting_down && self.table.len() == self.relays.len() && self.inbox.batches.is_empty())
    }

    fn turn(&mut self) -> Result<(), Errno> {
        self.wait()?;
        self.work();
        self.report();
        Ok(())
    }

    /// Does all waiting work.
    pub(crate) fn work(&mut self) {
        self.note_ready();
        // Before the mail is taken: what JavaScript has submitted up to there is in it.
        self.note_handled_position();
        self.take_mail();
        self.apply_batches();
        self.receive_counted();
        self.tick();
        self.inline.policy.allows_writes(self.fanout.pending_writes(), self.now_ms);
        self.write();
    }

    /// Waits for work, if there is none.
    fn wait(&mut self) -> Result<(), Errno> {
        let mailbox = &self.shared.shards[self.id.index()].mailbox;
        let hold = self.hold_time();
        // Mail is left over by a turn that panicked.
        let is_busy = !self.inbox.mails.is_empty()
            || !self.inbox.batches.is_empty()
            || self.fanout.is_urgent()
            || (hold.is_none() && self.fanout.is_dirty())
            || self.can_receive();
        let prepare = || if hold.is_some() { mailbox.prepare_hold() } else { mailbox.prepare_sleep() };
        let mut sleeps = !is_busy && prepare();
        if sleeps {
            self.await_room();
            // Checked again after the announcement: from then on, a drain that makes room wakes the shard.
            sleeps = !self.can_receive();
        }
        let timeout = if sleeps { self.sleep_time(hold) } else { Some(Duration::ZERO) };
        let waited = self.poll(timeout);
        self.handle().mailbox.woken();
        self.handle().event_queue.await_nothing();
        waited
    }

    /// Asks for ready sockets, for at most this time.
    pub(crate) fn poll(&mut self, timeout: Option<Duration>) -> Result<(), Errno> {
        let waited = self.poller.wait(&mut self.ready, timeout);
        self.look_at_clock();
        waited
    }

    pub(crate) fn look_at_clock(&mut self) {
        self.now_ms = self.shared.began.elapsed().as_millis() as u64;
    }

    /// Time that the shard's thread may sleep; `None`: until it is woken.
    fn sleep_time(&self, hold: Option<Duration>) -> Option<Duration> {
        self.due_time().into_iter().chain(hold).chain(self.time_to_inline()).min()
    }

    /// Time to the next deadline; `None`: there is none.
    pub(crate) fn due_time(&self) -> Option<Duration> {
        let resume = self.listener.as_ref().and_then(Listener::resumes_at_ms);
        let next = self.next_tick_ms().into_iter().chain(resume).min();
        let next = next.map(|next| Duration::from_millis(next.saturating_sub(self.now_ms)));
        let wait = self.grace.ends_at_us().map(|end_us| Duration::from_micros(end_us.saturating_sub(self.now_us())));
        next.into_iter().chain(wait).min()
    }

    pub(super) fn now_us(&self) -> u64 {
        self.shared.began.elapsed().as_micros() as u64
    }

    pub(crate) fn note_ready(&mut self) {
        for index in 0..self.ready.len() {
            match self.ready[index] {
                Ready::WakeUp => {}
                // Between two parts of a flush, only open connections are looked at. The poller tells of the listener again.
                Ready::Listener if self.fanout.is_interrupted() => {}
                Ready::Listener => self.accept_some(),
                Ready::Connection(id, flags) => self.note_connection_ready(id, flags),
                Ready::Relay(id) => self.table.find(id).into_iter().for_each(|slot| self.queue_receive(slot)),
            }
        }
    }

    fn note_connection_ready(&mut self, id: ConnectionId, flags: Flags) {
        // The event may be older than the connection that has the slot now: the id tells them apart.
        let Some(slot) = self.table.find(id) else { return };
        let Some(connection) = self.table.get_mut(slot) else { return };
        let Flags { is_readable, is_writable, has_hung_up, is_broken } = flags;
        connection.has_hung_up |= has_hung_up;
        if connection.phase == Phase::Deciding && has_hung_up {
            return self.drop_connection(slot);
        }
        // A reset. Otherwise reading would tell, but a relay may have read to the end.
        if is_broken && (connection.is_paused || connection.phase == Phase::Relaying) {
            return self.drop_connection(slot);
        }
        if is_writable {
            self.note_writable(slot);
        }
        if has_hung_up || is_readable {
            self.queue_receive(slot);
        }
    }

    /// Publishes the results of a turn, and wakes JavaScript if there are events.
    pub(super) fn report(&mut self) {
        if self.publish() {
            self.shared.waker.wake();
        }
    }

    pub(crate) fn has_events(&self) -> bool {
        self.front.len() + self.events.len() > 0
    }

    /// Publishes the results of a turn. Returns whether there are events.
    pub(crate) fn publish(&mut self) -> bool {
        self.stats.outbox_bytes = self.fanout.outbox_bytes() as u64;
        let left_out = self.fanout.take_left_out();
        self.stats.conflated_count += left_out.conflated_count;
        self.stats.dropped_count += left_out.dropped_count;
        let load = OutputLoad {
            connections: self.table.len(),
            blocked_count: self.fanout.blocked_count(),
            outbox_bytes: self.fanout.outbox_bytes(),
            max_outbox_bytes: self.shared.options.max_outbox_bytes,
            is_lagging: self.fanout.is_lagging(),
        };
        let is_congested = self.grace.is_congested(load, self.now_us());
        let handle = &self.shared.shards[self.id.index()];
        handle.stats.write(&self.stats);
        handle.is_congested.store(is_congested, Ordering::SeqCst);
        if self.shared.backpressure.ends_wait(&self.shared.shards) {
            self.shared.waker.wake();
        }
        let has_events = self.has_events();
        handle.event_queue.put(&mut self.front, &mut self.events);
        has_events
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
