//! The load generator and the bare server: see the README of this crate. One program, because linking each takes most of a
//! minute.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    match arguments.peek().map(String::as_str) {
        Some("raw") => webmq_loadgen::raw::run(arguments.skip(1)),
        _ => webmq_loadgen::loadgen::run(arguments),
    }
}
