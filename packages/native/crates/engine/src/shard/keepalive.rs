use std::time::Duration;

use webmq_websocket::{Opcode, encode_frame};

use super::Shard;
use super::ending::LATE_MESSAGE;
use crate::bridge::batch::Frame;
use crate::id::Slot;
use crate::options::Options;
use crate::shard::connection::Phase;

/// Deadlines are looked at this many times within the shortest timeout, so that none is late by more than a tenth.
const TICKS_PER_TIMEOUT: u32 = 10;
const MIN_TICK_MS: u64 = 5;
const MAX_TICK_MS: u64 = 500;

/// When the deadlines of a shard may be looked at next.
pub(super) struct Ticker {
    interval_ms: u64,
    next_ms: u64,
    due: Vec<Slot>,
}

impl Ticker {
    pub(super) fn new(options: &Options) -> Self {
        let Options { handshake_timeout, message_timeout, ping_interval, ping_timeout, close_timeout, .. } = *options;
        let timeouts = [handshake_timeout, message_timeout, ping_interval, ping_timeout, close_timeout];
        let shortest = timeouts.into_iter().filter(|timeout| !timeout.is_zero()).min().unwrap_or(Duration::MAX);
        let interval_ms = u64::try_from((shortest / TICKS_PER_TIMEOUT).as_millis()).unwrap_or(u64::MAX);
        Self { interval_ms: interval_ms.clamp(MIN_TICK_MS, MAX_TICK_MS), next_ms: 0, due: Vec::new() }
    }
}

impl Shard {
    /// When deadlines are due next; `None`: there are none. Those of one interval are due together.
    pub(super) fn next_tick_ms(&self) -> Option<u64> {
        self.table.earliest_ms().map(|earliest_ms| earliest_ms.max(self.ticker.next_ms))
    }

    /// Does what is due by the clock.
    pub(crate) fn tick(&mut self) {
        self.resume_accepting();
        if self.next_tick_ms().is_none_or(|next_ms| self.now_ms < next_ms) {
            return;
        }
        self.ticker.next_ms = self.now_ms + self.ticker.interval_ms;
        let mut due = std::mem::take(&mut self.ticker.due);
        self.table.due(self.now_ms, &mut due);
        due.drain(..).for_each(|slot| self.deadline_came(slot));
        self.ticker.due = due;
        self.table.look_for_earliest();
    }

    /// The peer of an open connection has given a sign of life.
    pub(super) fn note_alive(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot).filter(|connection| !connection.is_stream) else { return };
        connection.awaits_pong = false;
        let interval = self.shared.options.ping_interval;
        self.set_open_deadline(slot, (!interval.is_zero()).then(|| self.now_ms + interval.as_millis() as u64));
    }

    /// Sets the deadline of an open connection: the next one of its keepalive, or that of its message.
    fn set_open_deadline(&mut self, slot: Slot, keepalive_ms: Option<u64>) {
        let began_ms = self.table.get(slot).and_then(|connection| connection.message_began_ms);
        let message_timeout = self.shared.options.message_timeout;
        let message_ms = began_ms.and_then(|began_ms| message_ends_ms(message_timeout, began_ms));
        self.table.set_deadline(slot, keepalive_ms.into_iter().chain(message_ms).min());
    }

    /// The peer has taken bytes that it had refused. A ping may wait behind a megabyte of output, so it is given more time.
    pub(super) fn note_progress(&mut self, slot: Slot) {
        if let Some(connection) = self.table.get_mut(slot)
            && connection.is_stream
        {
            connection.awaits_pong = false;
        } else if self.table.get(slot).is_some_and(|it| it.phase == Phase::Open && it.awaits_pong) {
            let deadline_ms = self.now_ms + self.shared.options.ping_timeout.as_millis() as u64;
            self.set_open_deadline(slot, Some(deadline_ms));
        }
    }

    fn deadline_came(&mut self, slot: Slot) {
        let now_ms = self.now_ms;
        let message_timeout = self.shared.options.message_timeout;
        let Some(connection) = self.table.get_mut(slot) else { return };
        let ends_ms = connection.message_began_ms.and_then(|began_ms| message_ends_ms(message_timeout, began_ms));
        match connection.phase {
            Phase::Head | Phase::Deciding => {
                self.refuse(slot, 408, "E_HANDSHAKE_TIMEOUT", "handshake took too long");
            }
            Phase::Open if connection.is_stream => self.heartbeat_due(slot),
            // Nothing is read, so nothing can be late.
            Phase::Open if connection.is_paused => {
                connection.restart_message_time(now_ms);
                self.note_alive(slot);
                if !self.shared.options.ping_interval.is_zero() {
                    self.ping(slot);
                }
            }
            // Something has come and waits to be read, because JavaScript is behind.
            Phase::Open if connection.is_readable => {
                connection.restart_message_time(now_ms);
                self.note_alive(slot);
            }
            Phase::Open if ends_ms.is_some_and(|ends_ms| ends_ms <= now_ms) => self.fail_connection(slot, LATE_MESSAGE),
            Phase::Open if connection.awaits_pong => self.end_silent(slot),
            Phase::Open => {
                connection.awaits_pong = true;
                let deadline_ms = now_ms + self.shared.options.ping_timeout.as_millis() as u64;
                self.set_open_deadline(slot, Some(deadline_ms));
                self.ping(slot);
            }
            Phase::Relaying | Phase::Closing | Phase::Lingering => self.drop_connection(slot),
        }
    }

    fn ping(&mut self, slot: Slot) {
        let mut ping = Vec::new();
        encode_frame(Opcode::Ping, &[], &mut ping);
        self.fanout.send(slot, &Frame::copied(&ping));
    }
}

/// When a message that began then must have ended; `None`: never.
fn message_ends_ms(timeout: Duration, began_ms: u64) -> Option<u64> {
    (!timeout.is_zero()).then(|| began_ms + timeout.as_millis() as u64)
}
