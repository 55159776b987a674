use std::time::Duration;

use webmq_websocket::{Opcode, encode_frame};

use super::Shard;
use crate::bridge::batch::Frame;
use crate::id::Slot;
use crate::options::Options;
use crate::shard::connection::Phase;

/// Deadlines are looked at this many times within the shortest timeout, so that none is late by more than a tenth.
const TICKS_PER_TIMEOUT: u32 = 10;
const MIN_TICK_MS: u64 = 5;
const MAX_TICK_MS: u64 = 500;

/// When the deadlines of a shard are looked at next.
pub(super) struct Ticker {
    interval_ms: u64,
    next_ms: u64,
    due: Vec<Slot>,
}

impl Ticker {
    pub(super) fn new(options: &Options) -> Self {
        let timeouts = [options.handshake_timeout, options.ping_interval, options.ping_timeout, options.close_timeout];
        let shortest = timeouts.into_iter().filter(|timeout| !timeout.is_zero()).min().unwrap_or(Duration::MAX);
        let interval_ms = u64::try_from((shortest / TICKS_PER_TIMEOUT).as_millis()).unwrap_or(u64::MAX);
        Self { interval_ms: interval_ms.clamp(MIN_TICK_MS, MAX_TICK_MS), next_ms: 0, due: Vec::new() }
    }

    pub(super) fn next_ms(&self) -> u64 {
        self.next_ms
    }
}

impl Shard {
    /// Does what is due by the clock.
    pub(crate) fn tick(&mut self) {
        self.resume_accepting();
        if self.now_ms < self.ticker.next_ms {
            return;
        }
        self.ticker.next_ms = self.now_ms + self.ticker.interval_ms;
        let mut due = std::mem::take(&mut self.ticker.due);
        self.table.due(self.now_ms, &mut due);
        due.drain(..).for_each(|slot| self.deadline_came(slot));
        self.ticker.due = due;
    }

    /// The peer of an open connection has given a sign of life.
    pub(super) fn note_alive(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        connection.awaits_pong = false;
        let interval = self.shared.options.ping_interval;
        let deadline_ms = (!interval.is_zero()).then(|| self.now_ms + interval.as_millis() as u64);
        self.table.set_deadline(slot, deadline_ms);
    }

    /// The peer has taken bytes that it had refused. A ping may wait behind a megabyte of output, so it is given more time.
    pub(super) fn note_progress(&mut self, slot: Slot) {
        if self.table.get(slot).is_some_and(|connection| connection.phase == Phase::Open && connection.awaits_pong) {
            let deadline_ms = self.now_ms + self.shared.options.ping_timeout.as_millis() as u64;
            self.table.set_deadline(slot, Some(deadline_ms));
        }
    }

    fn deadline_came(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        match connection.phase {
            Phase::Head | Phase::Deciding => {
                self.refuse(slot, 408, "E_HANDSHAKE_TIMEOUT", "handshake took too long");
            }
            // Something has come and waits to be read, because JavaScript is behind.
            Phase::Open if connection.is_readable => self.note_alive(slot),
            Phase::Open if connection.awaits_pong => self.end_silent(slot),
            Phase::Open => {
                connection.awaits_pong = true;
                let deadline_ms = self.now_ms + self.shared.options.ping_timeout.as_millis() as u64;
                self.table.set_deadline(slot, Some(deadline_ms));
                let mut ping = Vec::new();
                encode_frame(Opcode::Ping, &[], &mut ping);
                self.fanout.send(slot, &Frame::copied(&ping));
            }
            Phase::Closing | Phase::Lingering => self.drop_connection(slot),
        }
    }
}
