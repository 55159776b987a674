//! Output of a shard: who is sent what, in which order, and what still waits for whom.
//!
//! ```text
//! multicast ─ groups ─ cohorts ─ one log each      level members: one common position
//!                                                  others: a cursor, and a chain of ranges that goes first
//! send, except, change of groups ───────────────── ranges in the connection's chain
//! ```
//!
//! Knows no socket: bytes leave through [`Wire`].

mod arena;
mod chain;
mod chunk;
mod cohort;
mod flush;
mod index;
mod log;
mod member;
mod membership;
#[cfg(test)]
mod model_test;
mod pool;
mod reclaim;
#[cfg(test)]
mod write_order_test;
#[cfg(test)]
mod write_size_test;

pub(crate) use flush::{Outcome, Wire, Written};

use webmq_websocket::Deflater;

use crate::bridge::batch::Frame;
use crate::id::{GroupId, Slot};
use arena::Arena;
use chain::Piece;
use cohort::{CohortId, Encoding};
use index::CohortIndex;
use member::Member;
use pool::ChunkPool;

/// Level members of a cohort are not written to before this much waits for them, if more is at hand.
const MIN_FULL_COHORT_BYTES: usize = 64 << 10;
/// One in so many connections with a full socket are a congestion. A machine that reads for many connections does so one after
/// another: few are full at a time, and yet each falls behind in its turn.
const CONGESTED_SHARE: usize = 32;
/// Fewer are no congestion unless they are most.
const MIN_CONGESTED: usize = 4;
/// Frames that wait for a flush that is held back, over all cohorts.
const MAX_UNFLUSHED_BYTES: usize = 4 << 20;

/// Groups, logs and outboxes of the connections of one shard.
pub(crate) struct Fanout {
    members: Vec<Member>,
    index: CohortIndex,
    arena: Arena,
    pool: ChunkPool,
    max_outbox_bytes: u64,
    /// Level members of a cohort are written to at the latest when this much waits for them: what a chunk of this turn holds,
    /// so that it is one write each.
    max_unflushed_cohort_bytes: u64,
    /// Number of the last multicast.
    stamp: u64,
    is_flush_due: bool,
    dirty_cohorts: Vec<CohortId>,
    touched_cohorts: Vec<CohortId>,
    dirty_members: Vec<Slot>,
    /// Members that wait for nothing but what the level ones of their cohort wait for, too.
    trailing_members: Vec<Slot>,
    fresh_members: Vec<Slot>,
    /// Level members of the dirty cohorts.
    level_writes: usize,
    /// Level members that the multicasts of this batch are for.
    batch_writes: usize,
    /// Number of the batch.
    batch: u64,
    staging: Vec<u8>,
    /// Compresses for all connections; there is no state per connection (RFC 7692 §7.1.1.1).
    deflater: Deflater,
    outcome: Outcome,
    /// Connections whose socket is full.
    blocked_count: usize,
    /// Cohorts with a member that is far behind.
    lagging_count: usize,
}

// SAFETY: the reference counts, cells and chunks that keep it from being `Send` are all its own: no reference to one is ever
// given out (what leaves is copied, or lent for the time of a `Wire::write`), and there is none in a static or a thread
// local. So it changes threads only as a whole, with everything that refers to anything in it; `Mutex` orders the accesses.
//
// The safe alternative, `Arc` and a lock per chunk, would be paid for by every frame and write of a shard that never moves.
unsafe impl Send for Fanout {}

impl Fanout {
    pub(crate) fn new(max_outbox_bytes: usize) -> Self {
        let pool = ChunkPool::new(max_outbox_bytes);
        Self {
            members: Vec::new(),
            index: CohortIndex::default(),
            arena: Arena::default(),
            max_unflushed_cohort_bytes: pool.transient().bytes().max(MIN_FULL_COHORT_BYTES) as u64,
            pool,
            max_outbox_bytes: max_outbox_bytes as u64,
            stamp: 0,
            is_flush_due: false,
            dirty_cohorts: Vec::new(),
            touched_cohorts: Vec::new(),
            dirty_members: Vec::new(),
            trailing_members: Vec::new(),
            fresh_members: Vec::new(),
            level_writes: 0,
            batch_writes: 0,
            batch: 1,
            staging: Vec::new(),
            deflater: Deflater::default(),
            outcome: Outcome::default(),
            blocked_count: 0,
            lagging_count: 0,
        }
    }

    /// Bytes that wait, shared ones counted once.
    pub(crate) fn outbox_bytes(&self) -> usize {
        self.pool.gauge().bytes()
    }

    /// Many connections do not take what they are sent as fast as it comes, and a lot waits for one: who publishes should give
    /// them time. Readers that are slower than the others are not meant; few of them hold nobody up.
    pub(crate) fn is_congested(&self, connections: usize) -> bool {
        let blocked = self.blocked_count;
        let is_share = blocked >= MIN_CONGESTED && CONGESTED_SHARE * blocked > connections;
        (is_share || 2 * blocked > connections) && self.outbox_bytes() as u64 > self.max_outbox_bytes / 4
    }

    /// Somebody is half an outbox behind, and not yet less than a quarter again: without a rest it will soon be cut off.
    pub(crate) fn is_lagging(&self) -> bool {
        self.lagging_count > 0
    }

    /// Something should be written, or can be freed, in this turn.
    pub(crate) fn is_dirty(&self) -> bool {
        self.is_urgent() || self.is_held() || !self.fresh_members.is_empty() || !self.touched_cohorts.is_empty()
    }

    /// Something should be written that no hold is for: direct frames and their likes.
    pub(crate) fn is_urgent(&self) -> bool {
        !self.dirty_members.is_empty()
    }

    /// Multicasts wait that a flush may be held back for.
    pub(crate) fn is_held(&self) -> bool {
        !self.dirty_cohorts.is_empty() || !self.trailing_members.is_empty()
    }

    /// Writes, about, that the multicasts which wait need.
    pub(crate) fn held_writes(&self) -> usize {
        self.level_writes + self.trailing_members.len()
    }

    /// Writes, about, that the next flush makes.
    pub(crate) fn pending_writes(&self) -> usize {
        self.held_writes() + self.dirty_members.len()
    }

    /// Sockets are full.
    pub(crate) fn has_blocked(&self) -> bool {
        self.blocked_count > 0
    }

    /// Ends a batch; returns how many writes its multicasts need if they share them with no other batch.
    pub(crate) fn end_batch(&mut self) -> usize {
        self.batch += 1;
        std::mem::take(&mut self.batch_writes)
    }

    /// So much was appended that it should be written before more is.
    pub(crate) fn is_flush_due(&self) -> bool {
        self.is_flush_due
    }

    /// Begins a connection: no groups, nothing to write.
    pub(crate) fn insert(&mut self, slot: Slot) {
        if self.members.len() <= slot.index() {
            self.members.resize_with(slot.index() + 1, Member::default);
        }
        self.members[slot.index()] = Member::default();
    }

    /// The connection takes compressed messages. It is in no group yet.
    pub(crate) fn enable_deflate(&mut self, slot: Slot) {
        let member = &mut self.members[slot.index()];
        debug_assert!(member.cohort.is_none(), "the members of a cohort have one encoding");
        member.encoding = Encoding::Deflated;
    }

    /// Ends a connection; what waits for it alone is freed.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.take_from_cohort(slot);
        let mut member = std::mem::take(&mut self.members[slot.index()]);
        self.blocked_count -= usize::from(member.is_blocked);
        member.chain.consume(member.chain.bytes(), &mut self.pool);
    }

    /// Puts a frame into the outbox of every member of any of the groups but `except`; returns their number.
    ///
    /// Cost: one copy of the frame, one more of its compressed form if somebody takes that, and a constant per group and per
    /// matching cohort; members are not touched.
    pub(crate) fn multicast(
        &mut self,
        groups: impl Iterator<Item = GroupId>,
        frame: &Frame<'_>,
        except: Option<Slot>,
    ) -> usize {
        self.stamp += 1;
        let Self { stamp, index, arena, pool, members, deflater, dirty_cohorts, is_flush_due, .. } = self;
        let Self { batch, batch_writes, level_writes, max_unflushed_cohort_bytes, .. } = self;
        let mut plain: Option<Piece> = None;
        let mut deflated: Option<Piece> = None;
        let excluded_cohort = except.and_then(|slot| members[slot.index()].cohort);
        let mut excluded_from = None;
        let mut delivered = 0;
        for group in groups {
            index.for_each_of_group(group, |id, cohort| {
                let is_excluded_cohort = excluded_cohort == Some(id);
                let count = cohort.len() - usize::from(is_excluded_cohort);
                if std::mem::replace(&mut cohort.stamp, *stamp) == *stamp || count == 0 {
                    return;
                }
                if is_excluded_cohort {
                    excluded_from = Some((id, cohort.log.end()));
                }
                let piece = match cohort.encoding {
                    Encoding::Plain => plain.get_or_insert_with(|| arena.put(frame, pool)),
                    Encoding::Deflated => deflated.get_or_insert_with(|| match frame.deflated(deflater) {
                        Some(frame) => arena.put(&frame, pool),
                        None => plain.get_or_insert_with(|| arena.put(frame, pool)).clone(),
                    }),
                };
                cohort.log.append(piece);
                delivered += count;
                // Before the next frame of that size begins another chunk: its few bytes would be a write of their own.
                let with_next = cohort.log.end() - cohort.level_end + piece.len() as u64;
                *is_flush_due |= with_next > *max_unflushed_cohort_bytes;
                if !std::mem::replace(&mut cohort.is_dirty, true) {
                    dirty_cohorts.push(id);
                    *level_writes += cohort.level.len();
                }
                if std::mem::replace(&mut cohort.batch, *batch) != *batch {
                    *batch_writes += cohort.level.len();
                }
            });
        }
        self.is_flush_due |= self.arena.bytes() > MAX_UNFLUSHED_BYTES;
        if let (Some(slot), Some((id, start))) = (except, excluded_from) {
            self.skip(slot, id, start);
        }
        delivered
    }

    /// Puts a frame into the outbox of one connection.
    pub(crate) fn send(&mut self, slot: Slot, frame: &Frame<'_>) {
        self.close_range(slot);
        let encoding = self.members[slot.index()].encoding;
        let deflated = if encoding == Encoding::Plain { None } else { frame.deflated(&mut self.deflater) };
        let piece = self.arena.put(deflated.as_ref().unwrap_or(frame), &mut self.pool);
        self.members[slot.index()].chain.push_piece(piece);
        self.mark_written_to(slot);
    }

    /// Puts bytes that are not frames into the outbox of one connection.
    pub(crate) fn send_raw(&mut self, slot: Slot, bytes: Box<[u8]>) {
        self.close_range(slot);
        self.members[slot.index()].chain.push_raw(bytes, &self.pool);
        self.mark_written_to(slot);
    }

    /// Leaves all groups and drops what waits, but for the rest of a frame that was sent in part: a frame may follow.
    pub(crate) fn cut(&mut self, slot: Slot) {
        self.take_from_cohort(slot);
        self.members[slot.index()].chain.cut_to_current_frame(&self.pool);
    }

    /// The socket takes bytes again; `true` if it had refused some.
    pub(crate) fn unblock(&mut self, slot: Slot) -> bool {
        let was_blocked = std::mem::replace(&mut self.members[slot.index()].is_blocked, false);
        if was_blocked {
            self.blocked_count -= 1;
            self.mark_dirty(slot);
        }
        was_blocked
    }

    /// Says in [`Outcome::drained`] when nothing waits for the connection any more. It is in no group.
    pub(crate) fn watch(&mut self, slot: Slot) {
        self.members[slot.index()].is_watched = true;
        self.mark_dirty(slot);
    }

    /// Something was put into a member's chain.
    fn mark_written_to(&mut self, slot: Slot) {
        if !std::mem::replace(&mut self.members[slot.index()].is_fresh, true) {
            self.fresh_members.push(slot);
        }
        self.mark_dirty(slot);
        if self.members[slot.index()].is_blocked {
            self.judge(slot);
        }
    }

    fn mark_dirty(&mut self, slot: Slot) {
        let member = &mut self.members[slot.index()];
        if !member.is_blocked && !std::mem::replace(&mut member.is_dirty, true) {
            self.dirty_members.push(slot);
        }
    }

    fn mark_trailing(&mut self, slot: Slot) {
        let member = &mut self.members[slot.index()];
        if !member.is_blocked && !member.is_dirty && !std::mem::replace(&mut member.is_trailing, true) {
            self.trailing_members.push(slot);
        }
    }

    fn touch(&mut self, id: CohortId) {
        if !std::mem::replace(&mut self.index.cohort_mut(id).is_touched, true) {
            self.touched_cohorts.push(id);
        }
    }
}
