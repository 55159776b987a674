use super::Fanout;
use super::cohort::CohortId;
use super::member::{Member, State};
use crate::id::{GroupId, Slot};

impl Fanout {
    /// Joins a group. The connection gets the group's multicasts from now on.
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
            if !cohort.log.records.is_empty() {
                // They may name the group.
                self.close_range(slot);
            }
            self.index.take_group(current, group);
        } else {
            let groups: Vec<GroupId> = cohort.group_ids().filter(|other| *other != group).collect();
            self.take_from_cohort(slot);
            let target = self.index.create(groups.into_iter(), encoding);
            self.enter(slot, target);
        }
    }

    /// Leaves all groups. Waiting output is still sent.
    pub(crate) fn leave_all(&mut self, slot: Slot) {
        self.take_from_cohort(slot);
    }

    /// Moves the waiting part of the log into the member's chain, and its cursor to the end of the log.
    pub(super) fn close_range(&mut self, slot: Slot) {
        let Some(id) = self.members[slot.index()].cohort else { return };
        let end = self.index.cohort(id).log.end();
        self.skip(slot, id, end);
    }

    /// Takes the log from `until` to its end out of what the member will be sent.
    pub(super) fn skip(&mut self, slot: Slot, id: CohortId, until: u64) {
        let cohort = self.index.cohort_mut(id);
        let member = &mut self.members[slot.index()];
        let end = cohort.log.end();
        if member.state == State::CaughtUp {
            let index = member.list_index;
            let from = cohort.position_of(index);
            cohort.list_behind(slot, member, end);
            cohort.unlist_caught_up(index, &mut self.members);
            self.take_range(slot, id, from, until);
        } else {
            let from = std::mem::replace(&mut cohort.behind[member.list_index as usize].cursor, end);
            cohort.needs_scan = true;
            self.take_range(slot, id, from, until);
        }
        self.chain_grew(slot);
    }

    fn enter(&mut self, slot: Slot, id: CohortId) {
        let cohort = self.index.cohort_mut(id);
        let member = &mut self.members[slot.index()];
        member.cohort = Some(id);
        let end = cohort.log.end();
        if !member.has_own() && !member.is_blocked() && cohort.caught_up_to == end {
            cohort.list_caught_up(slot, member);
            return self.set_state(slot, State::CaughtUp);
        }
        cohort.list_behind(slot, member, end);
        cohort.check_at = cohort.check_at.min(end);
        if member.state == State::CaughtUp {
            debug_assert!(!member.has_own(), "a member with a chain is not caught up");
            self.schedule_rejoin(slot);
        }
    }

    /// Takes a connection out of its cohort. Its waiting output goes into its chain. An empty cohort is removed.
    pub(super) fn take_from_cohort(&mut self, slot: Slot) {
        let member = &self.members[slot.index()];
        let Some(id) = member.cohort else { return };
        let cohort = self.index.cohort(id);
        let (index, end, is_caught_up) = (member.list_index, cohort.log.end(), member.state == State::CaughtUp);
        let from = if is_caught_up { cohort.position_of(index) } else { cohort.behind[index as usize].cursor };
        self.take_range(slot, id, from, end);
        self.members[slot.index()].cohort = None;
        let cohort = self.index.cohort_mut(id);
        if is_caught_up {
            cohort.unlist_caught_up(index, &mut self.members);
        } else {
            cohort.unlist_behind(index, &mut self.members);
            cohort.needs_scan = true;
        }
        if self.index.cohort(id).len() == 0 {
            self.note_lag(id, false);
            self.index.remove(id);
        } else {
            self.schedule_reclaim(id);
        }
        let member = &self.members[slot.index()];
        if member.has_own() {
            self.chain_grew(slot);
        } else if member.state == State::Rejoining {
            self.set_state(slot, State::CaughtUp);
        }
    }

    /// Moves the range from `from` to `to` of its cohort's log to what a member is sent before its cursor.
    fn take_range(&mut self, slot: Slot, id: CohortId, mut from: u64, to: u64) {
        let cohort = self.index.cohort(id);
        let member = &self.members[slot.index()];
        let waiting = member.own_bytes() + (to - from);
        let is_lagging = member.has_lagged && waiting > self.lag_bytes() && cohort.log.records.has_from(from);
        if member.backlog.is_some() || is_lagging {
            return self.absorb_range(slot, from, to);
        }
        let member = &mut self.members[slot.index()];
        while let Some(piece) = cohort.log.piece(from, to) {
            from += piece.len() as u64;
            member.chain.push_piece(piece);
        }
    }
}
