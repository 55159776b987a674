//! The state of a connection, kept small: a process holds tens of thousands.

use super::sequence::Sequence;
use super::stash::StashId;
use super::stream::Stream;

/// A connection's index in its thread's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot(pub(crate) u32);

impl Slot {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a group of connections, which listen to the same key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GroupId(pub(crate) u16);

impl GroupId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Vacant,
    /// The TCP connection is not established yet.
    Connecting,
    /// The TLS handshake is under way.
    Securing,
    /// The request or the response is on its way.
    Upgrading,
    /// Upgraded; the message that makes it ready has not come.
    Preparing,
    Open,
    /// Counted as closed; only the end of the TCP connection is outstanding.
    Ending,
}

/// Messages that a connection waits for; several may be set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Awaited(u8);

impl Awaited {
    /// The message that makes it ready.
    pub(crate) const READY: Self = Self(1);
    pub(crate) const ANSWER: Self = Self(2);
    /// The message that answers an application's ping.
    pub(crate) const APP_PONG: Self = Self(4);
    /// A WebSocket pong.
    pub(crate) const PONG: Self = Self(8);
    /// The answer to a close frame.
    pub(crate) const CLOSE: Self = Self(16);

    #[inline]
    pub(crate) fn is_nothing(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(crate) fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }
}

/// How a connection reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    Freely,
    /// This many bytes per tick.
    Throttled,
    Stopped,
}

impl Phase {
    /// Neither ready nor over.
    pub(crate) fn is_opening(self) -> bool {
        matches!(self, Self::Connecting | Self::Securing | Self::Upgrading | Self::Preparing)
    }
}

/// No sender of the current `flood-in`.
pub(crate) const NO_SENDER: u32 = u32::MAX;
/// No plan plays it.
pub(crate) const NO_PLAYER: u32 = u32::MAX;

pub(crate) struct Connection {
    pub(crate) stream: Option<Stream>,
    pub(crate) phase: Phase,
    pub(crate) awaited: Awaited,
    pub(crate) reading: Reading,
    pub(crate) is_compressed: bool,
    /// Got a counted frame in its window.
    pub(crate) has_counted: bool,
    /// It has ended, and its jobs have not been told.
    pub(crate) is_loss_unseen: bool,
    /// It is closed once they have.
    pub(crate) is_cut: bool,
    /// Output is pending that the socket did not take.
    pub(crate) has_backlog: bool,
    pub(crate) group: GroupId,
    /// Window that `sequence` belongs to.
    pub(crate) window: u32,
    pub(crate) stash: Option<StashId>,
    /// Index among the senders of the current `flood-in`.
    pub(crate) sender: u32,
    /// Index among the players of the current plan, which gets its messages whole.
    pub(crate) player: u32,
    /// Pings not sent yet.
    pub(crate) ping_count: u32,
    /// Bytes to skip of the frame whose start is stashed.
    pub(crate) skip_bytes: u64,
    pub(crate) sequence: Sequence,
    /// When it started, or last pinged.
    pub(crate) began_us: u64,
}

impl Connection {
    pub(crate) fn vacant() -> Self {
        Self {
            stream: None,
            phase: Phase::Vacant,
            awaited: Awaited::default(),
            reading: Reading::Freely,
            is_compressed: false,
            has_counted: false,
            is_loss_unseen: false,
            is_cut: false,
            has_backlog: false,
            group: GroupId::default(),
            window: 0,
            stash: None,
            sender: NO_SENDER,
            player: NO_PLAYER,
            ping_count: 0,
            skip_bytes: 0,
            sequence: Sequence::default(),
            began_us: 0,
        }
    }

    pub(crate) fn is_slow(&self) -> bool {
        self.reading != Reading::Freely
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_small() {
        assert!(size_of::<Connection>() <= 96, "{} bytes", size_of::<Connection>());
    }
}
