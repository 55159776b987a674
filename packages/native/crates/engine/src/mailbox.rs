use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::batch::Batch;

/// A wait for room ends at the latest after this time, to look whether the shard still lives.
const ROOM_CHECK: Duration = Duration::from_millis(100);

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
    queue: Mutex<Vec<Mail>>,
    room: Condvar,
    event: OwnedFd,
    is_asleep: AtomicBool,
    /// The shard has ended.
    is_closed: AtomicBool,
    /// Bytes of batches that were posted and not yet applied.
    batch_bytes: AtomicUsize,
    /// Sockets of the shard, those on their way to it included.
    pub(crate) load: AtomicUsize,
}

impl Mailbox {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            queue: Mutex::default(),
            room: Condvar::new(),
            event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            is_asleep: AtomicBool::new(false),
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
        }
        queue.push(mail);
        drop(queue);
        self.wake();
        Ok(())
    }

    pub(crate) fn wake(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            // Never read, but 2^64 wake-ups are out of reach.
            let written = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
            debug_assert!(written.is_ok());
        }
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
        mails.append(&mut self.lock());
    }

    /// Notes that a batch was applied.
    pub(crate) fn applied(&self, bytes: usize) {
        self.batch_bytes.fetch_sub(bytes, Ordering::SeqCst);
        self.room.notify_all();
    }

    /// Announces that the shard is about to sleep. `false`: it must not, there is mail.
    pub(crate) fn prepare_sleep(&self) -> bool {
        self.is_asleep.store(true, Ordering::SeqCst);
        let has_mail = !self.lock().is_empty();
        if has_mail {
            self.is_asleep.store(false, Ordering::SeqCst);
        }
        !has_mail
    }

    /// Ends the sleep. The eventfd is watched edge-triggered, so it need not be read.
    pub(crate) fn woken(&self) {
        self.is_asleep.store(false, Ordering::SeqCst);
    }

    /// Refuses mail from now on and drops what waits.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        self.is_closed.store(true, Ordering::Release);
        let mails = std::mem::take(&mut *queue);
        self.batch_bytes.store(0, Ordering::SeqCst);
        drop(queue);
        self.room.notify_all();
        drop(mails);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Mail>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
