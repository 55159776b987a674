//! The plan of a run, made by `src/load/written-plan.ts`: who listens to what, and every message in the order of sending.

use crate::loadgen::protocol::plans::Publication;

/// The largest numbers that a run may have: they decide what it keeps in memory.
const MAX_CLIENTS: usize = 19_000;
const MAX_KEYS: usize = 1_000_000;
const MAX_CELLS: usize = 1 << 28;
const MAX_SENDS: usize = 1 << 23;

/// All listens and publishes of a run.
#[derive(Debug)]
pub(crate) struct KeyPlan {
    /// The distinct keys that each client listens to, ascending.
    pub(super) listens: Vec<Vec<u32>>,
    pub(super) sends: Vec<Publication>,
    listener_counts: Vec<u32>,
    /// No client takes more turns than this in the window.
    pub(super) max_turn_count: i64,
}

impl KeyPlan {
    /// # Errors
    /// A plan that cannot run, or needs more memory than a run may take.
    pub(super) fn new(listens: Vec<Vec<u32>>, sends: Vec<Publication>) -> Result<Self, String> {
        let client_count = listens.len();
        if !(1..=MAX_CLIENTS).contains(&client_count) || sends.len() > MAX_SENDS {
            return Err(format!("clients: 1 to {MAX_CLIENTS} clients, and at most {MAX_SENDS} messages"));
        }
        if listens.iter().map(Vec::len).sum::<usize>() * client_count > MAX_CELLS {
            return Err("clients: clients x clients x listens are more than order can be checked of".to_owned());
        }
        if sends.iter().any(|send| send.client as usize >= client_count) {
            return Err("clients: a message is of a client that there is not".to_owned());
        }
        let keys = listens.iter().flatten().copied().chain(sends.iter().map(|send| send.key));
        let key_count = keys.max().map_or(0, |key| key as usize + 1);
        if key_count > MAX_KEYS {
            return Err(format!("clients: keys are numbered 0 to {}", MAX_KEYS - 1));
        }
        let mut listener_counts = vec![0; key_count];
        for key in listens.iter().flatten() {
            listener_counts[*key as usize] += 1;
        }
        let max_turn_count = sends.iter().map(|send| send.turn + 1).max().unwrap_or(0);
        Ok(Self { listens, sends, listener_counts, max_turn_count })
    }

    pub(crate) fn client_count(&self) -> u32 {
        self.listens.len() as u32
    }

    /// How many clients listen to a key, and so must receive each of its messages.
    pub(super) fn listener_count(&self, key: u32) -> u32 {
        self.listener_counts[key as usize]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn sends() -> Vec<Publication> {
        let send = |turn, key, at_us| Publication { client: 0, turn, key, key_sequence: 0, at_us };
        vec![send(-1, 2, -100), send(0, 2, 50), send(7, 4, 900)]
    }

    pub(crate) fn listens() -> Vec<Vec<u32>> {
        vec![vec![0, 1, 3], vec![2, 3], vec![1, 2], vec![3]]
    }

    pub(crate) fn plan() -> KeyPlan {
        KeyPlan::new(listens(), sends()).expect("a plan")
    }

    #[test]
    fn listeners_of_each_key_are_counted_and_so_are_the_turns() {
        let plan = plan();
        assert_eq!((0..5).map(|key| plan.listener_count(key)).collect::<Vec<_>>(), [1, 2, 2, 3, 0]);
        assert_eq!((plan.client_count(), plan.max_turn_count), (4, 8));
    }

    #[test]
    fn a_plan_that_cannot_run_is_refused() {
        let send = sends()[0];
        assert!(KeyPlan::new(Vec::new(), Vec::new()).is_err());
        assert!(KeyPlan::new(vec![vec![]; MAX_CLIENTS + 1], Vec::new()).is_err());
        assert!(KeyPlan::new(listens(), vec![Publication { client: 4, ..send }]).is_err());
        assert!(KeyPlan::new(listens(), vec![Publication { key: u32::MAX, ..send }]).is_err());
        assert!(KeyPlan::new(vec![(0..10).collect(); MAX_CLIENTS], Vec::new()).is_err());
    }
}
