//! `connect`: a storm of handshakes, a limited number at a time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{Job, Step};
use crate::clock::now_us;
use crate::latencies::Latencies;
use crate::loadgen::batch::text_frame;
use crate::loadgen::connection::Slot;
use crate::loadgen::connections::{Connections, Event, EventKind};
use crate::loadgen::figures::{Figure, Figures};
use crate::loadgen::intake::Reply;
use crate::loadgen::opening::{Opening, Route};
use crate::loadgen::protocol::{BatchMode, Connect};
use crate::loadgen::report::Report;

/// Handshakes started before the others are checked again. Starting one costs about 20 us, and handshakes that are
/// ready in the meantime would seem slow.
const MAX_STARTS_PER_TURN: usize = 32;

/// A thread's part of the connections.
pub(crate) struct Part {
    /// One per connection.
    pub(crate) routes: Vec<Route>,
    /// Of the connections, in turn; at least one.
    pub(crate) openings: Arc<[Arc<Opening>]>,
    /// Prefix of the message that makes a connection ready; `None`: the upgrade does.
    pub(crate) ready_prefix: Option<Box<[u8]>>,
    /// Number of the first connection, which decides its opening.
    pub(crate) first_number: u64,
    pub(crate) max_in_flight: usize,
    /// `None`: as fast as `max_in_flight` allows.
    pub(crate) per_second: Option<f64>,
}

pub(crate) struct Connecting {
    command: Arc<Connect>,
    part: Part,
    started_count: usize,
    in_flight_count: usize,
    /// Handshakes of the current batch that may still start.
    batch_left_count: usize,
    /// In the order of their start.
    pending: VecDeque<(Slot, u64)>,
    ok_count: u64,
    latencies: Latencies,
    errors: BTreeMap<String, u64>,
    /// Complete TLS handshakes by cipher suite.
    suites: BTreeMap<&'static str, u64>,
    resumed_count: u64,
    began_us: u64,
}

impl Connecting {
    pub(crate) fn begin(command: Arc<Connect>, part: Part, connections: &mut Connections) -> Self {
        connections.intake.prefixes.ready = part.ready_prefix.clone().unwrap_or_default();
        let reply = |(to, text): (&String, &String)| Reply { to: to.as_bytes().into(), frame: text_frame(text).into() };
        connections.intake.replies = command.replies.iter().map(reply).collect();
        Self {
            command,
            part,
            started_count: 0,
            in_flight_count: 0,
            batch_left_count: 0,
            pending: VecDeque::new(),
            ok_count: 0,
            latencies: Latencies::default(),
            errors: BTreeMap::new(),
            suites: BTreeMap::new(),
            resumed_count: 0,
            began_us: now_us(),
        }
    }

    fn figures(&mut self) -> Figures {
        let tls = [("suites", Figure::counts(self.suites.clone())), ("resumed", Figure::Sum(self.resumed_count))];
        Figures::from([
            ("ok", Figure::Sum(self.ok_count)),
            ("failed", Figure::Sum(self.errors.values().sum())),
            ("latencyUs", Figure::Latencies(std::mem::take(&mut self.latencies))),
            ("errors", Figure::counts(std::mem::take(&mut self.errors))),
            ("tls", Figure::Group(Figures::from(tls))),
        ])
    }

    fn failed(&mut self, reason: String) {
        *self.errors.entry(reason).or_default() += 1;
    }

    fn timeout_us(&self) -> u64 {
        self.command.timeout_ms * 1_000
    }

    /// When the connection after those that have started may start, by the rate.
    fn next_start_us(&self) -> u64 {
        let waited_us = self.part.per_second.map_or(0.0, |per_second| self.started_count as f64 * 1e6 / per_second);
        self.began_us + waited_us as u64
    }

    fn may_start_count(&mut self, now_us: u64) -> usize {
        if now_us < self.next_start_us() {
            return 0;
        }
        let waits_for_batch = self.command.batch_mode == BatchMode::Batches;
        if waits_for_batch && self.in_flight_count == 0 {
            self.batch_left_count = self.part.max_in_flight;
        }
        let room = if waits_for_batch {
            self.batch_left_count
        } else {
            self.part.max_in_flight.saturating_sub(self.in_flight_count)
        };
        let room = room.min(self.part.routes.len() - self.started_count);
        // With a rate, one at a time.
        if self.part.per_second.is_some() { room.min(1) } else { room }
    }

    /// Abandons handshakes that took too long and returns the next deadline.
    fn expire(&mut self, now_us: u64, connections: &mut Connections) -> Option<u64> {
        loop {
            let (slot, began_us) = *self.pending.front()?;
            let expires_us = began_us + self.timeout_us();
            let connection = connections.get(slot);
            let is_pending = connection.phase.is_opening() && connection.began_us == began_us;
            if is_pending && expires_us > now_us {
                return Some(expires_us);
            }
            self.pending.pop_front();
            if is_pending {
                connections.fail(slot, "timeout".to_owned());
            }
        }
    }

    fn start_connection(&mut self, connections: &mut Connections) {
        let Part { routes, openings, first_number, .. } = &self.part;
        let route = routes[self.started_count];
        let number = first_number + self.started_count as u64;
        let opening = &openings[(number % openings.len() as u64) as usize];
        self.started_count += 1;
        self.batch_left_count = self.batch_left_count.saturating_sub(1);
        let began_us = now_us();
        match connections.start(opening, route, began_us) {
            Ok(slot) => {
                self.in_flight_count += 1;
                self.pending.push_back((slot, began_us));
            }
            Err(reason) => self.failed(reason),
        }
    }
}

impl Job for Connecting {
    fn on(&mut self, event: &Event, _connections: &mut Connections) {
        match &event.kind {
            EventKind::Secured(negotiated) => {
                *self.suites.entry(negotiated.suite).or_default() += 1;
                self.resumed_count += u64::from(negotiated.is_resumed);
            }
            EventKind::Opened { after_us } => {
                self.in_flight_count -= 1;
                self.ok_count += 1;
                self.latencies.record(*after_us);
            }
            EventKind::Failed(reason) => {
                self.in_flight_count -= 1;
                self.failed(reason.clone());
            }
            _ => {}
        }
    }

    fn step(&mut self, now_us: u64, connections: &mut Connections) -> Step {
        let next_timeout_us = self.expire(now_us, connections);
        for _ in 0..self.may_start_count(now_us).min(MAX_STARTS_PER_TURN) {
            self.start_connection(connections);
        }
        let has_more = self.may_start_count(now_us) > 0;
        if self.in_flight_count == 0 && self.started_count == self.part.routes.len() {
            return Step::Done(Report::Figures("connected", self.figures()));
        }
        if has_more {
            return Step::Wait(Some(0));
        }
        let next_start_us = self.next_start_us();
        let is_paced = self.started_count < self.part.routes.len() && next_start_us > now_us;
        let timeout_us = next_timeout_us.unwrap_or(now_us + self.timeout_us());
        Step::Wait(Some(if is_paced { timeout_us.min(next_start_us) } else { timeout_us }))
    }
}
