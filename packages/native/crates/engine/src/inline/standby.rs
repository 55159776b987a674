//! What the shard's thread does while the event loop runs the shard: it keeps the deadlines, and it does the work that a
//! late event loop leaves undone. A callback that runs for seconds must not cost a peer its pong or its timeout.
//!
//! ```text
//! WAITING ── a socket is ready ──▶ WATCHING ── the event loop has come ──▶ look again after 50 ms
//!    ▲                                │
//!    │                                ├── it has not, and work waits ────▶ do it; twice in a row: take the shard back
//!    └──────── nothing waits ─────────┘
//! ```
//!
//! While WAITING, the thread sleeps in `poll` on the shard's poller. It wakes when a socket becomes ready, and for deadlines:
//! once for those of half a second. So an idle shard wakes to ping its connections, and at most twice a second. A step of the
//! event loop that sets an earlier deadline wakes the thread. While WATCHING, it ignores the sockets and looks every 50 ms: a
//! busy event loop is not disturbed by a second wake-up per message.
//!
//! An event loop that is blocked when a message arrives is noticed after 25 ms. One that blocks after it has just come is
//! noticed after 50 to 100 ms.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::ShardCell;
use crate::id::ShardId;
use crate::readiness::Woken;
use crate::shard::Shard;
use crate::shared::Shared;

/// Time between two looks at a shard that has something to do.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Time from the first ready socket to the first look.
const FIRST_LOOK: Duration = Duration::from_millis(25);
/// After this many late looks in a row, the thread takes the shard back.
const MAX_LATE_COUNT: u32 = 2;

impl ShardCell {
    /// Stands by until the shard is taken back. `timeout`: time to the next deadline; `None`: there is none.
    pub(super) fn stand_by(&self, shared: &Shared, id: ShardId, mut timeout: Option<Duration>) {
        let handle = &shared.shards[id.index()];
        let mailbox = &handle.mailbox;
        let mut is_watching = false;
        let mut late_count = 0;
        let mut step_count = self.inline_step_count.load(Ordering::Relaxed);
        while mailbox.is_inline() {
            let woken = mailbox.stand_by((!is_watching).then_some(&handle.poller), timeout);
            if !mailbox.is_inline() {
                return;
            }
            if woken == Woken::SocketReady {
                // The event loop was woken, too. It is late if it has not come by the first look.
                step_count = self.inline_step_count.load(Ordering::Relaxed);
                (is_watching, timeout) = (true, Some(FIRST_LOOK));
                continue;
            }
            let Some(mut cell) = self.try_lock() else {
                // The event loop is here right now.
                (is_watching, timeout) = (true, Some(LOOK_INTERVAL));
                continue;
            };
            let Some(shard) = &mut *cell else { return };
            let steps_now = self.inline_step_count.load(Ordering::Relaxed);
            is_watching = std::mem::replace(&mut step_count, steps_now) != steps_now;
            if is_watching {
                late_count = 0;
            } else {
                let (is_late, has_events) = shard.stand_in();
                if has_events {
                    shared.waker.wake();
                }
                is_watching = is_late;
                late_count = if is_late { late_count + 1 } else { 0 };
                if late_count == MAX_LATE_COUNT {
                    mailbox.wake();
                }
            }
            timeout = self.note_deadline(shard);
            if is_watching {
                timeout = timeout.into_iter().chain([LOOK_INTERVAL]).min();
            }
        }
    }

    /// Time to the shard's next deadline. Called with the lock, so that a step that sets an earlier one sees what was decided
    /// here.
    pub(super) fn note_deadline(&self, shard: &mut Shard) -> Option<Duration> {
        let time = shard.time_to_deadline();
        self.wakes_at_ms.store(shard.deadline_ms(), Ordering::SeqCst);
        time
    }
}
