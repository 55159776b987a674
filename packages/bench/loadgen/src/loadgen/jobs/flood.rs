//! `flood-in`: as much as the sockets take, or a rate (`pace.rs`).

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Job, Step};
use crate::clock::now_us;
use crate::latencies::Latencies;
use crate::loadgen::batch::Batch;
use crate::loadgen::connection::{NO_SENDER, Slot};
use crate::loadgen::connections::{Connections, Event, EventKind};
use crate::loadgen::figures::{Figure, Figures};
use crate::loadgen::report::Report;

/// Time limit for unfinished frames at the end.
const FINISH_TIMEOUT_US: u64 = 5_000_000;
const LOOK_INTERVAL_US: u64 = 1_000;

pub(crate) struct Flooding {
    pub(super) batch: Arc<Batch>,
    pub(super) per_second: Option<f64>,
    pub(super) began_us: u64,
    pub(super) ends_us: u64,
    pub(super) senders: Vec<Sender>,
    /// Senders whose socket takes output.
    ready: VecDeque<u32>,
    pub(super) frame_count: u64,
    pub(super) wire_bytes: u64,
    pub(super) payload_bytes: u64,
    pub(super) late: Latencies,
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

    /// `per_second`: of this thread; `None`: as fast as the sockets take them.
    pub(crate) fn begin(
        batch: Arc<Batch>,
        duration_us: u64,
        per_second: Option<f64>,
        max_connections: usize,
        connections: &mut Connections,
    ) -> Self {
        let slots = connections.open_slots(max_connections);
        for (index, slot) in slots.iter().enumerate() {
            connections.get_mut(*slot).sender = index as u32;
        }
        let is_flood = per_second.is_none();
        let sender_count = slots.len() as u32;
        let began_us = now_us();
        Self {
            batch,
            per_second,
            began_us,
            ends_us: began_us + duration_us,
            senders: slots.into_iter().map(|slot| Sender { slot, at: 0, is_ready: is_flood }).collect(),
            ready: if is_flood { (0..sender_count).collect() } else { VecDeque::new() },
            frame_count: 0,
            wire_bytes: 0,
            payload_bytes: 0,
            late: Latencies::default(),
            paced_count: 0,
            scratch: Vec::new(),
            ended_us: None,
        }
    }

    /// One write for the sender that has waited longest. The rest of a partly written frame is kept, so that a pong can
    /// follow it.
    fn write_batch(&mut self, connections: &mut Connections) {
        let Some(index) = self.ready.pop_front() else { return };
        let sender = &mut self.senders[index as usize];
        sender.is_ready = false;
        let connection = connections.get(sender.slot);
        if connection.has_backlog || connection.sender != index {
            return;
        }
        let bytes = self.batch.bytes();
        let Some(count) = connections.write_some(sender.slot, &bytes[sender.at..]) else { return };
        let written_to = sender.at + count;
        let end = self.batch.frame_end(written_to);
        let frames = self.batch.frames_between(sender.at, end);
        self.frame_count += frames.len() as u64;
        self.payload_bytes += frames.iter().map(|frame| frame.payload_bytes as u64).sum::<u64>();
        self.wire_bytes += (end - sender.at) as u64;
        if written_to == bytes.len() {
            sender.at = 0;
            sender.is_ready = true;
            self.ready.push_back(index);
            return;
        }
        sender.at = end % bytes.len();
        connections.keep(sender.slot, &bytes[written_to..end]);
    }

    /// Waits for unfinished frames.
    fn finish(&mut self, now_us: u64, deadline_us: u64, connections: &mut Connections) -> Step {
        let is_unfinished = |(index, sender): &(usize, &Sender)| {
            connections.get(sender.slot).sender == *index as u32 && connections.is_unfinished(sender.slot)
        };
        let unfinished_count = self.senders.iter().enumerate().filter(is_unfinished).count() as u64;
        if unfinished_count > 0 && now_us < deadline_us {
            return Step::Wait(Some(now_us + LOOK_INTERVAL_US));
        }
        connections.iter_mut().for_each(|connection| connection.sender = NO_SENDER);
        let figures = Figures::from([
            ("writtenFrames", Figure::Sum(self.frame_count.saturating_sub(unfinished_count))),
            ("writtenBytes", Figure::Sum(self.wire_bytes)),
            ("payloadBytes", Figure::Sum(self.payload_bytes)),
            ("unfinished", Figure::Sum(unfinished_count)),
            ("lateUs", Figure::Latencies(std::mem::take(&mut self.late))),
        ]);
        Step::Done(Report::Figures("flooded-in", figures))
    }
}

impl Job for Flooding {
    fn on(&mut self, event: &Event, connections: &mut Connections) {
        if !matches!(event.kind, EventKind::Writable) || self.per_second.is_some() || self.ended_us.is_some() {
            return;
        }
        let sender = connections.get(event.slot).sender;
        if let Some(state) = self.senders.get_mut(sender as usize).filter(|state| !state.is_ready) {
            state.is_ready = true;
            self.ready.push_back(sender);
        }
    }

    fn step(&mut self, now_us: u64, connections: &mut Connections) -> Step {
        if let Some(ended_us) = self.ended_us {
            return self.finish(now_us, ended_us + FINISH_TIMEOUT_US, connections);
        }
        if self.is_over(now_us) {
            self.ready.clear();
            self.ended_us = Some(now_us);
            return Step::Wait(Some(0));
        }
        if self.per_second.is_some() {
            return Step::Wait(Some(self.pace(now_us, connections)));
        }
        for _ in 0..self.ready.len() {
            self.write_batch(connections);
        }
        Step::Wait(Some(if self.ready.is_empty() { self.ends_us } else { 0 }))
    }
}
