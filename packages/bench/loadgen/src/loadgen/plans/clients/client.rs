//! One client, and its progress from its connection to its end.

use std::hash::{BuildHasher, RandomState};

use rustc_hash::FxHashMap;

use super::plan::{KeyPlan, Publisher};
use super::tracker::DeliveryTracker;
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
    pub(super) publisher: Publisher,
    /// The keys that it listens to, ascending; a slot is a place here.
    pub(super) listens: Vec<u32>,
    pub(super) tracker: DeliveryTracker,
    /// Listens that have not been answered.
    pub(super) listens_left: usize,
    /// Publishes without an answer, by their request, and whether they are of the window.
    pub(super) unanswered: FxHashMap<u64, bool>,
    last_id: u64,
    name: String,
}

impl Client {
    pub(super) fn new(plan: &KeyPlan, number: u32, backend: usize) -> Self {
        let listens = plan.listens_of(number).to_vec();
        Self {
            phase: Phase::Waiting,
            slot: None,
            backend,
            publisher: plan.publisher(number),
            tracker: DeliveryTracker::new(listens.len(), plan.options.client_count),
            listens_left: listens.len(),
            listens,
            unanswered: FxHashMap::default(),
            last_id: 0,
            name: random_name(),
        }
    }

    /// A publish as the client library writes it: acknowledged, with a message id of 128 random bits and a number.
    pub(super) fn publish(&mut self, key_prefix: &str, key: u32, payload: &str, is_counted: bool) -> String {
        let id = self.last_id + 1;
        self.last_id = id + 1;
        let request = self.last_id;
        self.unanswered.insert(request, is_counted);
        format!("publish p{request} {key_prefix}.{key} id={}-{id}\n{payload}", self.name)
    }
}

/// Message ids of clients without a user share one publisher [P-7.3], also over runs: so this is not of the seed.
fn random_name() -> String {
    let bits = || RandomState::new().hash_one(0_u8);
    format!("{:016x}{:016x}", bits(), bits())
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::options;
    use super::*;

    #[test]
    fn publishes_are_written_as_the_client_library_writes_them() {
        let plan = KeyPlan::new(options());
        let mut client = Client::new(&plan, 0, 0);
        let first = client.publish("bench", 7, "{}", false);
        let second = client.publish("bench", 8, "{}", true);
        let name = client.name.clone();
        assert_eq!(name.len(), 32);
        assert_eq!(first, format!("publish p2 bench.7 id={name}-1\n{{}}"));
        assert_eq!(second, format!("publish p4 bench.8 id={name}-3\n{{}}"));
        assert_eq!((client.unanswered[&2], client.unanswered[&4]), (false, true));
        assert_ne!(Client::new(&plan, 0, 0).name, name);
    }
}
