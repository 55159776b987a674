use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

use crate::bridge::batch::Batch;
use crate::readiness::{Nudge, Poller, WakeUp, Woken, stand_by};
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// A caller that waits for room checks at this interval whether the shard still runs.
const ROOM_CHECK: Duration = Duration::from_millis(100);
/// Bytes of multicasts that may arrive before a holding shard is woken: about what one write carries.
const MAX_HELD_BYTES: usize = 64 << 10;

/// The shard's thread runs the shard.
const AWAKE: u8 = 0;
/// The shard's thread sleeps until it flushes the multicasts that it holds back. More multicasts do not wake it.
const HOLDING: u8 = 1;
/// The shard's thread sleeps until something happens.
const ASLEEP: u8 = 2;
/// The event loop runs the shard; the shard's thread stands by. See [`inline`](crate::inline).
const INLINE: u8 = 3;

/// Work for a shard.
pub(crate) enum Mail {
    Batch(Arc<Batch>),
    Listen(Arc<OwnedFd>),
    Adopt(Adopted),
    /// Close the listening socket.
    StopAccepting,
    /// Close every connection, then end.
    ShutDown,
    /// End now.
    Abort,
    /// Panic, for a test.
    #[cfg(test)]
    Panic,
}

/// A connected socket for a shard.
pub(crate) struct Adopted {
    pub(crate) socket: OwnedFd,
    /// Bytes of the request that were read before.
    pub(crate) head: Vec<u8>,
    /// The socket comes from an upgrade of another HTTP server.
    pub(crate) is_attached: bool,
}

/// Work from other threads for one shard. Posting wakes the shard, with a system call only if its thread sleeps.
pub(crate) struct Mailbox {
    queue: Mutex<Queue>,
    room: Condvar,
    /// Wakes the thread while it waits for sockets.
    wake_up: WakeUp,
    /// Wakes the thread while it stands by in inline mode. The event loop does not see it.
    nudge: Nudge,
    state: AtomicU8,
    /// The shard has ended.
    is_closed: AtomicBool,
    /// Bytes of batches that were posted and not yet applied.
    batch_bytes: AtomicUsize,
    /// Sockets of the shard, including those on their way to it.
    pub(crate) load: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    mails: Vec<Mail>,
    /// Bytes of multicasts that may wait while the shard holds output back.
    held_bytes: usize,
    is_urgent: bool,
}

impl Mailbox {
    pub(crate) fn new(poller: &Poller) -> Result<Self, Errno> {
        Ok(Self {
            queue: Mutex::default(),
            room: Condvar::new(),
            wake_up: WakeUp::new(poller)?,
            nudge: Nudge::new()?,
            state: AtomicU8::new(AWAKE),
            is_closed: AtomicBool::new(false),
            batch_bytes: AtomicUsize::new(0),
            load: AtomicUsize::new(0),
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub(crate) fn batch_bytes(&self) -> usize {
        self.batch_bytes.load(Ordering::SeqCst)
    }

    /// Posts work; returns it if the shard has ended.
    pub(crate) fn post(&self, mail: Mail) -> Result<(), Mail> {
        let mut queue = self.lock();
        if self.is_closed() {
            return Err(mail);
        }
        if let Mail::Batch(batch) = &mail {
            self.batch_bytes.fetch_add(batch.bytes().len(), Ordering::SeqCst);
            queue.held_bytes += batch.bytes().len();
            queue.is_urgent |= batch.is_urgent() || queue.held_bytes > MAX_HELD_BYTES;
        } else {
            queue.is_urgent = true;
        }
        queue.mails.push(mail);
        let is_urgent = queue.is_urgent;
        drop(queue);
        if is_urgent || matches!(self.state.load(Ordering::SeqCst), ASLEEP | INLINE) {
            self.wake();
        }
        Ok(())
    }

    /// Wakes the shard's thread. In inline mode the thread takes the shard back.
    pub(crate) fn wake(&self) {
        match self.state.swap(AWAKE, Ordering::SeqCst) {
            AWAKE => {}
            INLINE => self.nudge(),
            _ => self.wake_up.wake(),
        }
    }

    /// Hands the calling thread's shard over to the event loop. `false`: there is mail, so the thread must keep it.
    pub(crate) fn hand_over(&self) -> bool {
        self.announce(INLINE)
    }

    /// Makes the thread that stands by look at its shard.
    pub(crate) fn nudge(&self) {
        self.nudge.send();
    }

    pub(crate) fn is_inline(&self) -> bool {
        self.state.load(Ordering::SeqCst) == INLINE
    }

    /// Blocks the thread that stands by until it is nudged, or `timeout` is over (`None`: no limit), or `poller` has something.
    pub(crate) fn stand_by(&self, poller: Option<&Poller>, timeout: Option<Duration>) -> Woken {
        stand_by(&self.nudge, poller, timeout)
    }

    /// Counts a batch that is applied inline. `false`: it must be posted, because other mail waits.
    pub(crate) fn bypass(&self, batch: &Batch) -> bool {
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

    /// Moves all mail to the end of `mails`.
    pub(crate) fn take(&self, mails: &mut VecDeque<Mail>) {
        let mut queue = self.lock();
        mails.extend(queue.mails.drain(..));
        (queue.held_bytes, queue.is_urgent) = (0, false);
    }

    /// Notes that a batch was applied.
    pub(crate) fn applied(&self, bytes: usize) {
        self.batch_bytes.fetch_sub(bytes, Ordering::SeqCst);
        // A caller that has seen the bytes waits from the end of its lock on, and no earlier is it woken.
        drop(self.lock());
        self.room.notify_all();
    }

    /// Counts only the batches that were not taken: the others are lost.
    pub(crate) fn forget_taken_batches(&self) {
        let queue = self.lock();
        let waiting =
            queue.mails.iter().map(|mail| if let Mail::Batch(batch) = mail { batch.bytes().len() } else { 0 });
        self.batch_bytes.store(waiting.sum(), Ordering::SeqCst);
        drop(queue);
        self.room.notify_all();
    }

    /// Announces that the shard's thread is about to sleep. `false`: there is mail, so it must not.
    pub(crate) fn prepare_sleep(&self) -> bool {
        self.announce(ASLEEP)
    }

    /// Announces a state that mail ends. `false`: there is mail already, and the state stays [`AWAKE`].
    fn announce(&self, state: u8) -> bool {
        self.state.store(state, Ordering::SeqCst);
        let has_mail = !self.lock().mails.is_empty();
        if has_mail {
            self.state.store(AWAKE, Ordering::SeqCst);
        }
        !has_mail
    }

    /// Announces that the shard's thread is about to sleep until it flushes what it holds back. `false`: there is urgent
    /// mail, so it must not.
    pub(crate) fn prepare_hold(&self) -> bool {
        self.state.store(HOLDING, Ordering::SeqCst);
        let is_urgent = self.lock().is_urgent;
        if is_urgent {
            self.state.store(AWAKE, Ordering::SeqCst);
        }
        !is_urgent
    }

    /// Ends a sleep.
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
