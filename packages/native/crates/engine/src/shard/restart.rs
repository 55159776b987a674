use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Shard;
use crate::bridge::mailbox::Mail;

/// Restarts within [`PERIOD_MS`]. A shard that fails more often stays down.
const MAX_RESTARTS: usize = 5;
const PERIOD_MS: u64 = 60_000;

/// Times of the last restarts of a shard.
#[derive(Default)]
pub(super) struct Restarts(VecDeque<u64>);

impl Restarts {
    /// Counts a restart, if there may be one.
    fn allow(&mut self, now_ms: u64) -> bool {
        while self.0.front().is_some_and(|at_ms| now_ms - at_ms >= PERIOD_MS) {
            self.0.pop_front();
        }
        let is_allowed = self.0.len() < MAX_RESTARTS;
        if is_allowed {
            self.0.push_back(now_ms);
        }
        is_allowed
    }
}

impl Shard {
    /// Starts again after a failure: its connections are closed, and it accepts new ones. Returns whether it did.
    pub(super) fn restart(&mut self) -> bool {
        let Some(failure) = self.failure.clone() else { return false };
        if self.is_shutting_down || self.is_aborted {
            return false;
        }
        self.look_at_clock();
        if !self.restarts.allow(self.now_ms) {
            let period = PERIOD_MS / 1_000;
            self.failure = Some(format!("{failure}; it failed {MAX_RESTARTS} times within {period} s and stays down"));
            return false;
        }
        let failure = format!("{failure}; it is started again");
        // The state may be what made it panic: nothing of it is used but the list of connections.
        if catch_unwind(AssertUnwindSafe(|| self.end_connections(Some(&failure)))).is_err() {
            return false;
        }
        let mut next = Self::new(self.id, &self.shared);
        // No id of a connection is used again.
        next.table = self.table.successor();
        next.listener = self.listener.take();
        next.front = std::mem::take(&mut self.front);
        next.events = std::mem::take(&mut self.events);
        next.restarts = std::mem::take(&mut self.restarts);
        // Batches that were taken are for connections that are gone; other mail is not.
        next.inbox.mails = std::mem::take(&mut self.inbox.mails);
        next.inbox.mails.retain(|mail| !matches!(mail, Mail::Batch(_)));
        next.stats = self.stats;
        next.stats.restart_count += 1;
        next.stats.partial_bytes = 0;
        next.handle().mailbox.forget_taken_batches();
        let failed = std::mem::replace(self, next);
        // What cannot even be dropped is left alone: the shard goes on without it.
        drop(catch_unwind(AssertUnwindSafe(|| drop(failed))));
        self.report();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_restarts_a_minute_are_allowed() {
        let mut restarts = Restarts::default();
        let mut allowed = |now_ms| restarts.allow(now_ms);
        assert!([0, 1, 2, 3, 4].into_iter().all(&mut allowed));
        assert!(!allowed(59_999));
        assert!(allowed(60_000));
        assert!(!allowed(60_000));
        assert!(allowed(60_001));
    }
}
