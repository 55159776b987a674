//! `count` and `count-stop`: start and end a window.

use crate::clock::{now_us, thread_cpu_us};
use crate::loadgen::connection::{Connection, Phase};
use crate::loadgen::order::{CountTask, Counted, LastSequences, OrderNumber, Report, StopTask};
use crate::loadgen::window::Window;
use crate::loadgen::worker::Worker;

/// How often a stopping window checks whether it may end.
const LOOK_INTERVAL_US: u64 = 2_000;

pub(crate) struct Counting {
    number: OrderNumber,
    ends_us: Option<u64>,
    stop: Option<Stop>,
    cpu_began_us: u64,
}

#[derive(Clone)]
struct Stop {
    number: OrderNumber,
    task: StopTask,
    began_us: u64,
}

impl Worker {
    pub(super) fn begin_count(&mut self, number: OrderNumber, task: CountTask) {
        let now_us = now_us();
        self.jobs.window_count += 1;
        self.intake.window = Some(Window::new(task.plan, self.jobs.window_count, now_us));
        let ends_us = task.duration_us.map(|duration_us| now_us + duration_us);
        self.jobs.count = Some(Counting { number, ends_us, stop: None, cpu_began_us: thread_cpu_us() });
        if ends_us.is_none() {
            self.answer(number, Report::Counting);
        }
    }

    pub(super) fn begin_stop_count(&mut self, number: OrderNumber, task: StopTask) {
        match self.jobs.count.as_mut() {
            Some(job) => job.stop = Some(Stop { number, task, began_us: now_us() }),
            None => self.answer(number, Report::Counting),
        }
    }

    pub(super) fn tick_count(&mut self, now_us: u64) -> Option<u64> {
        let job = self.jobs.count.as_ref()?;
        let Some(stop) = &job.stop else {
            if job.ends_us.is_some_and(|ends_us| now_us >= ends_us) {
                self.end_count(now_us, None);
                return None;
            }
            return job.ends_us;
        };
        let last_us = self.intake.window.as_ref().and_then(|window| window.last_frame_us);
        let quiet_since_us = last_us.unwrap_or(0).max(stop.began_us);
        let is_quiet = match stop.task.last {
            // Not quiet yet: the sequence may be on its way.
            Some(_) if stop.task.quiet_us == 0 => false,
            _ => now_us - quiet_since_us.min(now_us) >= stop.task.quiet_us,
        };
        let is_over = is_quiet || now_us - stop.began_us.min(now_us) >= stop.task.timeout_us;
        if is_over || stop.task.last.as_ref().is_some_and(|last| self.missing_count(last) == 0) {
            let stop = stop.clone();
            self.end_count(now_us, Some(stop));
            return None;
        }
        Some(now_us + LOOK_INTERVAL_US)
    }

    /// Messages at the end of the sequence that freely reading connections have not received.
    fn missing_count(&self, last: &LastSequences) -> u64 {
        let Some(window) = self.intake.window.as_ref() else { return 0 };
        let missing = |connection: &Connection| {
            let last = last.of(connection.group);
            let first = window.plan.first_sequence.or(window.first_sequence).unwrap_or(last);
            match connection.sequence.last() {
                Some(had) if connection.window == window.number => last.saturating_sub(had),
                _ => (last + 1).saturating_sub(first),
            }
        };
        self.reading().map(missing).sum()
    }

    fn reading(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter().filter(|connection| connection.phase == Phase::Open && !connection.is_slow())
    }

    fn end_count(&mut self, now_us: u64, stop: Option<Stop>) {
        let last = stop.as_ref().and_then(|stop| stop.task.last.as_ref());
        let missing_count = last.map_or(0, |last| self.missing_count(last));
        let (Some(job), Some(window)) = (self.jobs.count.take(), self.intake.window.take()) else { return };
        self.jobs.last_totals = (window.counts.frame_count + window.slow_counts.frame_count, window.wire_bytes);
        let is_of_window = |connection: &&Connection| connection.window == window.number;
        let had = self.connections.iter().filter(is_of_window).filter_map(|connection| connection.sequence.last());
        let last_sequence = window.first_sequence.and(had.max());
        let is_silent = |connection: &&Connection| !(connection.has_counted && connection.window == window.number);
        let open_count = self.connections.iter().filter(|connection| connection.phase == Phase::Open).count() as u64;
        let reading_count = self.reading().count() as u64;
        let duration_us = now_us.saturating_sub(window.began_us).max(1);
        let counted = Counted {
            reading_count,
            slow_count: open_count - reading_count,
            silent_count: self.reading().filter(is_silent).count() as u64,
            missing_count,
            last_sequence,
            is_complete: missing_count == 0,
            thread_share: thread_cpu_us().saturating_sub(job.cpu_began_us) as f64 / duration_us as f64,
            window,
            ended_us: now_us,
        };
        let number = stop.map_or(job.number, |stop| stop.number);
        self.answer(number, Report::Counted(Box::new(counted)));
    }
}
