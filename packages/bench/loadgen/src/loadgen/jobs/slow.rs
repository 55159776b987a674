//! `slow`: some connections read slowly, or not at all.

use super::step::Step;
use crate::clock::now_us;
use crate::loadgen::connection::{Phase, Reading, Slot};
use crate::loadgen::connections::Connections;
use crate::loadgen::order::{Report, SlowTask};

/// How often throttled connections read.
const READ_INTERVAL_US: u64 = 20_000;

pub(crate) struct Throttle {
    bytes_per_read: usize,
    next_us: u64,
}

/// The answer, and the job that reads slowly, if any connection does.
pub(super) fn begin(task: SlowTask, connections: &mut Connections) -> (Option<Throttle>, Report) {
    let slow = if task.bytes_per_second.is_some() { Reading::Throttled } else { Reading::Stopped };
    let slots = connections.open_slots(usize::MAX);
    let mut slow_count = 0;
    for (index, slot) in slots.iter().enumerate() {
        let is_slow = rounded(index + 1, task.share) > rounded(index, task.share);
        slow_count += u64::from(is_slow);
        let connection = connections.get_mut(*slot);
        let was_slow = connection.is_slow();
        connection.reading = if is_slow { slow } else { Reading::Freely };
        if was_slow && !is_slow {
            // Data that came meanwhile was announced and not read.
            connections.read(*slot, false);
        }
    }
    let throttle = task.bytes_per_second.filter(|_| slow_count > 0).map(|bytes_per_second| Throttle {
        bytes_per_read: (bytes_per_second * READ_INTERVAL_US / 1_000_000).max(1) as usize,
        next_us: now_us(),
    });
    (throttle, Report::Slowed { slow_count, reading_count: slots.len() as u64 - slow_count })
}

impl Throttle {
    pub(super) fn step(&mut self, now_us: u64, connections: &mut Connections) -> Step {
        if now_us >= self.next_us {
            self.next_us = now_us + READ_INTERVAL_US;
            for index in 0..connections.iter().count() {
                let slot = Slot(index as u32);
                let connection = connections.get(slot);
                if connection.phase == Phase::Open && connection.reading == Reading::Throttled {
                    connections.read_once(slot, self.bytes_per_read);
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
