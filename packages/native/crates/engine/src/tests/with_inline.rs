//! The same tests with inline mode.

#[path = "backpressure.rs"]
mod backpressure;
#[path = "connections.rs"]
mod connections;
#[path = "deflate.rs"]
mod deflate;
#[path = "inbound.rs"]
mod inbound;
#[path = "large_messages.rs"]
mod large_messages;
#[path = "lifecycle.rs"]
mod lifecycle;
#[path = "prepared_answer.rs"]
mod prepared_answer;
#[path = "proxy_protocol.rs"]
mod proxy_protocol;
#[path = "tls.rs"]
mod tls;
#[path = "urgent.rs"]
mod urgent;

use super::client;

mod rig {
    pub(super) use super::super::rig::{AnyRig, Told};

    pub(super) type Rig = AnyRig<true>;
}
