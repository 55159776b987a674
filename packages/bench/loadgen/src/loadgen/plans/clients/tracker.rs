//! First arrivals, duplicates and late arrivals of one client, as in `src/measure/delivery-tracker.ts`.

use rustc_hash::{FxHashMap, FxHashSet};

/// The kind of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    Delivered,
    /// Counts as delivered, but came after a later message of its publisher and key.
    Reordered,
    Duplicate,
}

/// Messages of one publisher to one key are numbered 0, 1, 2 …, so a jump names the missing ones.
///
/// Memory: 4 bytes x slots x publishers, and one entry for each message that is missing at the moment.
#[derive(Debug)]
pub(super) struct DeliveryTracker {
    publisher_count: usize,
    next: Vec<u32>,
    missing: FxHashMap<usize, FxHashSet<u32>>,
}

impl DeliveryTracker {
    /// `slot_count`: keys that the client listens to; a slot is a key's place among them.
    pub(super) fn new(slot_count: usize, publisher_count: u32) -> Self {
        let publisher_count = publisher_count as usize;
        Self { publisher_count, next: vec![0; slot_count * publisher_count], missing: FxHashMap::default() }
    }

    pub(super) fn record(&mut self, slot: usize, publisher: u32, key_sequence: u32) -> Arrival {
        let pair = slot * self.publisher_count + publisher as usize;
        let next = &mut self.next[pair];
        if key_sequence >= *next {
            if key_sequence > *next {
                self.missing.entry(pair).or_default().extend(*next..key_sequence);
            }
            *next = key_sequence + 1;
            return Arrival::Delivered;
        }
        let was_missing = self.missing.get_mut(&pair).is_some_and(|missing| missing.remove(&key_sequence));
        if was_missing { Arrival::Reordered } else { Arrival::Duplicate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_told_apart_per_publisher_and_key() {
        let mut tracker = DeliveryTracker::new(2, 3);
        assert_eq!(tracker.record(0, 1, 0), Arrival::Delivered);
        assert_eq!(tracker.record(0, 1, 0), Arrival::Duplicate);
        assert_eq!(tracker.record(0, 1, 3), Arrival::Delivered);
        assert_eq!(tracker.record(0, 1, 1), Arrival::Reordered);
        assert_eq!(tracker.record(0, 1, 1), Arrival::Duplicate);
        assert_eq!(tracker.record(0, 1, 2), Arrival::Reordered);
        assert_eq!(tracker.record(1, 1, 0), Arrival::Delivered);
        assert_eq!(tracker.record(0, 2, 0), Arrival::Delivered);
    }
}
