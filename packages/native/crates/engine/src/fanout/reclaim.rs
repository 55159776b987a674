use std::mem;

use super::Fanout;
use super::cohort::CohortId;
use crate::id::Slot;

impl Fanout {
    /// Frees what every member of a cohort has passed and finds the members that are too far behind.
    ///
    /// Cost: O(members with an own cursor), at most once per flush, and only if one of them moved or may be slow.
    pub(super) fn settle(&mut self, id: CohortId) {
        let cohort = self.index.cohort_mut(id);
        if !mem::replace(&mut cohort.is_touched, false) {
            return;
        }
        let end = cohort.log.end();
        if cohort.own.is_empty() {
            cohort.slow_at = u64::MAX;
            cohort.is_scan_due = false;
            let level_end = cohort.level_end;
            cohort.log.release_before(level_end, &mut self.pool);
            return self.note_lag(id, false);
        }
        // Who lags does so until half of that is written: those who wait for it go on for a while then.
        let lag_bytes = self.max_outbox_bytes / if cohort.is_lagging { 4 } else { 2 };
        let lags_at = end + self.max_outbox_bytes - lag_bytes;
        if cohort.is_scan_due || cohort.slow_at < lags_at {
            self.scan(id);
        }
        let is_lagging = self.index.cohort(id).slow_at < lags_at;
        self.note_lag(id, is_lagging);
        // Somebody waits for frames of this turn, and others of the cohort may soon, too.
        self.index.cohort_mut(id).log.secure(&mut self.pool);
    }

    fn note_lag(&mut self, id: CohortId, is_lagging: bool) {
        if mem::replace(&mut self.index.cohort_mut(id).is_lagging, is_lagging) != is_lagging {
            self.lagging_count = if is_lagging { self.lagging_count + 1 } else { self.lagging_count - 1 };
        }
    }

    fn scan(&mut self, id: CohortId) {
        let max_outbox_bytes = self.max_outbox_bytes;
        let cohort = self.index.cohort_mut(id);
        let end = cohort.log.end();
        cohort.is_scan_due = false;
        cohort.slow_at = u64::MAX;
        let mut oldest = cohort.level_end;
        for own in &cohort.own {
            oldest = oldest.min(own.cursor);
            let member = &mut self.members[own.slot.index()];
            let waiting = member.chain.bytes() as u64 + (end - own.cursor);
            if waiting <= max_outbox_bytes {
                cohort.slow_at = cohort.slow_at.min(end + (max_outbox_bytes - waiting));
            } else if member.is_blocked && !mem::replace(&mut member.is_slow, true) {
                self.outcome.slow.push(own.slot);
            }
        }
        cohort.log.release_before(oldest, &mut self.pool);
    }

    /// Reports a blocked connection if more waits for it than may.
    pub(super) fn judge(&mut self, slot: Slot) {
        let waiting = self.waiting_bytes(slot);
        let member = &mut self.members[slot.index()];
        if waiting > self.max_outbox_bytes || member.chain.is_overlong() {
            if !mem::replace(&mut member.is_slow, true) {
                self.outcome.slow.push(slot);
            }
        } else if let Some(id) = member.cohort.filter(|_| member.has_own_cursor) {
            let cohort = self.index.cohort_mut(id);
            cohort.slow_at = cohort.slow_at.min(cohort.log.end() + (self.max_outbox_bytes - waiting));
        }
    }

    /// A connection that was found slow before the flush may have caught up in it.
    pub(super) fn is_still_slow(&mut self, slot: Slot) -> bool {
        let waiting = self.waiting_bytes(slot);
        let member = &mut self.members[slot.index()];
        member.is_slow = member.is_blocked && (waiting > self.max_outbox_bytes || member.chain.is_overlong());
        member.is_slow
    }

    fn waiting_bytes(&self, slot: Slot) -> u64 {
        let member = &self.members[slot.index()];
        let in_log = member.cohort.filter(|_| member.has_own_cursor).map_or(0, |id| {
            let cohort = self.index.cohort(id);
            cohort.log.end() - cohort.own[member.place as usize].cursor
        });
        member.chain.bytes() as u64 + in_log
    }
}
