//! The engine over real sockets.

mod backpressure;
mod client;
mod connections;
mod lifecycle;
mod rig;
