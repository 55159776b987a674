use webmq_websocket::handshake::{
    HandshakeError, Intent, JSON, ParsedHead, RequestHead, encode_refusal, encode_response, encode_switching_protocols,
    parse_request_head, refusal_body,
};

use super::Shard;
use super::ending::report_closed;
use crate::bridge::command::Headers;
use crate::id::Slot;
use crate::shard::connection::{Opening, Phase};
use crate::socket::{self, Peer};

/// What a head that is complete asks for.
enum Verdict {
    Incomplete,
    Upgrade,
    Http,
    Refused(HandshakeError),
    NoRoom,
    Gone,
}

impl Shard {
    /// Goes on with a request head: the bytes in `fresh` follow those that came before.
    pub(super) fn receive_head(&mut self, slot: Slot, fresh: &[u8]) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        let mut opening = connection.opening.take().unwrap_or_default();
        // Nearly always the head comes in one piece and is parsed where it was read.
        let mut received = std::mem::take(&mut opening.received);
        let is_first = received.is_empty();
        if !is_first {
            received.extend_from_slice(fresh);
            // A peer that sends byte by byte costs one parse per line.
            if !fresh.contains(&b'\n') && received.len() <= self.shared.options.max_header_bytes {
                opening.received = received;
                connection.opening = Some(opening);
                return self.count_partial_bytes(slot);
            }
        }
        let all = if is_first { fresh } else { &received };
        let verdict = match parse_request_head(all, self.shared.options.max_header_bytes) {
            Ok(ParsedHead::Incomplete) => {
                opening.received = all.to_vec();
                Verdict::Incomplete
            }
            Ok(ParsedHead::Complete { head, head_bytes }) => match head.intent() {
                Ok(Intent::Upgrade(accept_key)) => {
                    opening.received = all[head_bytes..].to_vec();
                    opening.accept_key = Some(accept_key);
                    if self.shared.options.deflate_from_bytes.is_some() {
                        opening.deflate = head.accept_deflate();
                    }
                    self.ask(slot, &head, &opening)
                }
                Ok(Intent::Http) => self.judge_http(slot, &head, &mut opening),
                Err(error) => Verdict::Refused(error),
            },
            Err(error) => Verdict::Refused(error),
        };
        let is_attached = opening.is_attached;
        if let Some(connection) = self.table.get_mut(slot) {
            connection.opening = Some(opening);
        }
        self.count_partial_bytes(slot);
        match verdict {
            Verdict::Incomplete => {}
            Verdict::Upgrade => {
                if let Some(connection) = self.table.get_mut(slot) {
                    connection.phase = Phase::Deciding;
                    connection.is_admitted = true;
                    connection.owes_closed = true;
                }
            }
            Verdict::Http if self.shared.options.hands_http_over && !is_attached => self.give_to_node(slot, all),
            Verdict::Http => self.refuse(slot, 426, "E_HANDSHAKE_INVALID", "only WebSocket is spoken here"),
            Verdict::NoRoom => self.refuse_full(slot, "server holds as many connections as it may"),
            Verdict::Refused(error) => {
                let mut response = Vec::new();
                encode_refusal(&error, &mut response);
                self.finish_refusal(slot, response);
            }
            Verdict::Gone => self.drop_connection(slot),
        }
    }

    /// Tells an event stream, which JavaScript decides about, from other plain HTTP.
    fn judge_http(&mut self, slot: Slot, head: &RequestHead<'_>, opening: &mut Opening) -> Verdict {
        let Some(path) = &self.shared.options.event_stream_path else { return Verdict::Http };
        match head.asks_for_event_stream(path) {
            Ok(true) => {}
            Ok(false) => return Verdict::Http,
            Err(error) => return Verdict::Refused(error),
        }
        opening.is_stream = true;
        self.ask(slot, head, opening)
    }

    /// Asks JavaScript about an upgrade or an event stream, if there is room for it.
    fn ask(&mut self, slot: Slot, head: &RequestHead<'_>, opening: &Opening) -> Verdict {
        let end = || self.table.get(slot).and_then(|connection| socket::peer(&connection.socket));
        let Some(peer) = opening.client.map(Peer::At).or_else(end) else { return Verdict::Gone };
        if !self.shared.admit() {
            return Verdict::NoRoom;
        }
        self.events.upgrade(self.table.id(slot), peer, head, opening.is_stream);
        Verdict::Upgrade
    }

    /// JavaScript accepts an upgrade: the connection is open. It counts on that from when it said so, and is told only if
    /// nothing comes of it.
    pub(super) fn accept(&mut self, slot: Slot, subprotocol: Option<&str>, headers: Headers<'_>) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        let Some(opening) = connection.opening.take().map(|it| *it) else { return };
        if opening.is_stream {
            return self.accept_stream(slot, headers);
        }
        let Opening { received, accept_key: Some(accept_key), deflate, .. } = opening else { return };
        let mut response = Vec::with_capacity(256);
        if let Err(error) = encode_switching_protocols(&accept_key, subprotocol, deflate, headers, &mut response) {
            self.events.failed(&format!("an upgrade was accepted with a response that cannot be sent: {error}"));
            return self.refuse(slot, 500, "E_INTERNAL", "internal error");
        }
        connection.phase = Phase::Open;
        connection.was_open = true;
        connection.has_deflate = deflate.is_some();
        let has_more = connection.has_more || connection.has_hung_up || !received.is_empty();
        connection.has_more = false;
        if !received.is_empty() {
            connection.opening = Some(Box::new(Opening { received, ..Opening::default() }));
        }
        self.count_partial_bytes(slot);
        self.stats.accepted_count += 1;
        self.stats.connections += 1;
        if deflate.is_some() {
            self.fanout.enable_deflate(slot);
        }
        self.fanout.send_raw(slot, response.into());
        self.note_alive(slot);
        if has_more {
            self.queue_receive(slot);
        }
    }

    /// JavaScript refuses an upgrade.
    pub(super) fn reject(&mut self, slot: Slot, status: u16, headers: Headers<'_>, body: &str) {
        let mut response = Vec::new();
        if let Err(error) = encode_response(status, headers, body, &mut response) {
            self.events.failed(&format!("an upgrade was rejected with a response that cannot be sent: {error}"));
            return self.refuse(slot, 500, "E_INTERNAL", "internal error");
        }
        if let Some(connection) = self.table.get_mut(slot) {
            connection.owes_closed = false;
        }
        self.finish_refusal(slot, response);
    }

    /// Answers a request with a status and a sentence, and closes.
    pub(super) fn refuse(&mut self, slot: Slot, status: u16, code: &str, message: &str) {
        let headers: &[(&str, &str)] =
            if status == 426 { &[("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")] } else { &[] };
        let mut response = Vec::new();
        let headers = headers.iter().copied().chain([JSON]);
        let encoded = encode_response(status, headers, &refusal_body(code, message), &mut response);
        debug_assert!(encoded.is_ok(), "our own refusals can be sent");
        self.finish_refusal(slot, response);
    }

    /// The engine has no room for this request.
    pub(super) fn refuse_full(&mut self, slot: Slot, message: &str) {
        self.stats.full_count += 1;
        self.refuse(slot, 503, "E_CONNECTION_LIMIT", message);
    }

    pub(super) fn finish_refusal(&mut self, slot: Slot, response: Vec<u8>) {
        self.stats.refused_count += 1;
        let session = self.table.get(slot).and_then(|connection| connection.tls.as_ref());
        if session.is_some_and(|session| session.is_handshaking()) {
            // Nothing can be said yet.
            return self.drop_connection(slot);
        }
        let id = self.table.id(slot);
        if let Some(connection) = self.table.get_mut(slot) {
            connection.opening = None;
            report_closed(id, connection, &mut self.events, &mut self.stats);
            self.count_partial_bytes(slot);
            self.fanout.send_raw(slot, response.into());
            self.linger(slot, None);
            // What the peer still sends is thrown away.
            self.queue_receive(slot);
        }
    }

    /// Gives a plain HTTP request to Node: the socket, and what was read from it.
    fn give_to_node(&mut self, slot: Slot, read: &[u8]) {
        if self.table.get(slot).is_some_and(|connection| connection.tls.is_some()) {
            return self.begin_relay(slot, read);
        }
        let Some(connection) = self.take_out(slot) else { return };
        self.fanout.remove(slot);
        self.stats.partial_bytes -= connection.partial_bytes as u64;
        let removed = self.poller.remove_connection(&connection.socket);
        self.report_refusal(removed);
        let told = connection.opening.and_then(|opening| opening.client).map(Peer::At);
        // Node finds other addresses by itself.
        let client = told.or_else(|| socket::peer(&connection.socket).filter(|peer| *peer == Peer::Unix));
        let (token, has_closed_oldest) = self.shared.http_sockets.put(connection.socket);
        self.stats.refused_count += u64::from(has_closed_oldest);
        self.events.http(token, client, false, read);
    }
}
