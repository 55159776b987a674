//! The clients of the scenario `clients`: connects them, sends what is due, and counts what arrives, by the same plan as the
//! client library.

mod client;
mod course;
mod meter;
mod payload;
mod plan;
mod random;
mod schedule;
mod tally;
mod tracker;

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use serde::Deserialize;

use self::client::{Client, Phase};
pub(crate) use self::course::Course;
use self::meter::Meter;
pub(crate) use self::plan::PlanOptions;
use self::schedule::SendSchedule;
pub(crate) use self::tally::Tally;
use self::tracker::Arrival;
use super::incoming::{Incoming, key_number};
use super::opening;
use crate::clock::now_us;
use crate::digits;
use crate::loadgen::batch::text_frame;
use crate::loadgen::connection::{GroupId, NO_PLAYER, Slot};
use crate::loadgen::connections::{Connections, Event, EventKind};
use crate::loadgen::jobs::Step;
use crate::loadgen::opening::{Opening, Route};
use crate::loadgen::order::{Progress, Report};
use crate::loadgen::played::{Player, end_reason};

/// Clients of one thread that connect at the same time; more would only wait in the listen backlog.
const CONNECTING_COUNT: usize = 32;
/// Sockets read between two looks at the schedule, and messages sent in a row.
const READS_PER_LOOK: u32 = 16;
const MAX_SENDS_PER_LOOK: usize = 64;
/// The request id of a listen is this and the place of its key.
const LISTEN_ID: &[u8] = b"l";
const PUBLISH_ID: &[u8] = b"p";

/// The window on the machine's monotonic clock.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SendWindow {
    start_us: f64,
    end_us: f64,
}

/// What a run is asked for next.
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
    course: Arc<Course>,
    /// By place among the backends.
    openings: Vec<Rc<Opening>>,
    clients: Vec<Client>,
    /// Number of the first client.
    first_client: u32,
    stage: Stage,
    deadline_us: u64,
    tally: Tally,
    window: Option<SendWindow>,
    schedule: SendSchedule,
    /// Place of the next client to connect, and clients on their way.
    next_to_connect: usize,
    connecting_count: usize,
    live_count: usize,
    /// All arrivals, including duplicates and the warm-up.
    arrived_count: u64,
    /// Why a client could not connect.
    failure: Option<String>,
    is_sending_done: bool,
    reads_since_look: u32,
    meter: Meter,
}

impl Clients {
    pub(crate) fn new(course: Arc<Course>, part: Range<u32>) -> Self {
        let numbers: Vec<u32> = part.clone().collect();
        let backend_count = course.addresses.len();
        let client = |number: &u32| Client::new(&course.plan, *number, *number as usize % backend_count);
        let opening_of = |address: &_| opening(*address, &course.path).ok().map(Rc::new);
        Self {
            openings: course.addresses.iter().filter_map(opening_of).collect(),
            clients: numbers.iter().map(client).collect(),
            first_client: part.start,
            stage: Stage::Connecting,
            deadline_us: now_us() + course.timeout_us,
            tally: Tally::new(backend_count),
            window: None,
            schedule: SendSchedule::new(&course.plan, numbers),
            next_to_connect: 0,
            connecting_count: 0,
            live_count: 0,
            arrived_count: 0,
            failure: None,
            is_sending_done: false,
            reads_since_look: 0,
            meter: Meter::new(),
            course,
        }
    }

    /// Sends from the warm-up's start on.
    pub(crate) fn begin(&mut self, window: SendWindow) {
        self.window = Some(window);
        self.stage = Stage::Beginning;
    }

    /// Takes the counts and closes the clients.
    pub(crate) fn finish(&mut self) {
        self.stage = Stage::Finishing;
    }

    /// Counts so far.
    pub(crate) fn progress(&self) -> Progress {
        let sum = |of: fn(&tally::BackendTally) -> u64| self.tally.backends.iter().map(of).sum();
        Progress::from([
            ("connectedCount", self.live_count as u64),
            ("publishedCount", sum(|backend| backend.published)),
            ("deliveredCount", sum(|backend| backend.delivered)),
            ("arrivedCount", self.arrived_count),
            ("doneThreads", u64::from(self.is_sending_done)),
        ])
    }

    /// The thread has waited since then. What became due meanwhile is sent before anything is read.
    pub(crate) fn woke(&mut self, since_us: u64, connections: &mut Connections) {
        self.meter.woke(since_us, now_us());
        self.send_due(connections);
    }

    pub(crate) fn step(&mut self, connections: &mut Connections) -> Step {
        match self.stage {
            Stage::Connecting => self.connect(connections),
            Stage::Waiting => Step::Wait(None),
            Stage::Beginning => {
                self.stage = Stage::Playing;
                Step::Answer(Report::ClientsBegun)
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
                let mut tally = std::mem::replace(&mut self.tally, Tally::new(0));
                std::mem::swap(&mut tally.wake_lag, &mut self.meter.wake_lag);
                Step::Done(Report::ClientsFinished(Box::new(tally)))
            }
        }
    }

    pub(crate) fn on(&mut self, event: &Event, connections: &mut Connections) {
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

    /// Connects all clients; answers when the server has confirmed every listen.
    fn connect(&mut self, connections: &mut Connections) -> Step {
        while self.connecting_count < CONNECTING_COUNT && self.next_to_connect < self.clients.len() {
            let place = self.next_to_connect;
            self.next_to_connect += 1;
            self.connecting_count += 1;
            let backend = self.clients[place].backend;
            let address = self.course.addresses[backend];
            let route = Route { address, source: None, group: GroupId::default(), player: place as u32 };
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
            return Step::Answer(Report::ClientsConnected { live_count: live_count as u64 });
        }
        if now_us() >= self.deadline_us {
            return Step::Done(Report::Failed(format!("{live_count} of {count} clients are connected in time")));
        }
        Step::Wait(Some(self.deadline_us))
    }

    /// When the next message is due.
    fn next_due_us(&self) -> u64 {
        let Some(window) = self.window else { return u64::MAX };
        let due_us = window.start_us + self.schedule.next_at_us(&self.course.plan);
        // A float beyond the range becomes the largest integer: never.
        due_us.ceil() as u64
    }

    /// Sends what is due. A late thread still sends all of it, so the load does not shrink.
    fn send_due(&mut self, connections: &mut Connections) {
        let Some(window) = self.window else { return };
        let course = self.course.clone();
        for _ in 0..MAX_SENDS_PER_LOOK {
            let elapsed_us = now_us() as f64 - window.start_us;
            if self.schedule.next_at_us(&course.plan) > elapsed_us {
                break;
            }
            let Some(send) = self.schedule.shift(&course.plan) else { break };
            let place = (send.client - self.first_client) as usize;
            let client = &mut self.clients[place];
            let publication = client.publisher.next(send.turn, send.at_us);
            let is_counted = send.turn >= 0;
            if is_counted {
                let sent_us = now_us();
                self.meter.open(sent_us);
                let tally = &mut self.tally;
                tally.last_send_us = sent_us;
                tally.expected += u64::from(course.plan.listener_count(publication.key));
                tally.published_in_window += u64::from((sent_us as f64) < window.end_us);
                tally.send_lag.record((sent_us as f64 - window.start_us - send.at_us).max(0.0).round() as u64);
                tally.backends[client.backend].published += 1;
            }
            let Some(slot) = client.slot else {
                // Still counts as published, and shows as a loss.
                self.tally.publish_errors += u64::from(is_counted);
                self.tally.first_publish_error.get_or_insert_with(|| "the connection has ended".to_owned());
                continue;
            };
            let payload = course.encoder.encode(&publication);
            let text = client.publish(&course.key_prefix, publication.key, &payload, is_counted);
            connections.write(slot, &text_frame(&text));
        }
        if !self.is_sending_done && self.schedule.next_at_us(&course.plan).is_infinite() {
            self.is_sending_done = true;
            // Here, because the idle seconds of the drain would dilute it.
            self.tally.utilization = self.meter.close(now_us());
        }
    }

    /// The connection of a client has ended before the run has.
    fn on_end(&mut self, place: usize, reason: &str) {
        let client = &mut self.clients[place];
        let was_live = client.phase == Phase::Live;
        client.phase = Phase::Closed;
        client.slot = None;
        // Their answers cannot come.
        client.unanswered.clear();
        if was_live {
            self.tally.closed += 1;
            self.tally.first_close.get_or_insert_with(|| reason.to_owned());
        } else {
            let number = self.first_client as usize + place;
            self.failure.get_or_insert_with(|| format!("client {number}: {reason}"));
        }
    }

    fn on_welcome(&mut self, place: usize, slot: Slot, connections: &mut Connections) {
        let client = &mut self.clients[place];
        if client.phase != Phase::Welcoming {
            self.tally.client_errors += 1;
            return;
        }
        client.phase = Phase::Listening;
        let frame = |(slot, key)| text_frame(&format!("listen l{slot} {}.{key}", self.course.key_prefix));
        let frames: Vec<u8> = client.listens.iter().enumerate().flat_map(frame).collect();
        connections.write(slot, &frames);
    }

    /// `code`: of a refusal.
    fn on_answer(
        &mut self,
        place: usize,
        slot: Slot,
        (id, code): (&[u8], Option<&[u8]>),
        connections: &mut Connections,
    ) {
        let client = &mut self.clients[place];
        if id.starts_with(LISTEN_ID) && client.phase == Phase::Listening {
            if let Some(code) = code {
                connections.vacate(slot);
                return self.on_end(place, &format!("a listen was refused: {}", String::from_utf8_lossy(code)));
            }
            client.listens_left -= 1;
            if client.listens_left == 0 {
                client.phase = Phase::Live;
                self.tally.backends[client.backend].client_count += 1;
                self.live_count += 1;
                self.connecting_count -= 1;
            }
            return;
        }
        let request = id.strip_prefix(PUBLISH_ID).map(|number| digits::parse(number).0);
        match (request.and_then(|request| client.unanswered.remove(&request)), code) {
            (None, _) => self.tally.client_errors += 1,
            (Some(is_counted), None) => self.tally.acknowledged += u64::from(is_counted),
            (Some(is_counted), Some(code)) => {
                self.tally.publish_errors += u64::from(is_counted);
                self.tally.first_publish_error.get_or_insert_with(|| String::from_utf8_lossy(code).into_owned());
            }
        }
    }

    fn on_delivery(&mut self, place: usize, key: &[u8], payload: &[u8]) {
        let course = &self.course;
        let at_us = now_us();
        self.arrived_count += 1;
        let client = &mut self.clients[place];
        let tally = &mut self.tally.backends[client.backend];
        let slot =
            key_number(key, course.key_prefix.as_bytes()).and_then(|key| client.listens.binary_search(&key).ok());
        let stamp = course.encoder.decode(payload, &course.plan.options);
        let (Some(slot), Some(stamp)) = (slot, stamp) else {
            tally.unexpected += 1;
            self.tally.last_arrival_us = at_us;
            return;
        };
        if stamp.turn < 0 {
            return;
        }
        self.tally.last_arrival_us = at_us;
        match client.tracker.record(slot, stamp.publisher, stamp.key_sequence) {
            Arrival::Duplicate => {
                tally.duplicates += 1;
                return;
            }
            Arrival::Reordered => tally.reordered += 1,
            Arrival::Delivered => {}
        }
        tally.delivered += 1;
        if let Some(window) = self.window {
            tally.delivered_in_window += u64::from((at_us as f64) < window.end_us);
            let latency_us = at_us as f64 - window.start_us - stamp.at_us as f64;
            tally.latency.record(latency_us.max(1.0).round() as u64);
        }
    }
}

impl Player for Clients {
    fn on_message(&mut self, slot: Slot, payload: &[u8], _at_us: u64, connections: &mut Connections) {
        let place = connections.get(slot).player as usize;
        match Incoming::parse(payload) {
            Some(Incoming::Message { key, payload, .. }) => self.on_delivery(place, key, payload),
            Some(Incoming::Ok { id, .. }) => self.on_answer(place, slot, (id, None), connections),
            Some(Incoming::Error { id, code }) => self.on_answer(place, slot, (id, Some(code)), connections),
            Some(Incoming::Welcome) => self.on_welcome(place, slot, connections),
            Some(Incoming::Gap) => self.tally.gaps += 1,
            Some(Incoming::Other) => {}
            None => self.tally.client_errors += 1,
        }
    }
}
