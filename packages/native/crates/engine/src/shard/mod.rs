//! One I/O thread: a poller, the connections that are pinned to it, and their output.
//!
//! A turn: wait, note the ready sockets, take mail, read, write once per connection, report to JavaScript. A busy shard puts
//! the multicasts of several turns into one write ([`FlushPacer`]). All other output leaves in its turn.

mod accept;
mod apply;
pub(crate) mod connection;
mod encrypted;
mod ending;
mod event_stream;
mod flush_pacer;
mod handshake;
mod keepalive;
mod newcomers;
mod prepared_answer;
mod proxied;
mod receive;
mod relay;
mod restart;
pub(crate) mod table;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use webmq_websocket::Inflater;

use crate::backpressure::{OutputLoad, ReaderGrace};
use crate::bridge::batch::Batch;
use crate::bridge::event::Events;
use crate::bridge::mailbox::Mail;
use crate::fanout::{Fanout, Outcome, Wire, Written};
use crate::id::{ConnectionId, ShardId, Slot};
use crate::inline::InlineState;
use crate::readiness::{Flags, Poller, Ready};
use crate::shard::connection::{Connection, Phase};
use crate::shard::table::Table;
use crate::shared::{ShardHandle, Shared};
use crate::socket;
use crate::stats::Stats;
use crate::tls::STAGING_BYTES;
use accept::Listener;
use encrypted::TlsState;
use flush_pacer::FlushPacer;
use keepalive::Ticker;
use newcomers::Newcomers;
use prepared_answer::PreparedAnswer;
use proxied::ProxyReports;
use relay::Relays;
use restart::Restarts;

/// Bytes that are read from one connection at a time, into the one buffer that all connections of the shard share.
const READ_BUFFER_BYTES: usize = receive::MAX_UNREAD_BYTES;
/// Writes of a flush between two looks at the sockets and the mail: about 150 us. A request that comes during a broadcast, and
/// its answer, wait for so many writes each, not for all of them. A look adds one short system call to 32 long ones.
const MAX_WRITES_PER_LOOK: usize = 32;
/// Bytes of commands that are applied before sockets get their turn again.
const MAX_APPLIED_BYTES: usize = 4 << 20;

pub(crate) struct Shard {
    id: ShardId,
    pub(crate) shared: Arc<Shared>,
    poller: Poller,
    pub(crate) ready: Vec<Ready>,
    listener: Option<Listener>,
    pub(crate) table: Table,
    newcomers: Newcomers,
    pub(crate) fanout: Fanout,
    ticker: Ticker,
    pacer: FlushPacer,
    proxies: ProxyReports,
    grace: ReaderGrace,
    answer: PreparedAnswer,
    /// Position up to which JavaScript had handled the events when the turn began.
    handled_position: u64,
    pub(crate) inline: InlineState,
    /// Why the shard ended early.
    failure: Option<String>,
    restarts: Restarts,
    pub(crate) events: Events,
    stats: Stats,
    read_buffer: Box<[u8]>,
    /// Ciphertext on its way to one socket; empty without TLS.
    staging: Box<[u8]>,
    tls: TlsState,
    relays: Relays,
    /// Decompresses for all connections, one message at a time.
    inflater: Inflater,
    pub(crate) readable: VecDeque<Slot>,
    /// Connections to read from when JavaScript has read up to a position of the events.
    pub(crate) held: VecDeque<(Slot, u64)>,
    /// Taken, and still to be done.
    mails: VecDeque<Mail>,
    /// Batches to apply, and where to go on in each.
    pub(crate) batches: VecDeque<(Arc<Batch>, usize)>,
    pub(crate) now_ms: u64,
    pub(crate) is_shutting_down: bool,
    pub(crate) is_aborted: bool,
}

impl Shard {
    pub(crate) fn new(id: ShardId, shared: &Arc<Shared>) -> Self {
        Self {
            id,
            poller: shared.shards[id.index()].poller.clone(),
            ready: Vec::new(),
            listener: None,
            table: Table::new(id),
            newcomers: Newcomers::default(),
            fanout: Fanout::new(shared.options.max_outbox_bytes),
            ticker: Ticker::new(&shared.options),
            pacer: FlushPacer::new(shared.options.flush_interval),
            proxies: ProxyReports::default(),
            grace: ReaderGrace::default(),
            answer: PreparedAnswer::default(),
            handled_position: 0,
            inline: InlineState::new(),
            failure: None,
            restarts: Restarts::default(),
            events: Events::default(),
            stats: Stats::default(),
            read_buffer: vec![0; READ_BUFFER_BYTES].into(),
            staging: vec![0; if shared.tls.is_some() { STAGING_BYTES } else { 0 }].into(),
            tls: TlsState::default(),
            relays: Relays::default(),
            inflater: Inflater::default(),
            readable: VecDeque::new(),
            held: VecDeque::new(),
            mails: VecDeque::new(),
            batches: VecDeque::new(),
            now_ms: 0,
            is_shutting_down: false,
            is_aborted: false,
            shared: Arc::clone(shared),
        }
    }

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

    pub(crate) fn id(&self) -> ShardId {
        self.id
    }

    pub(crate) fn handle(&self) -> &ShardHandle {
        &self.shared.shards[self.id.index()]
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_aborted || (self.is_shutting_down && self.table.len() == self.relays.len() && self.batches.is_empty())
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
        let is_busy = !self.mails.is_empty()
            || !self.batches.is_empty()
            || self.fanout.is_urgent()
            || (hold.is_none() && self.fanout.is_dirty())
            || self.can_receive();
        let prepare = || if hold.is_some() { mailbox.prepare_hold() } else { mailbox.prepare_sleep() };
        // Checked again after the announcement: from then on, a drain that makes room wakes the shard.
        let sleeps = !is_busy && prepare() && !self.can_receive();
        let timeout = if sleeps { self.sleep_time(hold) } else { Some(Duration::ZERO) };
        let waited = self.poll(timeout);
        self.handle().mailbox.woken();
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
        let tick = (self.table.len() > 0).then(|| self.ticker.next_ms());
        let resume = self.listener.as_ref().and_then(Listener::resumes_at_ms);
        let next = tick.into_iter().chain(resume).min();
        let next = next.map(|next| Duration::from_millis(next.saturating_sub(self.now_ms)));
        let wait = self.grace.ends_at_us().map(|end_us| Duration::from_micros(end_us.saturating_sub(self.now_us())));
        next.into_iter().chain(wait).min()
    }

    /// Time for which waiting multicasts are held back; `None`: write them now, or there are none.
    pub(crate) fn hold_time(&self) -> Option<Duration> {
        if !self.fanout.is_held() || self.fanout.is_flushing() {
            return None;
        }
        let now_us = self.now_us();
        let left_us = self.pacer.flushes_at_us(self.fanout.held_writes(), now_us).saturating_sub(now_us);
        (left_us > 0).then(|| Duration::from_micros(left_us))
    }

    fn now_us(&self) -> u64 {
        self.shared.began.elapsed().as_micros() as u64
    }

    pub(crate) fn note_ready(&mut self) {
        for index in 0..self.ready.len() {
            match self.ready[index] {
                Ready::WakeUp => {}
                // Between two parts of a flush, only open connections are looked at. The poller tells of the listener again.
                Ready::Listener if self.fanout.is_flushing() => {}
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

    /// Writes the output of this turn.
    pub(crate) fn write(&mut self) {
        if self.hold_time().is_none() {
            if self.fanout.is_dirty() {
                self.flush_some(MAX_WRITES_PER_LOOK);
            }
        } else if self.fanout.is_urgent() {
            let mut sockets = Sockets::of(&mut self.table, &mut self.staging);
            self.fanout.flush_urgent(&mut sockets);
            self.stats.sent_byte_count += sockets.sent_bytes;
            self.conclude_flush();
        }
    }

    fn flush(&mut self) {
        self.flush_some(usize::MAX);
    }

    /// A flush of at most so many writes of multicasts. The next turn goes on with the rest, after a look at the sockets.
    fn flush_some(&mut self, max_writes: usize) {
        let (is_held, is_begun) = (self.fanout.is_held(), self.fanout.is_flushing());
        // Only the first part is measured: reading this clock is a system call.
        let began = (is_held && !is_begun).then(cpu_time);
        let mut sockets = Sockets::of(&mut self.table, &mut self.staging);
        let is_finished = self.fanout.flush_some(&mut sockets, max_writes);
        self.stats.sent_byte_count += sockets.sent_bytes;
        if is_held || is_begun {
            self.pacer.wrote(sockets.write_count, began.map(|began| cpu_time().saturating_sub(began)));
            if is_finished {
                self.pacer.flushed(self.now_us());
            }
        }
        self.conclude_flush();
    }

    fn conclude_flush(&mut self) {
        let Outcome { failed, slow, drained } = self.fanout.take_outcome();
        failed.into_iter().for_each(|slot| self.drop_connection(slot));
        slow.into_iter().for_each(|slot| self.end_slow(slot));
        drained.into_iter().for_each(|slot| self.note_drained(slot));
    }

    /// No more waits for a connection than was asked for.
    fn note_drained(&mut self, slot: Slot) {
        match self.table.get(slot).map(|connection| connection.phase) {
            Some(Phase::Open) => self.events.drained(self.table.id(slot)),
            Some(Phase::Lingering) => self.finish_lingering(slot),
            Some(Phase::Head | Phase::Deciding | Phase::Closing | Phase::Relaying) | None => {}
        }
    }

    /// Publishes the results of a turn, and wakes JavaScript if there are events.
    fn report(&mut self) {
        if self.publish() {
            self.shared.waker.wake();
        }
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
        let has_events = self.events.len() > 0;
        if has_events {
            handle.event_queue.put(&mut self.events);
        }
        has_events
    }
}

/// The sockets of a shard as its output sees them.
struct Sockets<'a> {
    table: &'a mut Table,
    staging: &'a mut [u8],
    sent_bytes: u64,
    write_count: usize,
}

impl<'a> Sockets<'a> {
    fn of(table: &'a mut Table, staging: &'a mut [u8]) -> Self {
        Self { table, staging, sent_bytes: 0, write_count: 0 }
    }
}

/// Processor time of this thread: the cost of a flush, independent of other processes.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

impl Wire for Sockets<'_> {
    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Written {
        let Some(Connection { socket, tls, .. }) = self.table.get_mut(slot) else { return Written::Failed };
        self.write_count += 1;
        if let Some(session) = tls {
            return session.write(socket, bytes, self.staging, &mut self.sent_bytes);
        }
        let Ok(count) = socket::send(socket, bytes) else { return Written::Failed };
        self.sent_bytes += count as u64;
        if count == bytes.len() { Written::All } else { Written::Part { taken: count, held: 0 } }
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
