//! Publishing: as fast as the slowest subscriber allows, or on a schedule.

use serde::Serialize;

use super::log::Position;
use super::message::Messages;
use super::server::{Mode, Server};
use crate::clock::now_us;
use crate::latencies::Latencies;

/// Bytes that a flood appends per turn without a `batch`.
const TURN_BYTES: usize = 64 << 10;
/// Time limit for sockets to take the rest.
const DRAIN_TIMEOUT_US: u64 = 30_000_000;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Rate {
    /// This many messages per turn.
    Flood {
        batch_count: usize,
    },
    Paced {
        per_second: f64,
    },
}

pub(crate) struct Publishing {
    rate: Rate,
    messages: Messages,
    began_us: u64,
    ends_us: u64,
    count: u64,
    first_sequence: u64,
    late: Latencies,
    ended_us: Option<u64>,
}

/// The result of a publish command.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Published {
    count: u64,
    duration_us: u64,
    drained_us: u64,
    first_seq: u64,
    last_seq: u64,
    /// Subscribers that did not take everything in time and were closed.
    cut: usize,
    late_us: Latencies,
}

impl Publishing {
    fn intended_us(&self, number: u64) -> u64 {
        match self.rate {
            Rate::Flood { .. } => now_us(),
            Rate::Paced { per_second } => self.began_us + (number as f64 * 1e6 / per_second) as u64,
        }
    }

    fn due_count(&self, now_us: u64) -> u64 {
        match self.rate {
            Rate::Flood { batch_count } if now_us < self.ends_us => self.count + batch_count as u64,
            Rate::Flood { .. } => self.count,
            Rate::Paced { per_second } => {
                let due = (now_us.saturating_sub(self.began_us) as f64 * per_second / 1e6) as u64 + 1;
                due.min(self.total(per_second))
            }
        }
    }

    fn total(&self, per_second: f64) -> u64 {
        ((self.ends_us - self.began_us) as f64 * per_second / 1e6).ceil() as u64
    }

    fn is_over(&self, now_us: u64) -> bool {
        match self.rate {
            Rate::Flood { .. } => now_us >= self.ends_us,
            // Due messages are published late, but only up to a limit.
            Rate::Paced { per_second } => {
                self.count >= self.total(per_second) || now_us >= self.ends_us + DRAIN_TIMEOUT_US
            }
        }
    }
}

impl Server {
    /// Starts to publish. Earlier messages have been written, or their subscribers closed.
    ///
    /// # Errors
    /// A publish is under way, or the messages do not fit into the log.
    pub(crate) fn begin_publish(&mut self, rate: Rate, duration_us: u64, payload_bytes: usize) -> Result<(), String> {
        let messages = Messages::new(payload_bytes);
        if self.publishing.is_some() {
            return Err("it is publishing already".to_owned());
        }
        if messages.frame_bytes() * 4 > self.max_lag_bytes {
            return Err("four messages have to fit into --max-lag-bytes".to_owned());
        }
        self.delivered_before_count = self.delivered_count();
        self.written_bytes = 0;
        self.run_start = self.log.head();
        self.frame_bytes = messages.frame_bytes();
        let rate = match rate {
            Rate::Flood { batch_count: 0 } => Rate::Flood { batch_count: (TURN_BYTES / self.frame_bytes).max(1) },
            rate => rate,
        };
        let began_us = now_us();
        self.publishing = Some(Publishing {
            rate,
            messages,
            began_us,
            ends_us: began_us + duration_us,
            count: 0,
            first_sequence: self.last_sequence + 1,
            late: Latencies::default(),
            ended_us: None,
        });
        Ok(())
    }

    /// Appends the due messages that have room.
    pub(super) fn publish(&mut self, now_us: u64) {
        let room_count = self.room_count();
        let Some(publishing) = self.publishing.as_mut() else { return };
        if publishing.ended_us.is_some() {
            return self.end_publish(now_us);
        }
        let due_count = publishing.due_count(now_us).saturating_sub(publishing.count);
        let at_once_count = if self.mode == Mode::Loop { 1 } else { u64::MAX };
        for _ in 0..due_count.min(room_count).min(at_once_count) {
            let intended_us = publishing.intended_us(publishing.count);
            self.last_sequence += 1;
            self.log.append(publishing.messages.frame(self.last_sequence, intended_us));
            publishing.count += 1;
            if matches!(publishing.rate, Rate::Paced { .. }) {
                publishing.late.record(now_us.saturating_sub(intended_us));
            }
        }
        if publishing.is_over(now_us) {
            publishing.ended_us = Some(now_us);
        }
    }

    /// When to publish again; `None`: after the next event.
    pub(super) fn publish_deadline(&self, now_us: u64) -> Option<u64> {
        let publishing = self.publishing.as_ref()?;
        if let Some(ended_us) = publishing.ended_us {
            return Some(if self.is_drained() { 0 } else { ended_us + DRAIN_TIMEOUT_US });
        }
        if publishing.is_over(now_us) {
            return Some(0);
        }
        let next_us = match publishing.rate {
            Rate::Flood { .. } => 0,
            Rate::Paced { .. } => publishing.intended_us(publishing.count).max(1),
        };
        Some(if self.room_count() > 0 { next_us } else { publishing.ends_us.max(now_us + 1_000) })
    }

    /// Messages that can be appended before the slowest cursor is too far behind.
    fn room_count(&self) -> u64 {
        let lag_bytes = self.log.head().since(self.slowest);
        (self.max_lag_bytes as u64).saturating_sub(lag_bytes) / self.frame_bytes as u64
    }

    fn is_drained(&self) -> bool {
        self.slowest == self.log.head()
    }

    fn end_publish(&mut self, now_us: u64) {
        let head = self.log.head();
        let Some(publishing) = self.publishing.take_if(|publishing| {
            let timeout_us = publishing.ended_us.unwrap_or(now_us) + DRAIN_TIMEOUT_US;
            self.slowest == head || now_us >= timeout_us
        }) else {
            return;
        };
        let cut = self.cut_behind(head);
        let ended_us = publishing.ended_us.unwrap_or(now_us);
        self.published = Some(Published {
            count: publishing.count,
            duration_us: ended_us - publishing.began_us,
            drained_us: now_us - publishing.began_us,
            first_seq: publishing.first_sequence,
            last_seq: self.last_sequence,
            cut,
            late_us: publishing.late,
        });
    }

    /// Closes the connections that lack messages, because the next frames may have another size.
    fn cut_behind(&mut self, head: Position) -> usize {
        let is_behind = |entry: &Option<super::connection::Connection>| {
            entry.as_ref().is_some_and(|connection| connection.is_upgraded && connection.cursor < head)
        };
        let behind: Vec<usize> =
            (0..self.connections.len()).filter(|index| is_behind(&self.connections[*index])).collect();
        behind.iter().for_each(|index| self.remove(*index));
        behind.len()
    }
}
