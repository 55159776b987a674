//! When the clients of one thread send, as in `src/load/send-schedule.ts`.

use super::plan::KeyPlan;

/// One send of the schedule.
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
