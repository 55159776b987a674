//! `ping`: all connections at once, or at an interval; one ping after the other on each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use webmq_websocket::{Opcode, encode_masked_frame};

use super::{Job, Step};
use crate::clock::now_us;
use crate::latencies::Latencies;
use crate::loadgen::batch::{MASK, text_frame};
use crate::loadgen::connection::{Awaited, Slot};
use crate::loadgen::connections::{Connections, Event, EventKind};
use crate::loadgen::figures::{Figure, Figures};
use crate::loadgen::protocol::{Ping, PingKind};
use crate::loadgen::report::Report;

pub(crate) struct Pinging {
    frame: Vec<u8>,
    awaited: Awaited,
    /// Pings without an answer that have not timed out.
    left_count: u64,
    missing_count: u64,
    latencies: Latencies,
    deadline_us: u64,
    interval_us: u64,
    /// With an interval: when the next ping of a connection is due.
    due: BinaryHeap<Reverse<(u64, Slot)>>,
}

impl Pinging {
    pub(crate) fn begin(command: &Ping, max_connections: usize, connections: &mut Connections) -> Self {
        let slots = connections.open_slots(max_connections);
        let mut frame = Vec::new();
        let awaited = match command.kind {
            PingKind::App => {
                frame = text_frame(command.text.as_deref().unwrap_or("ping"));
                connections.intake.prefixes.pong = command.r#await.as_deref().unwrap_or("pong").as_bytes().into();
                Awaited::APP_PONG
            }
            PingKind::Ws => {
                encode_masked_frame(Opcode::Ping, b"webmq", MASK, &mut frame);
                Awaited::PONG
            }
        };
        let interval_us = command.interval_ms * 1_000;
        let mut job = Self {
            frame,
            awaited,
            left_count: slots.len() as u64 * u64::from(command.per_connection),
            missing_count: 0,
            latencies: Latencies::default(),
            deadline_us: now_us() + command.timeout_ms * 1_000,
            interval_us,
            due: BinaryHeap::new(),
        };
        if command.per_connection == 0 {
            return job;
        }
        let (began_us, slot_count) = (now_us(), slots.len() as u64);
        for (index, slot) in slots.into_iter().enumerate() {
            let connection = connections.get_mut(slot);
            connection.awaited.insert(awaited);
            connection.ping_count = command.per_connection - 1;
            connection.began_us = now_us();
            if interval_us == 0 {
                connections.write(slot, &job.frame);
            } else {
                // Spread over the interval.
                job.due.push(Reverse((began_us + interval_us * index as u64 / slot_count, slot)));
            }
        }
        job
    }

    fn on_ponged(&mut self, slot: Slot, now_us: u64, connections: &mut Connections) {
        let connection = connections.get_mut(slot);
        if !connection.awaited.has(self.awaited) {
            return;
        }
        self.left_count -= 1;
        self.latencies.record(now_us.saturating_sub(connection.began_us));
        if connection.ping_count == 0 {
            connection.awaited.remove(self.awaited);
            return;
        }
        connection.ping_count -= 1;
        if self.interval_us > 0 {
            self.due.push(Reverse(((connection.began_us + self.interval_us).max(now_us), slot)));
            return;
        }
        connection.began_us = now_us;
        connections.write(slot, &self.frame);
    }

    /// Sends the pings that are due and returns when the next is.
    fn send_due(&mut self, now_us: u64, connections: &mut Connections) -> Option<u64> {
        loop {
            let Reverse((due_us, slot)) = *self.due.peek()?;
            if due_us > now_us {
                return Some(due_us);
            }
            self.due.pop();
            let connection = connections.get_mut(slot);
            if connection.awaited.has(self.awaited) {
                connection.began_us = now_us;
                connections.write(slot, &self.frame);
            }
        }
    }
}

impl Job for Pinging {
    fn on(&mut self, event: &Event, connections: &mut Connections) {
        match event.kind {
            EventKind::Ponged { at_us } => self.on_ponged(event.slot, at_us, connections),
            EventKind::Lost { .. } if connections.get(event.slot).awaited.has(self.awaited) => {
                let lost_count = u64::from(connections.get(event.slot).ping_count) + 1;
                self.left_count -= lost_count;
                self.missing_count += lost_count;
            }
            _ => {}
        }
    }

    fn step(&mut self, now_us: u64, connections: &mut Connections) -> Step {
        if self.left_count > 0 && now_us < self.deadline_us {
            let next_us = self.send_due(now_us, connections);
            return Step::Wait(Some(next_us.map_or(self.deadline_us, |due_us| due_us.min(self.deadline_us))));
        }
        connections.iter_mut().for_each(|connection| connection.awaited.remove(self.awaited));
        let latencies = std::mem::take(&mut self.latencies);
        let figures = Figures::from([
            ("count", Figure::Sum(latencies.count())),
            ("missing", Figure::Sum(self.missing_count + self.left_count)),
            ("latencyUs", Figure::Latencies(latencies)),
        ]);
        Step::Done(Report::Figures("pinged", figures))
    }
}
