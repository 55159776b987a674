//! The connections of one I/O thread, and what happens to them, as events. They are opened in `opening`, read in `input` and
//! `played`, and written in `output`.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::connection::{Awaited, Connection, NO_PLAYER, NO_SENDER, Phase, Slot};
use super::figures::{Figure, Figures};
use super::intake::Intake;
use super::opening::Handshake;
use super::stash::MAX_STASHED_BYTES;
use super::stream::{Negotiated, Scratch};
use super::threads::Shared;
use crate::poller::Poller;

/// Bytes of one read, small enough to be counted while they are in the processor's cache.
pub(super) const READ_BYTES: usize = 256 << 10;
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
    /// A ready connection has ended. Messages that it still awaits do not come.
    Lost { code: u16 },
}

/// Whole frames written and messages received, with their bytes.
#[derive(Debug, Default, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
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
    pub(super) backlogs: FxHashMap<Slot, Vec<u8>>,
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
    pub(super) unfinished: VecDeque<Slot>,
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
            intake: Intake::default(),
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

    pub(crate) fn figures(&self) -> Figures {
        let (frame_count, wire_bytes) = self.intake.totals();
        let count = |is_of: fn(&&Connection) -> bool| Figure::Sum(self.table.iter().filter(is_of).count() as u64);
        let is_open = |connection: &&Connection| connection.phase == Phase::Open;
        Figures::from([
            ("open", count(is_open)),
            ("connecting", count(|connection| connection.phase.is_opening())),
            ("compressed", count(|connection| connection.phase == Phase::Open && connection.is_compressed)),
            ("slow", count(|connection| connection.phase == Phase::Open && connection.is_slow())),
            ("frames", Figure::Sum(frame_count)),
            ("wireBytes", Figure::Sum(wire_bytes)),
            ("closed", Figure::counts(self.closed.clone())),
        ])
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

    pub(super) fn report(&mut self, slot: Slot, kind: EventKind) {
        let player = self.table[slot.index()].player;
        self.events.push_back(Event { slot, player, kind });
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
