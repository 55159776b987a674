use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use webmq_websocket::handshake::{AcceptKey, AcceptedDeflate};
use webmq_websocket::{CloseCode, Decoder, Role};

use crate::shard::relay::Relay;
use crate::socket::{self, Peer};
use crate::tls::Session;

/// RFC 6455 §7.1.5: no close frame arrived.
const ABNORMAL: u16 = 1006;
/// RFC 6455 §7.1.5: a close frame without a code arrived.
const NO_STATUS: u16 = 1005;

/// Where a connection is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The request head is being read.
    Head,
    /// JavaScript decides about the upgrade; nothing is read.
    Deciding,
    /// Plain HTTP over TLS: the shard passes the plaintext on to Node and back.
    Relaying,
    /// Messages go both ways.
    Open,
    /// Our close frame is on its way; the peer's is awaited. Messages are no longer delivered.
    Closing,
    /// Everything is said. What is queued is written, then the connection is closed; if the peer may still be sending,
    /// only our side of it is, and what comes is thrown away for a while: a close with unread bytes resets the connection
    /// and could cost the peer our last words.
    Lingering,
}

/// What a connection needs until it is open, and bytes that were received and not decoded.
#[derive(Default)]
pub(crate) struct Opening {
    /// What was received of the head; after it, what is to be decoded before more is read.
    pub(crate) received: Vec<u8>,
    pub(crate) accept_key: Option<AcceptKey>,
    pub(crate) deflate: Option<AcceptedDeflate>,
    pub(crate) is_attached: bool,
    /// The request asks for an event stream.
    pub(crate) is_stream: bool,
    /// The PROXY header has not come yet.
    pub(crate) awaits_proxy_header: bool,
    /// Who the client is, if a proxy has told.
    pub(crate) client: Option<SocketAddr>,
}

/// Why a connection ends, as the `closed` event says.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    pub(crate) code: u16,
    pub(crate) reason: String,
}

impl Ending {
    /// No close frame arrived.
    pub(crate) fn abnormal() -> Self {
        Self { code: ABNORMAL, reason: String::new() }
    }

    pub(crate) fn ours(code: CloseCode, reason: &str) -> Self {
        Self { code: code.value(), reason: reason.to_owned() }
    }

    /// A close frame of the peer.
    pub(crate) fn received(code: Option<CloseCode>, reason: &str) -> Self {
        Self { code: code.map_or(NO_STATUS, CloseCode::value), reason: reason.to_owned() }
    }
}

/// One socket of a shard. About 150 bytes, and nothing on the heap while it idles.
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    /// Absent on a port without TLS.
    pub(crate) tls: Option<Box<Session>>,
    pub(crate) relay: Option<Box<Relay>>,
    pub(crate) phase: Phase,
    pub(crate) decoder: Decoder,
    pub(crate) opening: Option<Box<Opening>>,
    pub(crate) ending: Option<Box<Ending>>,
    /// permessage-deflate was negotiated.
    pub(crate) has_deflate: bool,
    /// An event stream: it gets bytes without frames, and what the peer sends is thrown away.
    pub(crate) is_stream: bool,
    /// Bytes that the peer of an event stream has sent.
    pub(crate) discarded_bytes: u32,
    /// Counts towards the limit of connections.
    pub(crate) is_admitted: bool,
    /// The upgrade was told and JavaScript has not rejected it, so `closed` is owed.
    pub(crate) owes_closed: bool,
    /// Counts as a connection in the statistics.
    pub(crate) was_open: bool,
    /// Is in one of the lists of connections to read from.
    pub(crate) is_readable: bool,
    /// The peer will send nothing more, or is gone: the poller said it, and says it once. What it has sent is still to be read.
    pub(crate) has_hung_up: bool,
    /// Something came while JavaScript decided or while the connection was paused, and is read afterwards.
    pub(crate) has_more: bool,
    /// The peer's close frame has come: it sends nothing more.
    pub(crate) has_peer_closed: bool,
    /// A ping was sent and nothing has come since.
    pub(crate) awaits_pong: bool,
    /// JavaScript wants nothing to be read.
    pub(crate) is_paused: bool,
    /// Bytes of its events up to `events_end`; none of them counts once JavaScript has read up to there.
    pub(crate) unread_bytes: usize,
    /// Where its last events end in the stream of the shard's events.
    pub(crate) events_end: u64,
    /// The same of the front lane.
    pub(crate) front_bytes: usize,
    pub(crate) front_end: u64,
    /// Its last message was large, so the next is expected to be.
    pub(crate) expects_large: bool,
    /// When the message or frame began that has not ended.
    pub(crate) message_began_ms: Option<u64>,
    /// Its share of the statistics' `partial_bytes`.
    pub(crate) partial_bytes: usize,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, max_message_bytes: u32) -> Self {
        Self {
            socket,
            tls: None,
            relay: None,
            phase: Phase::Head,
            decoder: Decoder::new(Role::Server, max_message_bytes),
            opening: None,
            ending: None,
            has_deflate: false,
            is_stream: false,
            discarded_bytes: 0,
            is_admitted: false,
            owes_closed: false,
            was_open: false,
            is_readable: false,
            has_hung_up: false,
            has_more: false,
            has_peer_closed: false,
            awaits_pong: false,
            is_paused: false,
            unread_bytes: 0,
            events_end: 0,
            front_bytes: 0,
            front_end: 0,
            expects_large: false,
            message_began_ms: None,
            partial_bytes: 0,
        }
    }

    /// Until the connection is open: the client that a proxy told of, or who is at the other end. `None`: nobody is any more.
    pub(crate) fn client(&self) -> Option<Peer> {
        let told = self.opening.as_ref().and_then(|opening| opening.client);
        told.map(Peer::At).or_else(|| socket::peer(&self.socket))
    }

    /// Heap memory for input that is not complete or not decoded.
    pub(crate) fn held_input_bytes(&self) -> usize {
        let of_tls = self.tls.as_ref().map_or(0, |session| session.input_bytes());
        let of_relay = self.relay.as_ref().map_or(0, |relay| relay.input_bytes());
        let of_opening = self.opening.as_ref().map_or(0, |opening| opening.received.capacity());
        self.decoder.allocated_bytes() + of_opening + of_tls + of_relay
    }
}
