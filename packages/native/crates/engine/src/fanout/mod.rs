//! Output of a shard: who is sent what, in which order, and what still waits for whom.
//!
//! ```text
//! multicast ─ groups ─ cohorts ─ one log each      level members: one common position
//!                                                  others: a cursor, and a chain of ranges that goes first
//! send, except, change of groups ───────────────── ranges in the connection's chain
//! ```
//!
//! Knows no socket: bytes leave through [`Wire`].

mod chain;
mod chunk;
mod cohort;
mod flush;
mod index;
mod log;
mod member;
#[cfg(test)]
mod model_test;
mod pool;

pub(crate) use flush::{Outcome, Wire, Written};

use crate::batch::Frame;
use crate::id::{GroupId, Slot};
use cohort::{Cohort, CohortId, OwnCursor};
use index::CohortIndex;
use member::Member;
use pool::ChunkPool;

/// Level members of a cohort are written to at the latest when this much waits for them: a write carries no more anyway.
const MAX_UNFLUSHED_COHORT_BYTES: u64 = 128 << 10;
/// All logs are flushed at the latest when this much was appended to them: many small cohorts hold a copy each.
const MAX_UNFLUSHED_BYTES: usize = 16 << 20;

/// Groups, logs and outboxes of the connections of one shard.
pub(crate) struct Fanout {
    members: Vec<Member>,
    index: CohortIndex,
    pool: ChunkPool,
    max_outbox_bytes: u64,
    /// Number of the last multicast.
    stamp: u64,
    unflushed_bytes: usize,
    is_flush_due: bool,
    dirty_cohorts: Vec<CohortId>,
    touched_cohorts: Vec<CohortId>,
    dirty_members: Vec<Slot>,
    staging: Vec<u8>,
    outcome: Outcome,
}

impl Fanout {
    pub(crate) fn new(max_outbox_bytes: usize) -> Self {
        Self {
            members: Vec::new(),
            index: CohortIndex::default(),
            pool: ChunkPool::new(max_outbox_bytes),
            max_outbox_bytes: max_outbox_bytes as u64,
            stamp: 0,
            unflushed_bytes: 0,
            is_flush_due: false,
            dirty_cohorts: Vec::new(),
            touched_cohorts: Vec::new(),
            dirty_members: Vec::new(),
            staging: Vec::new(),
            outcome: Outcome::default(),
        }
    }

    /// Bytes that wait, shared ones counted once.
    pub(crate) fn outbox_bytes(&self) -> usize {
        self.pool.gauge().bytes()
    }

    /// Something should be written in this turn.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty_cohorts.is_empty() || !self.dirty_members.is_empty()
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

    /// Ends a connection; what waits for it alone is freed.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.take_from_cohort(slot);
        let mut member = std::mem::take(&mut self.members[slot.index()]);
        member.chain.consume(member.chain.bytes(), &mut self.pool);
    }

    /// Joins a group. What comes for the group's members from now on is sent to this connection too.
    pub(crate) fn join(&mut self, slot: Slot, group: GroupId) {
        let Some(current) = self.members[slot.index()].cohort else {
            let target = self.index.find_single(group).unwrap_or_else(|| self.index.create([group].into_iter()));
            return self.enter(slot, target);
        };
        if self.index.cohort(current).has(group) {
            return;
        }
        if let Some(target) = self.index.find_with(current, group) {
            self.take_from_cohort(slot);
            self.enter(slot, target);
        } else if self.index.cohort(current).len() == 1 {
            self.index.add_group(current, group);
        } else {
            let groups: Vec<GroupId> = self.index.cohort(current).group_ids().chain([group]).collect();
            self.take_from_cohort(slot);
            let target = self.index.create(groups.into_iter());
            self.enter(slot, target);
        }
    }

    pub(crate) fn leave(&mut self, slot: Slot, group: GroupId) {
        let Some(current) = self.members[slot.index()].cohort else { return };
        let cohort = self.index.cohort(current);
        if !cohort.has(group) {
            return;
        }
        if cohort.groups.len() == 1 {
            return self.take_from_cohort(slot);
        }
        if let Some(target) = self.index.find_without(current, group) {
            self.take_from_cohort(slot);
            self.enter(slot, target);
        } else if cohort.len() == 1 {
            self.index.take_group(current, group);
        } else {
            let groups: Vec<GroupId> = cohort.group_ids().filter(|other| *other != group).collect();
            self.take_from_cohort(slot);
            let target = self.index.create(groups.into_iter());
            self.enter(slot, target);
        }
    }

    /// Leaves all groups; what waits goes on waiting.
    pub(crate) fn leave_all(&mut self, slot: Slot) {
        self.take_from_cohort(slot);
    }

    /// Puts a frame into the outbox of every member of any of the groups but `except`; returns their number.
    ///
    /// Cost: O(groups + matching cohorts), one copy of the frame per matching cohort; members are not touched.
    pub(crate) fn multicast(
        &mut self,
        groups: impl Iterator<Item = GroupId>,
        frame: &Frame<'_>,
        except: Option<Slot>,
    ) -> usize {
        self.stamp += 1;
        let Self { stamp, index, pool, members, dirty_cohorts, unflushed_bytes, is_flush_due, .. } = self;
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
                cohort.log.append(frame, pool);
                delivered += count;
                *unflushed_bytes += frame.bytes().len();
                *is_flush_due |= cohort.log.end() - cohort.level_end > MAX_UNFLUSHED_COHORT_BYTES;
                if !std::mem::replace(&mut cohort.is_dirty, true) {
                    dirty_cohorts.push(id);
                }
            });
        }
        *is_flush_due |= *unflushed_bytes > MAX_UNFLUSHED_BYTES;
        if let (Some(slot), Some((id, start))) = (except, excluded_from) {
            self.skip(slot, id, start);
        }
        delivered
    }

    /// Puts a frame into the outbox of one connection.
    pub(crate) fn send(&mut self, slot: Slot, frame: &Frame<'_>) {
        self.close_range(slot);
        self.members[slot.index()].chain.push_frame(frame, &mut self.pool);
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

    /// The socket takes bytes again.
    pub(crate) fn unblock(&mut self, slot: Slot) {
        let member = &mut self.members[slot.index()];
        if std::mem::replace(&mut member.is_blocked, false) {
            self.mark_dirty(slot);
        }
    }

    /// Says in [`Outcome::drained`] when nothing waits for the connection any more. It is in no group.
    pub(crate) fn watch(&mut self, slot: Slot) {
        self.members[slot.index()].is_watched = true;
        self.mark_dirty(slot);
    }

    /// Ends the open range of a member: what it was sent so far goes into its chain, and its cursor to the log's end.
    fn close_range(&mut self, slot: Slot) {
        let Some(id) = self.members[slot.index()].cohort else { return };
        let end = self.index.cohort(id).log.end();
        self.skip(slot, id, end);
    }

    /// Takes what lies between `until` and the log's end out of what the member will be sent.
    fn skip(&mut self, slot: Slot, id: CohortId, until: u64) {
        let cohort = self.index.cohort_mut(id);
        let member = &mut self.members[slot.index()];
        let place = member.place as usize;
        let end = cohort.log.end();
        if member.has_own_cursor {
            let from = std::mem::replace(&mut cohort.own[place].cursor, end);
            take_range(cohort, member, from, until);
            cohort.is_scan_due = true;
        } else {
            take_range(cohort, member, cohort.level_end, until);
            cohort.level.swap_remove(place);
            member.place = cohort.own.len() as u32;
            member.has_own_cursor = true;
            cohort.own.push(OwnCursor { slot, cursor: end });
            if let Some(moved) = cohort.level.get(place).copied() {
                self.members[moved.index()].place = place as u32;
            }
        }
        self.mark_dirty(slot);
    }

    fn enter(&mut self, slot: Slot, id: CohortId) {
        let cohort = self.index.cohort_mut(id);
        let member = &mut self.members[slot.index()];
        member.cohort = Some(id);
        let end = cohort.log.end();
        member.has_own_cursor = !member.chain.is_empty() || cohort.level_end != end;
        if member.has_own_cursor {
            member.place = cohort.own.len() as u32;
            cohort.own.push(OwnCursor { slot, cursor: end });
            cohort.slow_at = cohort.slow_at.min(end);
            self.mark_dirty(slot);
        } else {
            member.place = cohort.level.len() as u32;
            cohort.level.push(slot);
        }
    }

    /// Takes a connection out of its cohort; what it was sent there goes into its chain. An empty cohort is removed.
    fn take_from_cohort(&mut self, slot: Slot) {
        let member = &mut self.members[slot.index()];
        let Some(id) = member.cohort.take() else { return };
        let cohort = self.index.cohort_mut(id);
        let place = member.place as usize;
        let end = cohort.log.end();
        if std::mem::replace(&mut member.has_own_cursor, false) {
            let from = cohort.own.swap_remove(place).cursor;
            take_range(cohort, member, from, end);
            cohort.is_scan_due = true;
            if let Some(moved) = cohort.own.get(place).copied() {
                self.members[moved.slot.index()].place = place as u32;
            }
        } else {
            take_range(cohort, member, cohort.level_end, end);
            cohort.level.swap_remove(place);
            if let Some(moved) = cohort.level.get(place).copied() {
                self.members[moved.index()].place = place as u32;
            }
        }
        if self.index.cohort(id).len() == 0 {
            self.index.remove(id);
        } else {
            self.touch(id);
        }
        if !self.members[slot.index()].chain.is_empty() {
            self.mark_dirty(slot);
        }
    }

    fn mark_written_to(&mut self, slot: Slot) {
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

    fn touch(&mut self, id: CohortId) {
        if !std::mem::replace(&mut self.index.cohort_mut(id).is_touched, true) {
            self.touched_cohorts.push(id);
        }
    }
}

/// Moves the range from `from` to `to` of the cohort's log into the member's chain.
fn take_range(cohort: &Cohort, member: &mut Member, mut from: u64, to: u64) {
    while let Some(piece) = cohort.log.piece(from, to) {
        from += piece.len() as u64;
        member.chain.push_piece(piece);
    }
}
