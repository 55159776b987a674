//! `slow`: some connections read slowly, or not at all.

use crate::clock::now_us;
use crate::loadgen::connection::{Phase, Reading, Slot};
use crate::loadgen::order::{OrderNumber, Report, SlowTask};
use crate::loadgen::worker::Worker;

/// How often throttled connections read.
const READ_INTERVAL_US: u64 = 20_000;

pub(crate) struct Throttle {
    bytes_per_read: usize,
    next_us: u64,
}

impl Worker {
    pub(super) fn begin_slow(&mut self, number: OrderNumber, task: SlowTask) {
        let slow = if task.bytes_per_second.is_some() { Reading::Throttled } else { Reading::Stopped };
        let slots = self.open_slots(usize::MAX);
        let mut slow_count = 0;
        for (index, slot) in slots.iter().enumerate() {
            let is_slow = rounded(index + 1, task.share) > rounded(index, task.share);
            slow_count += u64::from(is_slow);
            let was_slow = self.connection(*slot).is_slow();
            self.connection(*slot).reading = if is_slow { slow } else { Reading::Freely };
            if was_slow && !is_slow {
                // Data that came meanwhile was announced and not read.
                self.read(*slot, false);
            }
        }
        self.jobs.throttle = task.bytes_per_second.filter(|_| slow_count > 0).map(|bytes_per_second| Throttle {
            bytes_per_read: (bytes_per_second * READ_INTERVAL_US / 1_000_000).max(1) as usize,
            next_us: now_us(),
        });
        self.answer(number, Report::Slowed { slow_count, reading_count: slots.len() as u64 - slow_count });
    }

    pub(super) fn tick_slow(&mut self, now_us: u64) -> Option<u64> {
        let throttle = self.jobs.throttle.as_mut()?;
        if now_us < throttle.next_us {
            return Some(throttle.next_us);
        }
        throttle.next_us = now_us + READ_INTERVAL_US;
        let (bytes, next_us) = (throttle.bytes_per_read, throttle.next_us);
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            if connection.phase == Phase::Open && connection.reading == Reading::Throttled {
                self.read_once(Slot(index as u32), bytes);
            }
        }
        Some(next_us)
    }
}

/// The number of slow connections among the first `count`.
fn rounded(count: usize, share: f64) -> u64 {
    (count as f64 * share).round() as u64
}
