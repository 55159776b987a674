//! Event streams: connections that get bytes in the body of an HTTP response, and send nothing.

use webmq_websocket::handshake::encode_event_stream;

use super::Shard;
use super::ending::UNREAD;
use crate::bridge::batch::Frame;
use crate::bridge::command::Headers;
use crate::id::Slot;
use crate::shard::connection::Phase;
use crate::socket;

/// A comment (WHATWG HTML §9.2.6): keeps proxies from closing a silent stream, and finds out whether somebody is there.
const HEARTBEAT: &[u8] = b":\n\n";
/// Bytes that a peer may send after its request. A browser sends none.
const MAX_DISCARDED_BYTES: u32 = 4 << 10;

impl Shard {
    /// JavaScript accepts a request for an event stream.
    pub(super) fn accept_stream(&mut self, slot: Slot, headers: Headers<'_>) {
        let mut response = Vec::with_capacity(256);
        if let Err(error) = encode_event_stream(headers, &mut response) {
            self.events.failed(&format!("an event stream was accepted with a response that cannot be sent: {error}"));
            return self.refuse(slot, 500, "E_INTERNAL", "internal error");
        }
        let options = &self.shared.options;
        let silence = (!options.ping_interval.is_zero()).then(|| options.ping_interval + options.ping_timeout);
        let Some(connection) = self.table.get_mut(slot) else { return };
        if let Some(silence) = silence
            && let Err(errno) = socket::set_user_timeout(&connection.socket, silence)
        {
            self.events.failed(&format!("the time limit of an event stream cannot be set: {errno}"));
        }
        connection.phase = Phase::Open;
        connection.is_stream = true;
        connection.was_open = true;
        let has_more = std::mem::take(&mut connection.has_more) || connection.has_hung_up;
        self.count_partial_bytes(slot);
        self.stats.accepted_count += 1;
        self.stats.connections += 1;
        self.fanout.enable_stream(slot);
        self.fanout.send_raw(slot, response.into());
        self.schedule_heartbeat(slot);
        if has_more {
            self.queue_receive(slot);
        }
    }

    /// Sends a heartbeat, unless the socket has taken nothing since the one before.
    pub(super) fn heartbeat_due(&mut self, slot: Slot) {
        let is_blocked = self.fanout.is_blocked(slot);
        let Some(connection) = self.table.get_mut(slot) else { return };
        if is_blocked && connection.awaits_pong {
            return self.end_silent(slot);
        }
        connection.awaits_pong = is_blocked;
        if !is_blocked {
            self.fanout.send(slot, &Frame::copied(HEARTBEAT));
        }
        self.schedule_heartbeat(slot);
    }

    /// Counts what the peer of an event stream has sent, which nobody reads.
    pub(super) fn discard(&mut self, slot: Slot, count: usize) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        connection.discarded_bytes = connection.discarded_bytes.saturating_add(count);
        if connection.phase == Phase::Open && connection.discarded_bytes > MAX_DISCARDED_BYTES {
            self.fail_connection(slot, UNREAD);
        }
    }

    fn schedule_heartbeat(&mut self, slot: Slot) {
        let interval = self.shared.options.ping_interval;
        let deadline_ms = (!interval.is_zero()).then(|| self.now_ms + interval.as_millis() as u64);
        self.table.set_deadline(slot, deadline_ms);
    }
}
