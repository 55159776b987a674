//! The bench's load generator and the bare server for comparison; see the README of this crate.

mod clock;
mod digits;
mod header;
mod latencies;
mod lines;
pub mod loadgen;
mod poller;
pub mod raw;
mod socket;
