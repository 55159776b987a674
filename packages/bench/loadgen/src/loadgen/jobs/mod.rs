//! Commands under way, one file each.

mod close;
mod connect;
mod count;
mod flood;
mod pace;
mod ping;
mod send;
mod slow;

use super::connection::{Awaited, NO_SENDER, Phase, Slot};
use super::order::{Order, Report, Stats, Task};
use super::worker::Worker;

/// At most one of each kind, which the main thread ensures.
#[derive(Default)]
pub(crate) struct Jobs {
    connect: Option<connect::Connecting>,
    send: Option<send::Sending>,
    count: Option<count::Counting>,
    flood: Option<flood::Flooding>,
    ping: Option<ping::Pinging>,
    throttle: Option<slow::Throttle>,
    close: Option<close::Closing>,
    /// Windows so far; a connection stores the number of its window.
    window_count: u32,
    /// Frames and bytes of the last window, for `stats`.
    last_totals: (u64, u64),
}

impl Worker {
    pub(crate) fn begin(&mut self, order: Order) {
        let number = order.number;
        match order.task {
            Task::Connect(task) => self.begin_connect(number, task),
            Task::Send(task) => self.begin_send(number, &task),
            Task::Count(task) => self.begin_count(number, task),
            Task::StopCount(task) => self.begin_stop_count(number, task),
            Task::Flood(task) => self.begin_flood(number, task),
            Task::Ping(task) => self.begin_ping(number, &task),
            Task::Slow(task) => self.begin_slow(number, task),
            Task::Stats => self.answer(number, Report::Stats(self.stats())),
            Task::Close(task) => self.begin_close(number, task),
        }
    }

    /// Does what is due and returns when the next job is.
    pub(crate) fn tick(&mut self, now_us: u64) -> Option<u64> {
        let deadlines = [
            self.tick_connect(now_us),
            self.tick_send(now_us),
            self.tick_flood(now_us),
            self.tick_ping(now_us),
            self.tick_slow(now_us),
            self.tick_close(now_us),
            // Last, because the others' reads in their ticks belong to the window.
            self.tick_count(now_us),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Tells the jobs that wait for a connection that it has ended.
    pub(crate) fn lost_by_jobs(&mut self, slot: Slot, code: u16) {
        let awaited = self.connection(slot).awaited;
        if awaited.has(Awaited::ANSWER) {
            self.answer_lost();
        }
        if awaited.has(Awaited::APP_PONG) || awaited.has(Awaited::PONG) {
            self.pings_lost(slot);
        }
        if awaited.has(Awaited::CLOSE) {
            self.on_closed(code);
        }
        self.connection(slot).sender = NO_SENDER;
    }

    fn stats(&self) -> Stats {
        let open = || self.connections.iter().filter(|connection| connection.phase == Phase::Open);
        let window = self.intake.window.as_ref();
        let totals =
            window.map(|window| (window.counts.frame_count + window.slow_counts.frame_count, window.wire_bytes));
        let (frame_count, wire_bytes) = totals.unwrap_or(self.jobs.last_totals);
        let is_connecting =
            |phase: Phase| matches!(phase, Phase::Connecting | Phase::Securing | Phase::Upgrading | Phase::Preparing);
        Stats {
            open_count: open().count() as u64,
            connecting_count: self.connections.iter().filter(|connection| is_connecting(connection.phase)).count()
                as u64,
            compressed_count: open().filter(|connection| connection.is_compressed).count() as u64,
            slow_count: open().filter(|connection| connection.is_slow()).count() as u64,
            frame_count,
            wire_bytes,
            closed: self.closed.clone(),
        }
    }
}
