use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use crate::bridge::batch::Batch;
use crate::bridge::mailbox::Mailbox;
use crate::inline::{Next, WATCH_INTERVAL};
use crate::shard::Shard;
use crate::shared::Shared;

/// Times in a row that a guest may be late before the shard is taken from it.
const MAX_LATE_COUNT: u32 = 2;

/// Where a shard is, for its own thread and for guests.
///
/// The own thread keeps it locked, asleep or awake, except while it is lent: the mailbox tells that.
#[derive(Default)]
pub(crate) struct Seat {
    /// `None` before its beginning and after its end.
    shard: Mutex<Option<Shard>>,
    /// Visits of guests.
    visit_count: AtomicU64,
    /// The own thread looks in by itself while it is parked.
    is_watched: AtomicBool,
}

impl Seat {
    /// Runs a shard to its end, on the thread that is its own.
    pub(crate) fn host(&self, shard: Shard, shared: &Shared) {
        let mailbox = &shared.ports[shard.id().index()].mailbox;
        *self.lock() = Some(shard);
        loop {
            let mut seat = self.lock();
            let Some(shard) = &mut *seat else { return };
            if !shard.host() {
                // Its sockets are closed before the thread ends.
                *seat = None;
                return;
            }
            let watch_time = self.watch_time(shard);
            drop(seat);
            // The guest learns that it has a shard.
            shared.bell.ring();
            self.await_return(mailbox, shared, watch_time);
        }
    }

    /// Parks until the shard is to be taken back, and looks in now and then if nobody else does.
    fn await_return(&self, mailbox: &Mailbox, shared: &Shared, mut watch_time: Option<Duration>) {
        let mut visit_count = self.visit_count.load(Ordering::Relaxed);
        let mut late_count = 0;
        while mailbox.is_lent() {
            match watch_time {
                Some(time) => std::thread::park_timeout(time),
                None => std::thread::park(),
            }
            if !mailbox.is_lent() {
                return;
            }
            let Some(mut seat) = self.try_lock() else {
                // A guest has it right now, maybe with its first connection.
                watch_time = Some(WATCH_INTERVAL);
                continue;
            };
            let Some(shard) = &mut *seat else { return };
            let visits_now = self.visit_count.load(Ordering::Relaxed);
            if std::mem::replace(&mut visit_count, visits_now) == visits_now {
                let (is_late, has_events) = shard.watch();
                if has_events {
                    shared.bell.ring();
                }
                late_count = if is_late { late_count + 1 } else { 0 };
                if late_count == MAX_LATE_COUNT {
                    mailbox.wake();
                }
            } else {
                late_count = 0;
            }
            watch_time = self.watch_time(shard);
        }
    }

    /// Time for which the own thread parks. Asked with the shard locked, so that a guest that gets its first connection sees
    /// what was decided.
    fn watch_time(&self, shard: &mut Shard) -> Option<Duration> {
        let time = shard.watch_time();
        self.is_watched.store(time.is_some(), Ordering::SeqCst);
        time
    }

    /// A guest's turn; `None` if the shard is not lent, otherwise whether there are events.
    pub(crate) fn turn(&self, mailbox: &Mailbox) -> Option<bool> {
        self.visit(mailbox, |shard| Some(shard.guest_turn()))
    }

    /// The rest of a guest's turn; `None` if there is none.
    pub(crate) fn rest(&self, mailbox: &Mailbox) -> Option<bool> {
        self.visit(mailbox, Shard::guest_rest)
    }

    /// A guest's commands are applied at once; `None` if they have to be posted, otherwise whether there are events.
    pub(crate) fn apply(&self, mailbox: &Mailbox, batch: &Arc<Batch>) -> Option<bool> {
        // Behind what was posted before.
        self.visit(mailbox, |shard| mailbox.pass(batch).then(|| shard.guest_apply(batch)))
    }

    /// Never waits: the own thread just looks in, then, or has taken the shard back.
    fn visit(&self, mailbox: &Mailbox, act: impl FnOnce(&mut Shard) -> Option<(Next, bool)>) -> Option<bool> {
        if !mailbox.is_lent() {
            return None;
        }
        let mut seat = self.try_lock()?;
        // Asked again: whoever takes the shard back from here on waits for the lock.
        let shard = seat.as_mut().filter(|_| mailbox.is_lent())?;
        let (next, has_events) = act(shard)?;
        self.visit_count.fetch_add(1, Ordering::Relaxed);
        if next == Next::Return {
            mailbox.wake();
        } else if shard.has_connections() && !self.is_watched.swap(true, Ordering::SeqCst) {
            mailbox.nudge();
        }
        Some(has_events)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Shard>> {
        self.shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Shard>>> {
        match self.shard.try_lock() {
            Ok(seat) => Some(seat),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
