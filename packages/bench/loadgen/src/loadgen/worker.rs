//! One I/O thread: an epoll, connections, and the jobs on them.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rustc_hash::FxHashMap;
use rustix::io::Errno;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::connection::{Awaited, Connection, Phase, Reading, Slot};
use super::intake::{Intake, Notice};
use super::jobs::Jobs;
use super::order::{Answer, Order, OrderNumber, Report, Shared};
use super::stash::MAX_STASHED_BYTES;
use super::stream::{Fault, Received, Scratch};
use crate::clock::now_us;
use crate::poller::{Poller, Ready};

/// Bytes of one read, small enough to be counted while they are in the processor's cache.
const READ_BYTES: usize = 256 << 10;
/// Reads of one connection before the next gets its turn.
const MAX_READS_PER_TURN: usize = 4;
/// 1006: the connection ended without a close frame (RFC 6455 §7.4.1).
pub(crate) const NO_CLOSE_FRAME: u16 = 1006;
/// 1002: the peer violated RFC 6455.
const PROTOCOL_ERROR: u16 = 1002;

/// Where a worker's answers go.
pub(crate) type Answers = Box<dyn Fn(Answer) + Send>;

pub(crate) struct Worker {
    pub(crate) poller: Poller,
    pub(crate) shared: Arc<Shared>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) vacant: Vec<Slot>,
    pub(crate) intake: Intake,
    pub(crate) jobs: Jobs,
    /// Output that sockets did not take.
    pub(crate) backlogs: FxHashMap<Slot, Vec<u8>>,
    /// Close codes of connections that were ready.
    pub(crate) closed: BTreeMap<u16, u64>,
    orders: Receiver<Order>,
    answers: Answers,
    poll_interval: Duration,
    /// Room for a stashed start, then [`READ_BYTES`].
    pub(crate) buffer: Box<[u8]>,
    pub(crate) scratch: Scratch,
    /// Connections with unread input after their turn.
    unfinished: VecDeque<Slot>,
}

impl Worker {
    /// Gives the calling thread a descriptor table of its own and makes it a worker.
    ///
    /// # Errors
    /// The system gives no descriptors.
    pub(crate) fn new(
        shared: Arc<Shared>,
        orders: Receiver<Order>,
        answers: Answers,
        poll_interval: Duration,
    ) -> io::Result<Self> {
        // SAFETY: from here on this thread's descriptors are its own. It opens, uses and closes its sockets, epoll and
        // timer itself. The only descriptor that it shares with others is the waker, which was open before and so has
        // the same number in both tables. Nobody closes it while the process runs.
        unsafe { unshare_unsafe(UnshareFlags::FILES) }?;
        Ok(Self {
            poller: Poller::new(&shared.waker)?,
            shared,
            connections: Vec::new(),
            vacant: Vec::new(),
            intake: Intake::new(),
            jobs: Jobs::default(),
            backlogs: FxHashMap::default(),
            closed: BTreeMap::new(),
            orders,
            answers,
            poll_interval,
            buffer: vec![0; MAX_STASHED_BYTES + READ_BYTES].into_boxed_slice(),
            scratch: Scratch::new(READ_BYTES),
            unfinished: VecDeque::new(),
        })
    }

    /// Works until the main thread has ended.
    ///
    /// # Errors
    /// The epoll fails.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut deadline_us = None;
        loop {
            if !self.poll_interval.is_zero() && self.poller.ready_count() > 0 {
                std::thread::sleep(self.poll_interval);
            }
            self.poller.wait(deadline_us)?;
            while let Ok(order) = self.orders.try_recv() {
                self.begin(order);
            }
            for index in 0..self.poller.ready_count() {
                if let Some(ready) = self.poller.ready(index) {
                    self.on_ready(ready);
                }
            }
            for _ in 0..self.unfinished.len() {
                if let Some(slot) = self.unfinished.pop_front() {
                    self.read(slot, true);
                }
            }
            deadline_us = self.tick(now_us());
            if !self.unfinished.is_empty() {
                deadline_us = Some(0);
            }
        }
    }

    pub(crate) fn answer(&self, number: OrderNumber, report: Report) {
        (self.answers)(Answer { number, report });
    }

    pub(crate) fn connection(&mut self, slot: Slot) -> &mut Connection {
        &mut self.connections[slot.index()]
    }

    /// The first `max` connections that are ready.
    pub(crate) fn open_slots(&self, max: usize) -> Vec<Slot> {
        let slots = (0..).map(Slot).zip(&self.connections);
        slots.filter(|(_, connection)| connection.phase == Phase::Open).map(|(slot, _)| slot).take(max).collect()
    }

    fn on_ready(&mut self, ready: Ready) {
        let slot = Slot(ready.token as u32);
        let connection = self.connection(slot);
        match connection.phase {
            Phase::Vacant => {}
            Phase::Connecting => {
                if ready.writable || ready.ended {
                    self.on_connected(slot);
                }
            }
            Phase::Securing => self.on_handshake(slot, ready.ended),
            Phase::Upgrading => self.on_response(slot, ready.ended),
            Phase::Preparing | Phase::Open | Phase::Ending => {
                // Read a slow connection that the server ends to its end, because the close code is there.
                let is_read = match connection.reading {
                    Reading::Freely => ready.readable || ready.ended,
                    Reading::Throttled | Reading::Stopped => ready.ended,
                };
                if ready.writable
                    && let Some(stream) = &mut connection.stream
                    && stream.has_pending()
                {
                    // The next read reports a failed socket.
                    let _ = stream.flush();
                }
                if ready.writable && connection.has_backlog {
                    self.flush(slot);
                } else if ready.writable {
                    self.writable(slot);
                }
                if is_read {
                    self.read(slot, ready.ended);
                }
            }
        }
    }

    /// Reads available input, up to the end of the connection if that has been announced.
    pub(crate) fn read(&mut self, slot: Slot, until_end: bool) {
        for _ in 0..MAX_READS_PER_TURN {
            match self.read_once(slot, READ_BYTES) {
                // The poller is edge-triggered: what is left in the socket is announced only when more comes.
                Some(is_full) if !is_full && !until_end => return,
                Some(_) => {}
                None => return,
            }
        }
        self.unfinished.push_back(slot);
    }

    /// One read. Returns whether there may be more input now; `None`: there is not, or the connection has ended.
    pub(crate) fn read_once(&mut self, slot: Slot, max_bytes: usize) -> Option<bool> {
        let connection = &mut self.connections[slot.index()];
        let stream = connection.stream.as_mut()?;
        let (head, room) = self.buffer.split_at_mut(MAX_STASHED_BYTES);
        let Received { wire_bytes, plain_bytes, is_full } = match stream.receive(room, max_bytes, &mut self.scratch) {
            Ok(received) if received.wire_bytes > 0 => received,
            Err(Fault::Socket(Errno::AGAIN)) => return None,
            Ok(_) | Err(_) => {
                self.ended(slot);
                return None;
            }
        };
        if connection.phase != Phase::Ending && plain_bytes > 0 {
            let held_bytes = self.intake.unstash(connection, head);
            let bytes = &self.buffer[MAX_STASHED_BYTES - held_bytes..MAX_STASHED_BYTES + plain_bytes];
            self.intake.take(connection, bytes, wire_bytes, now_us());
            self.react(slot);
        }
        Some(is_full)
    }

    /// Reacts to the last bytes of a connection.
    pub(crate) fn react(&mut self, slot: Slot) {
        if self.intake.notices.is_empty() {
            return;
        }
        let mut notices = std::mem::take(&mut self.intake.notices);
        for notice in notices.drain(..) {
            match notice {
                Notice::Ready => self.on_prepared(slot),
                Notice::Answered => self.on_answered(slot),
                Notice::Ponged => self.on_ponged(slot, now_us()),
                Notice::Reply(index) => {
                    let frame = self.intake.replies[index].frame.clone();
                    self.write(slot, &frame);
                }
                Notice::Pinged(payload) => self.pong(slot, &payload),
                Notice::Closed(code) => self.on_close_frame(slot, code),
                Notice::Broken => {
                    self.lose(slot, PROTOCOL_ERROR);
                    self.vacate(slot);
                }
            }
        }
        self.intake.notices = notices;
    }

    /// The TCP connection has ended.
    fn ended(&mut self, slot: Slot) {
        self.lose(slot, NO_CLOSE_FRAME);
        self.vacate(slot);
    }

    fn on_close_frame(&mut self, slot: Slot, code: u16) {
        let was_closing = self.connection(slot).awaited.has(Awaited::CLOSE);
        self.lose(slot, code);
        if !was_closing {
            self.send_close(slot);
        }
    }

    /// Counts an unusable connection as closed and tells the jobs that wait for it. Its socket stays open.
    pub(crate) fn lose(&mut self, slot: Slot, code: u16) {
        match self.connection(slot).phase {
            Phase::Vacant | Phase::Ending => {}
            Phase::Connecting | Phase::Securing | Phase::Upgrading | Phase::Preparing => {
                let reason = if code == NO_CLOSE_FRAME { "ended".to_owned() } else { format!("closed {code}") };
                self.connect_failed(slot, reason);
            }
            Phase::Open => {
                *self.closed.entry(code).or_default() += 1;
                self.shared.closed();
                self.connection(slot).phase = Phase::Ending;
                self.lost_by_jobs(slot, code);
                self.connection(slot).awaited = Awaited::default();
            }
        }
    }

    /// Closes the socket and frees its slot.
    pub(crate) fn vacate(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.index()];
        if connection.phase == Phase::Vacant {
            return;
        }
        self.intake.forget(connection);
        if connection.stream.is_some() {
            self.shared.released();
        }
        *connection = Connection::vacant();
        self.backlogs.remove(&slot);
        self.vacant.push(slot);
    }
}
