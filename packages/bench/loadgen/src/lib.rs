//! The bench's load generator and the bare server that it is compared with: see the README beside this crate.

mod clock;
mod descriptors;
mod digits;
mod header;
mod latencies;
mod lines;
pub mod loadgen;
mod poller;
pub mod raw;
mod socket;
pub mod users;
