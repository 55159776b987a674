//! `flood-in` with `"mode":"paced"`: messages on an absolute schedule.

use super::flood::{Flooding, Sender};
use crate::clock::now_us;
use crate::loadgen::connections::Connections;

/// Pending output of a connection. Beyond this the schedule waits.
const MAX_BACKLOG_BYTES: usize = 1 << 20;
/// Messages written before other work gets its turn.
const MAX_MESSAGES_PER_TURN: u64 = 16_384;
/// How long the schedule waits before it checks a full backlog again.
const WAIT_US: u64 = 500;

impl Flooding {
    /// Writes due messages, with one write per connection, and returns when the next message is due.
    pub(super) fn pace(&mut self, now_us: u64, connections: &mut Connections) -> u64 {
        let sender_count = self.senders.len() as u64;
        let per_second = self.per_second.unwrap_or(0.0);
        if sender_count == 0 {
            return self.ends_us;
        }
        let is_full = |sender: &Sender| connections.backlog_bytes(sender.slot) > MAX_BACKLOG_BYTES;
        if connections.has_backlogs() && self.senders.iter().any(is_full) {
            return now_us + WAIT_US;
        }
        let began_us = self.began_us;
        let intended_us = |number: u64| began_us + (number as f64 * 1e6 / per_second) as u64;
        let first = self.paced_count;
        let due_count = (now_us.saturating_sub(began_us) as f64 * per_second / 1e6) as u64 + 1;
        let due_count = due_count.min(self.paced_total());
        let end = due_count.clamp(first, first + MAX_MESSAGES_PER_TURN);
        for start in first..end.min(first + sender_count) {
            self.pace_sender((start..end).step_by(sender_count as usize), &intended_us, connections);
        }
        self.paced_count = end;
        intended_us(end).max(1)
    }

    /// Writes the messages of one sender that are due.
    fn pace_sender(
        &mut self,
        numbers: impl Iterator<Item = u64> + Clone,
        intended_us: &impl Fn(u64) -> u64,
        connections: &mut Connections,
    ) {
        let Some(first) = numbers.clone().next() else { return };
        let index = (first % self.senders.len() as u64) as usize;
        let slot = self.senders[index].slot;
        if connections.get(slot).sender != index as u32 {
            return;
        }
        self.scratch.clear();
        for number in numbers.clone() {
            self.payload_bytes += self.batch.append(number, intended_us(number), &mut self.scratch) as u64;
            self.frame_count += 1;
        }
        self.wire_bytes += self.scratch.len() as u64;
        connections.write(slot, &self.scratch);
        let written_us = now_us();
        numbers.for_each(|number| self.late.record(written_us.saturating_sub(intended_us(number))));
    }
}
