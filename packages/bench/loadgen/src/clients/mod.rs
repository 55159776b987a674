//! `webmq-loadgen clients`: plays the clients of the bench's scenario `clients`, by the same plan as the client library.

mod client;
mod control;
mod counters;
mod crew;
mod incoming;
mod payload;
mod plan;
mod random;
mod receiving;
mod schedule;
mod tally;
mod tracker;

use std::process::ExitCode;

/// Runs the program. All commands come on stdin.
#[must_use]
pub fn run() -> ExitCode {
    match control::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("webmq-loadgen clients: {error}");
            ExitCode::FAILURE
        }
    }
}
