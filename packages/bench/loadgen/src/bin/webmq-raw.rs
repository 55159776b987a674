//! The bare shared-log server: see the README of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    webmq_loadgen::raw::run(std::env::args().skip(1))
}
