use std::time::Duration;

use rustix::process::{Resource, getrlimit};

use crate::proxy_protocol::Network;
use crate::shared::MAX_NEWCOMERS;
use crate::tls::CertificatePem;

/// Descriptors that are left to Node when the limit of connections is the system's.
const MIN_SPARE_DESCRIPTORS: usize = 64;

/// What an engine is started with. Every queue, timer and input of it has its limit here.
#[derive(Debug, Clone)]
pub struct Options {
    /// I/O threads, 1 to [`MAX_SHARDS`](crate::MAX_SHARDS).
    pub shards: usize,
    /// Largest message that is accepted; a larger one closes its connection with 1009.
    pub max_message_bytes: u32,
    /// Bytes that may wait for one connection; over it, the connection is closed with 4008. A frame of one turn is always
    /// tried first: only what the socket did not take counts.
    pub max_outbox_bytes: usize,
    /// Payloads from this size on are compressed for connections that offer permessage-deflate (RFC 7692); `None`: the
    /// extension is not negotiated.
    pub deflate_from_bytes: Option<usize>,
    /// Largest request head; a larger one is answered with 431.
    pub max_header_bytes: usize,
    /// Connections held at once, upgrades in flight included; beyond it upgrades are answered with 503. 0 stands for as
    /// many as the limit of open files allows, which is the most in any case.
    pub max_connections: usize,
    /// Bytes of events that may wait for JavaScript per shard; over it, the shard stops reading from its connections.
    pub max_inbound_bytes: usize,
    /// Time from accept to the end of the handshake.
    pub handshake_timeout: Duration,
    /// Time from the first byte of a message to its last; zero: any. A later message closes its connection with 4004. The time
    /// in which nothing is read from the connection does not count.
    pub message_timeout: Duration,
    /// A ping is sent after this time without a byte from the peer; zero turns pings off.
    pub ping_interval: Duration,
    /// Time after the ping until a silent connection is dropped with 4003.
    pub ping_timeout: Duration,
    /// Time that a peer has to answer a close frame.
    pub close_timeout: Duration,
    /// Time that a busy shard may hold publications back so that they share writes; zero: never.
    pub flush_interval: Duration,
    /// Connections from these networks begin with a header of the PROXY protocol, or are closed. Others begin with a request.
    pub proxy_protocol_from: Vec<Network>,
    /// Certificates of the listening socket, which then serves TLS and nothing else; the first one is the default.
    pub tls: Option<Vec<CertificatePem>>,
    /// Whether plain HTTP requests are handed over; otherwise they are answered with 426.
    pub hands_http_over: bool,
    /// Path of event streams: a GET of it asks for a decision as a handshake does. `None`: there are none.
    pub event_stream_path: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shards: 1,
            max_message_bytes: (256 << 10) + 4_096,
            max_outbox_bytes: 1 << 20,
            deflate_from_bytes: None,
            max_header_bytes: 8 << 10,
            max_connections: 0,
            max_inbound_bytes: 2 << 20,
            handshake_timeout: Duration::from_secs(5),
            message_timeout: Duration::from_secs(30),
            ping_interval: Duration::from_secs(25),
            ping_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(5),
            flush_interval: Duration::from_millis(10),
            proxy_protocol_from: Vec::new(),
            tls: None,
            hands_http_over: false,
            event_stream_path: None,
        }
    }
}

impl Options {
    /// Brings `max_connections` down to what the limit of open files allows. Returns how many newcomers there may be beyond it.
    pub(crate) fn limit_connections(&mut self) -> usize {
        let max_newcomers;
        (self.max_connections, max_newcomers) = share_out(descriptor_limit(), self.max_connections);
        max_newcomers
    }
}

/// The most connections and newcomers. Node has at least as many descriptors as newcomers, who could otherwise take them all.
fn share_out(descriptors: usize, wanted: usize) -> (usize, usize) {
    let most = descriptors.saturating_sub(MIN_SPARE_DESCRIPTORS.max(descriptors / 16)).max(1);
    let max_connections = if wanted == 0 { most } else { wanted.min(most) };
    (max_connections, MAX_NEWCOMERS.min(descriptors.saturating_sub(max_connections) / 2))
}

fn descriptor_limit() -> usize {
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newcomers_leave_descriptors_to_node() {
        assert_eq!(share_out(80, 0), (16, 32));
        assert_eq!(share_out(1_024, 0), (960, 32));
        assert_eq!(share_out(4_096, 5_000), (3_840, 128));
        assert_eq!(share_out(4_096, 1_000), (1_000, MAX_NEWCOMERS));
        assert_eq!(share_out(usize::MAX, 50_000), (50_000, MAX_NEWCOMERS));
    }
}
