//! Commands under way, one file each. A job sees the thread's connections and nothing else of it.

mod close;
mod connect;
mod count;
mod flood;
mod pace;
mod ping;
mod send;
mod slow;
pub(crate) mod step;

use self::step::Step;
use super::connections::{Connections, Event};
use super::order::{Order, OrderNumber, Report, Task};
use super::plans::clients::Clients;
use super::plans::replay::Replay;
use super::plans::users::Users;
use super::shared::Progress;

/// A command under way.
pub(crate) enum Job {
    Connect(Box<connect::Connecting>),
    Send(send::Sending),
    Count(count::Counting),
    Flood(flood::Flooding),
    Ping(ping::Pinging),
    Slow(slow::Throttle),
    Close(close::Closing),
    Clients(Box<Clients>),
    Users(Box<Users>),
    Replay(Box<Replay>),
}

impl Job {
    /// Does what is due.
    fn step(&mut self, now_us: u64, connections: &mut Connections) -> Step {
        match self {
            Self::Connect(job) => job.step(now_us, connections),
            Self::Send(job) => job.step(now_us, connections),
            Self::Count(job) => job.step(now_us, connections),
            Self::Flood(job) => job.step(now_us, connections),
            Self::Ping(job) => job.step(now_us, connections),
            Self::Slow(job) => job.step(now_us, connections),
            Self::Close(job) => job.step(now_us, connections),
            Self::Clients(job) => job.step(connections),
            Self::Users(job) => job.step(connections),
            Self::Replay(job) => job.step(now_us, connections),
        }
    }

    fn on(&mut self, event: &Event, connections: &mut Connections) {
        match self {
            Self::Connect(job) => job.on(event),
            Self::Send(job) => job.on(event, connections),
            Self::Flood(job) => job.on(event, connections),
            Self::Ping(job) => job.on(event, connections),
            Self::Close(job) => job.on(event, connections),
            Self::Clients(job) => job.on(event, connections),
            Self::Users(job) => job.on(event, connections),
            Self::Replay(job) => job.on(event, connections),
            Self::Count(_) | Self::Slow(_) => {}
        }
    }
}

/// A job, and the order that it answers next.
struct Running {
    number: OrderNumber,
    job: Job,
}

/// The jobs of a thread. At most one of each kind, which the main thread ensures.
#[derive(Default)]
pub(crate) struct Jobs(Vec<Running>);

impl Jobs {
    /// Begins the order and returns its answer if it has one at once.
    pub(crate) fn begin(&mut self, Order { number, task }: Order, connections: &mut Connections) -> Option<Report> {
        let job = match task {
            Task::Connect(task) => Job::Connect(Box::new(connect::Connecting::new(task, connections))),
            Task::Send(command, max) => Job::Send(send::Sending::begin(&command, max, connections)),
            Task::Count(command) => Job::Count(count::Counting::begin(&command, connections)),
            Task::Flood(task) => Job::Flood(flood::Flooding::begin(task, connections)),
            Task::Ping(command, max) => Job::Ping(ping::Pinging::begin(&command, max, connections)),
            Task::Close(command, max) => Job::Close(close::Closing::begin(&command, max, connections)),
            Task::Clients(course, part) => Job::Clients(Box::new(Clients::new(course, part))),
            Task::Users(plan) => match Users::new(*plan, connections) {
                Ok(users) => Job::Users(Box::new(users)),
                Err(message) => return Some(Report::Failed(message)),
            },
            Task::Replay(plan) => match Replay::new(*plan) {
                Ok(replay) => Job::Replay(Box::new(replay)),
                Err(message) => return Some(Report::Failed(message)),
            },
            Task::Slow(task) => {
                self.0.retain(|running| !matches!(running.job, Job::Slow(_)));
                let (throttle, report) = slow::begin(task, connections);
                self.0.extend(throttle.map(|job| Running { number, job: Job::Slow(job) }));
                return Some(report);
            }
            Task::Stats => {
                let mut stats = connections.stats();
                stats.plan = self.0.iter().find_map(|running| progress(&running.job));
                return Some(Report::Stats(stats));
            }
            Task::StopCount(command) => {
                let Some(job) = self.amend(number, |job| if let Job::Count(job) = job { Some(job) } else { None })
                else {
                    return Some(Report::Counting);
                };
                job.stop(command);
                return None;
            }
            Task::BeginClients(window) => {
                self.amend_clients(number)?.begin(window);
                return None;
            }
            Task::FinishClients => {
                self.amend_clients(number)?.finish();
                return None;
            }
        };
        self.0.push(Running { number, job });
        None
    }

    fn amend_clients(&mut self, number: OrderNumber) -> Option<&mut Clients> {
        self.amend(number, |job| if let Job::Clients(job) = job { Some(&mut **job) } else { None })
    }

    /// The job that `number` is for, whose answer it gets from now on.
    fn amend<T: ?Sized>(&mut self, number: OrderNumber, of: impl Fn(&mut Job) -> Option<&mut T>) -> Option<&mut T> {
        self.0.iter_mut().find_map(|running| {
            let job = of(&mut running.job)?;
            running.number = number;
            Some(job)
        })
    }

    /// Does what is due, calls `answer` with the answers, and returns when the next job is due.
    pub(crate) fn step(
        &mut self,
        now_us: u64,
        connections: &mut Connections,
        answer: impl Fn(OrderNumber, Report),
    ) -> Option<u64> {
        let mut next_us = None;
        // A window last, because the others' reads in their steps belong to it.
        self.0.sort_by_key(|running| matches!(running.job, Job::Count(_)));
        self.0.retain_mut(|Running { number, job }| {
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
        for running in &mut self.0 {
            running.job.on(event, connections);
        }
    }

    /// The clients of a plan. They measure how long the thread waits, and send before it reads.
    pub(crate) fn clients(&mut self) -> Option<&mut Clients> {
        self.0.iter_mut().find_map(|running| match &mut running.job {
            Job::Clients(clients) => Some(&mut **clients),
            _ => None,
        })
    }
}

fn progress(job: &Job) -> Option<(&'static str, Progress)> {
    match job {
        Job::Clients(clients) => Some(("clients", clients.progress())),
        Job::Users(users) => Some(("users", users.progress())),
        _ => None,
    }
}
