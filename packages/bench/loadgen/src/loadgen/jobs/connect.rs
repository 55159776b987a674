//! `connect`: a storm of handshakes, a limited number at a time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use super::step::Step;
use crate::clock::now_us;
use crate::latencies::Latencies;
use crate::loadgen::batch::text_frame;
use crate::loadgen::connection::{NO_PLAYER, Slot};
use crate::loadgen::connections::{Connections, Event, EventKind};
use crate::loadgen::handshake::Opening;
use crate::loadgen::intake::Reply;
use crate::loadgen::opening::Route;
use crate::loadgen::order::{ConnectTask, Connected, Report};

/// Handshakes started before the others are checked again. Starting one costs about 20 us, and handshakes that are
/// ready in the meantime would seem slow.
const MAX_STARTS_PER_TURN: usize = 32;

pub(crate) struct Connecting {
    task: ConnectTask,
    /// Of the connections, in turn.
    openings: Vec<Rc<Opening>>,
    started_count: usize,
    in_flight_count: usize,
    /// Handshakes of the current batch that may still start.
    batch_left_count: usize,
    /// In the order of their start.
    pending: VecDeque<(Slot, u64)>,
    done: Connected,
    began_us: u64,
}

impl Connecting {
    pub(super) fn new(task: ConnectTask, connections: &mut Connections) -> Self {
        connections.intake.prefixes.ready = task.ready_prefix.clone().unwrap_or_default();
        let reply =
            |(to, text): &(String, String)| Reply { to: to.as_bytes().into(), frame: Rc::from(text_frame(text)) };
        connections.intake.replies = task.replies.iter().map(reply).collect();
        let opening = |request: &Arc<[u8]>| {
            Rc::new(Opening {
                request: request.as_ref().into(),
                subprotocol: task.subprotocol.as_deref().map(Box::from),
                tls: task.tls.clone(),
                awaits_message: task.ready_prefix.is_some(),
                receive_buffer_bytes: task.receive_buffer_bytes,
            })
        };
        let openings = task.requests.iter().map(opening).collect();
        Self {
            task,
            openings,
            started_count: 0,
            in_flight_count: 0,
            batch_left_count: 0,
            pending: VecDeque::new(),
            done: Connected::default(),
            began_us: now_us(),
        }
    }

    pub(super) fn on(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Secured(negotiated) => self.done.secured.add(*negotiated),
            EventKind::Opened { after_us } => {
                self.in_flight_count -= 1;
                self.done.ok_count += 1;
                self.done.latencies.get_or_insert_with(Latencies::new).record(*after_us);
            }
            EventKind::Failed(reason) => {
                self.in_flight_count -= 1;
                self.failed(reason.clone());
            }
            _ => {}
        }
    }

    pub(super) fn step(&mut self, now_us: u64, connections: &mut Connections) -> Step {
        let next_timeout_us = self.expire(now_us, connections);
        for _ in 0..self.may_start_count(now_us).min(MAX_STARTS_PER_TURN) {
            self.start_connection(connections);
        }
        let has_more = self.may_start_count(now_us) > 0;
        if self.in_flight_count == 0 && self.started_count == self.task.places.len() {
            return Step::Done(Report::Connected(Box::new(std::mem::take(&mut self.done))));
        }
        if has_more {
            return Step::Wait(Some(0));
        }
        let next_start_us = self.next_start_us();
        let is_paced = self.started_count < self.task.places.len() && next_start_us > now_us;
        let timeout_us = next_timeout_us.unwrap_or(now_us + self.task.timeout_us);
        Step::Wait(Some(if is_paced { timeout_us.min(next_start_us) } else { timeout_us }))
    }

    fn failed(&mut self, reason: String) {
        *self.done.errors.entry(reason).or_default() += 1;
    }

    /// When the connection after those that have started may start, by the rate.
    fn next_start_us(&self) -> u64 {
        let waited_us = self.task.per_second.map_or(0.0, |per_second| self.started_count as f64 * 1e6 / per_second);
        self.began_us + waited_us as u64
    }

    fn may_start_count(&mut self, now_us: u64) -> usize {
        if now_us < self.next_start_us() {
            return 0;
        }
        if self.task.waits_for_batch && self.in_flight_count == 0 {
            self.batch_left_count = self.task.max_in_flight;
        }
        let room = if self.task.waits_for_batch {
            self.batch_left_count
        } else {
            self.task.max_in_flight.saturating_sub(self.in_flight_count)
        };
        let room = room.min(self.task.places.len() - self.started_count);
        // With a rate, one at a time.
        if self.task.per_second.is_some() { room.min(1) } else { room }
    }

    /// Abandons handshakes that took too long and returns the next deadline.
    fn expire(&mut self, now_us: u64, connections: &mut Connections) -> Option<u64> {
        loop {
            let (slot, began_us) = *self.pending.front()?;
            let expires_us = began_us + self.task.timeout_us;
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
        let place = self.task.places[self.started_count];
        let number = self.task.first_number + self.started_count as u64;
        let source = self.task.sources.of(number);
        let opening = &self.openings[(number % self.openings.len() as u64) as usize];
        self.started_count += 1;
        self.batch_left_count = self.batch_left_count.saturating_sub(1);
        let address = SocketAddr::new(self.task.ip, place.port);
        let route = Route { address, source, group: place.group, player: NO_PLAYER };
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
