//! The pauses and dice of users, reproducible: the same seed gives the same load.

use crate::loadgen::plans::random::Random;

pub(super) struct Chance(Random);

impl Chance {
    pub(super) fn new(seed: u32) -> Self {
        Self(Random::new(seed, 0))
    }

    /// Microseconds between two numbers of milliseconds.
    pub(super) fn pause_us(&mut self, (from_ms, to_ms): (f64, f64)) -> u64 {
        ((from_ms + (to_ms - from_ms) * self.0.share()) * 1_000.0) as u64
    }

    /// AnyCable's die: a roll of 1 to 10, divided by ten.
    pub(super) fn is_at_most(&mut self, rate: f64) -> bool {
        f64::from(1 + self.0.integer(10)) / 10.0 <= rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_lie_between_their_bounds_and_dice_fall_as_often_as_they_should() {
        let mut chance = Chance::new(1);
        let pauses = (0..10_000).map(|_| chance.pause_us((50.0, 100.0)));
        assert!(pauses.into_iter().all(|us| (50_000..100_000).contains(&us)));
        let hits = (0..100_000).filter(|_| chance.is_at_most(0.3)).count();
        assert!((29_000..31_000).contains(&hits), "{hits}");
        assert!((0..1_000).all(|_| chance.is_at_most(1.0)));
        assert!((0..1_000).all(|_| !chance.is_at_most(0.0)));
    }
}
