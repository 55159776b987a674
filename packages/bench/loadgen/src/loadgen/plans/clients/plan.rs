//! The plan of a run, as in `src/load/key-plan.ts` and `src/load/send-schedule.ts`: the seed alone decides all listens and messages.

use rustc_hash::FxHashMap;

use crate::loadgen::plans::random::Random;
use crate::loadgen::protocol::plans::PlanOptions;

/// The largest numbers that a run may have: they decide what it keeps in memory.
const MAX_CLIENTS: u32 = 19_000;
const MAX_KEYS: u32 = 1_000_000;
const MAX_LISTENS: u32 = 100_000;
const MAX_CELLS: u64 = 1 << 28;

impl PlanOptions {
    /// # Errors
    /// A plan that cannot run, or needs more memory than a run may take.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self { client_count, listens_per_client, key_pool_size, .. } = *self;
        if !(1..=MAX_CLIENTS).contains(&client_count) {
            return Err(format!("clients: clientCount is 1 to {MAX_CLIENTS}"));
        }
        if !(1..=MAX_KEYS).contains(&key_pool_size) || !(1..=MAX_LISTENS).contains(&listens_per_client) {
            return Err(format!("clients: keyPoolSize is 1 to {MAX_KEYS}, listensPerClient 1 to {MAX_LISTENS}"));
        }
        let listens = u64::from(listens_per_client.min(key_pool_size));
        if listens * u64::from(client_count) * u64::from(client_count) > MAX_CELLS {
            return Err("clients: clients x clients x listens are more than order can be checked of".to_owned());
        }
        let times = [self.publish_rate_per_second, self.duration_us, self.warmup_us];
        if !times.iter().all(|time| time.is_finite() && *time >= 0.0) || self.publish_rate_per_second <= 0.0 {
            return Err("clients: rates and times are finite and not negative".to_owned());
        }
        Ok(())
    }

    pub(super) fn period_us(&self) -> f64 {
        1_000_000.0 / self.publish_rate_per_second
    }

    /// No client takes more turns than this in the window.
    pub(super) fn max_turn_count(&self) -> i64 {
        (self.duration_us / self.period_us()).ceil() as i64
    }
}

/// The random streams that one client draws from.
const STREAMS_PER_CLIENT: u32 = 4;
const LISTENS_STREAM: u32 = 0;
const PHASE_STREAM: u32 = 1;
const WINDOW_STREAM: u32 = 2;
const WARMUP_STREAM: u32 = 3;

/// All listens and publishes of a run.
#[derive(Debug)]
pub(crate) struct KeyPlan {
    pub(crate) options: PlanOptions,
    listens: Vec<Vec<u32>>,
    listener_counts: Vec<u32>,
    phases_us: Vec<f64>,
}

impl KeyPlan {
    pub(super) fn new(options: PlanOptions) -> Self {
        let random = |client: u32, stream| Random::new(options.seed, client * STREAMS_PER_CLIENT + stream);
        let clients = || 0..options.client_count;
        let listens: Vec<Vec<u32>> = clients()
            .map(|client| random(client, LISTENS_STREAM).distinct(options.listens_per_client, options.key_pool_size))
            .collect();
        let mut listener_counts = vec![0; options.key_pool_size as usize];
        for key in listens.iter().flatten() {
            listener_counts[*key as usize] += 1;
        }
        let phases_us = clients().map(|client| random(client, PHASE_STREAM).share() * options.period_us()).collect();
        Self { listens, listener_counts, phases_us, options }
    }

    /// The distinct keys a client listens to, ascending.
    pub(super) fn listens_of(&self, client: u32) -> &[u32] {
        &self.listens[client as usize]
    }

    /// How many clients listen to a key, and so must receive each of its messages.
    pub(super) fn listener_count(&self, key: u32) -> u32 {
        self.listener_counts[key as usize]
    }

    /// When in each period a client publishes, in [0, period).
    pub(super) fn phase_us(&self, client: u32) -> f64 {
        self.phases_us[client as usize]
    }

    /// Draws the keys of one client's messages, in the order they are sent.
    pub(super) fn publisher(&self, client: u32) -> Publisher {
        let random = |stream| Random::new(self.options.seed, client * STREAMS_PER_CLIENT + stream);
        Publisher {
            client,
            key_pool_size: self.options.key_pool_size,
            window_random: random(WINDOW_STREAM),
            warmup_random: random(WARMUP_STREAM),
            key_sequences: FxHashMap::default(),
        }
    }
}

/// One message of the plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Publication {
    pub(super) client: u32,
    /// Negative: belongs to the warm-up and is not counted.
    pub(super) turn: i64,
    pub(super) key: u32,
    /// How many messages of the window this client has published to this key before.
    pub(super) key_sequence: u32,
    /// Intended send time after the start of the window; negative in the warm-up.
    pub(super) at_us: f64,
}

/// One client's messages, drawn one after the other.
#[derive(Debug)]
pub(super) struct Publisher {
    client: u32,
    key_pool_size: u32,
    window_random: Random,
    /// Its own, so that the length of the warm-up does not change the window's messages.
    warmup_random: Random,
    key_sequences: FxHashMap<u32, u32>,
}

impl Publisher {
    /// The message of this turn. Call it once for every turn, in order.
    pub(super) fn next(&mut self, turn: i64, at_us: f64) -> Publication {
        let client = self.client;
        if turn < 0 {
            let key = self.warmup_random.integer(self.key_pool_size);
            return Publication { client, turn, key, key_sequence: 0, at_us };
        }
        let key = self.window_random.integer(self.key_pool_size);
        let next = self.key_sequences.entry(key).or_default();
        let key_sequence = *next;
        *next += 1;
        Publication { client, turn, key, key_sequence, at_us }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ScheduledSend {
    pub(super) client: u32,
    pub(super) turn: i64,
    pub(super) at_us: f64,
}

/// The send times of some of a plan's clients, in order, warm-up first.
///
/// All clients have the same period, so the order within one period repeats: two numbers are the whole state.
#[derive(Debug)]
pub(super) struct SendSchedule {
    clients: Vec<u32>,
    turn: i64,
    place: usize,
}

impl SendSchedule {
    pub(super) fn new(plan: &KeyPlan, mut clients: Vec<u32>) -> Self {
        clients.sort_by(|a, b| plan.phase_us(*a).total_cmp(&plan.phase_us(*b)).then(a.cmp(b)));
        let warmup_us = plan.options.warmup_us;
        let turn = 0 - (warmup_us / plan.options.period_us()).ceil() as i64;
        let mut schedule = Self { clients, turn, place: 0 };
        while schedule.next_at_us(plan) < -warmup_us {
            schedule.advance();
        }
        schedule
    }

    /// After the start of the window; infinite when nothing is left to send.
    pub(super) fn next_at_us(&self, plan: &KeyPlan) -> f64 {
        let Some(client) = self.clients.get(self.place) else { return f64::INFINITY };
        let at_us = plan.phase_us(*client) + self.turn as f64 * plan.options.period_us();
        if at_us < plan.options.duration_us { at_us } else { f64::INFINITY }
    }

    /// Takes the next send; `None` when nothing is left.
    pub(super) fn shift(&mut self, plan: &KeyPlan) -> Option<ScheduledSend> {
        let at_us = self.next_at_us(plan);
        if at_us.is_infinite() {
            return None;
        }
        let send = ScheduledSend { client: self.clients[self.place], turn: self.turn, at_us };
        self.advance();
        Some(send)
    }

    fn advance(&mut self) {
        self.place += 1;
        if self.place == self.clients.len() {
            self.place = 0;
            self.turn += 1;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde::Deserialize;
    use serde_json::Value;

    use super::super::payload::PayloadEncoder;
    use super::*;

    /// Written and checked by `src/load/plan-vectors.test.ts`.
    const VECTORS: &str = include_str!("../../../../vectors/clients-plan.jsonl");

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Vector {
        options: PlanOptions,
        message_size_bytes: usize,
        /// Per client.
        listens: Vec<Vec<u32>>,
        listener_counts: Vec<u32>,
        /// Client, turn, key, its sequence, and the time, in the order of sending.
        sends: Vec<(u32, i64, u32, u32, f64)>,
        /// JSON of the payloads of the last sends.
        payloads: Vec<String>,
    }

    #[test]
    fn the_plan_is_the_one_that_typescript_computes() {
        assert!(VECTORS.lines().count() > 2);
        for line in VECTORS.lines() {
            let vector: Vector = serde_json::from_str(line).expect("a vector");
            let plan = KeyPlan::new(vector.options.clone());
            let clients: Vec<u32> = (0..vector.options.client_count).collect();
            assert_eq!(clients.iter().map(|client| plan.listens_of(*client)).collect::<Vec<_>>(), vector.listens);
            let keys = 0..vector.options.key_pool_size;
            assert_eq!(keys.map(|key| plan.listener_count(key)).collect::<Vec<_>>(), vector.listener_counts);
            let mut publishers: Vec<_> = clients.iter().map(|client| plan.publisher(*client)).collect();
            let mut schedule = SendSchedule::new(&plan, clients);
            let mut sent = Vec::new();
            while let Some(send) = schedule.shift(&plan) {
                sent.push(publishers[send.client as usize].next(send.turn, send.at_us));
            }
            let drawn: Vec<_> =
                sent.iter().map(|one| (one.client, one.turn, one.key, one.key_sequence, one.at_us)).collect();
            assert_eq!(drawn, vector.sends);
            let encoder = PayloadEncoder::new(vector.message_size_bytes, vector.options.seed);
            let last = &sent[sent.len() - vector.payloads.len()..];
            let payloads: Vec<_> = last.iter().map(|one| encoder.encode(one)).collect();
            assert_eq!(payloads, vector.payloads);
        }
    }

    pub(crate) fn options() -> PlanOptions {
        let first: Value = serde_json::from_str(VECTORS.lines().next().expect("a line")).expect("a vector");
        serde_json::from_value(first["options"].clone()).expect("options")
    }

    #[test]
    fn a_plan_that_cannot_run_is_refused() {
        let with = |change: &dyn Fn(&mut PlanOptions)| {
            let mut options = options();
            change(&mut options);
            options.check()
        };
        assert_eq!(with(&|_| {}), Ok(()));
        assert!(with(&|options| options.client_count = 0).is_err());
        assert!(with(&|options| options.client_count = u32::MAX).is_err());
        assert!(with(&|options| options.key_pool_size = 0).is_err());
        assert!(with(&|options| options.listens_per_client = 0).is_err());
        assert!(with(&|options| options.publish_rate_per_second = 0.0).is_err());
        assert!(with(&|options| options.duration_us = f64::INFINITY).is_err());
        assert!(with(&|options| (options.client_count, options.listens_per_client) = (19_000, 10)).is_err());
    }
}
