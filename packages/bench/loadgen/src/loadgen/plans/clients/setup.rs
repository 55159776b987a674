//! What all threads of a run share.

use std::net::SocketAddr;

use super::payload::PayloadEncoder;
use super::plan::KeyPlan;
use crate::loadgen::plans::{loopback, opening};
use crate::loadgen::protocol::plans::PlayClients;

const MAX_BACKENDS: usize = 1_024;
const MAX_TIMEOUT_MS: u64 = 600_000;

pub(crate) struct Setup {
    pub(crate) plan: KeyPlan,
    pub(super) encoder: PayloadEncoder,
    pub(super) key_prefix: String,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) path: String,
    pub(super) timeout_us: u64,
}

impl Setup {
    /// # Errors
    /// A run that is too large, or cannot be.
    pub(crate) fn new(command: PlayClients) -> Result<Self, String> {
        let PlayClients { listens, sends, padding, ports, path, key_prefix, timeout_ms } = command;
        if ports.is_empty() || ports.len() > MAX_BACKENDS || timeout_ms > MAX_TIMEOUT_MS {
            return Err(format!("clients: 1 to {MAX_BACKENDS} ports, timeoutMs at most {MAX_TIMEOUT_MS}"));
        }
        let addresses: Vec<_> = ports.into_iter().map(loopback).collect();
        for address in &addresses {
            opening(*address, &path)?;
        }
        Ok(Self {
            encoder: PayloadEncoder::new(padding)?,
            plan: KeyPlan::new(listens, sends)?,
            key_prefix,
            addresses,
            path,
            timeout_us: timeout_ms * 1_000,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{listens, sends};
    use super::*;

    fn command() -> PlayClients {
        PlayClients {
            listens: listens(),
            sends: sends(),
            padding: "a".repeat(200),
            ports: vec![1, 2],
            path: "/ws".to_owned(),
            key_prefix: "bench".to_owned(),
            timeout_ms: 1_000,
        }
    }

    #[test]
    fn a_run_that_is_too_large_or_cannot_be_is_refused() {
        let refused = |change: &dyn Fn(&mut PlayClients)| {
            let mut command = command();
            change(&mut command);
            assert!(Setup::new(command).is_err());
        };
        assert!(Setup::new(command()).is_ok());
        refused(&|command| command.padding.clear());
        refused(&|command| command.ports.clear());
        refused(&|command| command.ports = vec![1; MAX_BACKENDS + 1]);
        refused(&|command| command.timeout_ms = MAX_TIMEOUT_MS + 1);
        refused(&|command| command.path = "/\r\nX: y".to_owned());
        refused(&|command| command.listens.clear());
    }
}
