//! WebMQ's I/O engine: threads that own WebSocket connections and fan frames out to them.
//!
//! Knows connections, groups and frames; no key, pattern or verb of WebMQ, and nothing of Node.
//!
//! ```text
//! Engine ─ submit ─ Batch ─ Mailbox ─▶ Shard: apply ─ Fanout (cohort logs, chains) ─ sockets
//!        ◀ drain ─ EventReader ─ EventQueue (two lanes) ◀─ Shard: receive ─ Decoder ─ sockets
//! ```

mod backpressure;
mod bridge;
mod engine;
mod error;
mod fanout;
#[cfg(fuzzing)]
pub mod fuzzing;
mod id;
mod inline;
mod options;
mod proxy_protocol;
mod readiness;
mod shard;
mod shared;
mod socket;
mod stats;
mod sync;
#[cfg(test)]
mod tests;
mod tls;

pub use bridge::command::MalformedBatch;
pub use engine::{Drained, Engine};
pub use error::EngineError;
pub use id::{ConnectionId, GroupId, MAX_SHARDS};
pub use options::Options;
pub use proxy_protocol::{InvalidNetwork, Network};
pub use stats::Stats;
pub use tls::CertificatePem;
