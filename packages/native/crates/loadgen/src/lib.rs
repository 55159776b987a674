//! The bench's load generator and the bare server that it is compared with: see the README beside this crate.
