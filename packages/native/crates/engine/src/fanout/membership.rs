use super::Fanout;
use super::cohort::{Cohort, CohortId, OwnCursor};
use super::member::Member;
use crate::id::{GroupId, Slot};

impl Fanout {
    /// Joins a group. What comes for the group's members from now on is sent to this connection too.
    pub(crate) fn join(&mut self, slot: Slot, group: GroupId) {
        let Member { cohort, encoding, .. } = self.members[slot.index()];
        let Some(current) = cohort else {
            let target = self.index.find_single(group, encoding);
            let target = target.unwrap_or_else(|| self.index.create([group].into_iter(), encoding));
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
            let target = self.index.create(groups.into_iter(), encoding);
            self.enter(slot, target);
        }
    }

    pub(crate) fn leave(&mut self, slot: Slot, group: GroupId) {
        let Member { cohort: Some(current), encoding, .. } = self.members[slot.index()] else { return };
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
            let target = self.index.create(groups.into_iter(), encoding);
            self.enter(slot, target);
        }
    }

    /// Leaves all groups; what waits goes on waiting.
    pub(crate) fn leave_all(&mut self, slot: Slot) {
        self.take_from_cohort(slot);
    }

    /// Ends the open range of a member: what it was sent so far goes into its chain, and its cursor to the log's end.
    pub(super) fn close_range(&mut self, slot: Slot) {
        let Some(id) = self.members[slot.index()].cohort else { return };
        let end = self.index.cohort(id).log.end();
        self.skip(slot, id, end);
    }

    /// Takes what lies between `until` and the log's end out of what the member will be sent.
    pub(super) fn skip(&mut self, slot: Slot, id: CohortId, until: u64) {
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
        self.mark_written_to(slot);
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
            if member.chain.is_empty() {
                self.mark_trailing(slot);
            } else {
                self.mark_dirty(slot);
            }
        } else {
            member.place = cohort.level.len() as u32;
            cohort.level.push(slot);
        }
    }

    /// Takes a connection out of its cohort; what it was sent there goes into its chain. An empty cohort is removed.
    pub(super) fn take_from_cohort(&mut self, slot: Slot) {
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
            self.lagging_count -= usize::from(self.index.cohort(id).is_lagging);
            self.index.remove(id);
        } else {
            self.touch(id);
        }
        if !self.members[slot.index()].chain.is_empty() {
            self.mark_written_to(slot);
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
