//! How busy and how late a thread is.

use crate::latencies::Latencies;

/// How often the thread's own lateness is measured.
const TICK_US: u64 = 10_000;

#[derive(Default)]
pub(super) struct Meter {
    /// Start of the window, once it is open.
    opened_us: Option<u64>,
    waited_us: u64,
    tick_us: u64,
    /// How late the thread woke for a timer of 10 ms.
    pub(super) wake_lag: Latencies,
}

impl Meter {
    pub(super) fn open(&mut self, now_us: u64) {
        if self.opened_us.is_none() {
            self.opened_us = Some(now_us);
            self.waited_us = 0;
            self.tick_us = now_us + TICK_US;
        }
    }

    /// When the thread should wake next; `u64::MAX`: never.
    pub(super) fn next_tick_us(&self) -> u64 {
        if self.opened_us.is_some() { self.tick_us } else { u64::MAX }
    }

    /// The thread has waited from the one time to the other.
    pub(super) fn woke(&mut self, since_us: u64, now_us: u64) {
        if self.opened_us.is_none() {
            return;
        }
        self.waited_us += now_us - since_us;
        if self.tick_us <= now_us {
            self.wake_lag.record(now_us - self.tick_us);
            self.tick_us = now_us + TICK_US;
        }
    }

    /// The share of the window in which the thread did not wait.
    pub(super) fn close(&mut self, now_us: u64) -> f64 {
        let Some(opened_us) = self.opened_us.take() else { return 0.0 };
        let duration_us = now_us - opened_us;
        if duration_us == 0 { 0.0 } else { 1.0 - self.waited_us.min(duration_us) as f64 / duration_us as f64 }
    }
}
