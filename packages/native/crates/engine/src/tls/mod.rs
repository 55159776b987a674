//! TLS 1.2 and 1.3 for the listening socket, by rustls and ring. ADR 25 has the decision.
//!
//! | file | what |
//! | --- | --- |
//! | `certificates.rs` | PEM pairs, and which of them a handshake gets |
//! | `config.rs` | the settings of new handshakes; replaceable at run time |
//! | `session.rs` | one connection: decrypts what came, encrypts what leaves |
//!
//! Knows no WebSocket. [`shard::encrypted`](crate::shard) reads and writes through it, and
//! [`shard::relay`](crate::shard) passes plain HTTP on to Node.

mod certificates;
mod config;
mod session;

pub use certificates::CertificatePem;
pub(crate) use config::TlsConfig;
#[cfg(fuzzing)]
pub use session::fuzzing::{TlsServer, TlsSettings};
pub(crate) use session::{Received, STAGING_BYTES, Session};
