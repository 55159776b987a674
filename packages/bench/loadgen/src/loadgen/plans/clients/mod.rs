//! The clients of the scenario `clients`: connects them, sends what is due, and counts what arrives, by the same plan as the
//! client library.

mod client;
mod meter;
mod outgoing;
mod payload;
mod plan;
mod receiving;
pub(crate) mod setup;
mod tally;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::json;

use self::client::{Client, Phase};
use self::meter::Meter;
use self::outgoing::Outbound;
use self::setup::Setup;
use self::tally::Tally;
use super::opening;
use crate::clock::now_us;
use crate::loadgen::batch::text_frame;
use crate::loadgen::connection::NO_PLAYER;
use crate::loadgen::connections::{Connections, Event, EventKind};
use crate::loadgen::figures::{Figure, Figures};
use crate::loadgen::jobs::{Job, Step};
use crate::loadgen::opening::{Opening, Route};
use crate::loadgen::order::Change;
use crate::loadgen::played::end_reason;
use crate::loadgen::protocol::plans::{Publication, SendWindow};
use crate::loadgen::report::Report;

/// Clients of one thread that connect at the same time; more would only wait in the listen backlog.
const CONNECTING_COUNT: usize = 32;
/// Sockets read between two looks at the schedule, and messages sent in a row.
const READS_PER_LOOK: u32 = 16;
const MAX_SENDS_PER_LOOK: usize = 64;

/// The progress of a run.
#[derive(PartialEq, Eq)]
enum Stage {
    Connecting,
    /// Connected; nothing is sent before the window is known.
    Waiting,
    /// The window is known, and that has not been answered.
    Beginning,
    Playing,
    Finishing,
}

/// A part of the clients, on one thread.
pub(crate) struct Clients {
    setup: Arc<Setup>,
    /// By place among the backends.
    openings: Vec<Arc<Opening>>,
    clients: Vec<Client>,
    stage: Stage,
    deadline_us: u64,
    tally: Tally,
    window: Option<SendWindow>,
    part: Range<u32>,
    /// Place in the plan of the next message of these clients.
    next_send: usize,
    /// Place of the next client to connect, and clients on their way.
    next_to_connect: usize,
    connecting_count: usize,
    live_count: usize,
    /// All arrivals, including duplicates and the warm-up.
    arrived_count: u64,
    /// Why a client could not connect.
    failure: Option<String>,
    /// When, and which of them may send again what the server has refused.
    pauses: BinaryHeap<Reverse<(u64, usize)>>,
    /// The plan is sent, and what was refused as well.
    is_sending_done: bool,
    reads_since_look: u32,
    meter: Meter,
}

impl Clients {
    pub(crate) fn new(setup: Arc<Setup>, part: Range<u32>) -> Self {
        let backend_count = setup.addresses.len();
        let client = |number: u32| Client::new(&setup.plan, number, number as usize % backend_count);
        let opening_of = |address: &_| opening(*address, &setup.path).ok().map(Arc::new);
        Self {
            openings: setup.addresses.iter().filter_map(opening_of).collect(),
            clients: part.clone().map(client).collect(),
            stage: Stage::Connecting,
            deadline_us: now_us() + setup.timeout_us,
            tally: Tally::new(backend_count),
            window: None,
            part,
            next_send: 0,
            next_to_connect: 0,
            connecting_count: 0,
            live_count: 0,
            arrived_count: 0,
            failure: None,
            pauses: BinaryHeap::new(),
            is_sending_done: false,
            reads_since_look: 0,
            meter: Meter::default(),
            setup,
        }
    }

    /// Connects all clients; answers when the server has confirmed every listen.
    fn connect(&mut self, connections: &mut Connections) -> Step {
        while self.connecting_count < CONNECTING_COUNT && self.next_to_connect < self.clients.len() {
            let place = self.next_to_connect;
            self.next_to_connect += 1;
            self.connecting_count += 1;
            let backend = self.clients[place].backend;
            let address = self.setup.addresses[backend];
            let route = Route::of_player(address, place as u32);
            match connections.start(&self.openings[backend], route, now_us()) {
                Ok(slot) => self.clients[place].slot = Some(slot),
                Err(reason) => self.on_end(place, &reason),
            }
        }
        let (live_count, count) = (self.live_count, self.clients.len());
        if let Some(failure) = self.failure.take() {
            return Step::Done(Report::Failed(failure));
        }
        if live_count == count {
            self.stage = Stage::Waiting;
            let figures = Figures::from([("clients", Figure::Sum(live_count as u64))]);
            return Step::Answer(Report::Figures("clients-connected", figures));
        }
        if now_us() >= self.deadline_us {
            return Step::Done(Report::Failed(format!("{live_count} of {count} clients are connected in time")));
        }
        Step::Wait(Some(self.deadline_us))
    }

    /// The next message of these clients; `None` when nothing is left to send.
    fn upcoming(&mut self) -> Option<Publication> {
        let sends = &self.setup.plan.sends[self.next_send..];
        let skipped = sends.iter().position(|send| self.part.contains(&send.client));
        self.next_send += skipped.unwrap_or(sends.len());
        self.setup.plan.sends.get(self.next_send).copied()
    }

    fn next_due_us(&mut self) -> u64 {
        let Some(window) = self.window else { return u64::MAX };
        let planned_us = self.upcoming().map_or(u64::MAX, |send| (window.start_us + send.at_us as f64).ceil() as u64);
        self.pauses.peek().map_or(planned_us, |Reverse((until_us, _))| planned_us.min(*until_us))
    }

    /// Sends what is due. A late thread still sends all of it, so the load does not shrink.
    fn send_due(&mut self, connections: &mut Connections) {
        let Some(window) = self.window else { return };
        let setup = self.setup.clone();
        for _ in 0..MAX_SENDS_PER_LOOK {
            let elapsed_us = now_us() as f64 - window.start_us;
            let Some(publication) = self.upcoming().filter(|send| send.at_us as f64 <= elapsed_us) else { break };
            let message_place = self.next_send;
            self.next_send += 1;
            let place = (publication.client - self.part.start) as usize;
            let client = &mut self.clients[place];
            let is_counted = publication.turn >= 0;
            if is_counted {
                let sent_us = now_us();
                self.meter.open(sent_us);
                let tally = &mut self.tally;
                tally.last_send_us = sent_us;
                tally.expected_count += u64::from(setup.plan.listener_count(publication.key));
                tally.published_in_window_count += u64::from((sent_us as f64) < window.end_us);
                tally
                    .send_lag_us
                    .record((sent_us as f64 - window.start_us - publication.at_us as f64).max(0.0).round() as u64);
                tally.per_backend[client.backend].published_count += 1;
            }
            if client.slot.is_none() {
                // Still counts as published, and shows as a loss.
                self.tally.lose(is_counted, "the connection has ended");
            } else if let Some(message) = client.outgoing.add(message_place) {
                self.send(place, message, connections);
            }
        }
        while let Some(Reverse((until_us, place))) = self.pauses.peek().copied() {
            if until_us > now_us() {
                break;
            }
            self.pauses.pop();
            self.send_held(place, connections);
        }
        if !self.is_sending_done && self.upcoming().is_none() && self.holds_nothing() {
            self.is_sending_done = true;
            // Here, because the idle seconds of the drain would dilute it.
            self.tally.utilization = self.meter.close(now_us());
        }
    }

    fn send(&self, place: usize, message: Outbound, connections: &mut Connections) {
        let (setup, client) = (&self.setup, &self.clients[place]);
        let Some(slot) = client.slot else { return };
        let publication = &setup.plan.sends[message.place];
        let key = format!("{}.{}", setup.key_prefix, publication.key);
        let text = client.publish(message, &key, &setup.encoder.encode(publication));
        connections.write(slot, &text_frame(&text));
    }

    /// Sends again what the server has refused, as far as it may go.
    fn send_held(&mut self, place: usize, connections: &mut Connections) {
        while let Some(message) = self.clients[place].outgoing.release(now_us()) {
            self.send(place, message, connections);
        }
    }

    fn holds_nothing(&self) -> bool {
        self.clients.iter().all(|client| client.outgoing.held_count() == 0)
    }

    /// The connection of a client has ended before the run has.
    fn on_end(&mut self, place: usize, reason: &str) {
        let client = &mut self.clients[place];
        let was_live = client.phase == Phase::Live;
        client.phase = Phase::Closed;
        client.slot = None;
        for lost in client.outgoing.end() {
            self.tally.lose(self.setup.plan.sends[lost].turn >= 0, reason);
        }
        if was_live {
            self.tally.closed_count += 1;
            self.tally.first_close.get_or_insert_with(|| reason.to_owned());
        } else {
            let number = self.part.start as usize + place;
            self.failure.get_or_insert_with(|| format!("client {number}: {reason}"));
        }
    }
}

impl Job for Clients {
    fn is_timed(&self) -> bool {
        true
    }

    fn progress(&self) -> Option<(&'static str, Figure)> {
        let sum = |of: fn(&tally::BackendTally) -> u64| self.tally.per_backend.iter().map(of).sum();
        let counts = [
            ("connectedCount", self.live_count as u64),
            ("publishedCount", sum(|backend| backend.published_count)),
            ("deliveredCount", sum(|backend| backend.delivered_count)),
            ("arrivedCount", self.arrived_count),
            ("doneThreads", u64::from(self.is_sending_done)),
        ];
        Some(("clients", Figure::counts(counts)))
    }

    /// Messages that became due meanwhile are sent before anything is read.
    fn woke(&mut self, since_us: u64, connections: &mut Connections) {
        self.meter.woke(since_us, now_us());
        self.send_due(connections);
    }

    fn step(&mut self, _now_us: u64, connections: &mut Connections) -> Step {
        match self.stage {
            Stage::Connecting => self.connect(connections),
            Stage::Waiting => Step::Wait(None),
            Stage::Beginning => {
                self.stage = Stage::Playing;
                Step::Answer(Report::Figures("clients-begun", Figures::default()))
            }
            Stage::Playing => {
                self.send_due(connections);
                let due_us = self.next_due_us();
                Step::Wait(Some(if due_us <= now_us() { 0 } else { due_us.min(self.meter.next_tick_us()) }))
            }
            Stage::Finishing => {
                for client in &mut self.clients {
                    if let Some(slot) = client.slot.take() {
                        connections.close(slot);
                        connections.vacate(slot);
                    }
                }
                std::mem::swap(&mut self.tally.wake_lag_us, &mut self.meter.wake_lag);
                let tallies = Figure::List(vec![json!(self.tally)]);
                Step::Done(Report::Figures("clients-finished", Figures::from([("threads", tallies)])))
            }
        }
    }

    fn on(&mut self, event: &Event, connections: &mut Connections) {
        let Event { slot, player, kind } = event;
        if *player == NO_PLAYER {
            return;
        }
        match kind {
            EventKind::Opened { .. } => self.clients[*player as usize].phase = Phase::Welcoming,
            EventKind::Failed(reason) => self.on_end(*player as usize, reason),
            EventKind::Lost { code } => self.on_end(*player as usize, &end_reason(*code)),
            EventKind::Readable { until_end } => {
                connections.play(*slot, *until_end, self);
                self.reads_since_look += 1;
                if self.reads_since_look == READS_PER_LOOK {
                    self.reads_since_look = 0;
                    self.send_due(connections);
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            // Sends from the warm-up's start on.
            Change::BeginClients(window) => {
                self.window = Some(window);
                self.stage = Stage::Beginning;
            }
            Change::FinishClients => self.stage = Stage::Finishing,
            Change::StopCount(_) => {}
        }
    }
}
