//! One timer per user.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::user::UserId;

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

    /// When the next one is due.
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
