//! The bench's load generators and the bare server for comparison; see the README of this crate.

pub mod clients;
mod clock;
mod descriptors;
mod digits;
mod header;
mod latencies;
mod lines;
mod link;
pub mod loadgen;
mod poller;
pub mod raw;
mod socket;
pub mod users;
