//! `webmq-loadgen users`: virtual users who connect, listen, read the history, talk for a while and leave, again and again.

mod control;
mod crowd;
mod frames;
mod incoming;
mod iteration;
mod ledger;
mod metrics;
mod plan;
mod random;
mod replay;
mod timers;
mod user;
mod verify;

use std::process::ExitCode;

/// Runs the program. All commands come on stdin.
#[must_use]
pub fn run() -> ExitCode {
    match control::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("webmq-loadgen users: {error}");
            ExitCode::FAILURE
        }
    }
}
