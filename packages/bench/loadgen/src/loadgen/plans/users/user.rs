//! A virtual user, its progress in its iteration, and its timer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::verify::Session;
use crate::loadgen::connection::Slot;

/// A user's place in the crowd, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UserId(pub(super) u32);

impl UserId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// Its number in the plan.
    pub(super) fn number(self) -> u32 {
        self.0 + 1
    }
}

/// The step that a user is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not started, or finished.
    #[default]
    Away,
    /// Before it connects.
    Pausing,
    Connecting,
    /// Upgraded; `welcome` has not come.
    Welcoming,
    /// Waits for the answer to its listen.
    Listening,
    /// Waits for the history.
    Reading,
    /// Rounds of sending and listening.
    Talking,
    /// After the last round.
    Lingering,
    /// Waits for the end of its connection.
    Leaving,
}

#[derive(Default)]
pub(super) struct User {
    pub(super) phase: Phase,
    pub(super) slot: Option<Slot>,
    /// When it started its iteration.
    pub(super) began_us: u64,
    /// When it started to wait for the next answer.
    pub(super) asked_us: u64,
    /// Rounds started.
    pub(super) round: u32,
    /// Messages of this page of the history that are still to come.
    pub(super) replay_left: u64,
    /// The position of the next page of the history; empty: this page is the last.
    pub(super) next_page: Vec<u8>,
    /// Exists from the answer to the listen on.
    pub(super) session: Option<Box<Session>>,
}

/// One timer per user: setting it again replaces it.
#[derive(Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// By user; 0: none. Heap entries that differ are out of date.
    due_us: Vec<u64>,
}

impl Timers {
    pub(super) fn with_users(count: u32) -> Self {
        Self { heap: BinaryHeap::new(), due_us: vec![0; count as usize] }
    }

    pub(super) fn set(&mut self, user: UserId, due_us: u64) {
        self.due_us[user.index()] = due_us;
        self.heap.push(Reverse((due_us, user.0)));
    }

    pub(super) fn clear(&mut self, user: UserId) {
        self.due_us[user.index()] = 0;
    }

    pub(super) fn next_us(&mut self) -> Option<u64> {
        while let Some(Reverse((due_us, user))) = self.heap.peek() {
            if self.due_us[*user as usize] == *due_us {
                return Some(*due_us);
            }
            self.heap.pop();
        }
        None
    }

    /// A user whose timer has fired, and when it was due.
    pub(super) fn pop(&mut self, now_us: u64) -> Option<(UserId, u64)> {
        let due_us = self.next_us().filter(|due_us| *due_us <= now_us)?;
        let Reverse((_, user)) = self.heap.pop()?;
        self.due_us[user as usize] = 0;
        Some((UserId(user), due_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_that_was_set_last_is_the_one_that_rings() {
        let mut timers = Timers::with_users(3);
        timers.set(UserId(0), 30);
        timers.set(UserId(1), 20);
        timers.set(UserId(0), 10);
        timers.set(UserId(2), 15);
        timers.clear(UserId(2));
        assert_eq!(timers.next_us(), Some(10));
        assert_eq!(timers.pop(9), None);
        assert_eq!(timers.pop(25), Some((UserId(0), 10)));
        assert_eq!(timers.pop(25), Some((UserId(1), 20)));
        assert_eq!(timers.pop(100), None);
    }
}
