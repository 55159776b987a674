//! What the main thread sees of an I/O thread.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::poller::Waker;

/// State that the main thread and the I/O thread share.
pub(crate) struct Shared {
    pub(crate) waker: Waker,
    open_count: AtomicU32,
    held_count: AtomicU32,
}

impl Shared {
    pub(crate) fn new(waker: Waker) -> Self {
        Self { waker, open_count: AtomicU32::new(0), held_count: AtomicU32::new(0) }
    }

    pub(crate) fn open_count(&self) -> usize {
        self.open_count.load(Ordering::Relaxed) as usize
    }

    /// Sockets of the thread, open or not.
    pub(crate) fn held_count(&self) -> usize {
        self.held_count.load(Ordering::Relaxed) as usize
    }

    pub(crate) fn opened(&self) {
        self.open_count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn closed(&self) {
        self.open_count.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn held(&self) {
        self.held_count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn released(&self) {
        self.held_count.fetch_sub(1, Ordering::Relaxed);
    }
}
