//! One client: its progress from its connection to its end, and what has arrived at it.

use std::hash::{BuildHasher, RandomState};

use rustc_hash::{FxHashMap, FxHashSet};

use super::outgoing::{Outbound, Outgoing};
use super::plan::KeyPlan;
use crate::loadgen::connection::Slot;

/// The step that a client is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is not connected yet.
    Waiting,
    /// Upgraded; `welcome` has not come.
    Welcoming,
    /// Waits for the answers to its listens.
    Listening,
    Live,
    /// Its connection has ended.
    Closed,
}

pub(super) struct Client {
    pub(super) phase: Phase,
    pub(super) slot: Option<Slot>,
    /// Its place among the backends.
    pub(super) backend: usize,
    /// The keys that it listens to, ascending; a slot is a place here.
    pub(super) listens: Vec<u32>,
    pub(super) tracker: DeliveryTracker,
    pub(super) listens_left: usize,
    pub(super) outgoing: Outgoing,
    name: String,
}

impl Client {
    pub(super) fn new(plan: &KeyPlan, number: u32, backend: usize) -> Self {
        let listens = plan.listens[number as usize].clone();
        Self {
            phase: Phase::Waiting,
            slot: None,
            backend,
            tracker: DeliveryTracker::new(listens.len(), plan.client_count()),
            listens_left: listens.len(),
            listens,
            outgoing: Outgoing::default(),
            name: random_name(),
        }
    }

    /// A publish as the client library writes it: acknowledged, with a message id of 128 random bits and a number.
    pub(super) fn publish(&self, Outbound { request, id, .. }: Outbound, key: &str, payload: &str) -> String {
        format!("publish p{request} {key} id={}-{id}\n{payload}", self.name)
    }
}

/// Message ids of clients without a user share one publisher [P-7.3], also over runs: so this is not of the seed.
fn random_name() -> String {
    let bits = || RandomState::new().hash_one(0_u8);
    format!("{:016x}{:016x}", bits(), bits())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    Delivered,
    /// Counts as delivered, but came after a later message of its publisher and key.
    Reordered,
    Duplicate,
}

/// First arrivals, duplicates and late arrivals of one client, as in `src/measure/delivery-tracker.ts`.
///
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
    use super::super::plan::tests::plan;
    use super::*;

    #[test]
    fn publishes_are_written_as_the_client_library_writes_them() {
        let plan = plan();
        let client = Client::new(&plan, 0, 0);
        let name = client.name.clone();
        assert_eq!(name.len(), 32);
        let text = client.publish(Outbound { request: 4, id: 3, place: 1 }, "bench.8", "{}");
        assert_eq!(text, format!("publish p4 bench.8 id={name}-3\n{{}}"));
        assert_ne!(Client::new(&plan, 0, 0).name, name);
    }

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
