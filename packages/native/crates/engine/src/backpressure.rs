/// Output that waits for a connection when it begins to lag: half an outbox. It lags until less than a quarter waits, so that
/// publishers do not stop again at once.
pub(crate) fn lag_bytes(max_outbox_bytes: u64, is_lagging: bool) -> u64 {
    max_outbox_bytes / if is_lagging { 4 } else { 2 }
}

/// Publishers wait no longer for a few readers that are far behind.
const MAX_WAIT_US: u64 = 200_000;
/// After a wait that was in vain there is none for so long: a reader that stays slow costs the others a tenth of their time at
/// most, until its outbox is full and it is cut off.
const PAUSE_US: u64 = 10 * MAX_WAIT_US;

/// Decides whether who publishes waits for readers that lag, though most do not.
///
/// A machine that reads for many connections serves one after another: when more is published than it can take, each falls behind
/// in its turn, catches up in some milliseconds, and would be cut off without those. From outside it looks like a
/// reader that is slow for good, until the wait is over.
#[derive(Default)]
pub(crate) struct Patience {
    waits_since_us: Option<u64>,
    barred_until_us: u64,
}

impl Patience {
    /// Whether publishers should wait; to be asked again at [`ends_at_us`](Self::ends_at_us).
    pub(crate) fn is_granted(&mut self, is_lagging: bool, now_us: u64) -> bool {
        if !is_lagging {
            self.waits_since_us = None;
            return false;
        }
        if now_us < self.barred_until_us {
            return false;
        }
        let since_us = *self.waits_since_us.get_or_insert(now_us);
        if now_us - since_us < MAX_WAIT_US {
            return true;
        }
        self.waits_since_us = None;
        self.barred_until_us = now_us + PAUSE_US;
        false
    }

    /// When a wait ends at the latest; `None`: nobody waits.
    pub(crate) fn ends_at_us(&self) -> Option<u64> {
        self.waits_since_us.map(|since_us| since_us + MAX_WAIT_US)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_that_catch_up_are_waited_for_every_time() {
        let mut patience = Patience::default();
        for round in 0..100 {
            let began_us = round * MAX_WAIT_US;
            assert!(patience.is_granted(true, began_us));
            assert!(patience.is_granted(true, began_us + MAX_WAIT_US - 1));
            assert_eq!(patience.ends_at_us(), Some(began_us + MAX_WAIT_US));
            assert!(!patience.is_granted(false, began_us + MAX_WAIT_US - 1));
            assert_eq!(patience.ends_at_us(), None);
        }
    }

    #[test]
    fn a_reader_that_stays_slow_is_waited_for_a_tenth_of_the_time() {
        let mut patience = Patience::default();
        let waited = (0..10_000_u64).filter(|millisecond| patience.is_granted(true, millisecond * 1_000)).count();
        assert!((800..=1_000).contains(&waited), "{waited} ms of 10 s");
    }
}
