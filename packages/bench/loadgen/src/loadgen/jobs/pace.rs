//! `flood-in` with `"mode":"paced"`: messages on an absolute schedule.

use super::flood::{Flooding, Sender};
use crate::clock::now_us;
use crate::latencies::Latencies;
use crate::loadgen::worker::Worker;

/// Pending output of a connection. Beyond this the schedule waits.
const MAX_BACKLOG_BYTES: usize = 1 << 20;
/// Messages written before other work gets its turn.
const MAX_MESSAGES_PER_TURN: u64 = 16_384;
/// How long the schedule waits before it checks a full backlog again.
const WAIT_US: u64 = 500;

impl Worker {
    /// Writes due messages, with one write per connection, and returns when the next message is due.
    pub(super) fn pace(&mut self, now_us: u64) -> Option<u64> {
        let mut job = self.jobs.flood.take()?;
        let next_us = self.pace_job(&mut job, now_us);
        self.jobs.flood = Some(job);
        Some(next_us)
    }

    fn pace_job(&mut self, job: &mut Flooding, now_us: u64) -> u64 {
        let sender_count = job.senders.len() as u64;
        let per_second = job.per_second.unwrap_or(0.0);
        if sender_count == 0 {
            return job.ends_us;
        }
        let is_full = |sender: &Sender| self.backlog_bytes(sender.slot) > MAX_BACKLOG_BYTES;
        if !self.backlogs.is_empty() && job.senders.iter().any(is_full) {
            return now_us + WAIT_US;
        }
        let began_us = job.began_us;
        let intended_us = |number: u64| began_us + (number as f64 * 1e6 / per_second) as u64;
        let first = job.paced_count;
        let due_count = (now_us.saturating_sub(began_us) as f64 * per_second / 1e6) as u64 + 1;
        let due_count = due_count.min(job.paced_total());
        let end = due_count.clamp(first, first + MAX_MESSAGES_PER_TURN);
        for start in first..end.min(first + sender_count) {
            self.pace_sender(job, (start..end).step_by(sender_count as usize), &intended_us);
        }
        job.paced_count = end;
        intended_us(end).max(1)
    }

    /// Writes the messages of one sender that are due.
    fn pace_sender(
        &mut self,
        job: &mut Flooding,
        numbers: impl Iterator<Item = u64> + Clone,
        intended_us: &impl Fn(u64) -> u64,
    ) {
        let Some(first) = numbers.clone().next() else { return };
        let index = (first % job.senders.len() as u64) as usize;
        let slot = job.senders[index].slot;
        if self.connection(slot).sender != index as u32 {
            return;
        }
        job.scratch.clear();
        for number in numbers.clone() {
            job.done.payload_bytes += job.batch.append(number, intended_us(number), &mut job.scratch) as u64;
            job.done.frame_count += 1;
        }
        job.done.wire_bytes += job.scratch.len() as u64;
        self.write(slot, &job.scratch);
        let written_us = now_us();
        let late = job.done.late.get_or_insert_with(Latencies::new);
        numbers.for_each(|number| late.record(written_us.saturating_sub(intended_us(number))));
    }
}
