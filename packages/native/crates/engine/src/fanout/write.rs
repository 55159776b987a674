use std::mem;
use std::rc::Rc;

use super::Fanout;
use super::chain::Piece;
use super::cohort::CohortId;
use super::member::State;
use crate::id::Slot;

/// A piece of at least this size is written by itself. Smaller ones are copied together first, which costs less than a
/// second system call (measured; also less than `writev`).
const MIN_DIRECT_BYTES: usize = 32 << 10;
/// Bytes that one connection is offered per turn, and the size of the staging buffer.
const MAX_WRITE_BYTES: usize = 256 << 10;

/// Result of a write to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    All,
    /// The socket is full.
    Part {
        /// Bytes that need not be offered again.
        taken: usize,
        /// Bytes that the wire holds for them until the socket takes more: ciphertext, which cannot be taken back.
        held: usize,
    },
    /// The connection is broken.
    Failed,
}

/// Where bytes leave.
pub(crate) trait Wire {
    /// Writes contiguous bytes to a connection, without blocking.
    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Written;
}

/// The next bytes for a connection.
enum Run {
    Direct(Piece),
    Staged,
}

impl Fanout {
    /// Brings the caught-up members of a cohort to the end of its log. Bytes that are not contiguous are staged once for all.
    ///
    /// Returns `false` if it was interrupted because no writes are left.
    pub(super) fn flush_caught_up(&mut self, id: CohortId, wire: &mut impl Wire, left_writes: &mut usize) -> bool {
        if !self.index.cohort(id).is_dirty {
            return true;
        }
        self.schedule_reclaim(id);
        while let Some(run) = self.next_caught_up_run(id) {
            let is_complete = match run {
                Run::Direct(piece) => piece.with(|bytes| self.write_caught_up(id, bytes, wire, left_writes)),
                Run::Staged => {
                    let staging = mem::take(&mut self.staging);
                    let is_complete = self.write_caught_up(id, &staging, wire, left_writes);
                    self.staging = staging;
                    is_complete
                }
            };
            if !is_complete {
                return false;
            }
        }
        true
    }

    /// The next contiguous bytes for the caught-up members of a cohort; those of an interrupted flush again. `None`: they have
    /// everything.
    fn next_caught_up_run(&mut self, id: CohortId) -> Option<Run> {
        let cohort = self.index.cohort_mut(id);
        if cohort.ahead_count as usize == cohort.caught_up.len() {
            // Those that were behind them have gone. Without any member, nobody waits for the log.
            cohort.caught_up_to = if cohort.ahead_count > 0 { cohort.ahead_to } else { cohort.log.end() };
            cohort.ahead_count = 0;
        }
        let from = cohort.caught_up_to;
        let to = if cohort.ahead_count > 0 { cohort.ahead_to } else { cohort.log.end() };
        let first = cohort.log.piece(from, to)?;
        let is_all = from + first.len() as u64 == to;
        if is_all || (first.len() >= MIN_DIRECT_BYTES && cohort.ahead_count == 0) {
            return Some(Run::Direct(first));
        }
        self.staging.clear();
        let mut position = from;
        while let Some(piece) = cohort.log.piece(position, to) {
            position += stage(&mut self.staging, &piece) as u64;
            if self.staging.len() == MAX_WRITE_BYTES {
                break;
            }
        }
        Some(Run::Staged)
    }

    /// Writes the same bytes to the caught-up members of a cohort, from the first that is not ahead on. Returns `false` if it
    /// was interrupted because no writes are left.
    fn write_caught_up(&mut self, id: CohortId, bytes: &[u8], wire: &mut impl Wire, left_writes: &mut usize) -> bool {
        let cohort = self.index.cohort_mut(id);
        let from = cohort.caught_up_to;
        let mut index = mem::take(&mut cohort.ahead_count) as usize;
        while let Some(slot) = cohort.caught_up.get(index).copied() {
            if *left_writes == 0 {
                (cohort.ahead_count, cohort.ahead_to) = (index as u32, from + bytes.len() as u64);
                return false;
            }
            *left_writes -= 1;
            match wire.write(slot, bytes) {
                Written::All => index += 1,
                Written::Failed => {
                    self.outcome.failed.push(slot);
                    index += 1;
                }
                Written::Part { taken, held } => {
                    let cursor = from + taken as u64;
                    cohort.unlist_caught_up(index as u32, &mut self.members);
                    let member = &mut self.members[slot.index()];
                    member.state = State::Blocked { is_reported: false };
                    member.held_bytes = held as u32;
                    member.has_lagged = true;
                    self.held_bytes += held;
                    self.blocked_count += 1;
                    cohort.list_behind(slot, member, cursor);
                    let too_slow_at = cursor.saturating_add(self.max_outbox_bytes).saturating_sub(held as u64);
                    cohort.check_at = cohort.check_at.min(too_slow_at);
                }
            }
        }
        cohort.caught_up_to = from + bytes.len() as u64;
        true
    }

    /// Writes the own output of a member that is catching up.
    pub(super) fn flush_member(&mut self, slot: Slot, wire: &mut impl Wire) {
        let Some(member) = self.members.get(slot.index()) else { return };
        if member.state != State::CatchingUp {
            // It may have caught up with another cohort since it was listed.
            return self.report_level(slot);
        }
        let mut budget = MAX_WRITE_BYTES;
        while let Some(run) = self.next_run(slot) {
            let (offered, written) = match run {
                Run::Direct(piece) => (piece.len(), piece.with(|bytes| wire.write(slot, bytes))),
                Run::Staged => (self.staging.len(), wire.write(slot, &self.staging)),
            };
            match written {
                Written::All => self.advance(slot, offered),
                Written::Part { taken, held } => {
                    self.advance(slot, taken);
                    self.set_state(slot, State::Blocked { is_reported: false });
                    self.note_held(slot, held);
                    self.report_level(slot);
                    return self.check_limit(slot);
                }
                Written::Failed => return self.outcome.failed.push(slot),
            }
            budget = budget.saturating_sub(offered);
            if budget == 0 {
                break;
            }
        }
        self.settle(slot);
        self.report_level(slot);
    }

    /// The next contiguous bytes for a connection, at most [`MAX_WRITE_BYTES`] unless they are one piece.
    fn next_run(&mut self, slot: Slot) -> Option<Run> {
        self.refill_chain(slot);
        let member = &self.members[slot.index()];
        // The log goes behind a backlog, which is not written from.
        let cohort = member.behind_in().filter(|_| member.backlog.is_none()).map(|id| self.index.cohort(id));
        let (mut cursor, end) =
            cohort.map_or((0, 0), |cohort| (cohort.behind[member.list_index as usize].cursor, cohort.log.end()));
        let from_log = |from| cohort.and_then(|cohort| cohort.log.piece(from, end));
        let waiting = member.chain.bytes() + (end - cursor) as usize;
        let first = match member.chain.first() {
            Some(piece) => Piece { chunk: Rc::clone(&piece.chunk), ..*piece },
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
        let Some(id) = member.behind_in() else { return };
        let index = member.list_index as usize;
        let cohort = self.index.cohort_mut(id);
        cohort.behind[index].cursor += from_log;
        cohort.needs_scan = true;
        self.schedule_reclaim(id);
    }

    /// Decides the next state of a member that took all it was offered.
    fn settle(&mut self, slot: Slot) {
        let member = &mut self.members[slot.index()];
        let has_own = member.has_own();
        let Some(id) = member.behind_in() else {
            if has_own {
                return self.dirty.write_now.push(slot);
            }
            return self.set_state(slot, State::CaughtUp);
        };
        let index = member.list_index;
        let cohort = self.index.cohort_mut(id);
        let end = cohort.log.end();
        if has_own || cohort.behind[index as usize].cursor != end {
            return self.dirty.write_now.push(slot);
        }
        if cohort.caught_up_to != end {
            return self.schedule_rejoin(slot);
        }
        cohort.unlist_behind(index, &mut self.members);
        cohort.list_caught_up(slot, &mut self.members[slot.index()]);
        cohort.needs_scan = true;
        self.set_state(slot, State::CaughtUp);
        self.schedule_reclaim(id);
    }
}

/// Copies as much of a piece as fits. Returns how much that was.
fn stage(staging: &mut Vec<u8>, piece: &Piece) -> usize {
    let count = piece.len().min(MAX_WRITE_BYTES - staging.len());
    piece.with(|bytes| staging.extend_from_slice(&bytes[..count]));
    count
}
