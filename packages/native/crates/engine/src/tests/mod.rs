//! The engine over real sockets.
#![expect(clippy::duplicate_mod, reason = "what holds without a guest holds with one")]

mod backpressure;
mod client;
mod connections;
mod deflate;
mod inline;
mod lifecycle;
mod rig;
mod with_inline;
