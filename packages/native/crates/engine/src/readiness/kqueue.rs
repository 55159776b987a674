//! macOS: kqueue.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use super::{Flags, LISTENER, MAX_READY, Ready, WAKE_UP, ready_of};
use crate::socket::last_error;

/// A kqueue. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Poller(Arc<OwnedFd>);

impl Poller {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self(Arc::new(new_kqueue()?)))
    }

    /// Readable while [`wait`](Self::wait) would return something.
    pub(crate) fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.0
    }

    /// Reports a socket, edge-triggered. Closing it ends that, too.
    pub(super) fn add(&self, socket: &OwnedFd, data: u64) -> Result<(), Errno> {
        let flags = libc::EV_ADD | libc::EV_CLEAR;
        let filters = [libc::EVFILT_READ, libc::EVFILT_WRITE];
        change(&self.0, &filters.map(|filter| socket_event(socket, filter, flags, data)))
    }

    pub(crate) fn remove_connection(&self, socket: &OwnedFd) -> Result<(), Errno> {
        let filters = [libc::EVFILT_READ, libc::EVFILT_WRITE];
        change(&self.0, &filters.map(|filter| socket_event(socket, filter, libc::EV_DELETE, 0)))
    }

    /// Reports a listening socket for as long as somebody waits to be accepted. Of the pollers that watch it, all are told.
    pub(crate) fn add_listener(&self, socket: &OwnedFd) -> Result<(), Errno> {
        change(&self.0, &[socket_event(socket, libc::EVFILT_READ, libc::EV_ADD, LISTENER)])
    }

    pub(crate) fn remove_listener(&self, socket: &OwnedFd) -> Result<(), Errno> {
        change(&self.0, &[socket_event(socket, libc::EVFILT_READ, libc::EV_DELETE, 0)])
    }

    /// Replaces `ready` by what is ready, after waiting for at most this time; `None`: no limit. Nothing is ready when a
    /// signal interrupts it.
    pub(crate) fn wait(&self, ready: &mut Vec<Ready>, timeout: Option<Duration>) -> Result<(), Errno> {
        ready.clear();
        let mut room = [const { MaybeUninit::<libc::kevent>::uninit() }; MAX_READY];
        match take(&self.0, &mut room, timeout) {
            Ok(events) => {
                ready.extend(events.iter().filter_map(|event| ready_of(event.udata.addr() as u64, flags_of(event))));
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

/// The read filter tells of the peer's end; the write filter, of our own, which we know, and of a reset, which has an error.
fn flags_of(event: &libc::kevent) -> Flags {
    let is_read = event.filter == libc::EVFILT_READ;
    let is_over = event.flags & libc::EV_EOF != 0;
    let is_broken = is_over && event.fflags != 0;
    Flags { is_readable: is_read, is_writable: !is_read, has_hung_up: is_broken || (is_read && is_over), is_broken }
}

/// Wakes the thread that waits for a poller, now or when it waits next.
#[derive(Debug)]
pub(crate) struct WakeUp(Poller);

impl WakeUp {
    pub(crate) fn new(poller: &Poller) -> Result<Self, Errno> {
        add_user_event(&poller.0)?;
        Ok(Self(poller.clone()))
    }

    pub(crate) fn wake(&self) {
        trigger(&self.0.0);
    }
}

/// Wakes the thread that stands by; see [`stand_by`](super::stand_by). No poller sees it.
#[derive(Debug)]
pub(crate) struct Nudge(OwnedFd);

impl Nudge {
    pub(crate) fn new() -> Result<Self, Errno> {
        let queue = new_kqueue()?;
        add_user_event(&queue)?;
        Ok(Self(queue))
    }

    pub(crate) fn send(&self) {
        trigger(&self.0);
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    pub(super) fn clear(&self) {
        // Cannot fail: it does not wait.
        let taken = take(&self.0, &mut [MaybeUninit::uninit()], Some(Duration::ZERO)).map(|events| events.len());
        debug_assert!(taken.is_ok(), "{taken:?}");
    }
}

fn new_kqueue() -> Result<OwnedFd, Errno> {
    // A child process does not inherit it (kqueue(2)).
    rustix::event::kqueue::kqueue()
}

fn add_user_event(queue: &OwnedFd) -> Result<(), Errno> {
    change(queue, &[user_event(libc::EV_ADD | libc::EV_CLEAR, 0)])
}

fn trigger(queue: &OwnedFd) {
    let triggered = change(queue, &[user_event(0, libc::NOTE_TRIGGER)]);
    debug_assert!(triggered.is_ok(), "{triggered:?}");
}

fn user_event(flags: u16, fflags: u32) -> libc::kevent {
    libc::kevent { ident: 0, filter: libc::EVFILT_USER, flags, fflags, data: 0, udata: data_pointer(WAKE_UP) }
}

fn socket_event(socket: &OwnedFd, filter: i16, flags: u16, data: u64) -> libc::kevent {
    libc::kevent { ident: socket.as_raw_fd() as usize, filter, flags, fflags: 0, data: 0, udata: data_pointer(data) }
}

/// The system returns it as it is; nobody looks behind it.
fn data_pointer(data: u64) -> *mut libc::c_void {
    ptr::without_provenance_mut(data as usize)
}

/// Makes changes, and takes no events.
fn change(queue: &OwnedFd, changes: &[libc::kevent]) -> Result<(), Errno> {
    rustix::io::retry_on_intr(|| {
        // SAFETY: the descriptor is open, and the pointer and the length describe the changes. Those name descriptors that
        // the caller borrows; the system forgets them when they are closed.
        let status = unsafe {
            libc::kevent(queue.as_raw_fd(), changes.as_ptr(), changes.len() as i32, ptr::null_mut(), 0, ptr::null())
        };
        if status < 0 { Err(last_error()) } else { Ok(()) }
    })
}

/// Waits for events; `None`: no limit.
fn take<'a>(
    queue: &OwnedFd,
    room: &'a mut [MaybeUninit<libc::kevent>],
    timeout: Option<Duration>,
) -> Result<&'a [libc::kevent], Errno> {
    let timeout = timeout.map(|time| libc::timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the descriptor is open, the pointer and the length describe the room, and the time outlives the call.
    let status = unsafe {
        libc::kevent(queue.as_raw_fd(), ptr::null(), 0, room.as_mut_ptr().cast(), room.len() as i32, timeout)
    };
    let count = usize::try_from(status).map_err(|_| last_error())?;
    // SAFETY: the system has filled `count`.
    Ok(unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), count) })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::id::{ConnectionId, ShardId, Slot};

    #[test]
    fn a_kqueue_that_watches_a_poller_is_told_only_while_something_is_untaken() {
        // libuv watches the poller this way, level-triggered. Were it told without reason, Node would spin.
        let poller = Poller::new().expect("a poller");
        let outer = new_kqueue().expect("a kqueue");
        change(&outer, &[socket_event(poller.descriptor(), libc::EVFILT_READ, libc::EV_ADD, 0)]).expect("watched");
        let is_told = |millis| {
            let mut room = [MaybeUninit::uninit()];
            !take(&outer, &mut room, Some(Duration::from_millis(millis))).expect("waits").is_empty()
        };
        assert!(!is_told(30));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let ours = OwnedFd::from(listener.accept().expect("accepts").0);
        poller.add_connection(&ours, ConnectionId::new(ShardId(0), Slot(0), 0)).expect("added");
        let mut ready = Vec::new();
        for _ in 0..3 {
            assert!(is_told(10_000) && is_told(10_000));
            while is_told(30) {
                poller.wait(&mut ready, Some(Duration::ZERO)).expect("waits");
            }
            peer.write_all(b"x").expect("sends");
        }
    }
}
