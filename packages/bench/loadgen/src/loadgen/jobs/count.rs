//! `count` and `count-stop`: start and end a window.

use std::sync::Arc;

use super::{Job, Step};
use crate::clock::{now_us, thread_cpu_us};
use crate::loadgen::connection::Connection;
use crate::loadgen::connections::Connections;
use crate::loadgen::figures::{Figure, Figures};
use crate::loadgen::order::Change;
use crate::loadgen::protocol::{Count, CountStop};
use crate::loadgen::report::{Counted, Report};
use crate::loadgen::window::Counts;

/// How often a stopping window checks whether it may end.
const LOOK_INTERVAL_US: u64 = 2_000;

pub(crate) struct Counting {
    /// Ends with `count-stop`, and that it has begun has not been answered.
    must_say_that_it_counts: bool,
    ends_us: Option<u64>,
    stop: Option<Stop>,
    cpu_began_us: u64,
}

struct Stop {
    command: Arc<CountStop>,
    began_us: u64,
}

impl Counting {
    pub(crate) fn begin(command: &Count, connections: &mut Connections) -> Self {
        let now_us = now_us();
        connections.intake.begin_window(*command, now_us);
        let ends_us = command.duration_ms.map(|duration_ms| now_us + duration_ms * 1_000);
        Self { must_say_that_it_counts: ends_us.is_none(), ends_us, stop: None, cpu_began_us: thread_cpu_us() }
    }

    fn end(&self, now_us: u64, connections: &mut Connections) -> Step {
        let stop = self.stop.as_ref().filter(|stop| stop.command.has_last());
        let missing_count = stop.map_or(0, |stop| missing_count(&stop.command, connections));
        let Some(mut window) = connections.intake.end_window() else { return Step::Done(Report::Nothing) };
        let is_of_window = |connection: &&Connection| connection.window == window.number;
        let all = connections.iter().map(|(_, connection)| connection);
        let had = all.filter(is_of_window).filter_map(|connection| connection.sequence.last());
        let is_silent = |connection: &&Connection| !(connection.has_counted && connection.window == window.number);
        let reading_count = reading(connections).count() as u64;
        let duration_us = now_us.saturating_sub(window.began_us).max(1);
        let slow_count = connections.open().count() as u64 - reading_count;
        let thread_share = thread_cpu_us().saturating_sub(self.cpu_began_us) as f64 / duration_us as f64;
        let mut slow = of_order(window.slow_counts);
        slow.insert("connections", Figure::Sum(slow_count));
        let mut figures = of_order(window.counts);
        figures.merge(Figures::from([
            ("otherFrames", Figure::Sum(window.other_count)),
            ("compressedFrames", Figure::Sum(window.compressed_count)),
            ("payloadBytes", Figure::Sum(window.payload_bytes)),
            ("wireBytes", Figure::Sum(window.wire_bytes)),
            ("reads", Figure::Sum(window.read_count)),
            ("missingCount", Figure::Sum(missing_count)),
            ("connections", Figure::Sum(reading_count)),
            ("connectionsSilent", Figure::Sum(reading(connections).filter(is_silent).count() as u64)),
            ("firstSeq", Figure::Least(window.first_sequence)),
            ("lastSeq", Figure::Most(window.first_sequence.and(had.max()))),
            ("latencyUs", Figure::Latencies(std::mem::take(&mut window.latencies))),
            ("firstFrameAtUs", Figure::Least(window.first_frame_us)),
            ("lastFrameAtUs", Figure::Most(window.last_frame_us)),
            ("busiestThreadShare", Figure::Share(thread_share)),
            ("slow", Figure::Group(slow)),
        ]));
        Step::Done(Report::Counted(Box::new(Counted { figures, window, ended_us: now_us, reading_count })))
    }
}

impl Job for Counting {
    fn step(&mut self, now_us: u64, connections: &mut Connections) -> Step {
        if std::mem::take(&mut self.must_say_that_it_counts) {
            return Step::Answer(Report::Figures("counting", Figures::default()));
        }
        let Some(stop) = &self.stop else {
            return match self.ends_us {
                Some(ends_us) if now_us >= ends_us => self.end(now_us, connections),
                ends_us => Step::Wait(ends_us),
            };
        };
        let last_us = connections.intake.window.as_ref().and_then(|window| window.last_frame_us);
        let quiet_since_us = last_us.unwrap_or(0).max(stop.began_us);
        let (command, quiet_us) = (&stop.command, stop.command.quiet_ms * 1_000);
        // Without a quiet time the sequence may still be on its way.
        let may_be_quiet = !command.has_last() || quiet_us > 0;
        let is_quiet = may_be_quiet && now_us - quiet_since_us.min(now_us) >= quiet_us;
        let is_over = is_quiet || now_us - stop.began_us.min(now_us) >= command.timeout_ms * 1_000;
        if is_over || (command.has_last() && missing_count(command, connections) == 0) {
            return self.end(now_us, connections);
        }
        Step::Wait(Some(now_us + LOOK_INTERVAL_US))
    }

    fn change(&mut self, change: Change) {
        if let Change::StopCount(command) = change {
            self.stop = Some(Stop { command, began_us: now_us() });
        }
    }
}

fn of_order(counts: Counts) -> Figures {
    Figures::from([
        ("frames", Figure::Sum(counts.frame_count)),
        ("gapCount", Figure::Sum(counts.gap_count)),
        ("duplicateCount", Figure::Sum(counts.duplicate_count)),
        ("reorderedCount", Figure::Sum(counts.reordered_count)),
    ])
}

/// Messages at the end of the sequence that freely reading connections have not received.
fn missing_count(command: &CountStop, connections: &Connections) -> u64 {
    let Some(window) = connections.intake.window.as_ref() else { return 0 };
    let missing = |connection: &Connection| {
        let last = command.last_of(connection.group.index());
        let first = window.plan.first_seq.or(window.first_sequence).unwrap_or(last);
        match connection.sequence.last() {
            Some(had) if connection.window == window.number => last.saturating_sub(had),
            _ => (last + 1).saturating_sub(first),
        }
    };
    reading(connections).map(missing).sum()
}

fn reading(connections: &Connections) -> impl Iterator<Item = &Connection> {
    connections.open().filter(|connection| !connection.is_slow())
}
