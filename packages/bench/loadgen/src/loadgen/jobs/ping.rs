//! `ping`: all connections at once, or at an interval; one ping after the other on each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use webmq_websocket::{Opcode, encode_masked_frame};

use crate::clock::now_us;
use crate::latencies::Latencies;
use crate::loadgen::batch::{MASK, text_frame};
use crate::loadgen::connection::{Awaited, Slot};
use crate::loadgen::order::{OrderNumber, PingTask, Report};
use crate::loadgen::worker::Worker;

pub(crate) struct Pinging {
    number: OrderNumber,
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

impl Worker {
    pub(super) fn begin_ping(&mut self, number: OrderNumber, task: &PingTask) {
        let slots = self.open_slots(task.max_connections);
        let mut frame = Vec::new();
        let awaited = match &task.application {
            Some((text, prefix)) => {
                frame = text_frame(text);
                self.intake.prefixes.pong = prefix.clone();
                Awaited::APP_PONG
            }
            None => {
                encode_masked_frame(Opcode::Ping, b"webmq", MASK, &mut frame);
                Awaited::PONG
            }
        };
        self.jobs.ping = Some(Pinging {
            number,
            frame: frame.clone(),
            awaited,
            left_count: slots.len() as u64 * u64::from(task.per_connection),
            missing_count: 0,
            latencies: Latencies::new(),
            deadline_us: now_us() + task.timeout_us,
            interval_us: task.interval_us,
            due: BinaryHeap::new(),
        });
        if task.per_connection == 0 {
            return;
        }
        let (began_us, slot_count) = (now_us(), slots.len() as u64);
        for (index, slot) in slots.into_iter().enumerate() {
            let connection = self.connection(slot);
            connection.awaited.insert(awaited);
            connection.ping_count = task.per_connection - 1;
            connection.began_us = now_us();
            if task.interval_us == 0 {
                self.write(slot, &frame);
            } else if let Some(job) = self.jobs.ping.as_mut() {
                // Spread over the interval.
                job.due.push(Reverse((began_us + task.interval_us * index as u64 / slot_count, slot)));
            }
        }
    }

    pub(crate) fn on_ponged(&mut self, slot: Slot, now_us: u64) {
        let Some(job) = self.jobs.ping.as_mut() else { return };
        let connection = &mut self.connections[slot.index()];
        if !connection.awaited.has(job.awaited) {
            return;
        }
        job.left_count -= 1;
        job.latencies.record(now_us.saturating_sub(connection.began_us));
        if connection.ping_count == 0 {
            connection.awaited.remove(job.awaited);
            return;
        }
        connection.ping_count -= 1;
        if job.interval_us > 0 {
            job.due.push(Reverse(((connection.began_us + job.interval_us).max(now_us), slot)));
            return;
        }
        connection.began_us = now_us;
        let frame = std::mem::take(&mut job.frame);
        self.write(slot, &frame);
        if let Some(job) = self.jobs.ping.as_mut() {
            job.frame = frame;
        }
    }

    pub(super) fn pings_lost(&mut self, slot: Slot) {
        let lost_count = u64::from(self.connection(slot).ping_count) + 1;
        if let Some(job) = self.jobs.ping.as_mut() {
            job.left_count -= lost_count;
            job.missing_count += lost_count;
        }
    }

    pub(super) fn tick_ping(&mut self, now_us: u64) -> Option<u64> {
        let job = self.jobs.ping.as_ref()?;
        if job.left_count > 0 && now_us < job.deadline_us {
            let deadline_us = job.deadline_us;
            return Some(self.ping_due(now_us).map_or(deadline_us, |due_us| due_us.min(deadline_us)));
        }
        let job = self.jobs.ping.take()?;
        for connection in &mut self.connections {
            connection.awaited.remove(job.awaited);
        }
        let missing_count = job.missing_count + job.left_count;
        self.answer(job.number, Report::Pinged { latencies: Box::new(job.latencies), missing_count });
        None
    }

    /// Sends the pings that are due and returns when the next is.
    fn ping_due(&mut self, now_us: u64) -> Option<u64> {
        loop {
            let job = self.jobs.ping.as_mut()?;
            let Reverse((due_us, slot)) = *job.due.peek()?;
            if due_us > now_us {
                return Some(due_us);
            }
            job.due.pop();
            let frame = job.frame.clone();
            let awaited = job.awaited;
            let connection = self.connection(slot);
            if connection.awaited.has(awaited) {
                connection.began_us = now_us;
                self.write(slot, &frame);
            }
        }
    }
}
