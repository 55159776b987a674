//! The counts of a window: from `count` to its end.

use super::connection::Connection;
use super::fanouts::Fanouts;
use super::fields::Fields;
use super::inflater::Inflater;
use super::protocol::{Clock, Count};
use super::receipts::Receipts;
use super::sequence::{Followed, Sequence};
use crate::clock::wall_us;
use crate::latencies::Latencies;

/// Frames, and the faults in their order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) frame_count: u64,
    pub(crate) gap_count: u64,
    pub(crate) duplicate_count: u64,
    pub(crate) reordered_count: u64,
}

/// Counts of one read, added to the window at once.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) frame_count: u64,
    pub(crate) payload_bytes: u64,
}

#[derive(Default)]
pub(crate) struct Window {
    pub(crate) plan: Count,
    pub(crate) number: u32,
    pub(crate) began_us: u64,
    /// Of connections that read freely.
    pub(crate) counts: Counts,
    pub(crate) slow_counts: Counts,
    pub(crate) other_count: u64,
    pub(crate) compressed_count: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) read_count: u64,
    pub(crate) first_sequence: Option<u64>,
    pub(crate) first_frame_us: Option<u64>,
    pub(crate) last_frame_us: Option<u64>,
    pub(crate) latencies: Latencies,
    pub(crate) fanouts: Fanouts,
    pub(crate) receipts: Receipts,
    /// The publishers' clock less `CLOCK_MONOTONIC`, at the last read.
    clock_ahead_us: u64,
    /// Frames per `timelineMs`.
    pub(crate) timeline: Vec<u64>,
}

/// Timeline entries; later frames are added to the last one.
const MAX_TIMELINE_ENTRIES: usize = 100_000;

impl Window {
    pub(crate) fn new(plan: Count, number: u32, began_us: u64) -> Self {
        Self { plan, number, began_us, fanouts: Fanouts::new(began_us, plan.first_seq), ..Self::default() }
    }

    /// Adds what another thread has of the same window, apart from its sums.
    pub(crate) fn merge(&mut self, other: Self) {
        self.began_us = self.began_us.min(other.began_us);
        self.timeline.resize(self.timeline.len().max(other.timeline.len()), 0);
        self.timeline.iter_mut().zip(&other.timeline).for_each(|(total, frames)| *total += frames);
        self.fanouts.merge(other.fanouts);
        self.receipts.merge(other.receipts);
    }

    /// Compares the clocks at `now_us`, the time of a read. `CLOCK_REALTIME` may be adjusted at any time.
    #[inline]
    pub(crate) fn read_clock(&mut self, now_us: u64) {
        if self.plan.clock == Clock::Wall {
            self.clock_ahead_us = wall_us().wrapping_sub(now_us);
        }
    }

    /// Makes `connection` part of this window.
    #[inline]
    pub(crate) fn enter(&self, connection: &mut Connection) {
        if connection.window != self.number {
            connection.window = self.number;
            connection.has_counted = false;
            connection.sequence = self.plan.first_seq.map(Sequence::before).unwrap_or_default();
        }
    }

    /// Counts a message; `payload` holds at least its start.
    #[inline]
    pub(crate) fn count(
        &mut self,
        connection: &mut Connection,
        payload: &[u8],
        fields: &mut Fields,
        now_us: u64,
    ) -> bool {
        if !self.plan.seq_field {
            return true;
        }
        let Some((sequence, after)) = fields.sequence(payload) else {
            self.other_count += 1;
            return false;
        };
        let is_slow = connection.is_slow();
        let followed = connection.sequence.follow(sequence);
        if followed != Followed::InOrder {
            self.out_of_order(followed, is_slow);
        } else if !connection.has_counted {
            connection.has_counted = true;
            self.first_sequence = Some(self.first_sequence.map_or(sequence, |first| first.min(sequence)));
        }
        if self.plan.latency && !is_slow {
            let ahead_us = self.clock_ahead_us;
            let mut sent_us = || fields.sent_us(payload, after).map(|sent_us| sent_us.wrapping_sub(ahead_us));
            let is_again = followed == Followed::Again;
            let latency_us = if self.plan.by_seq && !is_again {
                sent_us().map(|sent_us| self.receipts.received(connection.group, sequence, now_us, sent_us))
            } else if self.plan.fanout && !is_again {
                self.fanouts.received(sequence, now_us, sent_us)
            } else {
                sent_us().map(|sent_us| now_us.saturating_sub(sent_us))
            };
            if let Some(latency_us) = latency_us {
                self.latencies.record(latency_us);
            }
        }
        true
    }

    /// Like [`count`](Self::count), for a deflated message.
    #[cold]
    pub(crate) fn count_compressed(
        &mut self,
        connection: &mut Connection,
        deflated: &[u8],
        fields: &mut Fields,
        inflater: &mut Inflater,
        now_us: u64,
    ) -> bool {
        self.compressed_count += 1;
        self.count(connection, inflater.plain(deflated), fields, now_us)
    }

    #[cold]
    fn out_of_order(&mut self, followed: Followed, is_slow: bool) {
        let counts = if is_slow { &mut self.slow_counts } else { &mut self.counts };
        match followed {
            Followed::InOrder => {}
            Followed::Ahead { missing_count } => counts.gap_count += missing_count,
            Followed::Again => counts.duplicate_count += 1,
            Followed::Late { fills_gap } => {
                counts.reordered_count += 1;
                counts.gap_count -= u64::from(fills_gap);
            }
        }
    }

    /// Adds the counts of one read of `wire_bytes`.
    #[inline]
    pub(crate) fn add(&mut self, connection: &mut Connection, tally: Tally, wire_bytes: u64, now_us: u64) {
        self.wire_bytes += wire_bytes;
        self.read_count += 1;
        self.payload_bytes += tally.payload_bytes;
        if tally.frame_count == 0 {
            return;
        }
        connection.has_counted = true;
        if connection.is_slow() {
            self.slow_counts.frame_count += tally.frame_count;
            return;
        }
        self.counts.frame_count += tally.frame_count;
        self.first_frame_us.get_or_insert(now_us);
        self.last_frame_us = Some(now_us);
        let entry = now_us.saturating_sub(self.began_us) / (self.plan.timeline_ms * 1_000);
        let entry = (entry as usize).min(MAX_TIMELINE_ENTRIES - 1);
        if entry >= self.timeline.len() {
            self.timeline.resize(entry + 1, 0);
        }
        self.timeline[entry] += tally.frame_count;
    }
}
