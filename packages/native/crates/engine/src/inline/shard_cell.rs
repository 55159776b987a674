use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::turn::Next;
use crate::bridge::batch::Batch;
use crate::bridge::mailbox::Mailbox;
use crate::shard::Shard;
use crate::shared::Shared;

/// Holds a shard for the two threads that may run it.
///
/// The shard's thread keeps the lock, awake or asleep, while it runs the shard. In inline mode (the mailbox says so) both
/// threads take the lock for one step at a time.
#[derive(Default)]
pub(crate) struct ShardCell {
    /// `None` before the start and after the end of the shard.
    shard: Mutex<Option<Shard>>,
    /// Steps that the event loop made.
    pub(super) inline_step_count: AtomicU64,
    /// When the thread that stands by wakes for the next deadline, in milliseconds since the engine began.
    pub(super) wakes_at_ms: AtomicU64,
}

impl ShardCell {
    /// Runs a shard to its end, on the shard's thread.
    pub(crate) fn run_on_own_thread(&self, shard: Shard, shared: &Shared) {
        let id = shard.id();
        *self.lock() = Some(shard);
        loop {
            let mut cell = self.lock();
            let Some(shard) = &mut *cell else { return };
            if !shard.run_until_inline() {
                // Closes the sockets before the thread ends.
                *cell = None;
                return;
            }
            let timeout = self.note_deadline(shard);
            drop(cell);
            // Tells the event loop that the shard is inline now.
            shared.waker.wake();
            self.stand_by(shared, id, timeout);
        }
    }

    /// A turn of the event loop. Returns whether there are events; `None` if the shard is not inline.
    pub(crate) fn turn(&self, mailbox: &Mailbox) -> Option<bool> {
        self.step(mailbox, |shard| Some(shard.inline_turn()))
    }

    /// The rest of a turn. Returns whether there are events; `None` if there is no rest.
    pub(crate) fn finish_turn(&self, mailbox: &Mailbox) -> Option<bool> {
        self.step(mailbox, Shard::finish_inline_turn)
    }

    /// Applies commands of the event loop at once. Returns whether there are events; `None` if the commands must be posted.
    pub(crate) fn apply(&self, mailbox: &Mailbox, batch: &Arc<Batch>) -> Option<bool> {
        // Commands that were posted before go first.
        self.step(mailbox, |shard| mailbox.bypass(batch).then(|| shard.apply_inline(batch)))
    }

    /// Never blocks: if the lock is taken, the shard's thread is looking at the shard or has taken it back.
    fn step(&self, mailbox: &Mailbox, act: impl FnOnce(&mut Shard) -> Option<(Next, bool)>) -> Option<bool> {
        if !mailbox.is_inline() {
            return None;
        }
        let mut cell = self.try_lock()?;
        // Checked again with the lock: from here on, a thread that takes the shard back waits for it.
        let shard = cell.as_mut().filter(|_| mailbox.is_inline())?;
        let (next, has_events) = act(shard)?;
        self.inline_step_count.fetch_add(1, Ordering::Relaxed);
        if next == Next::TakeBack {
            mailbox.wake();
        } else {
            let deadline_ms = shard.deadline_ms();
            // Earlier than the one for which the thread sleeps: that of a new connection, or of a close.
            if deadline_ms < self.wakes_at_ms.fetch_min(deadline_ms, Ordering::SeqCst) {
                mailbox.nudge();
            }
        }
        Some(has_events)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Shard>> {
        self.shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Option<Shard>>> {
        match self.shard.try_lock() {
            Ok(cell) => Some(cell),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
