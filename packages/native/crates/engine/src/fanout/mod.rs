//! Output of a shard: who is sent what, in which order, and what still waits for whom.
//!
//! ```text
//! multicast ─ groups ─ cohorts ─ one log each      members that are caught up: one common position
//!                                                  all others: a cursor, and a chain that goes first
//! send, except, change of groups ───────────────── ranges in the member's chain
//! ```
//!
//! Every connection is a member, with one [`State`](member::State):
//!
//! What waits for a member goes in this order: its chain, its backlog, the log from its cursor. Only a member whose socket
//! was full, and that is in a group whose frames may be left out, has a backlog. "Chain" below means both.
//!
//! | state | its cohort lists it in | the fan-out lists it in | what waits |
//! | --- | --- | --- | --- |
//! | `CaughtUp` | `caught_up` | - | at most the log from `caught_up_to`, as for the others |
//! | `CatchingUp` | `behind` | `write_now` | its chain, then the log from its cursor |
//! | `Rejoining` | `behind` | `rejoining` | the log from its cursor, which was at `caught_up_to` or beyond |
//! | `Blocked` | `behind` | -, until [`unblock`](Fanout::unblock) | its chain, then the log from its cursor |
//!
//! ```text
//!              something of its own waits               the socket is full
//! CaughtUp ───────────────────────────────▶ CatchingUp ───────────────────▶ Blocked
//!    ▲ │                                      ▲    │  ▲                        │ ▲
//!    │ │                   something of its own│    │  └───────────────────────┘ │
//!    │ │                                      │    ▼ all written   ready again  │
//!    └─┼───────────────────────────────────── Rejoining                         │
//!      │      cohort flushed                                                    │
//!      └────────────────────────── the socket is full ──────────────────────────┘
//! ```
//!
//! Invariants:
//! - A member without a cohort is not `Rejoining`. It has a chain, or it is `CaughtUp`, or a flush visits it once more.
//! - A member with a chain is not `CaughtUp`, and every state but `CaughtUp` has somebody who visits the member: a list of the
//!   fan-out, or the poller. So no output is forgotten.
//! - The lists of the fan-out may name a member that has left the state since. The state decides.
//!
//! Knows no socket: bytes leave through [`Wire`].

mod arena;
mod backlog;
mod chain;
mod chunk;
mod cohort;
mod dirty;
mod enqueue;
mod flush;
mod index;
mod log;
mod member;
mod membership;
#[cfg(test)]
mod model_test;
mod overflow;
#[cfg(test)]
mod overflow_model_test;
#[cfg(test)]
mod overflow_test;
mod pool;
mod reclaim;
mod records;
mod write;
#[cfg(test)]
mod write_order_test;
#[cfg(test)]
mod write_size_test;

pub(crate) use flush::Outcome;
pub(crate) use member::OutboxLevel;
pub(crate) use records::Policy;
pub(crate) use write::{Wire, Written};

use webmq_websocket::Deflater;

use crate::id::Slot;
use arena::Arena;
use cohort::Encoding;
use dirty::Dirty;
use index::CohortIndex;
use member::{Member, State};
use overflow::Overflows;
use pool::ChunkPool;

/// While more output arrives, the caught-up members of a cohort are written to only when this many bytes wait for them.
const MIN_FULL_COHORT_BYTES: usize = 64 << 10;

/// Groups, logs and outboxes of the connections of one shard.
pub(crate) struct Fanout {
    members: Vec<Member>,
    index: CohortIndex,
    arena: Arena,
    stream_arena: Arena,
    pool: ChunkPool,
    max_outbox_bytes: u64,
    /// A flush is due when more than this waits for the caught-up members of one cohort: the size of this turn's chunk, so
    /// that it is one write each.
    max_unflushed_cohort_bytes: u64,
    /// Number of the last multicast.
    multicast: u64,
    batch: u64,
    dirty: Dirty,
    blocked_count: usize,
    /// Bytes that the wire holds for blocked members.
    held_bytes: usize,
    lagging_cohort_count: usize,
    staging: Vec<u8>,
    /// Compresses for all connections; there is no state per connection (RFC 7692 §7.1.1.1).
    deflater: Deflater,
    outcome: Outcome,
    overflows: Overflows,
}

// SAFETY: the reference counts, cells and chunks that keep it from being `Send` are all its own: no reference to one is ever
// given out (what leaves is copied, or borrowed for the time of a `Wire::write`), and there is none in a static or a thread
// local. So it changes threads only as a whole, with everything that refers to anything in it; `Mutex` orders the accesses.
//
// The safe alternative, `Arc` and a lock per chunk, would cost every frame and write of a shard that never moves.
unsafe impl Send for Fanout {}

impl Fanout {
    pub(crate) fn new(max_outbox_bytes: usize) -> Self {
        let pool = ChunkPool::new(max_outbox_bytes);
        Self {
            members: Vec::new(),
            index: CohortIndex::default(),
            arena: Arena::default(),
            stream_arena: Arena::of_streams(),
            max_unflushed_cohort_bytes: pool.transient().bytes().max(MIN_FULL_COHORT_BYTES) as u64,
            pool,
            max_outbox_bytes: max_outbox_bytes as u64,
            multicast: 0,
            batch: 1,
            dirty: Dirty::default(),
            blocked_count: 0,
            held_bytes: 0,
            lagging_cohort_count: 0,
            staging: Vec::new(),
            deflater: Deflater::default(),
            outcome: Outcome::default(),
            overflows: Overflows::default(),
        }
    }

    /// Begins a connection: no groups, nothing to write.
    pub(crate) fn insert(&mut self, slot: Slot) {
        if self.members.len() <= slot.index() {
            self.members.resize_with(slot.index() + 1, Member::default);
        }
        self.members[slot.index()] = Member::default();
    }

    /// The connection takes compressed messages. It must not be in a group yet.
    pub(crate) fn enable_deflate(&mut self, slot: Slot) {
        let member = &mut self.members[slot.index()];
        debug_assert!(member.cohort.is_none(), "the members of a cohort have one encoding");
        member.encoding = Encoding::Deflated;
    }

    /// The connection is an event stream. It must not be in a group yet.
    pub(crate) fn enable_stream(&mut self, slot: Slot) {
        let member = &mut self.members[slot.index()];
        debug_assert!(member.cohort.is_none(), "the members of a cohort have one encoding");
        member.encoding = Encoding::Stream;
    }

    /// Whether the socket of a connection is full.
    pub(crate) fn is_blocked(&self, slot: Slot) -> bool {
        self.members[slot.index()].is_blocked()
    }

    /// Ends a connection and frees what waits for it alone.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.take_from_cohort(slot);
        self.set_state(slot, State::CaughtUp);
        self.note_held(slot, 0);
        let mut member = std::mem::take(&mut self.members[slot.index()]);
        member.chain.consume(member.chain.bytes(), &mut self.pool);
        member.backlog = None;
    }

    /// Bytes that wait. Bytes that several connections wait for count once.
    pub(crate) fn outbox_bytes(&self) -> usize {
        self.pool.gauge().bytes() + self.held_bytes
    }

    /// The wire holds less for a blocked connection than before. Has no effect on others.
    pub(crate) fn update_held(&mut self, slot: Slot, bytes: usize) {
        if self.members[slot.index()].is_blocked() {
            self.note_held(slot, bytes);
        }
    }

    fn note_held(&mut self, slot: Slot, bytes: usize) {
        let before = std::mem::replace(&mut self.members[slot.index()].held_bytes, bytes as u32);
        self.held_bytes = self.held_bytes + bytes - before as usize;
    }

    /// Connections whose socket is full.
    pub(crate) fn blocked_count(&self) -> usize {
        self.blocked_count
    }

    /// A connection lags; see [`Backpressure`](crate::backpressure).
    pub(crate) fn is_lagging(&self) -> bool {
        self.lagging_cohort_count > 0
    }

    fn set_state(&mut self, slot: Slot, state: State) {
        let member = &mut self.members[slot.index()];
        let was_blocked = member.is_blocked();
        let was_rejoining = std::mem::replace(&mut member.state, state) == State::Rejoining;
        member.has_lagged = match state {
            State::Blocked { .. } => true,
            State::CatchingUp => member.has_lagged,
            State::CaughtUp | State::Rejoining => false,
        };
        self.blocked_count = self.blocked_count + usize::from(member.is_blocked()) - usize::from(was_blocked);
        self.dirty.rejoining_count =
            self.dirty.rejoining_count + usize::from(state == State::Rejoining) - usize::from(was_rejoining);
    }
}
