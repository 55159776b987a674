//! `slow`: some connections read slowly, or not at all.

use super::{Job, Step};
use crate::clock::now_us;
use crate::loadgen::connection::{Phase, Reading, Slot};
use crate::loadgen::connections::Connections;
use crate::loadgen::figures::{Figure, Figures};
use crate::loadgen::report::Report;

/// How often throttled connections read.
const READ_INTERVAL_US: u64 = 20_000;

pub(crate) struct Throttle {
    /// Has not been given yet.
    answer: Option<Figures>,
    /// `None`: nobody reads slowly.
    bytes_per_read: Option<usize>,
    next_us: u64,
}

impl Throttle {
    /// `bytes_per_second`: of each slow connection; `None`: they do not read at all.
    pub(crate) fn begin(share: f64, bytes_per_second: Option<u64>, connections: &mut Connections) -> Self {
        let slow = if bytes_per_second.is_some() { Reading::Throttled } else { Reading::Stopped };
        let slots = connections.open_slots(usize::MAX);
        let mut slow_count = 0;
        for (index, slot) in slots.iter().enumerate() {
            let is_slow = rounded(index + 1, share) > rounded(index, share);
            slow_count += u64::from(is_slow);
            let connection = connections.get_mut(*slot);
            let was_slow = connection.is_slow();
            connection.reading = if is_slow { slow } else { Reading::Freely };
            if was_slow && !is_slow {
                // Data that came meanwhile was announced and not read.
                connections.read(*slot, false);
            }
        }
        let reading_count = Figure::Sum(slots.len() as u64 - slow_count);
        let bytes_per_read = |bytes_per_second: u64| (bytes_per_second * READ_INTERVAL_US / 1_000_000).max(1) as usize;
        Self {
            answer: Some(Figures::from([("connections", Figure::Sum(slow_count)), ("reading", reading_count)])),
            bytes_per_read: bytes_per_second.filter(|_| slow_count > 0).map(bytes_per_read),
            next_us: now_us(),
        }
    }
}

impl Job for Throttle {
    fn step(&mut self, now_us: u64, connections: &mut Connections) -> Step {
        if let Some(answer) = self.answer.take() {
            let report = Report::Figures("slowed", answer);
            return if self.bytes_per_read.is_some() { Step::Answer(report) } else { Step::Done(report) };
        }
        if now_us >= self.next_us {
            self.next_us = now_us + READ_INTERVAL_US;
            for index in 0..connections.iter().count() {
                let slot = Slot(index as u32);
                let connection = connections.get(slot);
                if connection.phase == Phase::Open && connection.reading == Reading::Throttled {
                    connections.read_once(slot, self.bytes_per_read.unwrap_or(0));
                }
            }
        }
        Step::Wait(Some(self.next_us))
    }
}

/// The number of slow connections among the first `count`.
fn rounded(count: usize, share: f64) -> u64 {
    (count as f64 * share).round() as u64
}
