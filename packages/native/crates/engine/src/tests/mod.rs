//! The engine over real sockets.
#![expect(clippy::duplicate_mod, reason = "the same must hold with inline mode and without")]

mod backpressure;
mod client;
mod connections;
mod deflate;
mod event_stream;
mod inbound;
mod inline;
#[cfg(shuttle)]
mod interleavings;
mod large_messages;
mod lifecycle;
pub(crate) mod packer;
mod prepared_answer;
mod proxy_protocol;
mod rig;
mod tls;
mod urgent;
mod with_inline;
