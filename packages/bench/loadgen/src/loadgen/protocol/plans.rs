//! The plans that the generator plays.

use serde::Deserialize;

use super::default_path;

/// Options of a plan; equal options give equal plans here and in TypeScript.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PlanOptions {
    pub(crate) client_count: u32,
    /// Distinct keys each client listens to; at most the pool.
    pub(crate) listens_per_client: u32,
    pub(crate) key_pool_size: u32,
    pub(crate) publish_rate_per_second: f64,
    pub(crate) duration_us: f64,
    pub(crate) warmup_us: f64,
    pub(crate) seed: u32,
}

/// `clients`: connects clients that publish and listen by a plan.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PlayClients {
    pub(crate) plan: PlanOptions,
    pub(crate) message_size_bytes: usize,
    /// At 127.0.0.1; client `c` connects to entry `c mod length`.
    pub(crate) ports: Vec<u16>,
    pub(crate) path: String,
    /// Before a key's number, and a dot.
    pub(crate) key_prefix: String,
    /// For all clients to be connected, with their listens confirmed.
    pub(crate) timeout_ms: u64,
}

/// The window on the machine's monotonic clock.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SendWindow {
    pub(crate) start_us: f64,
    pub(crate) end_us: f64,
}

/// `users`: virtual users over time, and what each does.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UsersPlan {
    /// At 127.0.0.1.
    pub(crate) port: u16,
    #[serde(default = "default_path")]
    pub(crate) path: String,
    pub(crate) start_users: u32,
    pub(crate) stages: Vec<Stage>,
    /// Keys that the users are spread over: user u has key u mod this.
    pub(crate) channels: u32,
    /// Prefix of a key, before its number.
    pub(crate) key_prefix: String,
    /// One user in so many sends.
    pub(crate) users_per_sender: u32,
    /// How likely a sender sends in a round, in steps of a tenth.
    pub(crate) sending_rate: f64,
    /// Rounds of sending and listening, per iteration.
    pub(crate) rounds: u32,
    pub(crate) history: HistoryRequest,
    pub(crate) seed: u32,
    /// Limit for a connection and for each answer.
    pub(crate) timeout_ms: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct HistoryRequest {
    /// Options of the first request: `rewind=10000 limit=500`.
    pub(crate) first: String,
    /// Options, beside `since`, of requests after an incomplete answer.
    pub(crate) next: String,
    /// The answers must cover this many milliseconds.
    pub(crate) window_ms: u64,
}

/// The number of users changes evenly to `users`, within the duration.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Stage {
    pub(crate) duration_ms: u64,
    pub(crate) users: u32,
}

/// `replay`: one client that replays a log.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReplayPlan {
    /// At 127.0.0.1.
    pub(crate) port: u16,
    pub(crate) path: String,
    /// One listen each, sent together.
    pub(crate) keys: Vec<String>,
    /// Options of the first `listen`: `rewind=600000`.
    pub(crate) first: String,
    /// Of each key, the messages numbered from 1 to this must come, in order.
    pub(crate) messages: u32,
    /// Key of the messages that the client publishes beside.
    pub(crate) publish_key: String,
    pub(crate) publish_every_ms: u64,
    /// Replays repeat for this long; at least one runs.
    pub(crate) duration_ms: u64,
    /// For the server to be silent.
    pub(crate) timeout_ms: u64,
}
