//! Members that lag in groups whose frames may be left out.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Fanout;
use super::backlog::{Backlog, LeftOut, NoticeId};
use super::chain::Piece;
use super::cohort::{Cohort, Encoding};
use super::member::State;
use super::pool::ChunkPool;
use super::records::{Droppable, Policy};
use crate::bridge::batch::Frame;
use crate::id::{GroupId, Slot, TopicId};

/// Unread bytes from which on a member whose socket was full lags: less leaves in one write anyway.
const LAG_BYTES: u64 = 16 << 10;
/// Share of an outbox that the log keeps unread for a member that lags, before the member gets a backlog of its own.
const UNREAD_SHARE: u64 = 8;
/// Share of an outbox that waits at most of frames of which the oldest are left out. So nobody waits for such a member.
const OLDEST_SHARE: u64 = 4;

/// What happens to the frames of a group for its members that lag.
pub(crate) struct Overflow {
    policy: Policy,
    /// A frame that takes the place of those that are left out.
    notice: Option<Rc<[u8]>>,
}

/// Groups whose frames may be left out for members that lag.
#[derive(Default)]
pub(super) struct Overflows {
    pub(super) by_group: FxHashMap<GroupId, Overflow>,
    left_out: LeftOut,
    /// For one call at a time: topics that were seen, and which records are kept, newest first.
    topics: FxHashSet<TopicId>,
    kept_records: Vec<bool>,
}

impl Fanout {
    /// Says what happens to frames of a topic for lagging members of a group. `None`: they all wait, as in other groups.
    ///
    /// Frames that wait for a connection already are as they were, and told with the notice that they came with, unless they
    /// may not be left out any more. Event streams are not affected: a backlog and its notices are whole WebSocket frames.
    ///
    /// Cost: a constant, and O(members of the group) if there are any and they are told something else.
    pub(crate) fn set_overflow(&mut self, group: GroupId, overflow: Option<(Policy, Option<Frame<'_>>)>) {
        let notice_before = self.overflows.by_group.get(&group).and_then(|overflow| overflow.notice.as_deref());
        let notice = overflow.as_ref().and_then(|(_, notice)| notice.as_ref()).map(|frame| frame.bytes());
        if notice_before.is_some() && notice_before != notice {
            self.close_ranges_of(group);
        }
        match overflow {
            Some((policy, notice)) => {
                let notice = notice.map(|frame| frame.bytes().into());
                self.overflows.by_group.insert(group, Overflow { policy, notice });
            }
            None => {
                self.overflows.by_group.remove(&group);
            }
        }
    }

    /// Takes what waits for the members of a group out of the logs, as long as its notice is known.
    fn close_ranges_of(&mut self, group: GroupId) {
        let mut slots = Vec::new();
        self.index.for_each_of_group(group, |_, cohort| {
            if !cohort.log.records.is_empty() {
                slots.extend(cohort.caught_up.iter().copied().chain(cohort.behind.iter().map(|behind| behind.slot)));
            }
        });
        slots.into_iter().for_each(|slot| self.close_range(slot));
    }

    /// Whether frames of the group may be left out.
    pub(crate) fn may_leave_out(&self, group: GroupId) -> bool {
        self.overflows.by_group.contains_key(&group)
    }

    /// Frames that were left out since the last call.
    pub(crate) fn take_left_out(&mut self) -> LeftOut {
        std::mem::take(&mut self.overflows.left_out)
    }

    pub(super) fn lag_bytes(&self) -> u64 {
        LAG_BYTES.min(self.max_outbox_bytes / UNREAD_SHARE)
    }

    pub(super) fn max_unread_bytes(&self) -> u64 {
        self.max_outbox_bytes / UNREAD_SHARE
    }

    /// Whether the member lags in its log, and more than `min_bytes` of it, of which some may be left out.
    pub(super) fn is_droppable(&self, slot: Slot, min_bytes: u64) -> bool {
        let member = &self.members[slot.index()];
        if !member.has_lagged {
            return false;
        }
        member.behind_in().is_some_and(|id| {
            let cohort = self.index.cohort(id);
            let cursor = cohort.behind[member.list_index as usize].cursor;
            cohort.log.end() - cursor > min_bytes && cohort.log.records.has_from(cursor)
        })
    }

    /// Moves what a lagging member has not read of the log into its backlog, without what may be left out.
    ///
    /// Cost: a constant per record of the range, and a copy of what is kept. Each range is moved once.
    pub(super) fn absorb(&mut self, slot: Slot) {
        let Some(id) = self.members[slot.index()].behind_in() else { return };
        let cohort = self.index.cohort_mut(id);
        let end = cohort.log.end();
        let index = self.members[slot.index()].list_index as usize;
        let from = std::mem::replace(&mut cohort.behind[index].cursor, end);
        cohort.needs_scan = true;
        self.absorb_range(slot, from, end);
        self.schedule_reclaim(id);
    }

    /// Moves a range of the log of its cohort into a member's backlog.
    pub(super) fn absorb_range(&mut self, slot: Slot, from: u64, until: u64) {
        let Self { members, index, pool, overflows, .. } = self;
        let Overflows { by_group, left_out, topics, kept_records } = overflows;
        let member = &mut members[slot.index()];
        let Some(id) = member.cohort else { return };
        let cohort = index.cohort(id);
        debug_assert!(
            member.encoding != Encoding::Stream,
            "no log of event streams has records, so nothing may be left out"
        );
        let from = if member.backlog.is_none() { member.keep_begun_frame(cohort, from, until, pool) } else { from };
        let backlog = member.backlog.get_or_insert_with(|| Box::new(Backlog::new(pool.gauge())));
        // Backwards, to see the newest of each topic first: what it replaces is not copied.
        topics.clear();
        kept_records.clear();
        let records = &cohort.log.records;
        kept_records.extend(
            records
                .between(from, until)
                .rev()
                .filter(|record| !record.is_extra)
                .map(|record| record.policy == Policy::DropOldest || topics.insert(record.topic)),
        );
        let mut notices = Notices { by_group, last: None };
        let mut is_kept = false;
        let mut position = from;
        for record in records.between(from, until) {
            let told = notices.of(record.told, backlog);
            if record.is_extra {
                if is_kept {
                    backlog.push_extra(told)
                } else {
                    backlog.note_left_out(told)
                }
                continue;
            }
            for_each_piece(cohort, position, record.start, |frames| backlog.push_kept(frames));
            position = record.end();
            is_kept = kept_records.pop().unwrap_or(true);
            if is_kept {
                for_each_piece(cohort, record.start, position, |frame| {
                    backlog.push_droppable(frame, record, told, left_out)
                });
            } else {
                left_out.conflated_count += 1;
                backlog.note_left_out(told);
            }
        }
        for_each_piece(cohort, position, until, |frames| backlog.push_kept(frames));
        backlog.drop_oldest((self.max_outbox_bytes / OLDEST_SHARE) as usize, left_out);
        backlog.compact();
    }

    /// Moves a backlog into the chain: from then on nothing of it is left out, so no topic waits forever behind others.
    pub(super) fn commit_backlog(&mut self, slot: Slot) {
        let Self { members, pool, .. } = self;
        let member = &mut members[slot.index()];
        let Some(backlog) = member.backlog.take() else { return };
        let frames = backlog.frames();
        if !frames.is_empty() {
            let to = frames.len() as u32;
            member.chain.push_piece(Piece { chunk: pool.chunk_with(&frames, Default::default()), from: 0, to });
        }
    }

    /// Before a member without a chain is written to: its chain becomes what it is to get next.
    pub(super) fn refill_chain(&mut self, slot: Slot) {
        let member = &self.members[slot.index()];
        if !member.chain.is_empty() {
            return;
        }
        let is_droppable = self.is_droppable(slot, if member.backlog.is_some() { 0 } else { self.lag_bytes() });
        if is_droppable {
            self.absorb(slot);
        }
        self.commit_backlog(slot);
    }

    /// Before a member is called slow: leaves out what may be.
    pub(super) fn absorb_if_slow(&mut self, slot: Slot) {
        let is_behind = matches!(self.members[slot.index()].state, State::Blocked { .. } | State::CatchingUp);
        if is_behind && self.waiting_bytes(slot) > self.max_outbox_bytes && self.is_droppable(slot, 0) {
            self.absorb(slot);
        }
    }
}

impl super::member::Member {
    /// Puts the rest of a frame that was written in part into the chain. Returns where the next frame begins.
    fn keep_begun_frame(&mut self, cohort: &Cohort, from: u64, until: u64, pool: &ChunkPool) -> u64 {
        let Some(piece) = cohort.log.piece(from, until).filter(|_| self.chain.is_empty()) else { return from };
        let to = piece.chunk.frame_end(piece.from as usize) as u32;
        let rest = to - piece.from;
        if rest > 0 && piece.chunk.is_transient() {
            // Copied: the chain is not in the list of those that are secured when this turn ends.
            self.chain.push_raw(piece.chunk.with(piece.from as usize, to as usize, |bytes| bytes.into()), pool);
        } else if rest > 0 {
            self.chain.push_piece(Piece { chunk: Rc::clone(&piece.chunk), from: piece.from, to });
        }
        from + u64::from(rest)
    }
}

/// What groups tell, for one range of a log.
struct Notices<'a> {
    by_group: &'a FxHashMap<GroupId, Overflow>,
    /// Most often, the next frame is told to the same group.
    last: Option<(GroupId, NoticeId)>,
}

impl Notices<'_> {
    fn of(&mut self, told: Option<GroupId>, backlog: &mut Backlog) -> Option<NoticeId> {
        let group = told?;
        if let Some((_, id)) = self.last.filter(|(known, _)| *known == group) {
            return Some(id);
        }
        let notice = self.by_group.get(&group).and_then(|overflow| overflow.notice.as_ref());
        debug_assert!(notice.is_some(), "a record outlives the notice of its group");
        let id = backlog.notice(notice?);
        self.last = Some((group, id));
        Some(id)
    }
}

/// What a group says about a frame of a topic; `None`: the frame is never left out.
pub(super) fn droppable(
    overflows: &FxHashMap<GroupId, Overflow>,
    group: GroupId,
    topic: Option<TopicId>,
) -> Option<Droppable> {
    let topic = topic.filter(|_| !overflows.is_empty())?;
    let Overflow { policy, notice } = overflows.get(&group)?;
    Some(Droppable { topic, policy: *policy, told: notice.as_ref().map(|_| group) })
}

/// Lends a range of a log, piece by piece.
fn for_each_piece(cohort: &Cohort, mut from: u64, to: u64, mut visit: impl FnMut(&[u8])) {
    while let Some(piece) = cohort.log.piece(from, to) {
        from += piece.len() as u64;
        piece.with(&mut visit);
    }
}
