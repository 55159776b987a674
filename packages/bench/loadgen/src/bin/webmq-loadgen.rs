//! The bench's load generator: see the README of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    webmq_loadgen::loadgen::run(std::env::args().skip(1))
}
