//! `flood-in`: as much as the sockets take, or a rate (`pace.rs`).

use std::collections::VecDeque;
use std::sync::Arc;

use crate::clock::now_us;
use crate::loadgen::batch::Batch;
use crate::loadgen::connection::{NO_SENDER, Slot};
use crate::loadgen::order::{FloodTask, Flooded, OrderNumber, Report};
use crate::loadgen::stream::Stream;
use crate::loadgen::worker::Worker;

/// Time limit for unfinished frames at the end.
const FINISH_TIMEOUT_US: u64 = 5_000_000;
const LOOK_INTERVAL_US: u64 = 1_000;

pub(crate) struct Flooding {
    number: OrderNumber,
    pub(super) batch: Arc<Batch>,
    pub(super) per_second: Option<f64>,
    pub(super) began_us: u64,
    pub(super) ends_us: u64,
    pub(super) senders: Vec<Sender>,
    /// Senders whose socket takes output.
    ready: VecDeque<u32>,
    pub(super) done: Flooded,
    /// Messages paced so far.
    pub(super) paced_count: u64,
    pub(super) scratch: Vec<u8>,
    /// When the writing ended.
    ended_us: Option<u64>,
}

pub(crate) struct Sender {
    pub(super) slot: Slot,
    /// Where in the batch it continues: always at a frame.
    at: usize,
    is_ready: bool,
}

impl Flooding {
    /// Messages on the schedule.
    pub(super) fn paced_total(&self) -> u64 {
        let duration_us = self.ends_us - self.began_us;
        (duration_us as f64 * self.per_second.unwrap_or(0.0) / 1e6).ceil() as u64
    }

    fn is_over(&self, now_us: u64) -> bool {
        match self.per_second {
            None => now_us >= self.ends_us,
            // Messages that were due are still written, though late.
            Some(_) if self.senders.is_empty() => true,
            Some(_) => self.paced_count >= self.paced_total() || now_us >= self.ends_us + FINISH_TIMEOUT_US,
        }
    }
}

impl Worker {
    pub(super) fn begin_flood(&mut self, number: OrderNumber, task: FloodTask) {
        let slots = self.open_slots(task.max_connections);
        for (index, slot) in slots.iter().enumerate() {
            self.connection(*slot).sender = index as u32;
        }
        let is_flood = task.per_second.is_none();
        let sender_count = slots.len() as u32;
        let began_us = now_us();
        self.jobs.flood = Some(Flooding {
            number,
            batch: task.batch,
            per_second: task.per_second,
            began_us,
            ends_us: began_us + task.duration_us,
            senders: slots.into_iter().map(|slot| Sender { slot, at: 0, is_ready: is_flood }).collect(),
            ready: if is_flood { (0..sender_count).collect() } else { VecDeque::new() },
            done: Flooded::default(),
            paced_count: 0,
            scratch: Vec::new(),
            ended_us: None,
        });
    }

    pub(super) fn tick_flood(&mut self, now_us: u64) -> Option<u64> {
        let job = self.jobs.flood.as_mut()?;
        if let Some(ended_us) = job.ended_us {
            return self.finish_flood(now_us, ended_us + FINISH_TIMEOUT_US);
        }
        if job.is_over(now_us) {
            job.ready.clear();
            job.ended_us = Some(now_us);
            return Some(0);
        }
        if job.per_second.is_some() {
            return self.pace(now_us);
        }
        for _ in 0..job.ready.len() {
            self.write_batch();
        }
        let job = self.jobs.flood.as_ref()?;
        Some(if job.ready.is_empty() { job.ends_us } else { 0 })
    }

    /// A sender's socket takes output again.
    pub(crate) fn resume_sender(&mut self, sender: u32) {
        let Some(job) = self.jobs.flood.as_mut().filter(|job| job.per_second.is_none() && job.ended_us.is_none())
        else {
            return;
        };
        if let Some(state) = job.senders.get_mut(sender as usize).filter(|state| !state.is_ready) {
            state.is_ready = true;
            job.ready.push_back(sender);
        }
    }

    /// One write for the sender that has waited longest. The rest of a partly written frame is kept, so that a pong can
    /// follow it.
    fn write_batch(&mut self) {
        let Some(job) = self.jobs.flood.as_mut() else { return };
        let Some(index) = job.ready.pop_front() else { return };
        let sender = &mut job.senders[index as usize];
        sender.is_ready = false;
        let connection = &mut self.connections[sender.slot.index()];
        if connection.has_backlog || connection.sender != index {
            return;
        }
        let Some(stream) = &mut connection.stream else { return };
        let bytes = job.batch.bytes();
        let Ok(count) = stream.send(&bytes[sender.at..], &mut self.scratch) else { return };
        let written_to = sender.at + count;
        let end = job.batch.frame_end(written_to);
        let frames = job.batch.frames_between(sender.at, end);
        job.done.frame_count += frames.len() as u64;
        job.done.payload_bytes += frames.iter().map(|frame| frame.payload_bytes as u64).sum::<u64>();
        job.done.wire_bytes += (end - sender.at) as u64;
        if written_to == bytes.len() {
            sender.at = 0;
            sender.is_ready = true;
            job.ready.push_back(index);
            return;
        }
        sender.at = end % bytes.len();
        let (slot, batch) = (sender.slot, job.batch.clone());
        self.keep(slot, &batch.bytes()[written_to..end]);
    }

    /// Waits for unfinished frames.
    fn finish_flood(&mut self, now_us: u64, deadline_us: u64) -> Option<u64> {
        let job = self.jobs.flood.as_ref()?;
        let is_unfinished = |(index, sender): &(usize, &Sender)| {
            let connection = &self.connections[sender.slot.index()];
            connection.sender == *index as u32
                && (connection.has_backlog || connection.stream.as_ref().is_some_and(Stream::has_pending))
        };
        let unfinished_count = job.senders.iter().enumerate().filter(is_unfinished).count() as u64;
        if unfinished_count > 0 && now_us < deadline_us {
            return Some(now_us + LOOK_INTERVAL_US);
        }
        let mut job = self.jobs.flood.take()?;
        for connection in &mut self.connections {
            connection.sender = NO_SENDER;
        }
        job.done.unfinished_count = unfinished_count;
        job.done.frame_count = job.done.frame_count.saturating_sub(unfinished_count);
        self.answer(job.number, Report::Flooded(job.done));
        None
    }
}
