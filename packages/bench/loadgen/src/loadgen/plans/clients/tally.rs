//! The counts of one thread, without the warm-up.

use serde_json::{Value, json};

use crate::latencies::Latencies;

/// What arrived at the clients of one backend, and what they published.
pub(super) struct BackendTally {
    pub(super) client_count: u64,
    pub(super) published: u64,
    /// First copies; late ones too.
    pub(super) delivered: u64,
    /// Of these, how many arrived before the window ended.
    pub(super) delivered_in_window: u64,
    pub(super) duplicates: u64,
    pub(super) reordered: u64,
    /// Messages that are not of this run, are damaged, or that the client does not listen to.
    pub(super) unexpected: u64,
    /// From the intended send time to the parsed message; first copies.
    pub(super) latency: Latencies,
}

impl BackendTally {
    fn new() -> Self {
        Self {
            client_count: 0,
            published: 0,
            delivered: 0,
            delivered_in_window: 0,
            duplicates: 0,
            reordered: 0,
            unexpected: 0,
            latency: Latencies::new(),
        }
    }

    fn body(&self, backend: usize) -> Value {
        json!({
            "backend": backend,
            "clientCount": self.client_count,
            "publishedCount": self.published,
            "deliveredCount": self.delivered,
            "deliveredInWindowCount": self.delivered_in_window,
            "duplicateCount": self.duplicates,
            "reorderedCount": self.reordered,
            "unexpectedCount": self.unexpected,
            "latencyUs": self.latency.recorded(),
        })
    }
}

/// Everything that one thread reports at the end.
pub(crate) struct Tally {
    pub(super) backends: Vec<BackendTally>,
    /// For each published message, the number of clients that listen to its key.
    pub(super) expected: u64,
    /// Messages sent before the window ended.
    pub(super) published_in_window: u64,
    pub(super) acknowledged: u64,
    pub(super) publish_errors: u64,
    pub(super) first_publish_error: Option<String>,
    /// Times that the server told a client that it may have missed messages.
    pub(super) gaps: u64,
    /// Answers to nothing, and messages that are not of the protocol.
    pub(super) client_errors: u64,
    /// Connections that ended before the run did.
    pub(super) closed: u64,
    pub(super) first_close: Option<String>,
    pub(super) last_send_us: u64,
    pub(super) last_arrival_us: u64,
    /// How far behind its intended time each message was sent.
    pub(super) send_lag: Latencies,
    /// How late the thread woke for a timer of 10 ms.
    pub(super) wake_lag: Latencies,
    /// Share of the window in which the thread did not wait.
    pub(super) utilization: f64,
}

impl Tally {
    pub(super) fn new(backend_count: usize) -> Self {
        Self {
            backends: (0..backend_count).map(|_| BackendTally::new()).collect(),
            expected: 0,
            published_in_window: 0,
            acknowledged: 0,
            publish_errors: 0,
            first_publish_error: None,
            gaps: 0,
            client_errors: 0,
            closed: 0,
            first_close: None,
            last_send_us: 0,
            last_arrival_us: 0,
            send_lag: Latencies::new(),
            wake_lag: Latencies::new(),
            utilization: 0.0,
        }
    }

    pub(crate) fn body(&self) -> Value {
        json!({
            "perBackend": self.backends.iter().enumerate().map(|(index, tally)| tally.body(index)).collect::<Vec<_>>(),
            "expectedCount": self.expected,
            "publishedInWindowCount": self.published_in_window,
            "acknowledgedCount": self.acknowledged,
            "publishErrorCount": self.publish_errors,
            "firstPublishError": self.first_publish_error,
            "gapCount": self.gaps,
            "clientErrorCount": self.client_errors,
            "closedCount": self.closed,
            "firstClose": self.first_close,
            "lastSendUs": self.last_send_us,
            "lastArrivalUs": self.last_arrival_us,
            "sendLagUs": self.send_lag.recorded(),
            "wakeLagUs": self.wake_lag.recorded(),
            "utilization": self.utilization,
        })
    }
}
