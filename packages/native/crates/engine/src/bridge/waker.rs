use crate::sync::atomic::{AtomicBool, Ordering};

/// Wakes JavaScript, once until it drains.
pub(crate) struct Waker {
    is_pending: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Waker {
    pub(crate) fn new(wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { is_pending: AtomicBool::new(false), wake }
    }

    pub(crate) fn wake(&self) {
        if !self.is_pending.swap(true, Ordering::AcqRel) {
            (self.wake)();
        }
    }

    /// JavaScript has not drained since it was woken.
    pub(crate) fn is_pending(&self) -> bool {
        self.is_pending.load(Ordering::Acquire)
    }

    /// JavaScript drains now; the next event wakes it again. A swap, so that it sees what was put before the wake-up.
    pub(crate) fn acknowledge(&self) {
        self.is_pending.swap(false, Ordering::AcqRel);
    }
}
