//! The random numbers of `src/load/random.ts`, bit by bit: both sides of the bench compute the same plan.

/// Mulberry32 over a mixed seed.
#[derive(Debug, Clone)]
pub(crate) struct Random(u32);

impl Random {
    /// The numbers of one consumer. Streams of one seed are independent.
    pub(crate) fn new(seed: u32, stream: u32) -> Self {
        Self(mix(mix(seed) ^ stream.wrapping_add(1).wrapping_mul(0x9e37_79b1)))
    }

    /// The next number in [0, 1).
    pub(crate) fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x6d2b_79f5);
        let state = self.0;
        let mut bits = (state ^ (state >> 15)).wrapping_mul(state | 1);
        bits ^= bits.wrapping_add((bits ^ (bits >> 7)).wrapping_mul(bits | 61));
        f64::from(bits ^ (bits >> 14)) / 4_294_967_296.0
    }

    /// An integer in [0, bound).
    pub(crate) fn integer(&mut self, bound: u32) -> u32 {
        (self.share() * f64::from(bound)) as u32
    }

    /// `count` distinct integers of [0, bound), ascending; all of them if `count` >= `bound`.
    pub(crate) fn distinct(&mut self, count: u32, bound: u32) -> Vec<u32> {
        let mut chosen = std::collections::BTreeSet::new();
        // Floyd's sampling, as in TypeScript: another way would draw other numbers.
        for top in bound.saturating_sub(count)..bound {
            let candidate = self.integer(top + 1);
            if !chosen.insert(candidate) {
                chosen.insert(top);
            }
        }
        chosen.into_iter().collect()
    }
}

fn mix(value: u32) -> u32 {
    let bits = (value ^ (value >> 16)).wrapping_mul(0x85eb_ca6b);
    let bits = (bits ^ (bits >> 13)).wrapping_mul(0xc2b2_ae35);
    bits ^ (bits >> 16)
}
