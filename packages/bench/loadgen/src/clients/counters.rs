//! Progress of all threads, for `stats`.

use std::sync::atomic::{AtomicU64, Ordering};

/// Sums over all threads at this moment.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connected: AtomicU64,
    pub(super) published: AtomicU64,
    pub(super) delivered: AtomicU64,
    /// All arrivals, including duplicates and the warm-up.
    pub(super) arrived: AtomicU64,
    /// Threads that have nothing left to send.
    pub(super) done_threads: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
