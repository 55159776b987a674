//! The sequence numbers that a connection has received.

/// Sequence numbers before the last one that are tracked exactly.
const WINDOW: u64 = 64;

/// How a frame's sequence number follows the earlier ones of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Followed {
    /// It is the next one, or the first.
    InOrder,
    /// It is a later one; this many are missing in between.
    Ahead { missing_count: u64 },
    /// It came before.
    Again,
    /// It is an earlier one that had not come.
    Late {
        /// Whether it was counted as missing.
        fills_gap: bool,
    },
}

/// The last sequence number of a connection and which of the 64 up to it have come. By default it starts with the first
/// number to come.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sequence {
    last: u64,
    /// Bit n: `last - n` has come. No bit: nothing has.
    had: u64,
    hole_count: u32,
}

impl Sequence {
    /// Treats everything before `first` as received.
    pub(crate) fn before(first: u64) -> Self {
        match first.checked_sub(1) {
            Some(last) => Self { last, had: 1, hole_count: 0 },
            None => Self::default(),
        }
    }

    /// The highest so far; `None` when there is none.
    #[inline]
    pub(crate) fn last(&self) -> Option<u64> {
        (self.had != 0).then_some(self.last)
    }

    /// Records that `sequence` has come.
    #[inline]
    pub(crate) fn follow(&mut self, sequence: u64) -> Followed {
        if sequence == self.last.wrapping_add(1) && self.had != 0 {
            self.last = sequence;
            self.had = self.had << 1 | 1;
            return Followed::InOrder;
        }
        self.follow_out_of_order(sequence)
    }

    #[cold]
    fn follow_out_of_order(&mut self, sequence: u64) -> Followed {
        if self.had == 0 {
            *self = Self { last: sequence, had: 1, hole_count: 0 };
            return Followed::InOrder;
        }
        if sequence > self.last {
            let step = sequence - self.last;
            self.had = if step < WINDOW { self.had << step | 1 } else { 1 };
            self.last = sequence;
            self.hole_count = self.hole_count.saturating_add(u32::try_from(step - 1).unwrap_or(u32::MAX));
            return Followed::Ahead { missing_count: step - 1 };
        }
        let back = self.last - sequence;
        let has_come = if back < WINDOW { self.had >> back & 1 == 1 } else { self.hole_count == 0 };
        if has_come {
            return Followed::Again;
        }
        if back < WINDOW {
            self.had |= 1 << back;
        }
        let fills_gap = self.hole_count > 0;
        self.hole_count = self.hole_count.saturating_sub(1);
        Followed::Late { fills_gap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(sequence: &mut Sequence, numbers: impl IntoIterator<Item = u64>) -> Vec<Followed> {
        numbers.into_iter().map(|number| sequence.follow(number)).collect()
    }

    #[test]
    fn numbers_in_order_are_in_order_from_any_first_one_on() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.last(), None);
        assert!(follow(&mut sequence, 7..1_000).iter().all(|followed| *followed == Followed::InOrder));
        assert_eq!(sequence.last(), Some(999));
    }

    #[test]
    fn a_first_number_that_was_promised_and_did_not_come_is_missing() {
        let mut sequence = Sequence::before(1);
        assert_eq!(sequence.follow(4), Followed::Ahead { missing_count: 3 });
        assert_eq!(Sequence::before(1).follow(1), Followed::InOrder);
        assert_eq!(Sequence::before(0).follow(0), Followed::InOrder);
    }

    #[test]
    fn a_hole_is_missing_and_a_late_one_fills_it_once() {
        let mut sequence = Sequence::default();
        let followed = follow(&mut sequence, [1, 2, 5, 3, 3, 4, 6]);
        let expected = [
            Followed::InOrder,
            Followed::InOrder,
            Followed::Ahead { missing_count: 2 },
            Followed::Late { fills_gap: true },
            Followed::Again,
            Followed::Late { fills_gap: true },
            Followed::InOrder,
        ];
        assert_eq!(followed, expected);
    }

    #[test]
    fn what_came_is_a_duplicate_however_far_back() {
        let mut sequence = Sequence::default();
        follow(&mut sequence, 1..=200);
        assert_eq!(follow(&mut sequence, [200, 137, 136, 1]), [Followed::Again; 4]);
    }

    #[test]
    fn far_behind_a_hole_it_is_late_and_without_a_hole_a_duplicate() {
        let mut sequence = Sequence::default();
        follow(&mut sequence, (1..=9).chain(11..=200));
        assert_eq!(sequence.follow(10), Followed::Late { fills_gap: true });
        assert_eq!(sequence.follow(10), Followed::Again);
    }

    #[test]
    fn a_jump_over_the_whole_window_forgets_it() {
        let mut sequence = Sequence::default();
        follow(&mut sequence, [1, 1_000]);
        assert_eq!(sequence.follow(999), Followed::Late { fills_gap: true });
        assert_eq!(sequence.follow(1_000), Followed::Again);
    }

    #[test]
    fn one_that_is_before_the_first_is_late_and_fills_nothing() {
        let mut sequence = Sequence::default();
        assert_eq!(follow(&mut sequence, [10, 9]), [Followed::InOrder, Followed::Late { fills_gap: false }]);
    }
}
