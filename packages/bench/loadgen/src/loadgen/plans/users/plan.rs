//! The plan of a run: the number of users over time, and what each does.

use crate::loadgen::protocol::plans::UsersPlan;

impl UsersPlan {
    /// # Errors
    /// A plan that cannot run.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.channels == 0 || self.users_per_sender == 0 || self.stages.is_empty() {
            return Err("users: channels, usersPerSender and the number of stages are at least 1".to_owned());
        }
        Ok(())
    }

    /// The number of users wanted at this time of the run.
    pub(super) fn users_at(&self, elapsed_us: u64) -> u32 {
        let (mut from, mut left_us) = (f64::from(self.start_users), elapsed_us);
        for stage in &self.stages {
            let (to, duration_us) = (f64::from(stage.users), stage.duration_ms * 1_000);
            if left_us < duration_us {
                return (from + (to - from) * left_us as f64 / duration_us as f64) as u32;
            }
            left_us -= duration_us;
            from = to;
        }
        0
    }

    /// After this time no user starts another iteration.
    pub(super) fn duration_us(&self) -> u64 {
        self.stages.iter().map(|stage| stage.duration_ms * 1_000).sum()
    }

    pub(super) fn max_users(&self) -> u32 {
        self.stages.iter().map(|stage| stage.users).fold(self.start_users, u32::max)
    }

    /// Users count from 1, as in AnyCable's load generator.
    pub(super) fn channel_of(&self, user_number: u32) -> u32 {
        user_number % self.channels
    }

    pub(super) fn is_sender(&self, user_number: u32) -> bool {
        user_number.is_multiple_of(self.users_per_sender)
    }

    pub(super) fn key_of(&self, channel: u32) -> String {
        format!("{}{channel}", self.key_prefix)
    }
}

/// The pauses and dice of users, reproducible: the same seed gives the same load.
pub(super) struct Chance(fastrand::Rng);

impl Chance {
    pub(super) fn new(seed: u32) -> Self {
        Self(fastrand::Rng::with_seed(u64::from(seed)))
    }

    /// Microseconds between two numbers of milliseconds.
    pub(super) fn pause_us(&mut self, (from_ms, to_ms): (f64, f64)) -> u64 {
        ((from_ms + (to_ms - from_ms) * self.0.f64()) * 1_000.0) as u64
    }

    /// AnyCable's die: a roll of 1 to 10, divided by ten.
    pub(super) fn is_at_most(&mut self, rate: f64) -> bool {
        f64::from(self.0.u32(1..=10)) / 10.0 <= rate
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::loadgen::protocol::plans::{HistoryRequest, Stage};

    pub(crate) fn plan() -> UsersPlan {
        let stages = [(10_000, 300), (10_000, 300), (30_000, 0)];
        UsersPlan {
            port: 1,
            path: "/ws".to_owned(),
            start_users: 100,
            stages: stages.map(|(duration_ms, users)| Stage { duration_ms, users }).to_vec(),
            channels: 5,
            key_prefix: "bench.".to_owned(),
            users_per_sender: 3,
            sending_rate: 0.3,
            rounds: 22,
            history: HistoryRequest { first: "last=100".to_owned(), next: "last=100".to_owned(), window_ms: 10_000 },
            seed: 1,
            timeout_ms: 1_000,
        }
    }

    #[test]
    fn the_number_of_users_follows_the_stages() {
        let plan = plan();
        let at = |seconds: u64| plan.users_at(seconds * 1_000_000);
        assert_eq!([at(0), at(5), at(10), at(20), at(35), at(50), at(90)], [100, 200, 300, 300, 150, 0, 0]);
        assert_eq!((plan.duration_us(), plan.max_users()), (50_000_000, 300));
    }

    #[test]
    fn users_are_spread_over_channels_and_one_in_three_sends() {
        let plan = plan();
        assert_eq!((1..=6).map(|user| plan.channel_of(user)).collect::<Vec<_>>(), [1, 2, 3, 4, 0, 1]);
        assert_eq!((1..=6).filter(|user| plan.is_sender(*user)).collect::<Vec<_>>(), [3, 6]);
        assert_eq!(plan.key_of(3), "bench.3");
    }

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
