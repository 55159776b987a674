//! Orders of the main thread to an I/O thread, and their reports.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use serde_json::Value;

use super::batch::Batch;
use super::places::Place;
use super::plans::clients::setup::Setup;
use super::plans::clients::tally::Tally;
use super::protocol::plans::{ReplayPlan, SendWindow, UsersPlan};
use super::protocol::{self, Close, Count, CountStop, Ping};
use super::shared::Stats;
use super::stream::Negotiated;
use super::tls::TlsClient;
use super::window::Window;
use crate::latencies::Latencies;

/// The command that an order and its report belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OrderNumber(pub(crate) u64);

pub(crate) struct Order {
    pub(crate) number: OrderNumber,
    pub(crate) task: Task,
}

/// A thread's part of a command. Numbers beside a command are connections of this thread, at most.
pub(crate) enum Task {
    Connect(ConnectTask),
    Send(Arc<protocol::Send>, usize),
    /// Answered at once when the window has no end of its own.
    Count(Arc<Count>),
    StopCount(Arc<CountStop>),
    Flood(FloodTask),
    Ping(Arc<Ping>, usize),
    Slow(SlowTask),
    Stats,
    Close(Arc<Close>, usize),
    /// Connects the thread's part of the clients, from the first to before the last.
    Clients(Arc<Setup>, std::ops::Range<u32>),
    BeginClients(SendWindow),
    FinishClients,
    Users(Box<UsersPlan>),
    Replay(Box<ReplayPlan>),
}

#[derive(Clone)]
pub(crate) struct ConnectTask {
    /// One per connection.
    pub(crate) places: Box<[Place]>,
    pub(crate) ip: IpAddr,
    pub(crate) tls: Option<TlsClient>,
    /// Of the connections, in turn; at least one.
    pub(crate) requests: Arc<[Arc<[u8]>]>,
    pub(crate) subprotocol: Option<Arc<str>>,
    /// Prefix of the message that makes a connection ready; `None`: the upgrade does.
    pub(crate) ready_prefix: Option<Box<[u8]>>,
    pub(crate) sources: Sources,
    /// Number of the first connection, which decides its source address.
    pub(crate) first_number: u64,
    pub(crate) max_in_flight: usize,
    pub(crate) waits_for_batch: bool,
    /// Connections per second of this thread; `None`: as fast as `max_in_flight` allows.
    pub(crate) per_second: Option<f64>,
    pub(crate) timeout_us: u64,
    pub(crate) receive_buffer_bytes: Option<usize>,
    pub(crate) replies: Vec<(String, String)>,
}

/// Connections per loopback source address, which has 28,232 ephemeral ports.
const CONNECTIONS_PER_SOURCE: u64 = 20_000;

/// Source addresses of connections.
#[derive(Clone)]
pub(crate) enum Sources {
    /// The system chooses.
    System,
    /// In turn.
    Listed(Arc<[Ipv4Addr]>),
    /// 127.0.0.1 and following addresses, as many as needed.
    Loopback,
}

impl Sources {
    pub(crate) fn of(&self, number: u64) -> Option<Ipv4Addr> {
        match self {
            Self::System => None,
            Self::Listed(addresses) if addresses.is_empty() => None,
            Self::Listed(addresses) => Some(addresses[(number % addresses.len() as u64) as usize]),
            Self::Loopback => Some(Ipv4Addr::new(127, 0, 0, 1 + (number / CONNECTIONS_PER_SOURCE % 250) as u8)),
        }
    }
}

#[derive(Clone)]
pub(crate) struct FloodTask {
    pub(crate) batch: Arc<Batch>,
    pub(crate) duration_us: u64,
    /// Messages per second of this thread; `None`: as fast as the sockets take them.
    pub(crate) per_second: Option<f64>,
    pub(crate) max_connections: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct SlowTask {
    pub(crate) share: f64,
    /// `None`: do not read at all.
    pub(crate) bytes_per_second: Option<u64>,
}

pub(crate) struct Answer {
    pub(crate) number: OrderNumber,
    pub(crate) report: Report,
}

/// A thread's part of an answer.
pub(crate) enum Report {
    Connected(Box<Connected>),
    Sent {
        ok_count: u64,
        failed_count: u64,
    },
    Counting,
    Counted(Vec<Counted>),
    Flooded(Flooded),
    Pinged {
        latencies: Box<Latencies>,
        missing_count: u64,
    },
    Slowed {
        slow_count: u64,
        reading_count: u64,
    },
    Stats(Stats),
    Closed {
        by_code: BTreeMap<u16, u64>,
    },
    ClientsConnected {
        live_count: u64,
    },
    ClientsBegun,
    ClientsFinished(Vec<Tally>),
    /// The answer as it is written.
    UsersRan(Value),
    Replayed(Value),
    /// The command cannot go on; the other threads are not waited for.
    Failed(String),
}

#[derive(Default)]
pub(crate) struct Connected {
    pub(crate) ok_count: u64,
    /// Absent: nothing was recorded.
    pub(crate) latencies: Option<Latencies>,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) secured: Secured,
}

/// Complete TLS handshakes.
#[derive(Default)]
pub(crate) struct Secured {
    /// By cipher suite.
    pub(crate) suites: BTreeMap<&'static str, u64>,
    pub(crate) resumed_count: u64,
}

impl Secured {
    pub(crate) fn add(&mut self, Negotiated { suite, is_resumed }: Negotiated) {
        *self.suites.entry(suite).or_default() += 1;
        self.resumed_count += u64::from(is_resumed);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.resumed_count += other.resumed_count;
        for (suite, count) in other.suites {
            *self.suites.entry(suite).or_default() += count;
        }
    }
}

pub(crate) struct Counted {
    pub(crate) window: Window,
    pub(crate) ended_us: u64,
    pub(crate) reading_count: u64,
    pub(crate) slow_count: u64,
    pub(crate) silent_count: u64,
    pub(crate) missing_count: u64,
    pub(crate) last_sequence: Option<u64>,
    pub(crate) is_complete: bool,
    /// CPU time of the thread over the time of the window.
    pub(crate) thread_share: f64,
}

#[derive(Default)]
pub(crate) struct Flooded {
    pub(crate) frame_count: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) unfinished_count: u64,
    pub(crate) late: Option<Latencies>,
}
