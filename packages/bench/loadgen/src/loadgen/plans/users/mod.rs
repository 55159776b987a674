//! Independent virtual users, who connect, listen, read the history, talk for a while and leave, again and again.

mod iteration;
mod metrics;
mod plan;
mod user;
mod verify;

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};

use self::metrics::Metrics;
use self::plan::Chance;
use self::user::{Phase, Timers, User, UserId};
use self::verify::{Ledger, Session, verify};
use super::{loopback, opening};
use crate::clock::{CpuTime, now_us, rss_bytes};
use crate::loadgen::connection::{NO_PLAYER, Slot};
use crate::loadgen::connections::{Connections, Event, EventKind, Traffic};
use crate::loadgen::figures::Figure;
use crate::loadgen::jobs::{Job, Step};
use crate::loadgen::opening::Opening;
use crate::loadgen::played::{Player, end_reason};
use crate::loadgen::protocol::plans::UsersPlan;
use crate::loadgen::report::Report;

/// How often the number of users is adjusted.
const RAMP_TICK_US: u64 = 10_000;

/// A run under way.
pub(crate) struct Users {
    plan: UsersPlan,
    address: SocketAddr,
    opening: Arc<Opening>,
    users: Vec<User>,
    timers: Timers,
    chance: Chance,
    metrics: Metrics,
    ledger: Ledger,
    sessions: Vec<Session>,
    began_us: u64,
    cpu_began: CpuTime,
    traffic_began: Traffic,
    /// Users who are in an iteration.
    present_count: u32,
    next_ramp_us: u64,
}

impl Users {
    /// # Errors
    /// A path that a request cannot carry.
    pub(crate) fn new(plan: UsersPlan, connections: &Connections) -> Result<Self, String> {
        plan.check()?;
        let address = loopback(plan.port);
        let user_count = plan.max_users();
        let now_us = now_us();
        Ok(Self {
            address,
            opening: Arc::new(opening(address, &plan.path)?),
            users: (0..user_count).map(|_| User::default()).collect(),
            timers: Timers::with_users(user_count),
            chance: Chance::new(plan.seed),
            metrics: Metrics::default(),
            ledger: Ledger::default(),
            sessions: Vec::new(),
            began_us: now_us,
            cpu_began: CpuTime::of_process(),
            traffic_began: connections.traffic,
            present_count: 0,
            next_ramp_us: now_us,
            plan,
        })
    }

    /// How many users there should be.
    fn wanted_count(&self, now_us: u64) -> u32 {
        self.plan.users_at(now_us.saturating_sub(self.began_us)).min(self.users.len() as u32)
    }

    fn user(&mut self, user: UserId) -> &mut User {
        &mut self.users[user.index()]
    }

    /// Writes a whole frame.
    fn write(&self, user: UserId, frame: &[u8], connections: &mut Connections) {
        if let Some(slot) = self.users[user.index()].slot {
            connections.write(slot, frame);
        }
    }

    fn report(&mut self, connections: &Connections) -> Value {
        // Before the checks below, whose CPU time is not part of the measurement.
        let cpu = CpuTime::of_process().since(self.cpu_began);
        self.metrics.traffic = connections.traffic.since(self.traffic_began);
        let duration_us = now_us() - self.began_us;
        let mut body = json!(self.metrics);
        body["durationUs"] = json!(duration_us);
        body["maxUsers"] = json!(self.plan.max_users());
        body["cpuUserUs"] = json!(cpu.user_us);
        body["cpuSystemUs"] = json!(cpu.system_us);
        body["rssBytes"] = json!(rss_bytes());
        let window_us = self.plan.history.window_ms * 1_000;
        body["verified"] = json!(verify(&self.ledger, &self.sessions, window_us));
        body
    }
}

impl Job for Users {
    fn progress(&self) -> Option<(&'static str, Figure)> {
        let counts = &self.metrics.counts;
        let counts = [
            ("users", u64::from(self.present_count)),
            ("iterations", counts.iterations),
            ("broadcastsSent", counts.broadcasts_sent),
            ("broadcastsReceived", counts.broadcasts_received),
        ];
        Some(("users", Figure::counts(counts)))
    }

    /// Handles the timers that are due, and lets users come. Over when nobody is left and nobody will come.
    fn step(&mut self, _now_us: u64, connections: &mut Connections) -> Step {
        while let Some((user, due_us)) = self.timers.pop(now_us()) {
            let now_us = now_us();
            self.metrics.late_us.record(now_us - due_us);
            self.on_timer(user, now_us, connections);
        }
        let now_us = now_us();
        if now_us >= self.next_ramp_us {
            self.next_ramp_us = now_us + RAMP_TICK_US;
            for index in 0..self.wanted_count(now_us) {
                let user = UserId(index);
                if self.user(user).phase == Phase::Away {
                    self.present_count += 1;
                    self.begin_iteration(user, now_us);
                }
            }
        }
        if self.present_count == 0 && now_us.saturating_sub(self.began_us) >= self.plan.duration_us() {
            return Step::Done(Report::Alone("users-ran", self.report(connections)));
        }
        Step::Wait(Some(self.timers.next_us().unwrap_or(u64::MAX).min(self.next_ramp_us)))
    }

    fn on(&mut self, event: &Event, connections: &mut Connections) {
        let Event { slot, player, kind } = event;
        let user = UserId(*player);
        match kind {
            _ if *player == NO_PLAYER => {}
            EventKind::Opened { .. } => self.on_upgraded(user, now_us()),
            EventKind::Failed(reason) => self.interrupt(user, reason, connections),
            EventKind::Lost { code } => self.on_end(user, &end_reason(*code), connections),
            EventKind::Readable { until_end } => connections.play(*slot, *until_end, self),
            _ => {}
        }
    }
}

impl Player for Users {
    fn on_message(&mut self, slot: Slot, payload: &[u8], at_us: u64, connections: &mut Connections) {
        let user = UserId(connections.get(slot).player);
        if self.take(user, payload, at_us, connections).is_none() {
            self.interrupt(user, "a message that is not understood", connections);
        }
    }
}
