use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::bridge::batch::Batch;

/// A wait for room ends at the latest after this time, to look whether the shard still lives.
const ROOM_CHECK: Duration = Duration::from_millis(100);
/// Multicasts that may pile up before they wake a shard from its nap: about what a write carries.
const MAX_NAP_BYTES: usize = 64 << 10;

const AWAKE: u8 = 0;
/// The shard holds multicasts back until a time that it has set an alarm for: more of them need not wake it.
const NAPPING: u8 = 1;
const ASLEEP: u8 = 2;
/// A guest runs the shard; its own thread is parked.
const LENT: u8 = 3;

/// Something that a shard is to do.
pub(crate) enum Mail {
    Batch(Arc<Batch>),
    Listen(Arc<OwnedFd>),
    Adopt(Adopted),
    /// Let go of the listening socket.
    StopAccepting,
    /// Close every connection and end when the last is gone.
    ShutDown,
    /// End now.
    Abort,
    /// Break, to see what comes of it.
    #[cfg(test)]
    Panic,
}

/// A connected socket for a shard.
pub(crate) struct Adopted {
    pub(crate) socket: OwnedFd,
    /// What somebody else has read of the request.
    pub(crate) head: Vec<u8>,
    /// It came as an upgrade from somebody else's HTTP server.
    pub(crate) is_attached: bool,
}

/// What other threads want of a shard. Posting wakes it, with a system call only if it sleeps.
pub(crate) struct Mailbox {
    queue: Mutex<Queue>,
    room: Condvar,
    event: OwnedFd,
    state: AtomicU8,
    /// The shard's own thread, which is unparked to take the shard back.
    host: OnceLock<Thread>,
    /// The shard has ended.
    is_closed: AtomicBool,
    /// Bytes of batches that were posted and not yet applied.
    batch_bytes: AtomicUsize,
    /// Sockets of the shard, those on their way to it included.
    pub(crate) load: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    mails: Vec<Mail>,
    /// Multicasts that need not wake a napping shard.
    idle_bytes: usize,
    is_urgent: bool,
}

impl Mailbox {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            queue: Mutex::default(),
            room: Condvar::new(),
            event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            state: AtomicU8::new(AWAKE),
            host: OnceLock::new(),
            is_closed: AtomicBool::new(false),
            batch_bytes: AtomicUsize::new(0),
            load: AtomicUsize::new(0),
        })
    }

    /// Readable after a wake-up.
    pub(crate) fn event(&self) -> &OwnedFd {
        &self.event
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub(crate) fn batch_bytes(&self) -> usize {
        self.batch_bytes.load(Ordering::SeqCst)
    }

    /// Leaves something for the shard; gives it back if the shard has ended.
    pub(crate) fn post(&self, mail: Mail) -> Result<(), Mail> {
        let mut queue = self.lock();
        if self.is_closed() {
            return Err(mail);
        }
        if let Mail::Batch(batch) = &mail {
            self.batch_bytes.fetch_add(batch.bytes().len(), Ordering::SeqCst);
            queue.idle_bytes += batch.bytes().len();
            queue.is_urgent |= batch.is_urgent() || queue.idle_bytes > MAX_NAP_BYTES;
        } else {
            queue.is_urgent = true;
        }
        queue.mails.push(mail);
        let is_urgent = queue.is_urgent;
        drop(queue);
        if is_urgent || matches!(self.state.load(Ordering::SeqCst), ASLEEP | LENT) {
            self.wake();
        }
        Ok(())
    }

    /// Wakes the shard's own thread; if the shard is lent, the thread takes it back.
    pub(crate) fn wake(&self) {
        match self.state.swap(AWAKE, Ordering::SeqCst) {
            AWAKE => {}
            LENT => self.nudge(),
            _ => {
                // Never read, but 2^64 wake-ups are out of reach.
                let written = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
                debug_assert!(written.is_ok());
            }
        }
    }

    /// Lends the shard of the calling thread to guests. `false`: it must not, there is mail.
    pub(crate) fn lend(&self) -> bool {
        self.host.get_or_init(std::thread::current);
        self.announce(LENT)
    }

    /// Has the parked thread look at a shard that it has lent.
    pub(crate) fn nudge(&self) {
        self.host.get().into_iter().for_each(Thread::unpark);
    }

    pub(crate) fn is_lent(&self) -> bool {
        self.state.load(Ordering::SeqCst) == LENT
    }

    /// Counts in a batch that a guest applies at once. `false`: it has to be posted, behind what waits.
    pub(crate) fn pass(&self, batch: &Batch) -> bool {
        let is_empty = self.lock().mails.is_empty();
        if is_empty {
            self.batch_bytes.fetch_add(batch.bytes().len(), Ordering::SeqCst);
        }
        is_empty
    }

    /// Blocks the caller while more than `max_bytes` of batches wait for the shard.
    pub(crate) fn wait_for_room(&self, max_bytes: usize) {
        let mut queue = self.lock();
        while self.batch_bytes() > max_bytes && !self.is_closed() {
            queue = self.room.wait_timeout(queue, ROOM_CHECK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Moves everything that waits to the end of `mails`.
    pub(crate) fn take(&self, mails: &mut Vec<Mail>) {
        let mut queue = self.lock();
        mails.append(&mut queue.mails);
        (queue.idle_bytes, queue.is_urgent) = (0, false);
    }

    /// Notes that a batch was applied.
    pub(crate) fn applied(&self, bytes: usize) {
        self.batch_bytes.fetch_sub(bytes, Ordering::SeqCst);
        self.room.notify_all();
    }

    /// Announces that the shard is about to sleep. `false`: it must not, there is mail.
    pub(crate) fn prepare_sleep(&self) -> bool {
        self.announce(ASLEEP)
    }

    /// Announces that the shard is about to be in a state that mail ends. `false`: there is some.
    fn announce(&self, state: u8) -> bool {
        self.state.store(state, Ordering::SeqCst);
        let has_mail = !self.lock().mails.is_empty();
        if has_mail {
            self.state.store(AWAKE, Ordering::SeqCst);
        }
        !has_mail
    }

    /// Announces that the shard is about to sleep until it flushes what it holds back. `false`: it must not, there is mail
    /// that is not to wait.
    pub(crate) fn prepare_nap(&self) -> bool {
        self.state.store(NAPPING, Ordering::SeqCst);
        let is_urgent = self.lock().is_urgent;
        if is_urgent {
            self.state.store(AWAKE, Ordering::SeqCst);
        }
        !is_urgent
    }

    /// Ends the sleep. The eventfd is watched edge-triggered, so it need not be read.
    pub(crate) fn woken(&self) {
        self.state.store(AWAKE, Ordering::SeqCst);
    }

    /// Refuses mail from now on and drops what waits.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        self.is_closed.store(true, Ordering::Release);
        let mails = std::mem::take(&mut queue.mails);
        self.batch_bytes.store(0, Ordering::SeqCst);
        drop(queue);
        self.room.notify_all();
        drop(mails);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
