//! The engine over real sockets.

mod backpressure;
mod client;
mod connections;
mod deflate;
mod lifecycle;
mod rig;
