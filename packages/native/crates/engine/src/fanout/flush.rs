use std::mem;

use super::Fanout;
use super::chain::Piece;
use super::cohort::{CohortId, OwnCursor};
use crate::id::Slot;

/// A piece from this size on is written by itself; smaller ones are copied together first. Copying costs less than a
/// second system call (measured, and less than `writev`).
const MIN_DIRECT_BYTES: usize = 32 << 10;
/// Bytes that one connection is offered per turn, and the size of the staging buffer.
const MAX_WRITE_BYTES: usize = 256 << 10;

/// What a write to a connection came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    All,
    /// The socket took so many bytes and is full.
    Part(usize),
    /// The connection is broken.
    Failed,
}

/// Where bytes leave.
pub(crate) trait Wire {
    /// Writes contiguous bytes to a connection, without blocking.
    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Written;
}

/// What a flush found out; its reader empties it.
#[derive(Default)]
pub(crate) struct Outcome {
    /// A write failed.
    pub(crate) failed: Vec<Slot>,
    /// More waits than may.
    pub(crate) slow: Vec<Slot>,
    /// A watched connection has nothing left to write.
    pub(crate) drained: Vec<Slot>,
}

/// The next bytes for a connection.
enum Run {
    Direct(Piece),
    Staged,
}

impl Fanout {
    /// Writes to every connection that something waits for and whose socket is not full: once, contiguously.
    pub(crate) fn flush(&mut self, wire: &mut impl Wire) {
        self.is_flush_due = false;
        self.level_writes = 0;
        // First who is sent something of its own: an answer that waits for a broadcast to hundreds, at 4 us each, is late by a
        // millisecond; a broadcast that waits for some answers is not.
        self.flush_members(wire);
        let with_more = mem::take(&mut self.dirty_members);
        let mut cohorts = mem::take(&mut self.dirty_cohorts);
        for id in cohorts.drain(..) {
            self.flush_level(id, wire);
        }
        self.dirty_cohorts = cohorts;
        let mut members = mem::take(&mut self.trailing_members);
        for slot in members.drain(..) {
            if mem::replace(&mut self.members[slot.index()].is_trailing, false) {
                self.mark_dirty(slot);
            }
        }
        self.trailing_members = members;
        self.flush_members(wire);
        self.dirty_members.extend(with_more);
        let mut cohorts = mem::take(&mut self.touched_cohorts);
        for id in cohorts.drain(..) {
            self.settle(id);
        }
        self.touched_cohorts = cohorts;
        let mut members = mem::take(&mut self.fresh_members);
        for slot in members.drain(..) {
            let member = &mut self.members[slot.index()];
            if mem::replace(&mut member.is_fresh, false) {
                member.chain.secure(&mut self.pool);
            }
        }
        self.fresh_members = members;
        self.arena.reset(&mut self.pool);
    }

    /// Writes what does not wait for a flush that is held back: direct frames, and what stands before them.
    ///
    /// The memory of this turn lives on until the flush, as if the turn had not ended.
    pub(crate) fn flush_urgent(&mut self, wire: &mut impl Wire) {
        self.flush_members(wire);
    }

    fn flush_members(&mut self, wire: &mut impl Wire) {
        // A member that has more than it may write in one turn puts itself into the list of the next.
        let mut members = mem::take(&mut self.dirty_members);
        for slot in members.drain(..) {
            self.flush_member(slot, wire);
        }
        members.append(&mut self.dirty_members);
        self.dirty_members = members;
        let mut slow = mem::take(&mut self.outcome.slow);
        slow.retain(|slot| self.is_still_slow(*slot));
        self.outcome.slow = slow;
    }

    /// What the flushes since the last call found out.
    pub(crate) fn take_outcome(&mut self) -> Outcome {
        mem::take(&mut self.outcome)
    }

    /// Brings the level members of a cohort to the end of its log. Non-contiguous bytes are staged once for all of them.
    fn flush_level(&mut self, id: CohortId, wire: &mut impl Wire) {
        if !mem::replace(&mut self.index.cohort_mut(id).is_dirty, false) {
            return;
        }
        self.touch(id);
        loop {
            let cohort = self.index.cohort_mut(id);
            let (from, to) = (cohort.level_end, cohort.log.end());
            let Some(first) = cohort.log.piece(from, to) else { break };
            if cohort.level.is_empty() {
                cohort.level_end = to;
                break;
            }
            let run = if first.len() >= MIN_DIRECT_BYTES || from + first.len() as u64 == to {
                Run::Direct(first)
            } else {
                self.staging.clear();
                let mut position = from;
                while let Some(piece) = cohort.log.piece(position, to) {
                    position += stage(&mut self.staging, &piece) as u64;
                    if self.staging.len() == MAX_WRITE_BYTES {
                        break;
                    }
                }
                Run::Staged
            };
            match run {
                Run::Direct(piece) => piece.with(|bytes| self.write_level(id, bytes, wire)),
                Run::Staged => {
                    let staging = mem::take(&mut self.staging);
                    self.write_level(id, &staging, wire);
                    self.staging = staging;
                }
            }
        }
    }

    fn write_level(&mut self, id: CohortId, bytes: &[u8], wire: &mut impl Wire) {
        let cohort = self.index.cohort_mut(id);
        let from = cohort.level_end;
        let mut place = 0;
        while let Some(slot) = cohort.level.get(place).copied() {
            match wire.write(slot, bytes) {
                Written::All => place += 1,
                Written::Failed => {
                    self.outcome.failed.push(slot);
                    place += 1;
                }
                Written::Part(count) => {
                    let cursor = from + count as u64;
                    cohort.level.swap_remove(place);
                    if let Some(moved) = cohort.level.get(place).copied() {
                        self.members[moved.index()].place = place as u32;
                    }
                    let member = &mut self.members[slot.index()];
                    member.is_blocked = true;
                    self.blocked_count += 1;
                    member.has_own_cursor = true;
                    member.place = cohort.own.len() as u32;
                    cohort.own.push(OwnCursor { slot, cursor });
                    cohort.slow_at = cohort.slow_at.min(cursor.saturating_add(self.max_outbox_bytes));
                }
            }
        }
        cohort.level_end = from + bytes.len() as u64;
    }

    fn flush_member(&mut self, slot: Slot, wire: &mut impl Wire) {
        let Some(member) = self.members.get_mut(slot.index()) else { return };
        if !mem::replace(&mut member.is_dirty, false) || member.is_blocked {
            return;
        }
        let mut budget = MAX_WRITE_BYTES;
        while let Some(run) = self.next_run(slot) {
            let (offered, written) = match run {
                Run::Direct(piece) => (piece.len(), piece.with(|bytes| wire.write(slot, bytes))),
                Run::Staged => (self.staging.len(), wire.write(slot, &self.staging)),
            };
            match written {
                Written::All => self.advance(slot, offered),
                Written::Part(count) => {
                    self.advance(slot, count);
                    self.members[slot.index()].is_blocked = true;
                    self.blocked_count += 1;
                    return self.judge(slot);
                }
                Written::Failed => return self.outcome.failed.push(slot),
            }
            budget = budget.saturating_sub(offered);
            if budget == 0 {
                break;
            }
        }
        self.rest(slot);
    }

    /// The next contiguous bytes for a connection, at most [`MAX_WRITE_BYTES`] unless they are one piece.
    fn next_run(&mut self, slot: Slot) -> Option<Run> {
        let member = &self.members[slot.index()];
        let cohort = member.cohort.filter(|_| member.has_own_cursor).map(|id| self.index.cohort(id));
        let (mut cursor, end) =
            cohort.map_or((0, 0), |cohort| (cohort.own[member.place as usize].cursor, cohort.log.end()));
        let from_log = |from| cohort.and_then(|cohort| cohort.log.piece(from, end));
        let waiting = member.chain.bytes() + (end - cursor) as usize;
        let first = match member.chain.first() {
            Some(piece) => Piece { chunk: std::rc::Rc::clone(&piece.chunk), ..*piece },
            None => from_log(cursor)?,
        };
        if first.len() >= MIN_DIRECT_BYTES || first.len() == waiting {
            return Some(Run::Direct(first));
        }
        self.staging.clear();
        for piece in member.chain.pieces() {
            stage(&mut self.staging, piece);
            if self.staging.len() == MAX_WRITE_BYTES {
                break;
            }
        }
        while self.staging.len() < MAX_WRITE_BYTES
            && let Some(piece) = from_log(cursor)
        {
            cursor += stage(&mut self.staging, &piece) as u64;
        }
        Some(Run::Staged)
    }

    /// Notes that `count` more bytes were written to a connection.
    fn advance(&mut self, slot: Slot, count: usize) {
        let member = &mut self.members[slot.index()];
        let from_log = member.chain.consume(count, &mut self.pool) as u64;
        let Some(id) = member.cohort.filter(|_| member.has_own_cursor) else { return };
        let place = member.place as usize;
        let cohort = self.index.cohort_mut(id);
        cohort.own[place].cursor += from_log;
        cohort.is_scan_due = true;
        self.touch(id);
    }

    /// Decides what a connection that took all it was offered does next: write more, be level, be reported.
    fn rest(&mut self, slot: Slot) {
        let member = &mut self.members[slot.index()];
        let has_chain = !member.chain.is_empty();
        let Some(id) = member.cohort.filter(|_| member.has_own_cursor) else {
            if has_chain {
                self.mark_dirty(slot);
            } else if mem::replace(&mut member.is_watched, false) {
                self.outcome.drained.push(slot);
            }
            return;
        };
        let place = member.place as usize;
        let cohort = self.index.cohort_mut(id);
        let end = cohort.log.end();
        if has_chain || cohort.own[place].cursor != end {
            return self.mark_dirty(slot);
        }
        if cohort.level_end != end {
            return self.mark_trailing(slot);
        }
        cohort.own.swap_remove(place);
        member.has_own_cursor = false;
        member.place = cohort.level.len() as u32;
        cohort.level.push(slot);
        cohort.is_scan_due = true;
        if let Some(moved) = cohort.own.get(place).copied() {
            self.members[moved.slot.index()].place = place as u32;
        }
        self.touch(id);
    }
}

/// Copies as much of a piece as fits; returns how much that was.
fn stage(staging: &mut Vec<u8>, piece: &Piece) -> usize {
    let count = piece.len().min(MAX_WRITE_BYTES - staging.len());
    piece.with(|bytes| staging.extend_from_slice(&bytes[..count]));
    count
}
