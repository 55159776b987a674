//! Epoll, with a timer that is exact to the microsecond and a waker that other threads ring.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

/// Readiness events per `epoll_wait`.
const MAX_READY: usize = 1_024;
const WAKER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

/// Edge-triggered: one `epoll_ctl` per connection, and no change when the worker stops reading it.
const FLAGS: EventFlags = EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

/// Wakes a thread that waits in [`Poller::wait`], from another thread.
#[derive(Clone)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let descriptor = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self(Arc::new(descriptor)))
    }

    pub(crate) fn wake(&self) {
        // Fails only when the counter is full; then a wake-up is pending already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer will send no more, or the connection is broken.
    pub(crate) ended: bool,
}

/// A thread's epoll.
pub(crate) struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// When the timer fires; 0: never.
    armed_us: u64,
    events: Vec<epoll::Event>,
}

impl Poller {
    pub(crate) fn new(waker: &Waker) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &*waker.0, EventData::new_u64(WAKER), EventFlags::IN | EventFlags::ET)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, timer, armed_us: 0, events: Vec::with_capacity(MAX_READY) })
    }

    /// Reports from now on when `socket` becomes readable or writable.
    pub(crate) fn add(&self, socket: impl AsFd, token: u64) -> Result<(), Errno> {
        epoll::add(&self.epoll, socket, EventData::new_u64(token), FLAGS)
    }

    /// Waits until something is ready, another thread wakes it, or `deadline_us` of `CLOCK_MONOTONIC` has come.
    ///
    /// `Some(0)` does not wait.
    pub(crate) fn wait(&mut self, deadline_us: Option<u64>) -> Result<(), Errno> {
        let is_immediate = deadline_us == Some(0);
        if !is_immediate {
            self.arm(deadline_us.unwrap_or(0))?;
        }
        self.events.clear();
        let timeout = is_immediate.then_some(Timespec { tv_sec: 0, tv_nsec: 0 });
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    pub(crate) fn ready_count(&self) -> usize {
        self.events.len()
    }

    /// The ready event at `index`; `None` for the timer and the waker, which only end the wait.
    pub(crate) fn ready(&mut self, index: usize) -> Option<Ready> {
        let epoll::Event { flags, data } = self.events[index];
        let token = data.u64();
        if token == TIMER {
            // It fires once: the same deadline must be armed again.
            self.armed_us = 0;
        }
        (token < TIMER).then(|| Ready {
            token,
            readable: flags.contains(EventFlags::IN),
            writable: flags.contains(EventFlags::OUT),
            ended: flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR),
        })
    }

    fn arm(&mut self, deadline_us: u64) -> Result<(), Errno> {
        if self.armed_us == deadline_us {
            return Ok(());
        }
        self.armed_us = deadline_us;
        let at =
            Timespec { tv_sec: (deadline_us / 1_000_000) as i64, tv_nsec: (deadline_us % 1_000_000 * 1_000) as i64 };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timer = Itimerspec { it_interval: never, it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &timer).map(drop)
    }
}
