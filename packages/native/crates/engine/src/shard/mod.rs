//! One I/O thread: a poller, the connections that are pinned to it, and their output.
//!
//! A turn: wait, note the ready sockets, take mail, read, write once per connection, report to JavaScript. A busy shard puts
//! the multicasts of several turns into one write ([`FlushPacer`]). All other output leaves in its turn.
//!
//! | file | what |
//! | --- | --- |
//! | `turn.rs` | the order of a turn, the time to sleep, failures |
//! | `inbox.rs`, `apply.rs` | mail of other threads; commands |
//! | `receive.rs`, `receive_in_place.rs`, `encrypted.rs`, `decode.rs`, `prepared_answer.rs` | input of open connections |
//! | `flush.rs`, `flush_pacer.rs` | output |
//! | `accept.rs`, `proxied.rs`, `handshake.rs`, `event_stream.rs`, `relay.rs` | how connections begin |
//! | `keepalive.rs`, `ending.rs`, `restart.rs` | how they end |

mod accept;
mod apply;
pub(crate) mod connection;
mod decode;
mod encrypted;
mod ending;
mod event_stream;
mod flush;
mod flush_pacer;
mod handshake;
mod inbox;
mod keepalive;
mod newcomers;
mod prepared_answer;
mod proxied;
mod receive;
mod receive_in_place;
mod relay;
mod restart;
pub(crate) mod table;
mod turn;

use std::collections::VecDeque;
use std::sync::Arc;

use webmq_websocket::Inflater;

use crate::backpressure::ReaderGrace;
use crate::bridge::event::Events;
use crate::fanout::Fanout;
use crate::id::{ShardId, Slot};
use crate::inline::InlineState;
use crate::readiness::{Poller, Ready};
use crate::shard::table::Table;
use crate::shared::{ShardHandle, Shared};
use crate::stats::Stats;
use accept::Listener;
use encrypted::TlsState;
use flush_pacer::FlushPacer;
#[cfg(test)]
pub(crate) use flush_pacer::HOLD_OF_TESTS;
use inbox::Inbox;
use keepalive::Ticker;
use newcomers::Newcomers;
use prepared_answer::PreparedAnswer;
use proxied::ProxyReports;
use relay::Relays;
use restart::Restarts;

/// Bytes that are read from one connection at a time, into the one buffer that all connections of the shard share.
const READ_BUFFER_BYTES: usize = receive::MAX_UNREAD_BYTES;

pub(crate) struct Shard {
    id: ShardId,
    pub(crate) shared: Arc<Shared>,
    poller: Poller,
    pub(crate) ready: Vec<Ready>,
    listener: Option<Listener>,
    pub(crate) table: Table,
    newcomers: Newcomers,
    pub(crate) fanout: Fanout,
    ticker: Ticker,
    pacer: FlushPacer,
    proxies: ProxyReports,
    grace: ReaderGrace,
    answer: PreparedAnswer,
    pub(crate) inline: InlineState,
    /// Why the shard ended early.
    failure: Option<String>,
    restarts: Restarts,
    /// Events of the front lane: see [`EventQueue`](crate::bridge::event_queue::EventQueue).
    pub(crate) front: Events,
    pub(crate) events: Events,
    stats: Stats,
    read_buffer: Box<[u8]>,
    tls: TlsState,
    relays: Relays,
    /// Decompresses for all connections, one message at a time.
    inflater: Inflater,
    pub(crate) readable: VecDeque<Slot>,
    /// Connections to read from when JavaScript has read up to a position of the events.
    pub(crate) held: VecDeque<(Slot, u64)>,
    pub(crate) inbox: Inbox,
    pub(crate) now_ms: u64,
    pub(crate) is_shutting_down: bool,
    pub(crate) is_aborted: bool,
}

impl Shard {
    pub(crate) fn new(id: ShardId, shared: &Arc<Shared>) -> Self {
        Self {
            id,
            poller: shared.shards[id.index()].poller.clone(),
            ready: Vec::new(),
            listener: None,
            table: Table::new(id),
            newcomers: Newcomers::default(),
            fanout: Fanout::new(shared.options.max_outbox_bytes),
            ticker: Ticker::new(&shared.options),
            pacer: FlushPacer::new(shared.options.flush_interval),
            proxies: ProxyReports::default(),
            grace: ReaderGrace::default(),
            answer: PreparedAnswer::default(),
            inline: InlineState::default(),
            failure: None,
            restarts: Restarts::default(),
            front: Events::default(),
            events: Events::default(),
            stats: Stats::default(),
            read_buffer: vec![0; READ_BUFFER_BYTES].into(),
            tls: TlsState::new(shared.tls.is_some()),
            relays: Relays::default(),
            inflater: Inflater::default(),
            readable: VecDeque::new(),
            held: VecDeque::new(),
            inbox: Inbox::default(),
            now_ms: 0,
            is_shutting_down: false,
            is_aborted: false,
            shared: Arc::clone(shared),
        }
    }

    pub(crate) fn id(&self) -> ShardId {
        self.id
    }

    pub(crate) fn handle(&self) -> &ShardHandle {
        &self.shared.shards[self.id.index()]
    }
}
