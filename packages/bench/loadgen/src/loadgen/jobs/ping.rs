//! `ping`: all connections at once, one ping after the other on each.

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
        });
        if task.per_connection == 0 {
            return;
        }
        for slot in slots {
            let connection = self.connection(slot);
            connection.awaited.insert(awaited);
            connection.ping_count = task.per_connection - 1;
            connection.began_us = now_us();
            self.write(slot, &frame);
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
            return Some(job.deadline_us);
        }
        let job = self.jobs.ping.take()?;
        for connection in &mut self.connections {
            connection.awaited.remove(job.awaited);
        }
        let missing_count = job.missing_count + job.left_count;
        self.answer(job.number, Report::Pinged { latencies: Box::new(job.latencies), missing_count });
        None
    }
}
