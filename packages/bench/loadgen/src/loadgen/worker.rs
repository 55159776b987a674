//! One I/O thread: its connections, and the jobs on them.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::connections::Connections;
use super::jobs::Jobs;
use super::order::{Answer, Order};
use super::threads::Shared;
use crate::clock::now_us;

/// Where a worker's answers go.
pub(crate) type Answers = Box<dyn Fn(Answer) + Send>;

pub(crate) struct Worker {
    connections: Connections,
    jobs: Jobs,
    orders: Receiver<Order>,
    answers: Answers,
    poll_interval: Duration,
}

impl Worker {
    /// Gives the calling thread a descriptor table of its own and makes it a worker.
    ///
    /// # Errors
    /// The system gives no descriptors.
    pub(crate) fn new(
        shared: Arc<Shared>,
        orders: Receiver<Order>,
        answers: Answers,
        poll_interval: Duration,
    ) -> io::Result<Self> {
        // SAFETY: from here on this thread's descriptors are its own. It opens, uses and closes its sockets, epoll and
        // timer itself. The only descriptor that it shares with others is the waker, which was open before and so has
        // the same number in both tables. Nobody closes it while the process runs.
        unsafe { unshare_unsafe(UnshareFlags::FILES) }?;
        let connections = Connections::new(shared)?;
        Ok(Self { connections, jobs: Jobs::default(), orders, answers, poll_interval })
    }

    /// Works until the main thread has ended.
    ///
    /// # Errors
    /// The epoll fails.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut deadline_us = None;
        loop {
            self.wait(deadline_us)?;
            while let Ok(order) = self.orders.try_recv() {
                let number = order.number;
                if let Some(report) = self.jobs.begin(order, &mut self.connections) {
                    (self.answers)(Answer { number, report });
                }
                self.dispatch();
            }
            for index in 0..self.connections.ready_count() {
                self.connections.handle_ready(index);
                self.dispatch();
            }
            for _ in 0..self.connections.unfinished_count() {
                self.connections.continue_unfinished();
                self.dispatch();
            }
            let answer = |number, report| (self.answers)(Answer { number, report });
            deadline_us = self.jobs.step(now_us(), &mut self.connections, answer);
            if self.dispatch() {
                // A job has something new to react to.
                deadline_us = Some(0);
            }
        }
    }

    fn wait(&mut self, deadline_us: Option<u64>) -> io::Result<()> {
        if !self.poll_interval.is_zero() && self.connections.ready_count() > 0 {
            std::thread::sleep(self.poll_interval);
        }
        let began_us = self.jobs.is_timed().then(now_us);
        self.connections.wait(deadline_us)?;
        if let Some(began_us) = began_us {
            self.jobs.woke(began_us, &mut self.connections);
        }
        Ok(())
    }

    /// Shows the jobs what has happened. Returns whether anything has.
    fn dispatch(&mut self) -> bool {
        let mut has_events = false;
        while let Some(event) = self.connections.next_event() {
            has_events = true;
            self.jobs.on(&event, &mut self.connections);
            self.connections.settle(&event);
        }
        has_events
    }
}
