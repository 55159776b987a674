use std::time::Duration;

/// Connections that an inline turn reads from, and writes that it makes at a time. The shard's thread is faster with
/// more: a write costs 4 to 5 us, as much as waking that thread.
const MAX_CONNECTIONS: usize = 8;
/// Bytes of events in one turn. A turn with more counts as busy.
const MAX_EVENT_BYTES: usize = 16 << 10;
/// Connections accepted within [`MIN_QUIET_MS`]. More count as busy.
const MAX_ACCEPTS: u32 = 4;
/// A shard goes inline after this time without a busy turn ...
const MIN_QUIET_MS: u64 = 20;
/// ... and after up to this time if it was taken back soon the last times.
const MAX_QUIET_MS: u64 = if cfg!(test) { 40 } else { 1_000 };
/// Budget of writes beyond the first of each turn, and its refill per millisecond: 5 % of the event loop's time.
const MAX_EXTRA_WRITES: u64 = 64;
const EXTRA_WRITES_PER_MS: u64 = 10;
/// Turns in a row that read and made no event for JavaScript: pings with a prepared answer, pongs. After these, the
/// shard's thread is faster: p50 of such a ping 15 us there and 55 us inline.
const MAX_TURNS_WITHOUT_EVENTS: u32 = 8;

/// Decides when a shard has so little to do that the event loop can run it, and when it has too much. An engine starts idle.
#[derive(Default)]
pub(crate) struct InlinePolicy {
    quiet_ms: u64,
    busy_at_ms: u64,
    /// Was busy since the last [`take_was_busy`](Self::take_was_busy).
    was_busy: bool,
    inline_since_ms: Option<u64>,
    accept_count: u32,
    accepts_since_ms: u64,
    extra_writes: u64,
    extra_writes_at_ms: u64,
    /// Turns that read, since the last that made events.
    turns_without_events: u32,
}

impl InlinePolicy {
    /// Notes more work than inline mode allows.
    pub(crate) fn note_busy(&mut self, now_ms: u64) {
        self.busy_at_ms = now_ms;
        self.was_busy = true;
    }

    pub(super) fn take_was_busy(&mut self) -> bool {
        std::mem::take(&mut self.was_busy)
    }

    /// Whether an inline turn may read from this many connections.
    pub(crate) fn allows_reads(&mut self, connections: usize, now_ms: u64) -> bool {
        self.check(connections <= MAX_CONNECTIONS, now_ms)
    }

    /// Notes the bytes of events of a turn that read.
    pub(crate) fn note_events(&mut self, bytes: usize, now_ms: u64) {
        self.turns_without_events = if bytes > 0 { 0 } else { self.turns_without_events.saturating_add(1) };
        self.check(bytes <= MAX_EVENT_BYTES && self.needs_javascript(), now_ms);
    }

    /// Whether recent turns made events for JavaScript.
    pub(super) fn needs_javascript(&self) -> bool {
        self.turns_without_events < MAX_TURNS_WITHOUT_EVENTS
    }

    /// Whether an inline turn may make this many writes.
    pub(crate) fn allows_writes(&mut self, writes: usize, now_ms: u64) -> bool {
        let past_ms = now_ms - self.extra_writes_at_ms;
        if past_ms > 0 {
            self.extra_writes = self.extra_writes.saturating_sub(past_ms.saturating_mul(EXTRA_WRITES_PER_MS));
            self.extra_writes_at_ms = now_ms;
        }
        self.extra_writes += writes.saturating_sub(1) as u64;
        let is_allowed = writes <= MAX_CONNECTIONS && self.extra_writes <= MAX_EXTRA_WRITES;
        self.extra_writes = self.extra_writes.min(MAX_EXTRA_WRITES);
        self.check(is_allowed, now_ms)
    }

    /// Notes an accepted connection. Returns whether an inline turn may accept more.
    pub(crate) fn allows_accept(&mut self, now_ms: u64) -> bool {
        if now_ms - self.accepts_since_ms > MIN_QUIET_MS {
            (self.accepts_since_ms, self.accept_count) = (now_ms, 0);
        }
        self.accept_count += 1;
        self.check(self.accept_count <= MAX_ACCEPTS, now_ms)
    }

    fn check(&mut self, is_allowed: bool, now_ms: u64) -> bool {
        if !is_allowed {
            self.note_busy(now_ms);
        }
        is_allowed
    }

    /// Time until the shard may go inline, if it stays quiet.
    pub(super) fn time_to_inline(&self, now_ms: u64) -> Duration {
        Duration::from_millis((self.busy_at_ms + self.quiet_ms).saturating_sub(now_ms))
    }

    pub(super) fn handed_over(&mut self, now_ms: u64) {
        self.was_busy = false;
        self.inline_since_ms = Some(now_ms);
    }

    /// Notes that the shard's thread has it back. After a short time inline it keeps the shard longer: a change of threads
    /// costs about 50 us.
    pub(crate) fn taken_back(&mut self, now_ms: u64) {
        let Some(since_ms) = self.inline_since_ms.take() else { return };
        let was_short = now_ms - since_ms < self.quiet_ms;
        self.quiet_ms = if was_short { (2 * self.quiet_ms).min(MAX_QUIET_MS) } else { MIN_QUIET_MS };
        self.note_busy(now_ms);
    }
}
