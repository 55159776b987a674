//! The latencies of each single message, by the group that it is for.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::connection::GroupId;

/// Receipts recorded per window; 16 MiB per thread.
const MAX_RECEIPTS: usize = 1 << 22;
/// Messages recorded per window.
const MAX_MESSAGES: usize = 1 << 16;

/// Every receipt of a window in full, so that percentiles are exact.
#[derive(Default)]
pub(crate) struct Receipts {
    /// Microseconds.
    latencies: FxHashMap<(GroupId, u64), Vec<u32>>,
    count: usize,
    early_count: u64,
    not_kept_count: u64,
}

/// Percentiles of one message, over the connections that received it.
#[derive(Debug, Serialize)]
pub(crate) struct MessageSummary {
    pub(crate) group: u16,
    pub(crate) seq: u64,
    pub(crate) count: usize,
    pub(crate) p50: u64,
    pub(crate) p95: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

impl Receipts {
    /// Records the first receipt of a message by a connection and returns its latency. A receipt before `sent_us`, which
    /// only clocks that differ can show, is counted and has latency 0.
    #[inline]
    pub(crate) fn received(&mut self, group: GroupId, sequence: u64, now_us: u64, sent_us: u64) -> u64 {
        // Of wrapped differences the sign still tells which came first.
        let latency_us = match u64::try_from(now_us.wrapping_sub(sent_us).cast_signed()) {
            Ok(latency_us) => latency_us,
            Err(_) => {
                self.early_count += 1;
                0
            }
        };
        let is_known = self.latencies.contains_key(&(group, sequence));
        if self.count >= MAX_RECEIPTS || (!is_known && self.latencies.len() >= MAX_MESSAGES) {
            self.not_kept_count += 1;
            return latency_us;
        }
        self.count += 1;
        let latencies = self.latencies.entry((group, sequence)).or_default();
        latencies.push(u32::try_from(latency_us).unwrap_or(u32::MAX));
        latency_us
    }

    /// Adds the receipts of another thread.
    pub(crate) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.early_count += other.early_count;
        self.not_kept_count += other.not_kept_count;
        for (message, theirs) in other.latencies {
            self.latencies.entry(message).or_default().extend(theirs);
        }
    }

    /// Receipts that were earlier than the sending.
    pub(crate) fn early_count(&self) -> u64 {
        self.early_count
    }

    /// Receipts beyond the recorded ones.
    pub(crate) fn not_kept_count(&self) -> u64 {
        self.not_kept_count
    }

    /// One summary per message, by group and number. Forgets all receipts.
    pub(crate) fn take_summaries(&mut self) -> Vec<MessageSummary> {
        let mut messages: Vec<_> = self.latencies.drain().collect();
        messages.sort_unstable_by_key(|(message, _)| *message);
        messages.into_iter().map(|((group, seq), latencies)| summary(group, seq, latencies)).collect()
    }
}

fn summary(group: GroupId, seq: u64, mut latencies: Vec<u32>) -> MessageSummary {
    latencies.sort_unstable();
    let count = latencies.len();
    // The smallest latency that this share of the receipts does not exceed.
    let at = |percent: usize| u64::from(latencies[((count * percent).div_ceil(100)).clamp(1, count) - 1]);
    MessageSummary { group: group.0, seq, count, p50: at(50), p95: at(95), p99: at(99), max: at(100) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_message_over_all_threads() {
        let (mut ours, mut theirs) = (Receipts::default(), Receipts::default());
        for us in 1..=50 {
            ours.received(GroupId(3), 9, 1_000 + us, 1_000);
            theirs.received(GroupId(3), 9, 1_050 + us, 1_000);
        }
        theirs.received(GroupId(0), 10, 1_007, 1_000);
        ours.merge(theirs);
        let summaries = ours.take_summaries();
        assert_eq!(summaries.len(), 2);
        let MessageSummary { group, seq, count, p50, p95, p99, max } = summaries[1];
        assert_eq!((group, seq, count), (3, 9, 100));
        assert_eq!((p50, p95, p99, max), (50, 95, 99, 100));
        assert_eq!((summaries[0].count, summaries[0].p50, summaries[0].p99), (1, 7, 7));
        assert!(ours.take_summaries().is_empty());
    }

    #[test]
    fn a_receipt_before_the_sending_is_counted_and_not_shifted() {
        let mut receipts = Receipts::default();
        assert_eq!(receipts.received(GroupId(0), 1, 1_000, 1_020), 0);
        assert_eq!(receipts.received(GroupId(0), 1, 1_030, 1_020), 10);
        assert_eq!((receipts.early_count(), receipts.not_kept_count()), (1, 0));
    }

    #[test]
    fn messages_beyond_those_that_are_kept_are_told() {
        let mut receipts = Receipts::default();
        for sequence in 0..=MAX_MESSAGES as u64 {
            assert_eq!(receipts.received(GroupId(0), sequence, 9, 2), 7);
        }
        assert_eq!(receipts.received(GroupId(0), 0, 9, 2), 7);
        assert_eq!((receipts.not_kept_count(), receipts.take_summaries().len()), (1, MAX_MESSAGES));
    }
}
