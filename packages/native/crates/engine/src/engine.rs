use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::backpressure::{self, Taken};
use crate::bridge::batch::Batch;
use crate::bridge::event_reader::EventReader;
use crate::bridge::mailbox::{Adopted, Mail};
use crate::bridge::waker::Waker;
use crate::error::EngineError;
use crate::id::{MAX_SHARDS, ShardId};
use crate::inline::ShardCell;
use crate::options::Options;
use crate::shard::Shard;
use crate::shared::{ShardHandle, Shared};
use crate::socket;
use crate::stats::Stats;
use crate::tls::{CertificatePem, TlsConfig};

/// A running engine: threads that own connections. Commands go in by [`submit`](Self::submit), events come out by
/// [`drain`](Self::drain), both packed.
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) cells: Vec<Arc<ShardCell>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    taken: Mutex<EventReaders>,
    is_closed: AtomicBool,
}

/// JavaScript's ends of the outlets, and whose turn it is to be emptied first.
struct EventReaders {
    ends: Vec<EventReader>,
    first: usize,
    /// Bytes at the start of the last drain that are events of the front lane.
    front_bytes: usize,
}

/// What a drain came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Bytes of events that were copied; there may be more. 0: nothing waits.
    Bytes(usize),
    /// Not even one event fits: a buffer of this size is needed.
    Needs(usize),
}

impl Engine {
    /// Starts the threads. Any of them calls `wake` when events wait, once until the next drain.
    ///
    /// # Errors
    /// `E_OPTION_INVALID`; `E_TRANSPORT_FAILED` when the system refuses threads or descriptors.
    pub fn start(mut options: Options, wake: Box<dyn Fn() + Send + Sync>) -> Result<Self, EngineError> {
        if !(1..=MAX_SHARDS).contains(&options.shards) {
            return Err(EngineError::OptionInvalid("threads must be between 1 and 64".to_owned()));
        }
        let tls = options.tls.take().map(|certificates| TlsConfig::new(&certificates)).transpose()?;
        let max_newcomers = options.limit_connections();
        let handles = (0..options.shards).map(|_| ShardHandle::new()).collect::<Result<Vec<_>, _>>()?;
        let count = handles.len();
        let shared = Arc::new(Shared::new(options, max_newcomers, tls, handles, Waker::new(wake)));
        let engine = Self {
            shared,
            cells: (0..count).map(|_| Arc::default()).collect(),
            threads: Mutex::default(),
            taken: Mutex::new(EventReaders {
                ends: (0..count).map(|_| EventReader::default()).collect(),
                first: 0,
                front_bytes: 0,
            }),
            is_closed: AtomicBool::new(false),
        };
        for index in 0..count {
            engine.spawn(ShardId(index as u8)).inspect_err(|_| engine.close())?;
        }
        Ok(engine)
    }

    fn spawn(&self, id: ShardId) -> Result<(), EngineError> {
        let shard = Shard::new(id, &self.shared);
        let (shared, cell) = (Arc::clone(&self.shared), Arc::clone(&self.cells[id.index()]));
        let name = format!("webmq-io-{}", id.0);
        let thread = std::thread::Builder::new().name(name).spawn(move || cell.run_on_own_thread(shard, &shared))?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    /// Binds an address and accepts connections on it; returns where, which tells the port when 0 was asked for.
    ///
    /// # Errors
    /// `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`.
    pub fn listen(&self, address: SocketAddr) -> Result<SocketAddr, EngineError> {
        let socket = Arc::new(socket::listen(address)?);
        let bound = socket::local_address(&socket)?;
        self.post_all(|| Mail::Listen(Arc::clone(&socket)))?;
        Ok(bound)
    }

    /// As [`listen`](Self::listen), on a Unix socket. The caller removes the file, before and afterwards.
    ///
    /// # Errors
    /// `E_ADDRESS_IN_USE`: the file exists; `E_ADDRESS_UNAVAILABLE`.
    pub fn listen_unix(&self, path: &Path) -> Result<(), EngineError> {
        let socket = Arc::new(socket::listen_unix(path)?);
        self.post_all(|| Mail::Listen(Arc::clone(&socket)))
    }

    /// Serves these certificates to all handshakes that begin from now on; open connections go on.
    ///
    /// # Errors
    /// `E_OPTION_INVALID`: one of them cannot be used, or the engine was started without TLS. All old ones stay.
    pub fn set_certificates(&self, certificates: &[CertificatePem]) -> Result<(), EngineError> {
        let without_tls =
            || EngineError::OptionInvalid("certificates are for an engine that was started with TLS".to_owned());
        self.shared.tls.as_ref().ok_or_else(without_tls)?.replace(certificates)
    }

    /// Takes a connected socket over: its descriptor is duplicated, the caller closes its own. `head` is what was read
    /// from it: a request head, and maybe what follows.
    ///
    /// # Errors
    /// `E_TRANSPORT_FAILED` when the descriptor cannot be duplicated.
    pub fn attach(&self, socket: BorrowedFd<'_>, head: Vec<u8>) -> Result<(), EngineError> {
        let socket: OwnedFd = rustix::io::fcntl_dupfd_cloexec(socket, 0)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        socket::tune(&socket)?;
        // Whatever the limit: the shard answers that there is no room.
        let shard = self.shared.place(ShardId(0));
        let adopted = Adopted { socket, head, is_attached: true };
        self.shared.shards[shard.index()].mailbox.post(Mail::Adopt(adopted)).map_err(|_| EngineError::Ended)
    }

    /// Passes the packed commands of a turn to the shards. The bytes are copied. A small batch for an inline shard is
    /// applied before this returns.
    ///
    /// Blocks while more than 64 MiB of commands wait for a shard: the memory for what is published faster than it can be
    /// written ends there.
    ///
    /// Returns whether the caller may publish more. If not, it should wait for a wake-up after which
    /// [`is_writable`](Self::is_writable).
    ///
    /// # Errors
    /// `E_TRANSPORT_FAILED` when the bytes are malformed: nothing was done then.
    pub fn submit(&self, packed: &[u8]) -> Result<bool, EngineError> {
        if packed.is_empty() {
            return Ok(true);
        }
        let batch = Arc::new(Batch::new(packed, self.shared.options.deflate_from_bytes)?);
        for (port, cell) in self.shared.shards.iter().zip(&self.cells) {
            if batch.is_small()
                && let Some(has_events) = cell.apply(&port.mailbox, &batch)
            {
                if has_events {
                    self.shared.waker.wake();
                }
                continue;
            }
            port.mailbox.wait_for_room(backpressure::MAX_POSTED_BYTES);
            // A shard that has ended has told the end of its connections; nothing is meant for it any more.
            drop(port.mailbox.post(Mail::Batch(Arc::clone(&batch))));
        }
        Ok(self.is_writable())
    }

    /// Whether more may be published: shards apply commands, and connections take output, as fast as it comes. If not,
    /// JavaScript is woken when they do. It is `true` again after a second at the latest, unless connections take a lot.
    pub fn is_writable(&self) -> bool {
        let Shared { backpressure, shards, began, .. } = &*self.shared;
        backpressure.is_writable(shards, began.elapsed().as_millis() as u64, || {
            let stats = self.stats();
            Taken { connections: stats.connections, sent_bytes: stats.sent_byte_count }
        })
    }

    /// The caller has handled all events that [`drain`](Self::drain) gave it, of this shard or of all, and has submitted the
    /// commands that came of them. Until then the engine does not answer for it: answers keep the order of their requests.
    pub fn note_handled(&self, shard: Option<usize>) {
        let shards = &self.shared.shards;
        let noted = shard.map_or(&shards[..], |index| &shards[index..=index]);
        noted.iter().for_each(|shard| shard.event_queue.note_handled());
        self.shared.is_reading.store(false, Ordering::Release);
    }

    /// Copies events that wait into `target`: whole ones, in order per shard. Rings if it has no room for all.
    ///
    /// Gives nothing while a shard has more than 8 MiB of commands to apply; rings when it has caught up.
    pub fn drain(&self, target: &mut [u8]) -> Drained {
        self.shared.waker.acknowledge();
        if self.shared.backpressure.pauses_drain(&self.shared.shards) {
            return Drained::Bytes(0);
        }
        let drained = self.drain_shards(target);
        self.shared.is_reading.store(drained != Drained::Bytes(0), Ordering::Release);
        drained
    }

    /// As [`drain`](Self::drain), only of connections that had nothing else to be handled; returns the bytes. For a caller that
    /// has handled all events that this gave it before, and the first `handled_bytes` of those that `drain` gave it last. Gives
    /// nothing while some of the front lane are among the others of those: each connection's messages keep their order.
    pub fn drain_front(&self, target: &mut [u8], handled_bytes: usize) -> usize {
        if self.shared.backpressure.pauses_drain(&self.shared.shards) {
            return 0;
        }
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if handled_bytes < taken.front_bytes {
            return 0;
        }
        let mut copied = 0;
        for (reader, shard) in taken.ends.iter_mut().zip(&self.shared.shards) {
            copied += reader.drain_front(&shard.event_queue, &mut target[copied..]);
        }
        copied
    }

    fn drain_shards(&self, target: &mut [u8]) -> Drained {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut copied = 0;
        let count = taken.ends.len();
        taken.first = (taken.first + 1) % count;
        for is_front in [true, false] {
            for index in (taken.first..count).chain(0..taken.first) {
                let (reader, port) = (&mut taken.ends[index], &self.shared.shards[index]);
                let rest_of_target = &mut target[copied..];
                let drained = match is_front {
                    true => reader.copy_front(&port.event_queue, rest_of_target),
                    false => reader.copy_rest(&port.event_queue, rest_of_target),
                };
                copied += drained.bytes;
                if is_front {
                    taken.front_bytes = copied;
                }
                if drained.wakes_shard {
                    port.mailbox.wake();
                }
                if drained.is_behind || drained.next_bytes.is_some() {
                    self.shared.waker.wake();
                }
                if let Some(next_bytes) = drained.next_bytes {
                    return if copied == 0 { Drained::Needs(next_bytes) } else { Drained::Bytes(copied) };
                }
            }
        }
        Drained::Bytes(copied)
    }

    /// The socket of a plain HTTP request, which the caller then owns.
    pub fn take_socket(&self, token: u32) -> Option<OwnedFd> {
        self.shared.http_sockets.take(token)
    }

    /// Sum over the shards.
    pub fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        self.shared.shards.iter().for_each(|port| sum.add(&port.stats.read()));
        sum.outbox_bytes +=
            self.shared.shards.iter().map(|shard| shard.mailbox.batch_bytes() as u64).max().unwrap_or(0);
        sum.connection_limit = self.shared.options.max_connections as u64;
        sum
    }

    /// Open connections per shard.
    pub fn connections_per_shard(&self) -> Vec<u64> {
        self.shared.shards.iter().map(|shard| shard.stats.read().connections).collect()
    }

    /// Closes the listening socket; a `quiet` event of every shard says when it is done. Connections go on.
    pub fn stop_accepting(&self) {
        // Fails only for a shard that has ended, which does not accept.
        drop(self.post_all(|| Mail::StopAccepting));
    }

    /// Does what was submitted, closes every connection with 1001 and ends the shards; each says `ended` last.
    pub fn shut_down(&self) {
        // Fails only for a shard that has ended already.
        drop(self.post_all(|| Mail::ShutDown));
    }

    /// Ends everything that is left, at once, and waits for the threads. Idempotent.
    pub fn close(&self) {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // Fails only for a shard that has ended already.
        drop(self.post_all(|| Mail::Abort));
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A shard reports its panic as an event; the thread itself does not panic.
            drop(thread.join());
        }
    }

    /// Sockets that the shards hold.
    #[cfg(test)]
    pub(crate) fn sockets(&self) -> usize {
        self.shared.shards.iter().map(|shard| shard.mailbox.load.load(Ordering::SeqCst)).sum()
    }

    #[cfg(test)]
    pub(crate) fn panic_inline_turn(&self) {
        self.shared.shards.iter().for_each(|shard| shard.panics.store(true, Ordering::SeqCst));
    }

    #[cfg(test)]
    pub(crate) fn panic_shard_of(&self, connection: f64) {
        let shard = crate::id::ConnectionId::from_number(connection).map(crate::id::ConnectionId::shard);
        let port = shard.and_then(|shard| self.shared.shards.get(shard.index()));
        assert!(port.is_some_and(|shard| shard.mailbox.post(Mail::Panic).is_ok()));
    }

    fn post_all(&self, mail: impl Fn() -> Mail) -> Result<(), EngineError> {
        let mut posted = Ok(());
        for shard in &self.shared.shards {
            if shard.mailbox.post(mail()).is_err() {
                posted = Err(EngineError::Ended);
            }
        }
        posted
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
    }
}
