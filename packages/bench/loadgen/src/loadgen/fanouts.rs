//! When the last receiver got each message.

use crate::latencies::Latencies;

/// Messages recorded per window; 12 MiB per thread.
const MAX_MESSAGES: usize = 1 << 20;

/// Receipts of one message by the connections of one thread. Times are microseconds since the window began.
#[derive(Debug, Clone, Copy, Default)]
struct Fanout {
    sent_us: i32,
    last_received_us: i32,
    receiver_count: u32,
}

/// The messages of a window, by sequence number.
#[derive(Default)]
pub(crate) struct Fanouts {
    began_us: u64,
    /// Sequence number of the first entry.
    first: Option<u64>,
    entries: Vec<Fanout>,
    not_kept_count: u64,
}

impl Fanouts {
    pub(crate) fn new(began_us: u64, first: Option<u64>) -> Self {
        Self { began_us, first, ..Self::default() }
    }

    /// Records that a connection received message `sequence` and returns its latency. `sent_us` is called once per
    /// message, for its first receipt.
    #[inline]
    pub(crate) fn received(
        &mut self,
        sequence: u64,
        now_us: u64,
        sent_us: impl FnOnce() -> Option<u64>,
    ) -> Option<u64> {
        let first = *self.first.get_or_insert(sequence);
        let index = sequence.wrapping_sub(first) as usize;
        if index >= self.entries.len() && !self.grow(index) {
            return sent_us().map(|sent_us| now_us.saturating_sub(sent_us));
        }
        let entry = &mut self.entries[index];
        if entry.receiver_count == 0 {
            entry.sent_us = sent_us()?.wrapping_sub(self.began_us) as i32;
        }
        let received_us = now_us.wrapping_sub(self.began_us) as i32;
        entry.last_received_us = entry.last_received_us.max(received_us);
        entry.receiver_count += 1;
        Some(u64::try_from(received_us.wrapping_sub(entry.sent_us)).unwrap_or(0))
    }

    #[cold]
    fn grow(&mut self, index: usize) -> bool {
        if index >= MAX_MESSAGES {
            self.not_kept_count += 1;
            return false;
        }
        self.entries.resize(index + 1, Fanout::default());
        true
    }

    /// Adds the receipts of another thread.
    pub(crate) fn merge(&mut self, mut other: Self) {
        self.not_kept_count += other.not_kept_count;
        let Some(theirs) = other.first else { return };
        match self.first {
            None => {
                (self.first, self.began_us) = (other.first, other.began_us);
                self.entries = other.entries;
                return;
            }
            Some(ours) if ours > theirs => {
                std::mem::swap(&mut self.entries, &mut other.entries);
                std::mem::swap(&mut self.first, &mut other.first);
                std::mem::swap(&mut self.began_us, &mut other.began_us);
            }
            Some(_) => {}
        }
        let shift = other.first.unwrap_or(0).abs_diff(self.first.unwrap_or(0)) as usize;
        let later_us = other.began_us.wrapping_sub(self.began_us) as i32;
        let len = self.entries.len().max((shift + other.entries.len()).min(MAX_MESSAGES));
        self.entries.resize(len, Fanout::default());
        for (entry, added) in self.entries.iter_mut().skip(shift).zip(other.entries) {
            if added.receiver_count > 0 {
                entry.sent_us = added.sent_us + later_us;
                entry.last_received_us = entry.last_received_us.max(added.last_received_us + later_us);
                entry.receiver_count += added.receiver_count;
            }
        }
    }

    /// Latencies of the messages that `receiver_count` connections received.
    pub(crate) fn complete(&self, receiver_count: u64) -> FanoutLatencies {
        let mut latencies = Latencies::default();
        let mut incomplete_count = 0;
        for entry in self.entries.iter().filter(|entry| entry.receiver_count > 0) {
            if u64::from(entry.receiver_count) >= receiver_count {
                latencies.record(u64::try_from(entry.last_received_us - entry.sent_us).unwrap_or(0));
            } else {
                incomplete_count += 1;
            }
        }
        FanoutLatencies { latencies, incomplete_count, not_kept_count: self.not_kept_count }
    }
}

pub(crate) struct FanoutLatencies {
    pub(crate) latencies: Latencies,
    /// Messages that some connections have not received.
    pub(crate) incomplete_count: u64,
    /// Receipts of messages beyond the recorded ones.
    pub(crate) not_kept_count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maxima(fanouts: &Fanouts, receiver_count: u64) -> (Option<u64>, u64) {
        let complete = fanouts.complete(receiver_count);
        let summary = complete.latencies.summary().map(|summary| serde_json::to_value(summary).expect("plain"));
        (summary.and_then(|summary| summary["max"].as_u64()), complete.incomplete_count)
    }

    #[test]
    fn a_message_is_complete_when_its_last_receiver_has_it() {
        let mut fanouts = Fanouts::new(1_000, None);
        fanouts.received(5, 1_150, || Some(1_100));
        fanouts.received(5, 1_400, || None);
        assert_eq!(fanouts.received(5, 1_300, || None), Some(200));
        fanouts.received(6, 1_250, || Some(1_200));
        assert_eq!(maxima(&fanouts, 3), (Some(300), 1));
    }

    #[test]
    fn what_two_threads_have_seen_is_put_together_whichever_saw_the_first_message() {
        let early = || {
            let mut fanouts = Fanouts::new(1_000, None);
            fanouts.received(1, 1_010, || Some(1_000));
            fanouts.received(2, 2_500, || Some(2_000));
            fanouts
        };
        let late = || {
            let mut fanouts = Fanouts::new(1_900, None);
            fanouts.received(2, 2_700, || Some(2_000));
            fanouts.received(3, 3_001, || Some(3_000));
            fanouts
        };
        for (mut ours, theirs) in [(early(), late()), (late(), early())] {
            ours.merge(theirs);
            assert_eq!(maxima(&ours, 2), (Some(700), 2));
        }
        let mut nothing = Fanouts::new(5, None);
        nothing.merge(late());
        assert_eq!(maxima(&nothing, 1), (Some(700), 0));
    }

    #[test]
    fn messages_beyond_those_that_are_kept_are_told() {
        let mut fanouts = Fanouts::new(0, Some(1));
        assert_eq!(fanouts.received(1 + MAX_MESSAGES as u64, 9, || Some(2)), Some(7));
        fanouts.received(0, 1, || Some(0));
        assert_eq!(fanouts.complete(1).not_kept_count, 2);
    }
}
