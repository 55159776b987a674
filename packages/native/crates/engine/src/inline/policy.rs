use std::time::Duration;

/// Connections that a guest reads from in a turn, and writes that it makes at a time. More is faster with a thread that
/// does nothing else: a write costs 4 to 5 us, as much as waking that thread.
const MAX_GUEST_CONNECTIONS: usize = 8;
/// The own thread looks after a lent shard so often: as long as JavaScript is held up, what it would do is late by that.
pub(crate) const WATCH_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes of events that a turn may have before it counts as busy.
const MAX_GUEST_EVENT_BYTES: usize = 16 << 10;
/// Accepted connections within [`MIN_QUIET_MS`] from which on it counts as busy.
const MAX_GUEST_ACCEPTS: u32 = 4;
/// A shard is lent after this time without a busy turn ...
const MIN_QUIET_MS: u64 = 20;
/// ... and after up to this time if it was taken back soon the last times.
const MAX_QUIET_MS: u64 = if cfg!(test) { 40 } else { 1_000 };
/// Writes beyond the first of each time that a guest may make at once, and per millisecond: 5 % of its time.
const MAX_EXTRA_WRITES: u64 = 64;
const EXTRA_WRITES_PER_MS: u64 = 10;

/// Decides when a shard has so little to do that a guest does it on the side, and when its own thread is to do it.
pub(crate) struct Lending {
    quiet_ms: u64,
    busy_at_ms: u64,
    /// It was busy since this was asked last.
    was_busy: bool,
    lent_at_ms: Option<u64>,
    accepts: u32,
    accepts_since_ms: u64,
    extra_writes: u64,
    extra_writes_at_ms: u64,
}

impl Lending {
    pub(crate) fn new() -> Self {
        Self {
            // An engine begins idle.
            quiet_ms: 0,
            busy_at_ms: 0,
            was_busy: false,
            lent_at_ms: None,
            accepts: 0,
            accepts_since_ms: 0,
            extra_writes: 0,
            extra_writes_at_ms: 0,
        }
    }

    /// There is more to do than a guest should.
    pub(crate) fn busy(&mut self, now_ms: u64) {
        self.busy_at_ms = now_ms;
        self.was_busy = true;
    }

    pub(crate) fn take_was_busy(&mut self) -> bool {
        std::mem::take(&mut self.was_busy)
    }

    /// A turn is to read from so many connections.
    pub(crate) fn receives(&mut self, connections: usize, now_ms: u64) -> bool {
        self.note(connections <= MAX_GUEST_CONNECTIONS, now_ms)
    }

    /// A turn has come to so many bytes of events.
    pub(crate) fn received(&mut self, event_bytes: usize, now_ms: u64) -> bool {
        self.note(event_bytes <= MAX_GUEST_EVENT_BYTES, now_ms)
    }

    /// So many writes are to be made. Returns whether a guest may make them.
    pub(crate) fn writes(&mut self, writes: usize, now_ms: u64) -> bool {
        let past_ms = now_ms - self.extra_writes_at_ms;
        if past_ms > 0 {
            self.extra_writes = self.extra_writes.saturating_sub(past_ms.saturating_mul(EXTRA_WRITES_PER_MS));
            self.extra_writes_at_ms = now_ms;
        }
        self.extra_writes += writes.saturating_sub(1) as u64;
        let is_little = writes <= MAX_GUEST_CONNECTIONS && self.extra_writes <= MAX_EXTRA_WRITES;
        self.extra_writes = self.extra_writes.min(MAX_EXTRA_WRITES);
        self.note(is_little, now_ms)
    }

    /// A connection was accepted. Returns whether a guest may accept more.
    pub(crate) fn accepted(&mut self, now_ms: u64) -> bool {
        if now_ms - self.accepts_since_ms > MIN_QUIET_MS {
            (self.accepts_since_ms, self.accepts) = (now_ms, 0);
        }
        self.accepts += 1;
        let is_little = self.accepts <= MAX_GUEST_ACCEPTS;
        self.note(is_little, now_ms)
    }

    fn note(&mut self, is_little: bool, now_ms: u64) -> bool {
        if !is_little {
            self.busy(now_ms);
        }
        is_little
    }

    /// When the shard may be lent if nothing happens until then.
    pub(crate) fn lends_at_ms(&self) -> u64 {
        self.busy_at_ms + self.quiet_ms
    }

    pub(crate) fn lent(&mut self, now_ms: u64) {
        self.was_busy = false;
        self.lent_at_ms = Some(now_ms);
    }

    /// The own thread has the shard back. If that was soon, it keeps it longer: to change hands costs some 50 us.
    pub(crate) fn taken_back(&mut self, now_ms: u64) {
        let Some(lent_at_ms) = self.lent_at_ms.take() else { return };
        let was_short = now_ms - lent_at_ms < self.quiet_ms;
        self.quiet_ms = if was_short { (2 * self.quiet_ms).min(MAX_QUIET_MS) } else { MIN_QUIET_MS };
        self.busy(now_ms);
    }
}
