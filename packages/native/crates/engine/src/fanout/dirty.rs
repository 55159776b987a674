use std::collections::VecDeque;

use super::Fanout;
use super::cohort::CohortId;
use super::member::State;
use crate::id::Slot;

/// What the next flush has to do.
#[derive(Default)]
pub(super) struct Dirty {
    /// Cohorts with output for their caught-up members.
    pub(super) cohorts: VecDeque<CohortId>,
    /// Those of them whose output must not be held back.
    pub(super) urgent_cohorts: VecDeque<CohortId>,
    pub(super) write_now: Vec<Slot>,
    pub(super) rejoining: Vec<Slot>,
    pub(super) rejoining_count: usize,
    /// Cohorts that may hold free memory, or a member that is too slow.
    pub(super) reclaim_cohorts: Vec<CohortId>,
    /// Members whose chains may refer to memory of this turn.
    pub(super) turn_chains: Vec<Slot>,
    /// Caught-up members of the dirty cohorts.
    pub(super) caught_up_writes: usize,
    /// Caught-up members that the multicasts of this batch are for.
    pub(super) batch_writes: usize,
    /// So much output waits that the caller should flush before it adds more.
    pub(super) is_flush_due: bool,
    /// A flush was interrupted, and the next one goes on with it.
    pub(super) is_flushing: bool,
    /// A flush of the urgent cohorts alone was interrupted, and the next one of either kind goes on with it.
    pub(super) is_flushing_urgent: bool,
}

impl Fanout {
    /// There is output to write, or memory to free, in this turn.
    pub(crate) fn is_dirty(&self) -> bool {
        self.is_urgent()
            || self.is_held()
            || !self.dirty.turn_chains.is_empty()
            || !self.dirty.reclaim_cohorts.is_empty()
    }

    /// There is output that must not be held back: direct frames, urgent multicasts, and what goes before them.
    pub(crate) fn is_urgent(&self) -> bool {
        !self.dirty.write_now.is_empty() || !self.dirty.urgent_cohorts.is_empty()
    }

    /// There are multicasts, which may be held back.
    pub(crate) fn is_held(&self) -> bool {
        !self.dirty.cohorts.is_empty() || self.dirty.rejoining_count > 0
    }

    /// A flush was interrupted: [`flush_some`](Self::flush_some) goes on with it.
    pub(crate) fn is_flushing(&self) -> bool {
        self.dirty.is_flushing
    }

    /// A flush of some kind was interrupted.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.dirty.is_flushing || self.dirty.is_flushing_urgent
    }

    /// Estimated writes for the multicasts that wait.
    pub(crate) fn held_writes(&self) -> usize {
        self.dirty.caught_up_writes + self.dirty.rejoining_count
    }

    /// Estimated writes of the next flush.
    pub(crate) fn pending_writes(&self) -> usize {
        self.held_writes() + self.dirty.write_now.len()
    }

    /// So much output waits that the caller should flush before it adds more.
    pub(crate) fn is_flush_due(&self) -> bool {
        self.dirty.is_flush_due
    }

    /// Ends a batch. Returns how many writes its multicasts need if they share them with no other batch.
    pub(crate) fn end_batch(&mut self) -> usize {
        self.batch += 1;
        std::mem::take(&mut self.dirty.batch_writes)
    }

    /// Lets the next flush write to a member, unless its socket is full.
    pub(super) fn schedule(&mut self, slot: Slot) {
        match self.members[slot.index()].state {
            State::CatchingUp | State::Blocked { .. } => {}
            State::CaughtUp | State::Rejoining => {
                self.set_state(slot, State::CatchingUp);
                self.dirty.write_now.push(slot);
            }
        }
    }

    /// Lets the next flush bring a member to the position of the caught-up ones. Only its cohort's output waits for it.
    pub(super) fn schedule_rejoin(&mut self, slot: Slot) {
        self.set_state(slot, State::Rejoining);
        self.dirty.rejoining.push(slot);
    }

    pub(super) fn schedule_reclaim(&mut self, id: CohortId) {
        if !std::mem::replace(&mut self.index.cohort_mut(id).needs_reclaim, true) {
            self.dirty.reclaim_cohorts.push(id);
        }
    }
}
