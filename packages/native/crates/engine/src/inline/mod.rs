mod policy;
mod shard_cell;
mod turn;

pub(crate) use policy::{Lending, WATCH_INTERVAL};
pub(crate) use shard_cell::Seat;
pub(crate) use turn::Next;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::Engine;

/// What a guest does: a thread with an event loop of its own, on which the work of shards is done while there is little of it.
impl Engine {
    /// Lends shards that have little to do, from now on: whoever has called this waits for their [`descriptor`] to be
    /// readable and does their [`guest_turn`] then. It rings when a shard was lent.
    ///
    /// One thread at a time; it may be another one than submits.
    ///
    /// [`descriptor`]: Self::descriptor
    /// [`guest_turn`]: Self::guest_turn
    pub fn welcome_guest(&self) {
        self.shared.has_guest.store(true, Ordering::SeqCst);
    }

    /// Has the threads do everything, from now on.
    pub fn dismiss_guest(&self) {
        self.shared.has_guest.store(false, Ordering::SeqCst);
        (0..self.shard_count()).for_each(|shard| self.take_back(shard));
    }

    /// Number of shards: they are numbered from 0.
    pub fn shard_count(&self) -> usize {
        self.seats.len()
    }

    /// What is readable when a lent shard has something to do. To be watched level-triggered, and only while it is lent.
    pub fn descriptor(&self, shard: usize) -> Arc<OwnedFd> {
        Arc::clone(&self.shared.ports[shard].epoll)
    }

    /// Whether a shard is lent.
    pub fn is_lent(&self, shard: usize) -> bool {
        self.shared.ports[shard].mailbox.is_lent()
    }

    /// Does what a lent shard has to do, without waiting; returns whether there are events to be drained. Nothing is done for
    /// a shard that is not lent.
    pub fn guest_turn(&self, shard: usize) -> bool {
        self.seats[shard].turn(&self.shared.ports[shard].mailbox).unwrap_or(false)
    }

    /// To be called when the events of a [`guest_turn`](Self::guest_turn) were handled; returns whether there are more.
    pub fn guest_rest(&self, shard: usize) -> bool {
        self.seats[shard].rest(&self.shared.ports[shard].mailbox).unwrap_or(false)
    }

    /// Has a shard's own thread take it back.
    pub fn take_back(&self, shard: usize) {
        self.shared.ports[shard].mailbox.wake();
    }
}
