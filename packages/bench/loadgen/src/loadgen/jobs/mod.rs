//! Commands under way, one file each.

pub(super) mod close;
pub(super) mod connect;
pub(super) mod count;
pub(super) mod flood;
mod pace;
pub(super) mod ping;
pub(super) mod send;
pub(super) mod slow;

use std::sync::Arc;

use super::connections::{Connections, Event};
use super::figures::Figure;
use super::order::{Change, Order, OrderNumber, Task};
use super::report::Report;

/// A command under way on a thread. It sees the thread's connections and nothing else of it.
pub(crate) trait Job {
    /// Does what is due.
    fn step(&mut self, now_us: u64, connections: &mut Connections) -> Step;

    fn on(&mut self, _event: &Event, _connections: &mut Connections) {}

    /// Takes a later command, which its next answer is for.
    fn change(&mut self, _change: Change) {}

    /// Whether it measures how long the thread waits, and sends before the thread reads.
    fn is_timed(&self) -> bool {
        false
    }

    /// The thread has waited since then.
    fn woke(&mut self, _since_us: u64, _connections: &mut Connections) {}

    /// For `stats`.
    fn progress(&self) -> Option<(&'static str, Figure)> {
        None
    }
}

/// The next step of a job.
pub(crate) enum Step {
    /// Nothing before this time; `None`: before an event.
    Wait(Option<u64>),
    /// It has an answer, and goes on.
    Answer(Report),
    /// It has its answer, and ends.
    Done(Report),
}

/// A job, and the order that it answers next.
struct Running {
    number: OrderNumber,
    name: Arc<str>,
    job: Box<dyn Job>,
}

/// The jobs of a thread. At most one of each command, which the main thread ensures.
#[derive(Default)]
pub(crate) struct Jobs(Vec<Running>);

impl Jobs {
    /// Begins the order and returns its answer if it has one at once.
    pub(crate) fn begin(&mut self, order: Order, connections: &mut Connections) -> Option<Report> {
        let Order { number, name, task } = order;
        match task {
            Task::Begin(begin) => {
                self.0.retain(|running| running.name != name);
                match begin(connections) {
                    Ok(job) => self.0.push(Running { number, name, job }),
                    Err(message) => return Some(Report::Failed(message)),
                }
                // A window last, because the others' reads in their steps belong to it.
                self.0.sort_by_key(|running| &*running.name == "count");
                None
            }
            Task::Change(change) => {
                let named = |running: &&mut Running| &*running.name == change.job_name();
                let Some(running) = self.0.iter_mut().find(named) else { return Some(Report::Nothing) };
                running.number = number;
                running.job.change(change);
                None
            }
            Task::Stats => {
                let mut figures = connections.figures();
                let progress = self.0.iter().find_map(|running| running.job.progress());
                progress.into_iter().for_each(|(name, progress)| figures.insert(name, progress));
                Some(Report::Figures("stats", figures))
            }
        }
    }

    /// Does what is due, calls `answer` with the answers, and returns when the next job is due.
    pub(crate) fn step(
        &mut self,
        now_us: u64,
        connections: &mut Connections,
        answer: impl Fn(OrderNumber, Report),
    ) -> Option<u64> {
        let mut next_us = None;
        self.0.retain_mut(|Running { number, job, .. }| {
            loop {
                match job.step(now_us, connections) {
                    Step::Answer(report) => answer(*number, report),
                    Step::Done(report) => {
                        answer(*number, report);
                        return false;
                    }
                    Step::Wait(due_us) => {
                        next_us = [next_us, due_us].into_iter().flatten().min();
                        return true;
                    }
                }
            }
        });
        next_us
    }

    pub(crate) fn on(&mut self, event: &Event, connections: &mut Connections) {
        self.0.iter_mut().for_each(|running| running.job.on(event, connections));
    }

    pub(crate) fn is_timed(&self) -> bool {
        self.0.iter().any(|running| running.job.is_timed())
    }

    /// The thread has waited since then.
    pub(crate) fn woke(&mut self, since_us: u64, connections: &mut Connections) {
        self.0.iter_mut().for_each(|running| running.job.woke(since_us, connections));
    }
}
