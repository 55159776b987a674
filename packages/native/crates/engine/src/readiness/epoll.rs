//! Linux: epoll and eventfd.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

use super::{Flags, LISTENER, MAX_READY, Ready, WAKE_UP, ready_of};

/// An epoll. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Poller(Arc<OwnedFd>);

impl Poller {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self(Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?)))
    }

    /// Readable while [`wait`](Self::wait) would return something.
    pub(crate) fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.0
    }

    /// Reports a socket, edge-triggered. Closing it ends that, too.
    pub(super) fn add(&self, socket: &OwnedFd, data: u64) -> Result<(), Errno> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.0, socket, EventData::new_u64(data), flags)
    }

    pub(crate) fn remove_connection(&self, socket: &OwnedFd) -> Result<(), Errno> {
        epoll::delete(&self.0, socket)
    }

    /// Reports a listening socket for as long as somebody waits to be accepted. Of the pollers that watch it, a few are told.
    pub(crate) fn add_listener(&self, socket: &OwnedFd) -> Result<(), Errno> {
        epoll::add(&self.0, socket, EventData::new_u64(LISTENER), EventFlags::IN | EventFlags::EXCLUSIVE)
    }

    pub(crate) fn remove_listener(&self, socket: &OwnedFd) -> Result<(), Errno> {
        epoll::delete(&self.0, socket)
    }

    /// Replaces `ready` by what is ready, after waiting for at most this time; `None`: no limit. Nothing is ready when a
    /// signal interrupts it.
    pub(crate) fn wait(&self, ready: &mut Vec<Ready>, timeout: Option<Duration>) -> Result<(), Errno> {
        ready.clear();
        let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
        let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; MAX_READY];
        match epoll::wait(&self.0, &mut room, timeout.as_ref()) {
            Ok((events, _)) => {
                ready.extend(events.iter().filter_map(|event| {
                    let epoll::Event { flags, data } = *event;
                    ready_of(data.u64(), flags_of(flags))
                }));
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

fn flags_of(flags: EventFlags) -> Flags {
    let is_broken = flags.intersects(EventFlags::HUP | EventFlags::ERR);
    Flags {
        is_readable: flags.contains(EventFlags::IN),
        is_writable: flags.contains(EventFlags::OUT),
        has_hung_up: is_broken || flags.contains(EventFlags::RDHUP),
        is_broken,
    }
}

/// Wakes the thread that waits for a poller, now or when it waits next.
#[derive(Debug)]
pub(crate) struct WakeUp(OwnedFd);

impl WakeUp {
    pub(crate) fn new(poller: &Poller) -> Result<Self, Errno> {
        let event = new_eventfd()?;
        epoll::add(&poller.0, &event, EventData::new_u64(WAKE_UP), EventFlags::IN | EventFlags::ET)?;
        Ok(Self(event))
    }

    /// The eventfd is never read, but 2^64 wake-ups are out of reach.
    pub(crate) fn wake(&self) {
        signal(&self.0);
    }
}

/// Wakes the thread that stands by; see [`stand_by`](super::stand_by). No poller sees it.
#[derive(Debug)]
pub(crate) struct Nudge(OwnedFd);

impl Nudge {
    pub(crate) fn new() -> Result<Self, Errno> {
        new_eventfd().map(Self)
    }

    pub(crate) fn send(&self) {
        signal(&self.0);
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    pub(super) fn clear(&self) {
        // Cannot fail: it is readable, and nobody else reads it.
        let read = rustix::io::read(&self.0, &mut [0; 8]);
        debug_assert!(read.is_ok());
    }
}

fn new_eventfd() -> Result<OwnedFd, Errno> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
}

fn signal(event: &OwnedFd) {
    let written = rustix::io::write(event, &1_u64.to_ne_bytes());
    debug_assert!(written.is_ok());
}
