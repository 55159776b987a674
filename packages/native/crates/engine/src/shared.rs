use std::time::Instant;

use rustix::io::Errno;

use crate::backpressure::Backpressure;
use crate::bridge::event_queue::EventQueue;
use crate::bridge::http_sockets::HttpSockets;
use crate::bridge::mailbox::Mailbox;
use crate::bridge::waker::Waker;
use crate::id::ShardId;
use crate::options::Options;
use crate::readiness::Poller;
use crate::stats::SharedStats;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::tls::TlsConfig;

/// Sockets beyond the limit of connections: their requests are read, or they are refused or go to Node. Fewer where the system
/// gives few descriptors.
pub(crate) const MAX_NEWCOMERS: usize = 256;

/// What the other threads see of one shard.
pub(crate) struct ShardHandle {
    /// Reports the readiness of the shard's sockets. In inline mode, the event loop watches it.
    pub(crate) poller: Poller,
    pub(crate) mailbox: Mailbox,
    pub(crate) event_queue: EventQueue,
    pub(crate) stats: SharedStats,
    /// Publishers wait for the shard's connections; see [`Backpressure`].
    pub(crate) is_congested: AtomicBool,
    /// The next inline turn panics, for a test.
    #[cfg(test)]
    pub(crate) panics: AtomicBool,
}

impl ShardHandle {
    pub(crate) fn new() -> Result<Self, Errno> {
        let poller = Poller::new()?;
        Ok(Self {
            mailbox: Mailbox::new(&poller)?,
            poller,
            event_queue: EventQueue::default(),
            stats: SharedStats::default(),
            is_congested: AtomicBool::new(false),
            #[cfg(test)]
            panics: AtomicBool::new(false),
        })
    }
}

/// What all threads of an engine share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    /// At most [`MAX_NEWCOMERS`].
    pub(crate) max_newcomers: usize,
    /// Of the listening socket.
    pub(crate) tls: Option<TlsConfig>,
    pub(crate) shards: Vec<ShardHandle>,
    pub(crate) waker: Waker,
    pub(crate) http_sockets: HttpSockets,
    pub(crate) began: Instant,
    /// Upgrades in flight and open connections.
    admitted: AtomicUsize,
    pub(crate) backpressure: Backpressure,
    /// JavaScript has drained events that it has not handled yet.
    pub(crate) is_reading: AtomicBool,
    /// The event loop runs shards with little to do.
    pub(crate) is_inline_enabled: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        options: Options,
        max_newcomers: usize,
        tls: Option<TlsConfig>,
        shards: Vec<ShardHandle>,
        waker: Waker,
    ) -> Self {
        Self {
            max_newcomers,
            backpressure: Backpressure::new(options.max_outbox_bytes),
            options,
            tls,
            shards,
            waker,
            http_sockets: HttpSockets::default(),
            began: Instant::now(),
            admitted: AtomicUsize::new(0),
            is_reading: AtomicBool::new(false),
            is_inline_enabled: AtomicBool::new(false),
        }
    }

    /// Counts an upgrade in, if there is room for it.
    #[must_use]
    pub(crate) fn admit(&self) -> bool {
        let max = self.options.max_connections;
        self.admitted
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| (count < max).then(|| count + 1))
            .is_ok()
    }

    pub(crate) fn release(&self) {
        self.admitted.fetch_sub(1, Ordering::AcqRel);
    }

    /// As [`place`](Self::place). `None`: there are too many sockets, those on their way to Node included.
    pub(crate) fn assign(&self, own: ShardId) -> Option<ShardId> {
        let loads = self.open_shards().map(|(_, load)| load);
        let total = self.http_sockets.len() + loads.sum::<usize>();
        (total < self.options.max_connections + self.max_newcomers).then(|| self.place(own))
    }

    /// The shard with the fewest sockets, `own` among equals; counts one more there.
    pub(crate) fn place(&self, own: ShardId) -> ShardId {
        let (best, _) = self.open_shards().min_by_key(|&(id, load)| (load, id != own)).unwrap_or((own, 0));
        self.shards[best.index()].mailbox.load.fetch_add(1, Ordering::AcqRel);
        best
    }

    fn open_shards(&self) -> impl Iterator<Item = (ShardId, usize)> {
        let open = self.shards.iter().enumerate().filter(|(_, port)| !port.mailbox.is_closed());
        open.map(|(index, port)| (ShardId(index as u8), port.mailbox.load.load(Ordering::Acquire)))
    }
}
