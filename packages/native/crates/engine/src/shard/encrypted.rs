//! Reads from and writes to connections with TLS.

use rustix::io::Errno;
use webmq_websocket::handshake::encode_response;

use super::Shard;
use super::ending::report_closed;
use crate::id::Slot;
use crate::shard::connection::Phase;
use crate::socket;
use crate::tls::{Received, STAGING_BYTES, Session};

/// Handshakes that go on per turn; a connect costs 0.4 to 0.5 ms with an EC key (measured). Others go on in the next turn,
/// so a storm of handshakes delays the output of open connections by milliseconds.
const MAX_HANDSHAKES: usize = 4;
/// Bytes that are read of a connection that has not sent its request.
const MAX_HEAD_READ_BYTES: usize = 16 << 10;

const NOT_ENCRYPTED: &str = "this port speaks TLS: use https:// or wss://\n";

/// What is shared by the encrypted connections of a shard.
pub(super) struct TlsState {
    /// Ciphertext on its way to one socket; empty without TLS.
    pub(super) staging: Box<[u8]>,
    /// Plaintext that was just decrypted.
    plain: Vec<u8>,
    /// Handshakes that went on in this turn.
    handshake_count: usize,
}

impl TlsState {
    pub(super) fn new(has_tls: bool) -> Self {
        let staging = vec![0; if has_tls { STAGING_BYTES } else { 0 }].into();
        Self { staging, plain: Vec::new(), handshake_count: 0 }
    }
}

impl Shard {
    /// Begins TLS for a connection of the listening socket, if that speaks TLS.
    pub(super) fn new_session(&self) -> Result<Option<Box<Session>>, rustls::Error> {
        self.shared.tls.as_ref().map(|tls| Session::new(tls.current()).map(Box::new)).transpose()
    }

    pub(super) fn begin_turn_of_handshakes(&mut self) {
        self.tls.handshake_count = 0;
    }

    /// Whether a connection waits for its handshake to go on in the next turn.
    pub(super) fn postpones_handshake(&mut self, slot: Slot) -> bool {
        let session = self.table.get(slot).and_then(|connection| connection.tls.as_ref());
        if !session.is_some_and(|session| session.is_handshaking()) {
            return false;
        }
        self.tls.handshake_count += 1;
        self.tls.handshake_count > MAX_HANDSHAKES || self.fanout.is_flushing()
    }

    /// Reads from an encrypted connection, at most `limit` bytes of ciphertext, and does what the plaintext says.
    pub(super) fn receive_encrypted(&mut self, slot: Slot, buffer: &mut [u8], limit: usize, room: usize) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        let Some(session) = &mut connection.tls else { return };
        let limit = if connection.phase == Phase::Head { limit.max(MAX_HEAD_READ_BYTES) } else { limit };
        let kept = session.begin_read(buffer);
        let end = buffer.len().min(kept + limit);
        let count = match socket::receive(&connection.socket, &mut buffer[kept..end]) {
            // The peer closes without a close frame, or after it.
            Ok(0) => return self.drop_connection(slot),
            Ok(count) => count,
            Err(Errno::AGAIN) => return,
            Err(_) => return self.drop_connection(slot),
        };
        if session.is_new() && buffer[0].is_ascii_uppercase() {
            return self.refuse_unencrypted(slot);
        }
        if matches!(connection.phase, Phase::Open | Phase::Closing) {
            self.stats.received_byte_count += count as u64;
        }
        let is_full = kept + count == end || connection.has_hung_up;
        let mut plain = std::mem::take(&mut self.tls.plain);
        plain.clear();
        let received = session.decrypt(&mut buffer[..kept + count], &mut plain);
        // Its own messages go first: the end of a handshake, an alert.
        let flushed = session.flush(&connection.socket);
        let id = self.table.id(slot);
        self.receive_plain(slot, &mut plain, room);
        plain.clear();
        self.tls.plain = plain;
        if self.table.find(id).is_none() {
            return;
        }
        self.count_partial_bytes(slot);
        if flushed.is_err() || received != Ok(Received::Some) {
            return self.drop_connection(slot);
        }
        if is_full {
            self.queue_receive(slot);
        }
    }

    /// The socket takes bytes again. Ciphertext that it refused goes first.
    pub(super) fn note_writable(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        if let Some(session) = connection.tls.as_mut().filter(|session| session.held_bytes() > 0) {
            let before = session.held_bytes();
            let flushed = session.flush(&connection.socket);
            let held = session.held_bytes();
            self.stats.sent_byte_count += (before - held) as u64;
            match flushed {
                Ok(true) => {}
                Ok(false) => {
                    self.fanout.update_held(slot, held);
                    return self.note_progress(slot);
                }
                Err(_) => return self.drop_connection(slot),
            }
        }
        if connection.phase == Phase::Relaying {
            self.queue_receive(slot);
        } else if self.fanout.unblock(slot) {
            self.note_progress(slot);
        }
    }

    /// Everything was written to an encrypted connection: says that nothing follows. Returns whether it is encrypted.
    pub(super) fn end_session(&mut self, slot: Slot) -> bool {
        let id = self.table.id(slot);
        let Self { table, events, stats, .. } = self;
        let Some(connection) = table.get_mut(slot) else { return false };
        let Some(session) = &mut connection.tls else { return false };
        session.end();
        // Nothing was held, so the socket has room for a notice. If it is broken, reading from it tells.
        let _ = session.flush(&connection.socket);
        if connection.has_peer_closed {
            // Its own notice may be under way: a socket that is closed before it comes resets the connection.
            report_closed(id, connection, events, stats);
        }
        true
    }

    /// Answers a plain HTTP request on a port with TLS.
    fn refuse_unencrypted(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        connection.tls = None;
        let mut response = Vec::new();
        let headers = [("Content-Type", "text/plain; charset=utf-8")];
        let encoded = encode_response(400, headers, NOT_ENCRYPTED, &mut response);
        debug_assert!(encoded.is_ok(), "our own refusals can be sent");
        self.finish_refusal(slot, response);
    }
}
