//! Inline mode: Node's event loop runs a shard that has little to do.
//!
//! A message that is answered changes threads twice: from the shard's thread to JavaScript and back. On an idle server
//! these two wake-ups cost more than all other work. In inline mode the event loop watches the shard's poller itself: it
//! reads, calls JavaScript, and writes the answer, all on one thread. The benchmark "Round trip on an idle server, p50"
//! (`docs/benchmarks.md`, target 1.1x of uWebSockets.js) needs this: 24 us without, 9 us with, 8 us for
//! uWebSockets.js. ADR 7 has the decision.
//!
//! One atomic in the [`Mailbox`](crate::bridge::mailbox::Mailbox) says who runs the shard:
//!
//! ```text
//!                     nothing to do ┌─────────┐
//!                  ┌───────────────▶│ ASLEEP  │  the thread waits for sockets
//!                  │◀───────────────└─────────┘  until a socket, mail or a deadline wakes it
//!             ┌────┴────┐
//!             │  AWAKE  │  the thread runs the shard
//!             └────┬────┘
//!                  │◀───────────────┌─────────┐  the thread waits for sockets and holds multicasts back
//!                  ├───────────────▶│ HOLDING │  until the flush is due, 64 KiB more arrived, or
//!                  │ multicasts wait└─────────┘  something else than a multicast arrives
//!                  │
//!                  │ quiet      ┌─────────┐  the event loop runs the shard;
//!                  └───────────▶│ INLINE  │  the thread stands by
//!                   ◀───────────└─────────┘
//!                    take back: mail, more work than the policy allows or none for JavaScript, the event loop is late
//! ```
//!
//! | file | what |
//! | --- | --- |
//! | `policy.rs` | when a shard goes inline, and how much it may do there |
//! | `turn.rs` | one turn of the event loop |
//! | `shard_cell.rs` | the lock that passes the shard between the two threads |
//! | `standby.rs` | the shard's thread meanwhile: deadlines, and the work of a late event loop |
//!
//! Order and delivery do not depend on who runs the shard. Commands wait in one queue, which an inline turn bypasses only
//! when it is empty. The poller's descriptor is watched level-triggered, so no readiness is lost when the shard changes threads.

mod policy;
mod shard_cell;
mod standby;
mod turn;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::Engine;
pub(crate) use shard_cell::ShardCell;
pub(crate) use turn::InlineState;

/// Inline mode, for the thread that has an event loop. One thread at a time calls this; it may be another one than the
/// one that submits.
impl Engine {
    /// Lets shards with little to do go inline. The caller waits for their [`descriptor`](Self::descriptor) to be readable
    /// and then calls [`inline_turn`](Self::inline_turn). The engine wakes JavaScript when a shard went inline.
    pub fn enable_inline(&self) {
        self.shared.is_inline_enabled.store(true, Ordering::SeqCst);
    }

    /// Returns all shards to their threads, for good.
    pub fn disable_inline(&self) {
        self.shared.is_inline_enabled.store(false, Ordering::SeqCst);
        (0..self.shard_count()).for_each(|shard| self.take_back(shard));
    }

    /// Number of shards. Their indexes begin at 0.
    pub fn shard_count(&self) -> usize {
        self.cells.len()
    }

    /// Readable when an inline shard has something to do. Watch it level-triggered, and only while
    /// [`is_inline`](Self::is_inline).
    pub fn descriptor(&self, shard: usize) -> Arc<OwnedFd> {
        Arc::clone(self.shared.shards[shard].poller.descriptor())
    }

    /// Whether the event loop runs this shard.
    pub fn is_inline(&self, shard: usize) -> bool {
        self.shared.shards[shard].mailbox.is_inline()
    }

    /// Does the waiting work of an inline shard, without blocking. Returns whether there are events to drain. Does nothing
    /// for a shard that is not inline. While the caller has drained events to handle, the shard goes back to its thread: new
    /// events must not be handled before those.
    pub fn inline_turn(&self, shard: usize) -> bool {
        if self.shared.is_reading.load(Ordering::Acquire) {
            self.take_back(shard);
            return false;
        }
        self.cells[shard].turn(&self.shared.shards[shard].mailbox).unwrap_or(false)
    }

    /// Ends an [`inline_turn`](Self::inline_turn) after its events were handled. Returns whether there are more.
    pub fn finish_inline_turn(&self, shard: usize) -> bool {
        self.cells[shard].finish_turn(&self.shared.shards[shard].mailbox).unwrap_or(false)
    }

    /// Returns a shard to its thread.
    pub fn take_back(&self, shard: usize) {
        self.shared.shards[shard].mailbox.wake();
    }
}
