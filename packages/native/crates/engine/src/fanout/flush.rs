use std::mem;

use super::member::State;
use super::{Fanout, Wire};
use crate::id::Slot;

/// What flushes found out. The caller takes it after each flush.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) failed: Vec<Slot>,
    /// More output waits than the limit allows.
    pub(crate) slow: Vec<Slot>,
    /// No more waits than [`Fanout::report_at`] asked for.
    pub(crate) drained: Vec<Slot>,
}

impl Fanout {
    /// A flush that is not interrupted.
    #[cfg(test)]
    pub(crate) fn flush(&mut self, wire: &mut impl Wire) {
        self.flush_some(wire, usize::MAX);
    }

    /// Writes once to every connection that has output and whose socket is not full. After `max_writes` writes to caught-up
    /// members it is interrupted: the next call goes on. Returns whether it is finished. Between the calls, everything but the
    /// position of some caught-up members is as before a flush, and its memory stays.
    pub(crate) fn flush_some(&mut self, wire: &mut impl Wire, max_writes: usize) -> bool {
        self.dirty.is_flush_due = false;
        self.dirty.caught_up_writes = 0;
        // Own output goes first: an answer behind a broadcast to hundreds, at 4 us each, is late by a millisecond. A
        // broadcast behind some answers is not.
        self.flush_members(wire);
        let with_more = mem::take(&mut self.dirty.write_now);
        let mut left_writes = max_writes;
        self.dirty.is_flushing_urgent = false;
        self.dirty.is_flushing =
            !(self.flush_urgent_cohorts(wire, &mut left_writes) && self.flush_cohorts(wire, &mut left_writes));
        if self.dirty.is_flushing {
            self.dirty.write_now.extend(with_more);
            return false;
        }
        let mut members = mem::take(&mut self.dirty.rejoining);
        for slot in members.drain(..) {
            if self.members[slot.index()].state == State::Rejoining {
                self.schedule(slot);
            }
        }
        self.dirty.rejoining = members;
        self.flush_members(wire);
        self.dirty.write_now.extend(with_more);
        self.end_turn();
        true
    }

    /// Writes what must not be held back: direct frames, urgent multicasts, and what goes before them. After `max_writes` writes
    /// to caught-up members it is interrupted, as [`flush_some`](Self::flush_some) is. Returns their number.
    ///
    /// The memory of this turn stays until the flush, as if the turn had not ended.
    pub(crate) fn flush_urgent(&mut self, wire: &mut impl Wire, max_writes: usize) -> usize {
        self.flush_members(wire);
        let mut left_writes = max_writes;
        self.dirty.is_flushing_urgent = !self.flush_urgent_cohorts(wire, &mut left_writes);
        max_writes - left_writes
    }

    /// Writes to the caught-up members of the urgent cohorts, and lists those that wait only for these. The cohorts stay listed
    /// as dirty. Returns `false` if it was interrupted because no writes are left.
    fn flush_urgent_cohorts(&mut self, wire: &mut impl Wire, left_writes: &mut usize) -> bool {
        while let Some(id) = self.dirty.urgent_cohorts.front().copied() {
            if !self.flush_caught_up(id, wire, left_writes) {
                return false;
            }
            self.dirty.urgent_cohorts.pop_front();
            self.index.cohort_mut(id).is_urgent = false;
            for index in 0..self.index.cohort(id).behind.len() {
                let slot = self.index.cohort(id).behind[index].slot;
                if self.members[slot.index()].state == State::Rejoining {
                    self.schedule(slot);
                }
            }
        }
        true
    }

    /// Writes to the caught-up members of the dirty cohorts. Returns `false` if it was interrupted because no writes are left.
    fn flush_cohorts(&mut self, wire: &mut impl Wire, left_writes: &mut usize) -> bool {
        while let Some(id) = self.dirty.cohorts.front().copied() {
            if !self.flush_caught_up(id, wire, left_writes) {
                return false;
            }
            self.dirty.cohorts.pop_front();
            self.index.cohort_mut(id).is_dirty = false;
        }
        true
    }

    /// Writes to the members in `write_now`. Those with more than one turn's output are listed again.
    fn flush_members(&mut self, wire: &mut impl Wire) {
        let mut members = mem::take(&mut self.dirty.write_now);
        for slot in members.drain(..) {
            self.flush_member(slot, wire);
        }
        members.append(&mut self.dirty.write_now);
        self.dirty.write_now = members;
        let mut slow = mem::take(&mut self.outcome.slow);
        slow.retain(|slot| self.is_still_slow(*slot));
        self.outcome.slow = slow;
    }

    /// Copies output that still waits out of the memory of this turn.
    fn end_turn(&mut self) {
        let mut cohorts = mem::take(&mut self.dirty.reclaim_cohorts);
        for id in cohorts.drain(..) {
            self.reclaim(id);
        }
        self.dirty.reclaim_cohorts = cohorts;
        let mut members = mem::take(&mut self.dirty.turn_chains);
        for slot in members.drain(..) {
            self.members[slot.index()].chain.secure(&mut self.pool);
        }
        self.dirty.turn_chains = members;
        self.arena.reset(&mut self.pool);
        self.stream_arena.reset(&mut self.pool);
    }

    /// Takes what the flushes since the last call found out.
    pub(crate) fn take_outcome(&mut self) -> Outcome {
        mem::take(&mut self.outcome)
    }
}
