//! Writes the output of a turn: at once, in parts, or held back for a while.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::Shard;
use crate::fanout::{Outcome, Wire, Written};
use crate::id::Slot;
use crate::shard::connection::{Connection, Phase};
use crate::shard::table::Table;
use crate::socket;

/// Writes of a flush between two looks at the sockets and the mail: about 150 us. A request that comes during a broadcast, and
/// its answer, wait for this part, not for all of the writes. A look adds one short system call to 32 long ones.
const MAX_WRITES_PER_LOOK: usize = 32;

impl Shard {
    /// Time for which waiting multicasts are held back; `None`: write them now, or there are none.
    pub(crate) fn hold_time(&self) -> Option<Duration> {
        if !self.fanout.is_held() || self.fanout.is_flushing() {
            return None;
        }
        let now_us = self.now_us();
        let left_us = self.pacer.flushes_at_us(self.fanout.held_writes(), now_us).saturating_sub(now_us);
        (left_us > 0).then(|| Duration::from_micros(left_us))
    }

    /// Writes the output of this turn.
    pub(crate) fn write(&mut self) {
        if self.hold_time().is_none() {
            if self.fanout.is_dirty() {
                self.flush_some(MAX_WRITES_PER_LOOK);
            }
        } else if self.fanout.is_urgent() {
            let mut sockets = Sockets::of(&mut self.table, &mut self.tls.staging);
            let writes = self.fanout.flush_urgent(&mut sockets, MAX_WRITES_PER_LOOK);
            self.stats.sent_byte_count += sockets.sent_bytes;
            self.pacer.wrote(writes, None);
            self.conclude_flush();
        }
    }

    pub(super) fn flush(&mut self) {
        self.flush_some(usize::MAX);
    }

    /// Flushes multicasts by at most `max_writes`. The next turn goes on with the rest, after a look at the sockets.
    fn flush_some(&mut self, max_writes: usize) {
        let (is_held, is_begun) = (self.fanout.is_held(), self.fanout.is_flushing());
        // Only the first part is measured: reading this clock is a system call.
        let began = (is_held && !is_begun).then(cpu_time);
        let mut sockets = Sockets::of(&mut self.table, &mut self.tls.staging);
        let is_finished = self.fanout.flush_some(&mut sockets, max_writes);
        self.stats.sent_byte_count += sockets.sent_bytes;
        if is_held || is_begun {
            self.pacer.wrote(sockets.write_count, began.map(|began| cpu_time().saturating_sub(began)));
            if is_finished {
                self.pacer.flushed(self.now_us());
            }
        }
        self.conclude_flush();
    }

    fn conclude_flush(&mut self) {
        let Outcome { failed, slow, drained } = self.fanout.take_outcome();
        failed.into_iter().for_each(|slot| self.drop_connection(slot));
        slow.into_iter().for_each(|slot| self.end_slow(slot));
        drained.into_iter().for_each(|slot| self.note_drained(slot));
    }

    /// No more waits for a connection than was asked for.
    fn note_drained(&mut self, slot: Slot) {
        match self.table.get(slot).map(|connection| connection.phase) {
            Some(Phase::Open) => self.events.drained(self.table.id(slot)),
            Some(Phase::Lingering) => self.finish_lingering(slot),
            Some(Phase::Head | Phase::Deciding | Phase::Closing | Phase::Relaying) | None => {}
        }
    }
}

/// The sockets of a shard as its output sees them.
struct Sockets<'a> {
    table: &'a mut Table,
    staging: &'a mut [u8],
    sent_bytes: u64,
    write_count: usize,
}

impl<'a> Sockets<'a> {
    fn of(table: &'a mut Table, staging: &'a mut [u8]) -> Self {
        Self { table, staging, sent_bytes: 0, write_count: 0 }
    }
}

/// Processor time of this thread: the cost of a flush, independent of other processes.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

impl Wire for Sockets<'_> {
    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Written {
        let Some(Connection { socket, tls, .. }) = self.table.get_mut(slot) else { return Written::Failed };
        self.write_count += 1;
        if let Some(session) = tls {
            return session.write(socket, bytes, self.staging, &mut self.sent_bytes);
        }
        let Ok(count) = socket::send(socket, bytes) else { return Written::Failed };
        self.sent_bytes += count as u64;
        if count == bytes.len() { Written::All } else { Written::Part { taken: count, held: 0 } }
    }
}
