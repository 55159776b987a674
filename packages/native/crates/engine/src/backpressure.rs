//! Flow control: what slows publishers down before outboxes overflow. All rules and numbers are here.
//!
//! | what | limit | effect |
//! | --- | --- | --- |
//! | output for one connection | `max_outbox_bytes` | the connection is closed with 4008 |
//! | commands that wait for a shard | a quarter of an outbox, until an eighth | publishers wait |
//! | | 8 MiB | JavaScript gets no events, so publishing connections wait in their sockets |
//! | | 64 MiB | `submit` blocks |
//! | full sockets | more than half of the shard's connections, or more than 1/32 and at least 4; and a quarter of an outbox waits | publishers wait |
//! | one connection that lags | half of an outbox, until a quarter | publishers wait for 0.2 s, and then not for 2 s |
//! | time that publishers wait | 1 s, or longer while the connections take 32 KiB a second each | they wait no more until this saturation is over |
//!
//! "Publishers wait" means: [`Engine::is_writable`](crate::Engine::is_writable) is `false`, and JavaScript is woken when that
//! changes. It concerns publishers in the process that await their publish. Connections that publish are slowed down by the
//! 8 MiB rule.

use std::sync::PoisonError;

use crate::shared::ShardHandle;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Bytes of commands that may wait for a shard before `submit` blocks. Only publishers that do not await get this far.
pub(crate) const MAX_POSTED_BYTES: usize = 64 << 20;
/// Bytes of commands that may wait for a shard before JavaScript gets no more events.
const PAUSE_DRAIN_BYTES: usize = if cfg!(all(test, shuttle)) { 20 } else { 8 << 20 };
/// Share of an outbox that may wait for a shard as commands. By then as much may wait in the outboxes, and JavaScript has
/// more under way: all that must fit into an outbox.
const POSTED_SHARE: usize = 4;
/// More than one in this many connections with a full socket is a congestion. A machine that reads for many connections
/// serves one after another: few sockets are full at a time, and yet each connection falls behind in its turn.
const CONGESTED_SHARE: usize = 32;
/// Fewer are no congestion, unless they are most.
const MIN_CONGESTED: usize = 4;
/// Share of an outbox that must wait in a congestion.
const CONGESTED_OUTBOX_SHARE: usize = 4;
/// Publishers wait this long for a few connections that lag.
const GRACE_US: u64 = 200_000;
/// After a wait in vain there is none for this long. So a connection that stays slow costs the others a tenth of their time
/// at most, until its outbox is full.
const GRACE_PAUSE_US: u64 = 10 * GRACE_US;
/// Publishers wait this long. Then the limits of the outboxes decide which connection is too slow. JavaScript asks again after
/// a second; this is a little less, so that a timer that fires early does not cost another second.
const MAX_WAIT_MS: u64 = 990;
/// They wait on if the connections took this much each, on average, in that time. Then the connections are not slow but
/// many: a flood to 10,000 has more under way than the machine can read in a second.
const MIN_TAKEN_BYTES: u64 = 32 << 10;

/// Output that waits for a connection that lags. It lags from half of an outbox on until less than a quarter waits, so that
/// publishers do not stop again at once.
pub(crate) fn lag_bytes(max_outbox_bytes: u64, is_lagging: bool) -> u64 {
    max_outbox_bytes / if is_lagging { 4 } else { 2 }
}

/// Flow control of an engine.
pub(crate) struct Backpressure {
    max_outbox_bytes: usize,
    /// JavaScript gets no events until the shards have applied its commands.
    is_drain_paused: AtomicBool,
    /// Publishers wait for a wake-up.
    is_wake_wanted: AtomicBool,
    /// `wait` is not `None`.
    has_wait: AtomicBool,
    wait: Mutex<Wait>,
}

/// How long publishers have waited in this saturation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Wait {
    #[default]
    None,
    /// Bytes that the connections had taken at that time.
    Since {
        ms: u64,
        sent_bytes: u64,
    },
    GivenUp,
}

/// What the connections of the engine take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) connections: u64,
    /// Bytes written to sockets since the start.
    pub(crate) sent_bytes: u64,
}

impl Taken {
    /// Whether the connections took enough since then.
    fn has_grown_since(self, sent_bytes: u64) -> bool {
        self.sent_bytes.saturating_sub(sent_bytes) >= MIN_TAKEN_BYTES * self.connections
    }
}

impl Backpressure {
    pub(crate) fn new(max_outbox_bytes: usize) -> Self {
        Self {
            max_outbox_bytes,
            is_drain_paused: AtomicBool::new(false),
            is_wake_wanted: AtomicBool::new(false),
            has_wait: AtomicBool::new(false),
            wait: Mutex::default(),
        }
    }

    /// Whether JavaScript must not get events. If so, it is woken when [`ends_pause`](Self::ends_pause).
    pub(crate) fn pauses_drain(&self, shards: &[ShardHandle]) -> bool {
        if !is_behind(shards) {
            return false;
        }
        self.is_drain_paused.store(true, Ordering::SeqCst);
        // Checked again: the shard may have caught up before it could see the flag.
        is_behind(shards)
    }

    /// Whether a pause of the drain ends now. Asked by shards after they applied commands.
    pub(crate) fn ends_pause(&self, shards: &[ShardHandle]) -> bool {
        self.is_drain_paused.load(Ordering::SeqCst)
            && !is_behind(shards)
            && self.is_drain_paused.swap(false, Ordering::SeqCst)
    }

    /// Whether more may be published. If not, JavaScript is woken when [`ends_wait`](Self::ends_wait).
    pub(crate) fn is_writable(&self, shards: &[ShardHandle], now_ms: u64, taken: impl FnOnce() -> Taken) -> bool {
        let max_bytes = self.max_outbox_bytes / POSTED_SHARE;
        if !is_saturated(shards, max_bytes) {
            return self.end_wait();
        }
        self.is_wake_wanted.store(true, Ordering::SeqCst);
        // Checked again: the shards may have caught up before they could see the flag.
        if !is_saturated(shards, max_bytes) {
            return self.end_wait();
        }
        self.has_wait.store(true, Ordering::Relaxed);
        let mut wait = self.wait.lock().unwrap_or_else(PoisonError::into_inner);
        *wait = wait.go_on(now_ms, taken());
        *wait == Wait::GivenUp
    }

    /// Whether waiting publishers may go on now. Asked by shards after each turn.
    pub(crate) fn ends_wait(&self, shards: &[ShardHandle]) -> bool {
        self.is_wake_wanted.load(Ordering::SeqCst)
            && !is_saturated(shards, self.max_outbox_bytes / (2 * POSTED_SHARE))
            && self.is_wake_wanted.swap(false, Ordering::SeqCst)
    }

    fn end_wait(&self) -> bool {
        if self.has_wait.swap(false, Ordering::Relaxed) {
            *self.wait.lock().unwrap_or_else(PoisonError::into_inner) = Wait::None;
        }
        true
    }
}

impl Wait {
    /// The wait while the engine is still saturated.
    fn go_on(self, now_ms: u64, taken: Taken) -> Self {
        let begin = Self::Since { ms: now_ms, sent_bytes: taken.sent_bytes };
        match self {
            Self::None => begin,
            Self::Since { ms, .. } if now_ms.saturating_sub(ms) < MAX_WAIT_MS => self,
            Self::Since { sent_bytes, .. } if taken.has_grown_since(sent_bytes) => begin,
            Self::Since { .. } | Self::GivenUp => Self::GivenUp,
        }
    }
}

fn is_behind(shards: &[ShardHandle]) -> bool {
    shards.iter().any(|shard| shard.mailbox.batch_bytes() > PAUSE_DRAIN_BYTES)
}

fn is_saturated(shards: &[ShardHandle], max_posted_bytes: usize) -> bool {
    shards.iter().any(|shard| {
        let is_congested = shard.is_congested.load(Ordering::SeqCst);
        (is_congested || shard.mailbox.batch_bytes() > max_posted_bytes) && !shard.mailbox.is_closed()
    })
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputLoad {
    pub(crate) connections: usize,
    /// Connections whose socket is full.
    pub(crate) blocked_count: usize,
    pub(crate) outbox_bytes: usize,
    pub(crate) max_outbox_bytes: usize,
    /// A connection lags; see [`lag_bytes`].
    pub(crate) is_lagging: bool,
}

impl OutputLoad {
    /// Many connections take output slower than it comes, and much waits for one of them.
    fn has_many_blocked(self) -> bool {
        let Self { connections, blocked_count: blocked, .. } = self;
        let is_share = blocked >= MIN_CONGESTED && CONGESTED_SHARE * blocked > connections;
        (is_share || 2 * blocked > connections) && self.outbox_bytes > self.max_outbox_bytes / CONGESTED_OUTBOX_SHARE
    }
}

/// Flow control of one shard: whether publishers wait for its connections.
///
/// Publishers wait for a few connections that lag only for a moment. A machine that reads for many connections serves one
/// after another: each falls behind in its turn, catches up in some milliseconds, and would be closed without those. Until
/// the moment is over, a connection that is slow for good looks the same.
#[derive(Default)]
pub(crate) struct ReaderGrace {
    since_us: Option<u64>,
    paused_until_us: u64,
}

impl ReaderGrace {
    /// Whether publishers should wait. Ask again at [`ends_at_us`](Self::ends_at_us).
    pub(crate) fn is_congested(&mut self, load: OutputLoad, now_us: u64) -> bool {
        self.is_granted(load.is_lagging, now_us) || load.has_many_blocked()
    }

    fn is_granted(&mut self, is_lagging: bool, now_us: u64) -> bool {
        if !is_lagging {
            self.since_us = None;
            return false;
        }
        if now_us < self.paused_until_us {
            return false;
        }
        let since_us = *self.since_us.get_or_insert(now_us);
        if now_us - since_us < GRACE_US {
            return true;
        }
        self.since_us = None;
        self.paused_until_us = now_us + GRACE_PAUSE_US;
        false
    }

    /// When the wait for connections that lag ends at the latest; `None`: there is no wait.
    pub(crate) fn ends_at_us(&self) -> Option<u64> {
        self.since_us.map(|since_us| since_us + GRACE_US)
    }
}

#[cfg(test)]
#[path = "backpressure_test.rs"]
mod tests;
