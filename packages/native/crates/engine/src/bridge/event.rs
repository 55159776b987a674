//! Events for JavaScript, packed little-endian:
//!
//! ```text
//! 0  u8   kind
//! 1  u8   flags: 2 encrypted; 4 asks for an event stream
//! 2  u16  close code; index of the shard for quiet and ended; count of messages
//! 4  u32  bytes of the event, these 16 included
//! 8  f64  connection
//! 16      upgrade    u32 port; then, in Latin-1, a line each for address (`unix`: a Unix socket), path and query, and
//!                    for every header its name in lower case, `:`, and its value
//!         messages   per message u32 of twice its bytes, and one more if it is binary; payload. Consecutive messages of a
//!                    connection share an event up to `RUN_BYTES`
//!         closed     reason; comes once for every upgrade that JavaScript has not rejected, accepted or not
//!         http       u32 token of the socket, u32 port of the client, its address in Latin-1 and a line end, bytes read
//!                    from it; the port is 0 and the address empty if the socket tells of the client itself;
//!                    encrypted: the socket carries the plaintext of TLS
//!         failed     what happened
//!         quiet      nothing: the shard has stopped accepting
//!         ended      nothing: the shard's last event
//!         drained    nothing: no more waits for the connection than `notify` asked for
//! ```

use webmq_websocket::handshake::RequestHead;

use crate::id::{ConnectionId, ShardId};
use crate::socket::Peer;

const FLAG_ENCRYPTED: u8 = 2;
const FLAG_STREAM: u8 = 4;

const UPGRADE: u8 = 1;
const MESSAGES: u8 = 2;
const CLOSED: u8 = 3;
const HTTP: u8 = 4;
const FAILED: u8 = 5;
const QUIET: u8 = 6;
const ENDED: u8 = 7;
const DRAINED: u8 = 8;

/// Most bytes between two places to cut a block, and one event more.
pub(crate) const CUT_BYTES: usize = 32 << 10;
/// An event of messages of this size takes no more of them: several fit into the buffer that JavaScript reads with.
const RUN_BYTES: usize = 32 << 10;

/// Address and port of a peer.
fn described(peer: Peer) -> (String, u32) {
    match peer {
        Peer::At(address) => (address.ip().to_canonical().to_string(), u32::from(address.port())),
        Peer::Unix => ("unix".to_owned(), 0),
    }
}

/// Events one after the other.
#[derive(Default)]
pub(crate) struct Block {
    pub(crate) bytes: Vec<u8>,
    /// Where events end, in order; few of all ends.
    pub(crate) cuts: Vec<usize>,
}

/// Events of one shard turn.
#[derive(Default)]
pub(crate) struct Events {
    pub(crate) block: Block,
    /// Where the last event begins, and the connection whose messages it has.
    last_start: usize,
    run_of: Option<ConnectionId>,
    /// Bytes of all earlier turns.
    pub(crate) published_bytes: u64,
}

impl Events {
    pub(crate) fn len(&self) -> usize {
        self.block.bytes.len()
    }

    /// Bytes of all events so far: where the last one ends in the stream of the shard's events.
    pub(crate) fn position(&self) -> u64 {
        self.published_bytes + self.block.bytes.len() as u64
    }

    pub(crate) fn upgrade(&mut self, id: ConnectionId, peer: Peer, head: &RequestHead<'_>, is_stream: bool) {
        let (address, port) = described(peer);
        let start = self.begin(UPGRADE, if is_stream { FLAG_STREAM } else { 0 }, 0, Some(id));
        self.u32(port);
        // No line end is in any of them: the parser has seen to that.
        for text in [&address, head.path(), head.query()] {
            self.block.bytes.extend_from_slice(text.as_bytes());
            self.block.bytes.push(b'\n');
        }
        for header in &head.headers {
            self.block.bytes.extend(header.name.bytes().map(|byte| byte.to_ascii_lowercase()));
            self.block.bytes.push(b':');
            self.block.bytes.extend_from_slice(header.value);
            self.block.bytes.push(b'\n');
        }
        self.end(start);
    }

    pub(crate) fn message(&mut self, id: ConnectionId, data: &[u8], is_binary: bool) {
        let start = match self.open_run(id) {
            Some(start) => start,
            None => self.begin(MESSAGES, 0, 0, Some(id)),
        };
        let count = &mut self.block.bytes[start + 2..start + 4];
        count.copy_from_slice(&(u16::from_le_bytes([count[0], count[1]]) + 1).to_le_bytes());
        self.u32((data.len() as u32) << 1 | u32::from(is_binary));
        self.block.bytes.extend_from_slice(data);
        self.end(start);
        self.run_of = Some(id);
    }

    /// Begins the event of a large message that [`end_message`](Self::end_message) ends, and returns the memory where the event
    /// ends now: the message is received there.
    pub(crate) fn begin_message(&mut self, id: ConnectionId, bytes: usize, is_binary: bool) -> &mut Vec<u8> {
        self.begin(MESSAGES, 0, 1, Some(id));
        self.u32((bytes as u32) << 1 | u32::from(is_binary));
        &mut self.block.bytes
    }

    pub(crate) fn end_message(&mut self, start: usize) {
        self.end(start);
    }

    /// Takes an event back that was begun there and not ended.
    pub(crate) fn take_back(&mut self, start: usize) {
        self.block.bytes.truncate(start);
    }

    pub(crate) fn closed(&mut self, id: ConnectionId, code: u16, reason: &str) {
        let start = self.begin(CLOSED, 0, code, Some(id));
        self.block.bytes.extend_from_slice(reason.as_bytes());
        self.end(start);
    }

    pub(crate) fn http(&mut self, token: u32, peer: Option<Peer>, is_encrypted: bool, read: &[u8]) {
        let start = self.begin(HTTP, if is_encrypted { FLAG_ENCRYPTED } else { 0 }, 0, None);
        self.u32(token);
        let (address, port) = peer.map(described).unwrap_or_default();
        self.u32(port);
        self.block.bytes.extend_from_slice(address.as_bytes());
        self.block.bytes.push(b'\n');
        self.block.bytes.extend_from_slice(read);
        self.end(start);
    }

    pub(crate) fn failed(&mut self, what: &str) {
        let start = self.begin(FAILED, 0, 0, None);
        self.block.bytes.extend_from_slice(what.as_bytes());
        self.end(start);
    }

    pub(crate) fn quiet(&mut self, shard: ShardId) {
        let start = self.begin(QUIET, 0, u16::from(shard.0), None);
        self.end(start);
    }

    pub(crate) fn ended(&mut self, shard: ShardId) {
        let start = self.begin(ENDED, 0, u16::from(shard.0), None);
        self.end(start);
    }

    pub(crate) fn drained(&mut self, id: ConnectionId) {
        let start = self.begin(DRAINED, 0, 0, Some(id));
        self.end(start);
    }

    /// Drops an event that was begun and not finished, as a panic leaves one.
    pub(crate) fn drop_unfinished(&mut self) {
        let last = self.block.bytes.get(self.last_start..).filter(|last| !last.is_empty());
        let end = last.map_or(self.block.bytes.len(), |last| self.last_start + event_len(last));
        self.block.bytes.truncate(end);
        self.block.cuts.retain(|cut| *cut <= end);
        self.run_of = None;
    }

    /// Takes the events out; the next ones go into `empty`.
    pub(crate) fn take(&mut self, empty: Block) -> Block {
        self.published_bytes = self.position();
        self.run_of = None;
        self.last_start = 0;
        std::mem::replace(&mut self.block, empty)
    }

    /// Where the last event begins, if it may take another message of this connection.
    fn open_run(&mut self, id: ConnectionId) -> Option<usize> {
        if self.run_of != Some(id) || self.block.bytes.len() - self.last_start >= RUN_BYTES {
            return None;
        }
        // It ends later now.
        self.block.cuts.pop_if(|cut| *cut == self.block.bytes.len());
        Some(self.last_start)
    }

    fn begin(&mut self, kind: u8, flags: u8, code: u16, id: Option<ConnectionId>) -> usize {
        let start = self.block.bytes.len();
        (self.last_start, self.run_of) = (start, None);
        let [low, high] = code.to_le_bytes();
        self.block.bytes.extend_from_slice(&[kind, flags, low, high, 0, 0, 0, 0]);
        self.block.bytes.extend_from_slice(&id.map_or(0.0, ConnectionId::to_number).to_le_bytes());
        start
    }

    fn u32(&mut self, number: u32) {
        self.block.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn end(&mut self, start: usize) {
        let len = (self.block.bytes.len() - start) as u32;
        let Block { bytes, cuts } = &mut self.block;
        bytes[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
        if bytes.len() - cuts.last().copied().unwrap_or(0) >= CUT_BYTES {
            cuts.push(bytes.len());
        }
    }
}

/// Bytes of the event at the start of `events`.
pub(crate) fn event_len(events: &[u8]) -> usize {
    match events.get(4..8).and_then(<[u8]>::first_chunk) {
        Some(len) => u32::from_le_bytes(*len) as usize,
        None => events.len(),
    }
}
