//! The counts of one thread, without the warm-up.

use serde::Serialize;

use crate::latencies::Latencies;

/// What arrived at the clients of one backend, and what they published.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BackendTally {
    backend: usize,
    pub(super) client_count: u64,
    pub(super) published_count: u64,
    /// First copies; late ones too.
    pub(super) delivered_count: u64,
    /// Of these, how many arrived before the window ended.
    pub(super) delivered_in_window_count: u64,
    pub(super) duplicate_count: u64,
    pub(super) reordered_count: u64,
    /// Messages that are not of this run, are damaged, or that the client does not listen to.
    pub(super) unexpected_count: u64,
    /// From the intended send time to the parsed message; first copies.
    #[serde(serialize_with = "Latencies::recorded")]
    pub(super) latency_us: Latencies,
}

/// Everything that one thread reports at the end.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tally {
    pub(super) per_backend: Vec<BackendTally>,
    /// For each published message, the number of clients that listen to its key.
    pub(super) expected_count: u64,
    /// Messages sent before the window ended.
    pub(super) published_in_window_count: u64,
    pub(super) acknowledged_count: u64,
    pub(super) publish_error_count: u64,
    pub(super) first_publish_error: Option<String>,
    /// Times that the server told a client that it may have missed messages.
    pub(super) gap_count: u64,
    /// Answers to nothing, and messages that are not of the protocol.
    pub(super) client_error_count: u64,
    /// Connections that ended before the run did.
    pub(super) closed_count: u64,
    pub(super) first_close: Option<String>,
    pub(super) last_send_us: u64,
    pub(super) last_arrival_us: u64,
    /// How far behind its intended time each message was sent.
    #[serde(serialize_with = "Latencies::recorded")]
    pub(super) send_lag_us: Latencies,
    /// How late the thread woke for a timer of 10 ms.
    #[serde(serialize_with = "Latencies::recorded")]
    pub(super) wake_lag_us: Latencies,
    /// Share of the window in which the thread did not wait.
    pub(super) utilization: f64,
}

impl Tally {
    pub(super) fn new(backend_count: usize) -> Self {
        let of_backend = |backend| BackendTally { backend, ..BackendTally::default() };
        Self { per_backend: (0..backend_count).map(of_backend).collect(), ..Self::default() }
    }
    /// A message was not published, and will not be.
    pub(super) fn lose(&mut self, is_counted: bool, reason: &str) {
        self.publish_error_count += u64::from(is_counted);
        self.first_publish_error.get_or_insert_with(|| reason.to_owned());
    }
}
