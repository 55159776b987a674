use std::time::Duration;

/// Window for the average load. Short enough to be fast in a burst, long enough for 100 publications a second to
/// look steady.
const LOAD_WINDOW_US: f64 = 50_000.0;
/// A shard holds output back if separate writes for every publication would take more than this share of its time. Below
/// it, holding back would save time that nobody needs.
const BUSY_LOAD: f64 = 0.75;
/// Share of its time that a holding shard spends on writing.
const WRITING_SHARE: f64 = 0.4;
/// No hold that pays is shorter: to sleep and wake costs about as much as ten writes.
const MIN_HOLD_US: f64 = 1_000.0;
/// Publications per write below which a hold did not pay: they were for different connections.
const MIN_PAYOFF: f64 = 1.2;
/// A hold that does not pay is shortened down to this share, and tried again from there.
const MIN_SCALE: f64 = 1.0 / 32.0;
/// Weight of the newest flush in the cost of a write.
const COST_WEIGHT: f64 = 0.2;
/// Cost of a write as measured on common hardware; the first flushes correct it.
const FIRST_WRITE_US: f64 = 4.0;
/// With this limit or more, a test's engine holds publications back whatever its load, and for ever.
#[cfg(test)]
pub(crate) const HOLD_OF_TESTS: Duration = Duration::from_secs(3_600);

/// Decides how long publications wait for others to share a write with.
///
/// A write costs 4 to 5 us whatever it carries, so a shard that is busy with small writes gets more done by making fewer.
/// The pacer adds up what separate writes of all publications would cost. While that is less than [`BUSY_LOAD`] of the time,
/// everything leaves in its turn. Otherwise the shard rests after each flush for one and a half times as long as the next one
/// will take, at most for the limit. So a publication waits for its flush at most for the limit and one earlier flush.
pub(super) struct FlushPacer {
    max_hold_us: f64,
    write_us: f64,
    load: f64,
    load_at_us: u64,
    flushed_at_us: u64,
    /// Writes that the publications since the last flush would have needed.
    wanted_writes: usize,
    /// Writes of the flush in progress; those of them whose cost was measured, and that cost.
    writes: usize,
    measured_writes: usize,
    cost: Duration,
    scale: f64,
}

impl FlushPacer {
    pub(super) fn new(max_hold: Duration) -> Self {
        Self {
            max_hold_us: max_hold.as_micros() as f64,
            write_us: FIRST_WRITE_US,
            load: 0.0,
            load_at_us: 0,
            flushed_at_us: 0,
            wanted_writes: 0,
            writes: 0,
            measured_writes: 0,
            cost: Duration::ZERO,
            scale: 1.0,
        }
    }

    /// Publications arrived together that need `writes` writes.
    pub(super) fn arrived(&mut self, writes: usize, now_us: u64) {
        self.load = self.load_at(now_us) + writes as f64 * self.write_us / LOAD_WINDOW_US;
        self.load_at_us = now_us;
        self.wanted_writes += writes;
    }

    /// Notes a part of a flush: `writes` writes that took `cost` of the processor's time, if that was measured.
    pub(super) fn wrote(&mut self, writes: usize, cost: Option<Duration>) {
        self.writes += writes;
        if let Some(cost) = cost {
            self.measured_writes += writes;
            self.cost += cost;
        }
    }

    /// Everything was written.
    pub(super) fn flushed(&mut self, now_us: u64) {
        self.flushed_at_us = now_us;
        let wanted = std::mem::take(&mut self.wanted_writes) as f64;
        let writes = std::mem::take(&mut self.writes);
        let (measured_writes, cost) = (std::mem::take(&mut self.measured_writes), std::mem::take(&mut self.cost));
        if measured_writes > 0 {
            let write_us = cost.as_secs_f64() * 1e6 / measured_writes as f64;
            self.write_us += COST_WEIGHT * (write_us - self.write_us);
        }
        if writes > 0 {
            let paid = wanted >= MIN_PAYOFF * writes as f64;
            self.scale = if paid { 1.0_f64.min(2.0 * self.scale) } else { MIN_SCALE.max(0.5 * self.scale) };
        }
    }

    /// When a flush of `writes` writes may begin; it may be over already.
    pub(super) fn flushes_at_us(&self, writes: usize, now_us: u64) -> u64 {
        #[cfg(test)]
        if self.max_hold_us >= HOLD_OF_TESTS.as_micros() as f64 {
            return now_us + HOLD_OF_TESTS.as_micros() as u64;
        }
        if self.load_at(now_us) < BUSY_LOAD {
            return 0;
        }
        let flush_us = writes as f64 * self.write_us;
        let rest_us = flush_us * (1.0 / WRITING_SHARE - 1.0);
        self.flushed_at_us + (rest_us.max(MIN_HOLD_US).min(self.max_hold_us) * self.scale) as u64
    }

    fn load_at(&self, now_us: u64) -> f64 {
        let past_us = now_us.saturating_sub(self.load_at_us) as f64;
        self.load * (-past_us / LOAD_WINDOW_US).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: Duration = Duration::from_nanos(4_500);

    /// What a second of steady publications to `receivers` comes to.
    #[derive(Debug)]
    struct Second {
        busy: f64,
        flushes: u32,
        longest_wait_us: u64,
    }

    /// Publications at a fixed rate, for a shard that is woken exactly when it asks to be. `shared`: all are for the same
    /// connections; otherwise each has connections of its own.
    fn second(receivers: usize, per_second: u64, max_hold_ms: u64, is_shared: bool) -> Second {
        let mut pace = FlushPacer::new(Duration::from_millis(max_hold_ms));
        let arrivals: Vec<u64> = (0..2 * per_second).map(|number| number * 1_000_000 / per_second).collect();
        let (mut now_us, mut next) = (0, 0);
        let mut waiting: Vec<u64> = Vec::new();
        let (mut busy_us, mut flushes, mut longest_wait_us) = (0, 0, 0);
        while now_us < 2_000_000 {
            while next < arrivals.len() && arrivals[next] <= now_us {
                pace.arrived(receivers, now_us);
                waiting.push(arrivals[next]);
                next += 1;
            }
            let writes = if is_shared { receivers } else { receivers * waiting.len() };
            let at_us = pace.flushes_at_us(writes, now_us);
            if waiting.is_empty() || at_us > now_us {
                let arrival = arrivals.get(next).copied().unwrap_or(2_000_000);
                now_us = if waiting.is_empty() { arrival } else { arrival.min(at_us) };
                continue;
            }
            if now_us >= 1_000_000 {
                flushes += 1;
                longest_wait_us = longest_wait_us.max(now_us - waiting[0]);
                busy_us += writes as u64 * 9 / 2;
            }
            waiting.clear();
            now_us += writes as u64 * 9 / 2 + 1;
            pace.wrote(writes, Some(WRITE * writes as u32));
            pace.flushed(now_us);
        }
        Second { busy: busy_us as f64 / 1e6, flushes, longest_wait_us }
    }

    #[test]
    fn a_shard_with_time_to_spare_writes_everything_at_once() {
        let run = second(1_000, 100, 10, true);
        assert_eq!((run.flushes, run.longest_wait_us), (100, 0), "{run:?}");
        let run = second(1, 10_000, 10, true);
        assert_eq!((run.flushes, run.longest_wait_us), (10_000, 0), "{run:?}");
    }

    #[test]
    fn a_busy_shard_writes_for_two_fifths_of_its_time() {
        let run = second(1_000, 1_000, 10, true);
        assert!((0.37..0.43).contains(&run.busy), "{run:?}");
    }

    #[test]
    fn nothing_waits_longer_for_a_flush_to_begin_than_the_limit_and_the_flush_before() {
        let run = second(5_000, 1_000, 10, true);
        assert!(run.longest_wait_us <= 10_000 + 5_000 * 9 / 2 + 1, "{run:?}");
    }

    #[test]
    fn a_limit_of_zero_holds_nothing_back() {
        let run = second(1_000, 150, 0, true);
        assert_eq!((run.flushes, run.longest_wait_us), (150, 0), "{run:?}");
    }

    #[test]
    fn publications_that_share_no_write_are_hardly_held_back() {
        let run = second(1, 180_000, 10, false);
        assert!(run.longest_wait_us <= 3_000, "{run:?}");
    }
}
