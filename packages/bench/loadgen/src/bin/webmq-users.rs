//! Virtual users: see the README of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    webmq_loadgen::users::run()
}
