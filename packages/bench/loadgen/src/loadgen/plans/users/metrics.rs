//! Counters and timings of a run.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::latencies::Latencies;
use crate::loadgen::connections::Traffic;

/// One check of AnyCable's benchmark.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(super) struct Check {
    pub(super) passes: u64,
    pub(super) fails: u64,
}

impl Check {
    pub(super) fn note(&mut self, is_passed: bool) {
        if is_passed { self.passes += 1 } else { self.fails += 1 }
    }
}

#[derive(Default, Serialize)]
pub(super) struct Checks {
    pub(super) connection: Check,
    pub(super) subscription: Check,
    pub(super) history: Check,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    /// Iterations from the pause to the end of the connection.
    pub(super) iterations: u64,
    /// Iterations that ended before their time.
    pub(super) interrupted: u64,
    pub(super) sessions: u64,
    pub(super) acks_received: u64,
    pub(super) broadcasts_sent: u64,
    pub(super) broadcasts_received: u64,
    /// Sent before the receiver's listen was answered, live or replayed: AnyCable's definition.
    pub(super) history_received: u64,
    /// All messages that came in answers to requests for the history.
    pub(super) replayed: u64,
    /// Answers that reported a gap.
    pub(super) history_gaps: u64,
    /// Messages from another epoch than that of their connection.
    pub(super) epoch_changes: u64,
}

/// Everything that a run reports, except the checks made after it.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metrics {
    #[serde(flatten)]
    pub(super) counts: Counts,
    pub(super) checks: Checks,
    /// Set at the end.
    #[serde(flatten)]
    pub(super) traffic: Traffic,
    pub(super) rtt_us: Latencies,
    pub(super) broadcast_us: Latencies,
    pub(super) history_us: Latencies,
    pub(super) suback_us: Latencies,
    pub(super) connecting_us: Latencies,
    pub(super) iteration_us: Latencies,
    /// How late timers fired, which the generator itself adds to latencies.
    pub(super) late_us: Latencies,
    /// Why iterations were interrupted.
    pub(super) failures: BTreeMap<String, u64>,
    /// Errors that the server answered, by code.
    pub(super) errors: BTreeMap<String, u64>,
}
