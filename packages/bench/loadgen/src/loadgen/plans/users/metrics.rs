//! Counters and timings of a run.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

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

#[derive(Default)]
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
pub(super) struct Metrics {
    pub(super) counts: Counts,
    pub(super) connection: Check,
    pub(super) subscription: Check,
    pub(super) history: Check,
    pub(super) rtt: Latencies,
    pub(super) broadcast: Latencies,
    pub(super) history_duration: Latencies,
    pub(super) suback: Latencies,
    pub(super) connecting: Latencies,
    pub(super) iteration: Latencies,
    /// How late timers fired, which the generator itself adds to latencies.
    pub(super) late: Latencies,
    /// Why iterations were interrupted.
    pub(super) failures: BTreeMap<String, u64>,
    /// Errors that the server answered, by code.
    pub(super) errors: BTreeMap<String, u64>,
}

impl Metrics {
    pub(super) fn new() -> Self {
        Self {
            counts: Counts::default(),
            connection: Check::default(),
            subscription: Check::default(),
            history: Check::default(),
            rtt: Latencies::new(),
            broadcast: Latencies::new(),
            history_duration: Latencies::new(),
            suback: Latencies::new(),
            connecting: Latencies::new(),
            iteration: Latencies::new(),
            late: Latencies::new(),
            failures: BTreeMap::new(),
            errors: BTreeMap::new(),
        }
    }

    pub(super) fn body(&self, traffic: &Traffic) -> Value {
        let counts = &self.counts;
        json!({
            "iterations": counts.iterations,
            "interrupted": counts.interrupted,
            "sessions": counts.sessions,
            "checks": {
                "connection": self.connection,
                "subscription": self.subscription,
                "history": self.history,
            },
            "acksReceived": counts.acks_received,
            "broadcastsSent": counts.broadcasts_sent,
            "broadcastsReceived": counts.broadcasts_received,
            "historyReceived": counts.history_received,
            "replayed": counts.replayed,
            "historyGaps": counts.history_gaps,
            "epochChanges": counts.epoch_changes,
            "messagesSent": traffic.messages_sent,
            "messagesReceived": traffic.messages_received,
            "bytesSent": traffic.bytes_sent,
            "bytesReceived": traffic.bytes_received,
            "rttUs": self.rtt.summary(),
            "broadcastUs": self.broadcast.summary(),
            "historyUs": self.history_duration.summary(),
            "subackUs": self.suback.summary(),
            "connectingUs": self.connecting.summary(),
            "iterationUs": self.iteration.summary(),
            "lateUs": self.late.summary(),
            "failures": self.failures,
            "errors": self.errors,
        })
    }
}
