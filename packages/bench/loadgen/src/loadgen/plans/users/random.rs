//! Reproducible random numbers: the same seed gives the same load.

/// SplitMix64 (Steele, Lea, Flood 2014): good enough for pauses and dice.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0, up to and excluding 1.
    pub(super) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Microseconds between two numbers of milliseconds.
    pub(super) fn pause_us(&mut self, (from_ms, to_ms): (f64, f64)) -> u64 {
        ((from_ms + (to_ms - from_ms) * self.share()) * 1_000.0) as u64
    }

    /// AnyCable's die: a roll of 1 to 10, divided by ten.
    pub(super) fn is_at_most(&mut self, rate: f64) -> bool {
        let side = 1.0 + (self.share() * 10.0).floor();
        side / 10.0 <= rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_lie_between_their_bounds_and_dice_fall_as_often_as_they_should() {
        let mut random = Random::new(1);
        let pauses = (0..10_000).map(|_| random.pause_us((50.0, 100.0)));
        assert!(pauses.into_iter().all(|us| (50_000..100_000).contains(&us)));
        let hits = (0..100_000).filter(|_| random.is_at_most(0.3)).count();
        assert!((29_000..31_000).contains(&hits), "{hits}");
        assert!((0..1_000).all(|_| random.is_at_most(1.0)));
        assert!((0..1_000).all(|_| !random.is_at_most(0.0)));
    }
}
