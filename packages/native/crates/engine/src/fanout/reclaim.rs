use std::mem;

use super::Fanout;
use super::cohort::CohortId;
use super::member::State;
use crate::backpressure;
use crate::id::Slot;

impl Fanout {
    /// Frees the part of the log that every member has passed, and finds members with more output than the limit allows.
    ///
    /// Cost: O(members that are behind), at most once per flush, and only if one of them moved or may be slow.
    pub(super) fn reclaim(&mut self, id: CohortId) {
        let cohort = self.index.cohort_mut(id);
        if !mem::replace(&mut cohort.needs_reclaim, false) {
            return;
        }
        self.absorb_all(id);
        let cohort = self.index.cohort_mut(id);
        let end = cohort.log.end();
        if cohort.behind.is_empty() {
            cohort.check_at = u64::MAX;
            cohort.needs_scan = false;
            let caught_up_to = cohort.caught_up_to;
            cohort.log.release_before(caught_up_to, &mut self.pool);
            return self.note_lag(id, false);
        }
        let lag_bytes = backpressure::lag_bytes(self.max_outbox_bytes, cohort.is_lagging);
        let lags_at = end + self.max_outbox_bytes - lag_bytes;
        if cohort.needs_scan || cohort.check_at < lags_at {
            self.scan(id);
        }
        let is_lagging = self.index.cohort(id).check_at < lags_at;
        self.note_lag(id, is_lagging);
        // Somebody waits for frames of this turn, and others of the cohort may soon, too.
        self.index.cohort_mut(id).log.secure(&mut self.pool);
    }

    /// Gives backlogs to the members that have not read much of the log, if they may miss some.
    ///
    /// Cost: O(members that are behind), once per eighth of an outbox.
    fn absorb_all(&mut self, id: CohortId) {
        let cohort = self.index.cohort(id);
        let end = cohort.log.end();
        if cohort.log.records.is_empty() || end < cohort.absorb_at {
            return;
        }
        let max_unread_bytes = self.max_unread_bytes();
        let lagging: Vec<Slot> = cohort
            .behind
            .iter()
            .filter(|behind| end - behind.cursor > max_unread_bytes)
            .map(|behind| behind.slot)
            .filter(|slot| self.is_droppable(*slot, max_unread_bytes))
            .collect();
        lagging.into_iter().for_each(|slot| self.absorb(slot));
        let cohort = self.index.cohort_mut(id);
        cohort.needs_reclaim = false;
        // A cursor that is set back, or a member that comes, does not read more than the newest frames.
        let next = cohort.behind.iter().map(|behind| behind.cursor + max_unread_bytes).filter(|at| *at > end).min();
        cohort.absorb_at = next.unwrap_or(end);
    }

    pub(super) fn note_lag(&mut self, id: CohortId, is_lagging: bool) {
        let was_lagging = mem::replace(&mut self.index.cohort_mut(id).is_lagging, is_lagging);
        self.lagging_cohort_count = self.lagging_cohort_count + usize::from(is_lagging) - usize::from(was_lagging);
    }

    fn scan(&mut self, id: CohortId) {
        let max_outbox_bytes = self.max_outbox_bytes;
        let cohort = self.index.cohort_mut(id);
        let end = cohort.log.end();
        cohort.needs_scan = false;
        cohort.check_at = u64::MAX;
        let mut oldest = cohort.caught_up_to;
        for behind in &cohort.behind {
            oldest = oldest.min(behind.cursor);
            let member = &mut self.members[behind.slot.index()];
            let waiting = member.own_bytes() + (end - behind.cursor);
            let may_miss = member.has_lagged && cohort.log.records.has_from(behind.cursor);
            if waiting <= max_outbox_bytes && may_miss {
                // What it may miss is left out before anybody waits for it.
            } else if waiting <= max_outbox_bytes {
                cohort.check_at = cohort.check_at.min(end + (max_outbox_bytes - waiting));
            } else if let State::Blocked { is_reported } = &mut member.state
                && !mem::replace(is_reported, true)
            {
                self.outcome.slow.push(behind.slot);
            }
        }
        cohort.log.release_before(oldest, &mut self.pool);
    }

    /// Reports a blocked connection if more output waits for it than the limit allows.
    pub(super) fn check_limit(&mut self, slot: Slot) {
        self.absorb_if_slow(slot);
        let waiting = self.waiting_bytes(slot);
        let member = &mut self.members[slot.index()];
        if waiting > self.max_outbox_bytes || member.is_overlong() {
            if let State::Blocked { is_reported } = &mut member.state
                && !mem::replace(is_reported, true)
            {
                self.outcome.slow.push(slot);
            }
        } else if let Some(id) = member.behind_in() {
            let cohort = self.index.cohort_mut(id);
            cohort.check_at = cohort.check_at.min(cohort.log.end() + (self.max_outbox_bytes - waiting));
        }
    }

    /// Whether a connection that was reported as slow before a flush is slow after it.
    pub(super) fn is_still_slow(&mut self, slot: Slot) -> bool {
        self.absorb_if_slow(slot);
        let waiting = self.waiting_bytes(slot);
        let member = &mut self.members[slot.index()];
        let is_slow = waiting > self.max_outbox_bytes || member.is_overlong();
        let State::Blocked { is_reported } = &mut member.state else { return false };
        *is_reported = is_slow;
        is_slow
    }

    pub(super) fn waiting_bytes(&self, slot: Slot) -> u64 {
        let member = &self.members[slot.index()];
        let in_log = member.behind_in().map_or(0, |id| {
            let cohort = self.index.cohort(id);
            cohort.log.end() - cohort.behind[member.list_index as usize].cursor
        });
        member.own_bytes() + in_log
    }
}
