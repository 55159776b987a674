//! Which sockets of a shard are ready: the only code that knows how the system tells.
//!
//! | | `epoll.rs` (Linux) | `kqueue.rs` (macOS) |
//! | --- | --- | --- |
//! | a connection, a relay | one edge-triggered registration | two filters, for reading and for writing: up to two [`Ready`] a wait |
//! | end of the peer's output | `RDHUP` | `EV_EOF` of the read filter |
//! | both directions are over | `HUP`, `ERR` | `EV_EOF` with an error |
//! | the listening socket | level-triggered, wakes one shard (`EXCLUSIVE`) | level-triggered, wakes all shards |
//! | [`WakeUp`] | an eventfd, edge-triggered and never read | a user event |
//! | [`Nudge`] | an eventfd | a kqueue with one user event |
//!
//! Edge-triggered means: reported when it is added, if it is ready then, and afterwards once whenever something happens.
//! The descriptor of a [`Poller`] is readable while a wait would return something, so libuv and `poll` can watch it
//! level-triggered.

#[cfg_attr(target_os = "linux", path = "epoll.rs")]
#[cfg_attr(target_os = "macos", path = "kqueue.rs")]
mod system;

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::id::ConnectionId;
pub(crate) use system::{Nudge, Poller, WakeUp};

/// Ready sockets that are taken per wait.
const MAX_READY: usize = 1_024;

/// What a wait of a [`Poller`] has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    /// The shard was woken for something else than a socket.
    WakeUp,
    /// Somebody wants to connect.
    Listener,
    /// The connection may be gone already: its id tells it from its successor.
    Connection(ConnectionId, Flags),
    /// Something happened to the socket that leads a relayed connection to Node.
    Relay(ConnectionId),
}

/// What a connection is ready for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) is_readable: bool,
    pub(crate) is_writable: bool,
    /// The peer will send nothing more, or is gone. What it has sent is still to be read.
    pub(crate) has_hung_up: bool,
    /// Both directions are over: a reset, for one. Includes `has_hung_up`.
    pub(crate) is_broken: bool,
}

/// Data of what is no connection; ids of connections have 53 bits.
const WAKE_UP: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;
/// Added to the id of a connection for its relay.
const RELAY: u64 = 1 << 62;

impl Poller {
    pub(crate) fn add_connection(&self, socket: &OwnedFd, id: ConnectionId) -> Result<(), Errno> {
        self.add(socket, id.to_number() as u64)
    }

    /// Reports the socket that leads a relayed connection to Node.
    pub(crate) fn add_relay(&self, socket: &OwnedFd, id: ConnectionId) -> Result<(), Errno> {
        self.add(socket, id.to_number() as u64 | RELAY)
    }
}

/// `None`: the data is not ours.
fn ready_of(data: u64, flags: Flags) -> Option<Ready> {
    match data {
        WAKE_UP => Some(Ready::WakeUp),
        LISTENER => Some(Ready::Listener),
        data if data & RELAY != 0 => Some(Ready::Relay(ConnectionId::from_number((data - RELAY) as f64)?)),
        data => Some(Ready::Connection(ConnectionId::from_number(data as f64)?, flags)),
    }
}

/// Reason why [`stand_by`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// A wait of the poller would return something.
    SocketReady,
    /// The time is over, or the nudge was sent.
    Due,
}

/// Blocks until the nudge is sent, or `timeout` is over (`None`: no limit), or `poller` has something. Takes nothing from the
/// poller.
pub(crate) fn stand_by(nudge: &Nudge, poller: Option<&Poller>, timeout: Option<Duration>) -> Woken {
    let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
    let nudged = PollFd::new(nudge.descriptor(), PollFlags::IN);
    let socket = PollFd::new(poller.map_or(nudge.descriptor(), |poller| poller.descriptor()), PollFlags::IN);
    let mut watched = [nudged, socket];
    let count = if poller.is_some() { 2 } else { 1 };
    // It fails only when a signal interrupts it: then the caller looks once more than needed.
    let polled = poll(&mut watched[..count], timeout.as_ref());
    debug_assert!(matches!(polled, Ok(_) | Err(Errno::INTR)), "{polled:?}");
    let [nudged, socket] = watched;
    if !nudged.revents().is_empty() {
        nudge.clear();
        return Woken::Due;
    }
    if poller.is_some() && !socket.revents().is_empty() { Woken::SocketReady } else { Woken::Due }
}

#[cfg(test)]
#[path = "poller_test.rs"]
mod tests;
