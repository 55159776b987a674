//! What crosses between JavaScript and the shards: packed commands one way, packed events and sockets the other.

pub(crate) mod batch;
pub(crate) mod command;
pub(crate) mod event;
pub(crate) mod event_queue;
pub(crate) mod event_reader;
pub(crate) mod http_sockets;
pub(crate) mod mailbox;
pub(crate) mod waker;
