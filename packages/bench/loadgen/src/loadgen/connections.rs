//! The connections of one I/O thread: it opens, reads, writes and closes them, and reports what happened as events.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use rustix::io::Errno;
use webmq_websocket::{CloseCode, Opcode, encode_masked_frame};

use super::batch::MASK;
use super::connection::{Awaited, Connection, NO_PLAYER, NO_SENDER, Phase, Reading, Slot};
use super::intake::{Intake, Notice};
use super::opening::Handshake;
use super::order::{Shared, Stats};
use super::stash::MAX_STASHED_BYTES;
use super::stream::{Fault, Negotiated, Received, Scratch, Stream};
use crate::clock::now_us;
use crate::poller::{Poller, Ready};

/// Bytes of one read, small enough to be counted while they are in the processor's cache.
const READ_BYTES: usize = 256 << 10;
/// Reads of one connection before the next gets its turn.
const MAX_READS_PER_TURN: usize = 4;
/// 1006: the connection ended without a close frame (RFC 6455 §7.4.1).
pub(crate) const NO_CLOSE_FRAME: u16 = 1006;
/// 1002: the peer violated RFC 6455.
pub(crate) const PROTOCOL_ERROR: u16 = 1002;

/// Something that a job may have to react to. Counted frames are no events.
pub(crate) struct Event {
    pub(crate) slot: Slot,
    /// The player of the connection at that time; [`NO_PLAYER`] without one.
    pub(crate) player: u32,
    pub(crate) kind: EventKind,
}

pub(crate) enum EventKind {
    /// The TLS handshake is complete.
    Secured(Negotiated),
    /// It is ready, that long after it started to connect.
    Opened { after_us: u64 },
    /// It could not be opened, for this reason.
    Failed(String),
    /// The answer to `send` has come.
    Answered,
    /// A ping is answered.
    Ponged { at_us: u64 },
    /// The socket takes output, and nothing is pending.
    Writable,
    /// A player's connection has input.
    Readable { until_end: bool },
    /// A ready connection has ended. What it still awaits does not come.
    Lost { code: u16 },
}

/// Whole frames written and messages received, with their bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Traffic {
    pub(crate) messages_sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) messages_received: u64,
    pub(crate) bytes_received: u64,
}

impl Traffic {
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            messages_sent: self.messages_sent - earlier.messages_sent,
            bytes_sent: self.bytes_sent - earlier.bytes_sent,
            messages_received: self.messages_received - earlier.messages_received,
            bytes_received: self.bytes_received - earlier.bytes_received,
        }
    }
}

pub(crate) struct Connections {
    pub(super) poller: Poller,
    pub(super) shared: Arc<Shared>,
    pub(super) table: Vec<Connection>,
    pub(super) vacant: Vec<Slot>,
    pub(crate) intake: Intake,
    /// Of connections that are not upgraded yet.
    pub(super) handshakes: FxHashMap<Slot, Handshake>,
    /// Output that sockets did not take.
    backlogs: FxHashMap<Slot, Vec<u8>>,
    /// Starts of frames of players' connections.
    pub(super) rests: FxHashMap<Slot, Vec<u8>>,
    pub(super) events: VecDeque<Event>,
    /// Of players, since the start. Of others only what they have sent.
    pub(crate) traffic: Traffic,
    /// Close codes of connections that were ready.
    closed: BTreeMap<u16, u64>,
    /// Room for a stashed start, then [`READ_BYTES`].
    pub(super) buffer: Box<[u8]>,
    pub(super) scratch: Scratch,
    /// Connections with unread input after their turn.
    unfinished: VecDeque<Slot>,
}

impl Connections {
    /// # Errors
    /// The system gives no descriptors.
    pub(crate) fn new(shared: Arc<Shared>) -> io::Result<Self> {
        Ok(Self {
            poller: Poller::new(&shared.waker)?,
            shared,
            table: Vec::new(),
            vacant: Vec::new(),
            intake: Intake::new(),
            handshakes: FxHashMap::default(),
            backlogs: FxHashMap::default(),
            rests: FxHashMap::default(),
            events: VecDeque::new(),
            traffic: Traffic::default(),
            closed: BTreeMap::new(),
            buffer: vec![0; MAX_STASHED_BYTES + READ_BYTES].into_boxed_slice(),
            scratch: Scratch::new(READ_BYTES),
            unfinished: VecDeque::new(),
        })
    }

    /// Waits until a socket is ready, the main thread wakes this one, or the time has come; `Some(0)` does not wait.
    pub(crate) fn wait(&mut self, deadline_us: Option<u64>) -> io::Result<()> {
        let deadline_us = if self.unfinished.is_empty() && self.events.is_empty() { deadline_us } else { Some(0) };
        Ok(self.poller.wait(deadline_us)?)
    }

    /// Sockets that the last wait found ready.
    pub(crate) fn ready_count(&self) -> usize {
        self.poller.ready_count()
    }

    /// Handles the ready socket at `index`.
    pub(crate) fn handle_ready(&mut self, index: usize) {
        if let Some(ready) = self.poller.ready(index) {
            self.on_ready(ready);
        }
    }

    /// Connections whose turn ended before their input did.
    pub(crate) fn unfinished_count(&self) -> usize {
        self.unfinished.len()
    }

    /// Continues the one that has waited longest.
    pub(crate) fn continue_unfinished(&mut self) {
        if let Some(slot) = self.unfinished.pop_front() {
            self.read(slot, true);
        }
    }

    /// The oldest event that no job has seen. Call [`settle`](Self::settle) when the jobs have.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Forgets what a lost connection awaited, and closes it if nothing more is read of it.
    pub(crate) fn settle(&mut self, event: &Event) {
        if let EventKind::Lost { .. } = event.kind {
            let connection = self.get_mut(event.slot);
            connection.awaited = Awaited::default();
            connection.is_loss_unseen = false;
            if connection.is_cut || connection.player != NO_PLAYER {
                self.vacate(event.slot);
            }
        }
    }

    pub(crate) fn get(&self, slot: Slot) -> &Connection {
        &self.table[slot.index()]
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Connection {
        &mut self.table[slot.index()]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &Connection)> {
        (0..).map(Slot).zip(&self.table)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.table.iter_mut()
    }

    /// Those that are ready.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Connection> {
        self.table.iter().filter(|connection| connection.phase == Phase::Open)
    }

    /// The first `max` connections that are ready.
    pub(crate) fn open_slots(&self, max: usize) -> Vec<Slot> {
        let open = self.iter().filter(|(_, connection)| connection.phase == Phase::Open);
        open.map(|(slot, _)| slot).take(max).collect()
    }

    pub(crate) fn stats(&self) -> Stats {
        let (frame_count, wire_bytes) = self.intake.totals();
        Stats {
            open_count: self.open().count() as u64,
            connecting_count: self.table.iter().filter(|connection| connection.phase.is_opening()).count() as u64,
            compressed_count: self.open().filter(|connection| connection.is_compressed).count() as u64,
            slow_count: self.open().filter(|connection| connection.is_slow()).count() as u64,
            frame_count,
            wire_bytes,
            closed: self.closed.clone(),
            plan: None,
        }
    }

    /// Writes whole frames now or when the socket takes them, in order.
    ///
    /// The next read reports a failed socket.
    pub(crate) fn write(&mut self, slot: Slot, bytes: &[u8]) {
        let connection = &mut self.table[slot.index()];
        let Some(stream) = &mut connection.stream else { return };
        self.traffic.messages_sent += 1;
        self.traffic.bytes_sent += bytes.len() as u64;
        if connection.has_backlog {
            self.backlogs.entry(slot).or_default().extend_from_slice(bytes);
            return;
        }
        let Ok(count) = stream.send(bytes, &mut self.scratch) else { return };
        if count < bytes.len() {
            self.keep(slot, &bytes[count..]);
        }
    }

    /// Writes as much as the socket takes; `None` when it takes nothing more, ever.
    #[inline]
    pub(crate) fn write_some(&mut self, slot: Slot, bytes: &[u8]) -> Option<usize> {
        let stream = self.table[slot.index()].stream.as_mut()?;
        stream.send(bytes, &mut self.scratch).ok()
    }

    /// Keeps the rest of a frame until the socket takes it.
    pub(crate) fn keep(&mut self, slot: Slot, rest: &[u8]) {
        if !rest.is_empty() {
            self.get_mut(slot).has_backlog = true;
            self.backlogs.entry(slot).or_default().extend_from_slice(rest);
        }
    }

    pub(crate) fn has_backlogs(&self) -> bool {
        !self.backlogs.is_empty()
    }

    pub(crate) fn backlog_bytes(&self, slot: Slot) -> usize {
        self.backlogs.get(&slot).map_or(0, Vec::len)
    }

    /// Whether a frame is partly written.
    pub(crate) fn is_unfinished(&self, slot: Slot) -> bool {
        let connection = self.get(slot);
        connection.has_backlog || connection.stream.as_ref().is_some_and(Stream::has_pending)
    }

    /// Starts the closing handshake; the end of the connection is [`EventKind::Lost`].
    pub(crate) fn close(&mut self, slot: Slot) {
        self.get_mut(slot).awaited.insert(Awaited::CLOSE);
        self.send_close(slot);
    }

    /// Ends a connection at once, counted as one without a close frame.
    pub(crate) fn cut(&mut self, slot: Slot) {
        self.lose(slot, NO_CLOSE_FRAME);
        let connection = self.get_mut(slot);
        if connection.is_loss_unseen {
            connection.is_cut = true;
        } else {
            self.vacate(slot);
        }
    }

    fn send_close(&mut self, slot: Slot) {
        let mut frame = Vec::new();
        encode_masked_frame(Opcode::Close, &CloseCode::NORMAL.value().to_be_bytes(), MASK, &mut frame);
        self.write(slot, &frame);
    }

    pub(super) fn pong(&mut self, slot: Slot, payload: &[u8]) {
        let mut frame = Vec::with_capacity(payload.len() + 6);
        encode_masked_frame(Opcode::Pong, payload, MASK, &mut frame);
        self.write(slot, &frame);
    }

    pub(super) fn report(&mut self, slot: Slot, kind: EventKind) {
        let player = self.table[slot.index()].player;
        self.events.push_back(Event { slot, player, kind });
    }

    fn on_ready(&mut self, ready: Ready) {
        let slot = Slot(ready.token as u32);
        let connection = self.get_mut(slot);
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

    /// Writes pending output.
    fn flush(&mut self, slot: Slot) {
        let connection = &mut self.table[slot.index()];
        let (Some(stream), Some(backlog)) = (&mut connection.stream, self.backlogs.get_mut(&slot)) else { return };
        let Ok(count) = stream.send(backlog, &mut self.scratch) else { return };
        if count < backlog.len() {
            backlog.drain(..count);
            return;
        }
        connection.has_backlog = false;
        self.backlogs.remove(&slot);
        self.writable(slot);
    }

    fn writable(&mut self, slot: Slot) {
        if self.get(slot).sender != NO_SENDER {
            self.report(slot, EventKind::Writable);
        }
    }

    /// Reads available input, up to the end of the connection if that has been announced.
    pub(crate) fn read(&mut self, slot: Slot, until_end: bool) {
        if self.get(slot).player != NO_PLAYER {
            return self.report(slot, EventKind::Readable { until_end });
        }
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
        let connection = &mut self.table[slot.index()];
        let stream = connection.stream.as_mut()?;
        let (head, room) = self.buffer.split_at_mut(MAX_STASHED_BYTES);
        let Received { wire_bytes, plain_bytes, is_full } = match stream.receive(room, max_bytes, &mut self.scratch) {
            Ok(received) if received.wire_bytes > 0 => received,
            Err(Fault::Socket(Errno::AGAIN)) => return None,
            Ok(_) | Err(_) => {
                self.cut(slot);
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
    pub(super) fn react(&mut self, slot: Slot) {
        if self.intake.notices.is_empty() {
            return;
        }
        let mut notices = std::mem::take(&mut self.intake.notices);
        for notice in notices.drain(..) {
            match notice {
                Notice::Ready => self.on_prepared(slot),
                Notice::Answered => self.report(slot, EventKind::Answered),
                Notice::Ponged => self.report(slot, EventKind::Ponged { at_us: now_us() }),
                Notice::Reply(index) => {
                    let frame = self.intake.replies[index].frame.clone();
                    self.write(slot, &frame);
                }
                Notice::Pinged(payload) => self.pong(slot, &payload),
                Notice::Closed(code) => self.on_close_frame(slot, code),
                Notice::Broken => {
                    self.lose(slot, PROTOCOL_ERROR);
                    self.cut(slot);
                }
            }
        }
        self.intake.notices = notices;
    }

    pub(super) fn on_close_frame(&mut self, slot: Slot, code: u16) {
        let was_closing = self.get(slot).awaited.has(Awaited::CLOSE);
        self.lose(slot, code);
        if !was_closing {
            self.send_close(slot);
        }
    }

    /// Counts an unusable connection as closed and reports its end. Its socket stays open.
    pub(super) fn lose(&mut self, slot: Slot, code: u16) {
        let connection = self.get_mut(slot);
        match connection.phase {
            Phase::Vacant | Phase::Ending => {}
            Phase::Connecting | Phase::Securing | Phase::Upgrading | Phase::Preparing => {
                let reason = if code == NO_CLOSE_FRAME { "ended".to_owned() } else { format!("closed {code}") };
                self.fail(slot, reason);
            }
            Phase::Open => {
                connection.phase = Phase::Ending;
                connection.sender = NO_SENDER;
                connection.is_loss_unseen = true;
                *self.closed.entry(code).or_default() += 1;
                self.shared.closed();
                self.report(slot, EventKind::Lost { code });
            }
        }
    }

    /// Closes the socket and frees its slot.
    pub(crate) fn vacate(&mut self, slot: Slot) {
        let connection = &mut self.table[slot.index()];
        if connection.phase == Phase::Vacant {
            return;
        }
        if connection.phase == Phase::Open {
            self.shared.closed();
        }
        self.intake.forget(connection);
        if connection.stream.is_some() {
            self.shared.released();
        }
        *connection = Connection::vacant();
        self.handshakes.remove(&slot);
        self.backlogs.remove(&slot);
        self.rests.remove(&slot);
        self.vacant.push(slot);
    }
}
