//! The plans that the generator plays.

use serde::Deserialize;

use super::default_path;

/// One message of the scenario `clients`, written as a list: `[client, turn, key, keySequence, atUs]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Publication {
    pub(crate) client: u32,
    /// Negative: belongs to the warm-up and is not counted.
    pub(crate) turn: i64,
    pub(crate) key: u32,
    /// How many messages of the window this client has published to this key before.
    pub(crate) key_sequence: u32,
    /// Intended send time after the start of the window; negative in the warm-up.
    pub(crate) at_us: i64,
}

/// `clients`: connects clients that publish and listen by a plan.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PlayClients {
    /// The keys that each client listens to, ascending.
    pub(crate) listens: Vec<Vec<u32>>,
    /// All messages, in the order of sending.
    pub(crate) sends: Vec<Publication>,
    /// As long as a message. Its start fills each message up.
    pub(crate) padding: String,
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
    /// Users of whom one sends.
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
