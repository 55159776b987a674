//! Latency histograms.

use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

/// Ten minutes; longer latencies are recorded as this.
const MAX_US: u64 = 600_000_000;

/// Microseconds with three digits. Recording costs a few nanoseconds. Written as its [`Summary`].
pub(crate) struct Latencies(Histogram<u64>);

impl Default for Latencies {
    #[expect(clippy::expect_used, reason = "the bounds are constants that the crate takes")]
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, MAX_US, 3).expect("valid bounds"))
    }
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.summary().serialize(serializer)
    }
}

impl Latencies {
    #[inline]
    pub(crate) fn record(&mut self, us: u64) {
        self.0.saturating_record(us);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        // Both have the same bounds, so nothing is out of range.
        let merged = self.0.add(&other.0);
        debug_assert!(merged.is_ok());
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Writes values and how often each was recorded, ascending: a histogram that others can add to theirs.
    pub(crate) fn recorded<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let max = self.0.max();
        let recorded = self.0.iter_recorded();
        serializer.collect_seq(recorded.map(|value| (value.value_iterated_to().min(max), value.count_at_value())))
    }

    /// `None` when nothing was recorded.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let at = |percentile| self.0.value_at_percentile(percentile).min(self.0.max());
        (!self.0.is_empty()).then(|| Summary {
            count: self.0.len(),
            mean: (self.0.mean() * 10.0).round() / 10.0,
            min: self.0.min(),
            p50: at(50.0),
            p90: at(90.0),
            p95: at(95.0),
            p99: at(99.0),
            p999: at(99.9),
            p9999: at(99.99),
            max: self.0.max(),
        })
    }
}

/// Percentiles in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Summary {
    count: u64,
    mean: f64,
    min: u64,
    p50: u64,
    p90: u64,
    p95: u64,
    p99: u64,
    p999: u64,
    p9999: u64,
    max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_histograms_have_the_percentiles_of_all() {
        let (mut low, mut high) = (Latencies::default(), Latencies::default());
        (1..=50).for_each(|us| low.record(us));
        (51..=100).for_each(|us| high.record(us));
        low.merge(&high);
        let summary = low.summary().expect("recorded");
        assert_eq!((summary.count, summary.min, summary.p50, summary.max), (100, 1, 50, 100));
        assert_eq!((summary.p90, summary.p95), (90, 95));
    }

    #[test]
    fn recorded_values_come_with_their_counts() {
        let mut latencies = Latencies::default();
        [5, 5, 1_000, 7].into_iter().for_each(|us| latencies.record(us));
        let recorded = latencies.recorded(serde_json::value::Serializer).expect("plain");
        assert_eq!(recorded, serde_json::json!([[5, 2], [7, 1], [1_000, 1]]));
    }

    #[test]
    fn nothing_recorded_is_no_summary_and_what_is_too_long_counts_as_the_longest() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.summary(), None);
        latencies.record(u64::MAX);
        latencies.record(0);
        assert_eq!(latencies.count(), 2);
        assert!(latencies.summary().is_some_and(|summary| summary.max >= MAX_US));
    }
}
