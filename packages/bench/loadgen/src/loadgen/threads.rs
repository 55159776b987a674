//! The I/O threads, as the main thread knows them, and what it shares with each.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Sender};

use super::arguments::Arguments;
use super::order::{Answer, Order};
use super::tls::TlsClients;
use super::worker::Worker;
use crate::poller::Waker;

/// What the main thread waits for.
pub(super) enum Input {
    /// A line of stdin, or its end.
    Line(Option<String>),
    Answer(Answer),
    /// A thread has failed.
    Broken(io::Error),
}

/// The main thread's handle of an I/O thread.
pub(crate) struct Thread {
    pub(super) orders: Sender<Order>,
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Threads {
    pub(crate) arguments: Arguments,
    pub(crate) all: Vec<Thread>,
    /// Connections requested so far.
    pub(crate) connection_count: u64,
    pub(crate) tls_clients: TlsClients,
    /// Cloned for every thread.
    input: Sender<Input>,
}

impl Threads {
    /// Starts as many as the arguments say.
    ///
    /// # Errors
    /// The system gives no thread, or no descriptors.
    pub(super) fn start(arguments: Arguments, input: Sender<Input>) -> io::Result<Self> {
        let mut threads =
            Self { arguments, all: Vec::new(), connection_count: 0, tls_clients: TlsClients::default(), input };
        while threads.all.len() < threads.arguments.thread_count {
            threads.start_thread()?;
        }
        Ok(threads)
    }

    pub(crate) fn open_count(&self) -> usize {
        self.all.iter().map(|thread| thread.shared.open_count()).sum()
    }

    /// Starts a thread with a descriptor table of its own.
    pub(crate) fn start_thread(&mut self) -> io::Result<()> {
        let shared = Arc::new(Shared::new(Waker::new()?));
        let (orders, received) = mpsc::channel();
        let (started, has_started) = mpsc::channel();
        let (input, answers) = (self.input.clone(), self.input.clone());
        let theirs = shared.clone();
        let poll_interval = self.arguments.poll_interval;
        let run = move || {
            // The receiver has ended, and with it the process.
            let answer = Box::new(move |answer| drop(answers.send(Input::Answer(answer))));
            match Worker::new(theirs, received, answer, poll_interval) {
                Ok(mut worker) => {
                    let _ = started.send(Ok(()));
                    if let Err(error) = worker.run() {
                        let _ = input.send(Input::Broken(error));
                    }
                }
                Err(error) => drop(started.send(Err(error))),
            }
        };
        std::thread::Builder::new().name(format!("io-{}", self.all.len())).spawn(run)?;
        has_started.recv().map_err(io::Error::other)??;
        self.all.push(Thread { orders, shared });
        Ok(())
    }
}

/// State that the main thread and the I/O thread share.
pub(crate) struct Shared {
    pub(crate) waker: Waker,
    open_count: AtomicU32,
    held_count: AtomicU32,
}

impl Shared {
    pub(crate) fn new(waker: Waker) -> Self {
        Self { waker, open_count: AtomicU32::new(0), held_count: AtomicU32::new(0) }
    }

    pub(crate) fn open_count(&self) -> usize {
        self.open_count.load(Ordering::Relaxed) as usize
    }

    /// Sockets of the thread, open or not.
    pub(crate) fn held_count(&self) -> usize {
        self.held_count.load(Ordering::Relaxed) as usize
    }

    pub(crate) fn opened(&self) {
        self.open_count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn closed(&self) {
        self.open_count.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn held(&self) {
        self.held_count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn released(&self) {
        self.held_count.fetch_sub(1, Ordering::Relaxed);
    }
}
