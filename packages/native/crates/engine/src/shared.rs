use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use crate::bridge::event_queue::{EventQueue, Waker};
use crate::bridge::http_sockets::HttpSockets;
use crate::bridge::mailbox::Mailbox;
use crate::id::ShardId;
use crate::options::Options;
use crate::stats::SharedStats;

/// Connections beyond the limit that are held just long enough to tell them so with a 503.
const REFUSED_AT_ONCE: usize = 128;

/// Bytes of commands that may wait for a shard before JavaScript gets no more events: publications that come from
/// connections then wait in those connections' sockets.
const PAUSE_DRAIN_BYTES: usize = 8 << 20;

/// Share of an outbox that may wait for a shard as commands before those who publish are asked to wait. As much may wait in
/// the outboxes by then, and JavaScript has some more under way: all that must fit into an outbox.
const UNAPPLIED_SHARE: usize = 4;

/// What the other threads see of one shard.
pub(crate) struct ShardHandle {
    /// Reports the readiness of the shard's sockets. In inline mode, the event loop watches it.
    pub(crate) epoll: Arc<OwnedFd>,
    pub(crate) mailbox: Mailbox,
    pub(crate) event_queue: EventQueue,
    pub(crate) stats: SharedStats,
    /// Many connections of the shard do not take what they are sent as fast as it comes.
    pub(crate) is_congested: AtomicBool,
    /// The next inline turn panics, for a test.
    #[cfg(test)]
    pub(crate) panics: AtomicBool,
}

/// What all threads of an engine share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) shards: Vec<ShardHandle>,
    pub(crate) waker: Waker,
    pub(crate) http_sockets: HttpSockets,
    pub(crate) began: Instant,
    /// Upgrades in flight and open connections.
    admitted: AtomicUsize,
    /// JavaScript gets no events before the shards have caught up with its commands.
    is_drain_paused: AtomicBool,
    /// Those who publish wait until the shards have caught up.
    is_writable_awaited: AtomicBool,
    /// The event loop runs shards with little to do.
    pub(crate) is_inline_enabled: AtomicBool,
}

impl Shared {
    pub(crate) fn new(options: Options, shards: Vec<ShardHandle>, waker: Waker) -> Self {
        Self {
            options,
            shards,
            waker,
            http_sockets: HttpSockets::default(),
            began: Instant::now(),
            admitted: AtomicUsize::new(0),
            is_drain_paused: AtomicBool::new(false),
            is_writable_awaited: AtomicBool::new(false),
            is_inline_enabled: AtomicBool::new(false),
        }
    }

    /// Counts an upgrade in, if there is room for it.
    #[must_use]
    pub(crate) fn admit(&self) -> bool {
        let max = self.options.max_connections;
        self.admitted
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| (count < max).then(|| count + 1))
            .is_ok()
    }

    pub(crate) fn release(&self) {
        self.admitted.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether a shard is behind with its commands; if so, JavaScript is rung up when none has.
    pub(crate) fn is_drain_paused(&self) -> bool {
        if !self.is_behind() {
            return false;
        }
        self.is_drain_paused.store(true, Ordering::SeqCst);
        // Asked again, for the shard may have caught up before it could see the flag.
        self.is_behind()
    }

    /// Whether JavaScript waits for the shards to catch up, and they have.
    pub(crate) fn is_drain_resumable(&self) -> bool {
        self.is_drain_paused.load(Ordering::SeqCst)
            && !self.is_behind()
            && self.is_drain_paused.swap(false, Ordering::SeqCst)
    }

    /// Whether more may be published; if not, JavaScript is rung up when it may.
    pub(crate) fn is_writable(&self) -> bool {
        let max_bytes = self.options.max_outbox_bytes / UNAPPLIED_SHARE;
        if !self.is_saturated(max_bytes) {
            return true;
        }
        self.is_writable_awaited.store(true, Ordering::SeqCst);
        // Asked again, for the shards may have caught up before they could see the flag.
        !self.is_saturated(max_bytes)
    }

    /// Whether those who publish wait to go on, and may.
    pub(crate) fn is_writable_again(&self) -> bool {
        self.is_writable_awaited.load(Ordering::SeqCst)
            && !self.is_saturated(self.options.max_outbox_bytes / (2 * UNAPPLIED_SHARE))
            && self.is_writable_awaited.swap(false, Ordering::SeqCst)
    }

    fn is_saturated(&self, max_bytes: usize) -> bool {
        let is_saturated = |port: &ShardHandle| {
            let is_congested = port.mailbox.batch_bytes() > max_bytes || port.is_congested.load(Ordering::SeqCst);
            is_congested && !port.mailbox.is_closed()
        };
        self.shards.iter().any(is_saturated)
    }

    fn is_behind(&self) -> bool {
        self.shards.iter().any(|shard| shard.mailbox.batch_bytes() > PAUSE_DRAIN_BYTES)
    }

    /// The shard with the fewest sockets, `own` among equals; counts one more there. `None`: there are too many.
    pub(crate) fn assign(&self, own: ShardId) -> Option<ShardId> {
        let mut total = 0;
        let mut best = (usize::MAX, own);
        for (index, port) in self.shards.iter().enumerate().filter(|(_, port)| !port.mailbox.is_closed()) {
            let load = port.mailbox.load.load(Ordering::Acquire);
            let shard = ShardId(index as u8);
            total += load;
            if load < best.0 || (load == best.0 && shard == own) {
                best = (load, shard);
            }
        }
        if total >= self.options.max_connections + REFUSED_AT_ONCE {
            return None;
        }
        self.shards[best.1.index()].mailbox.load.fetch_add(1, Ordering::AcqRel);
        Some(best.1)
    }
}
