use rustix::io::Errno;
use webmq_websocket::{Event, MAX_CONTROL_PAYLOAD_BYTES, MAX_FRAME_HEADER_BYTES, MessageKind, Opcode, encode_frame};

use super::Shard;
use crate::bridge::batch::Frame;
use crate::id::Slot;
use crate::shard::connection::Phase;
use crate::socket;

/// Bytes that are decoded at a time of a connection with compression: they can become a thousand times as many (RFC 1951
/// §3.2.5), and the room for events is asked for only before they are decoded.
const MAX_DEFLATED_BYTES: usize = 16 << 10;
/// Bytes that an inline turn reads from one connection. If more comes, the shard's thread takes over.
const MAX_INLINE_READ_BYTES: usize = 16 << 10;
const MAX_INLINE_DEFLATED_BYTES: usize = 1 << 10;

impl Shard {
    /// Notes that something is to be read. Epoll says it once (edge-triggered), so it is remembered until it is read.
    pub(super) fn queue_receive(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        // What comes before the decision is looked at after it.
        if connection.phase == Phase::Deciding {
            connection.has_more = true;
        } else if !std::mem::replace(&mut connection.is_readable, true) {
            self.readable.push_back(slot);
        }
    }

    /// Something can be read, and JavaScript has room for it.
    pub(super) fn can_receive(&self) -> bool {
        !self.readable.is_empty() && self.has_inbound_room()
    }

    /// Reads from each connection that has something, once.
    pub(crate) fn receive_all(&mut self) {
        for _ in 0..self.readable.len() {
            if !self.has_inbound_room() {
                // Asked again after the promise to be woken, for JavaScript may have drained in between.
                self.handle().event_queue.await_room();
                if !self.has_inbound_room() {
                    return;
                }
            }
            let Some(slot) = self.readable.pop_front() else { return };
            self.receive(slot);
        }
    }

    pub(crate) fn has_inbound_room(&self) -> bool {
        self.events.len() + self.handle().event_queue.undrained_bytes() < self.shared.options.max_inbound_bytes
    }

    pub(crate) fn receive(&mut self, slot: Slot) {
        // The slot may have changed hands since it was queued; then this is one read too many and nothing worse.
        let Some(connection) = self.table.get_mut(slot) else { return };
        connection.is_readable = false;
        let phase = connection.phase;
        let has_hung_up = connection.has_hung_up;
        if matches!(phase, Phase::Open | Phase::Closing) && connection.opening.is_some() {
            return self.decode_early(slot);
        }
        let limit = match phase {
            Phase::Head => {
                let received = connection.opening.as_ref().map_or(0, |opening| opening.received.len());
                (self.shared.options.max_header_bytes + 1).saturating_sub(received).clamp(1, self.read_buffer.len())
            }
            _ if connection.has_deflate && self.inline.is_running => MAX_INLINE_DEFLATED_BYTES,
            _ if connection.has_deflate => MAX_DEFLATED_BYTES,
            _ if self.inline.is_running => MAX_INLINE_READ_BYTES,
            _ => self.read_buffer.len(),
        };
        let mut buffer = std::mem::take(&mut self.read_buffer);
        match socket::receive(&connection.socket, &mut buffer[..limit]) {
            // The peer closes without a close frame, or after it.
            Ok(0) => self.drop_connection(slot),
            Ok(count) => {
                match phase {
                    Phase::Head => self.receive_head(slot, &buffer[..count]),
                    Phase::Deciding | Phase::Lingering => {}
                    Phase::Open | Phase::Closing => {
                        self.stats.received_byte_count += count as u64;
                        self.decode(slot, &mut buffer[..count]);
                    }
                }
                // Of a socket that gave less than was asked for, epoll tells when there is more; of the end it has told.
                if count == limit || has_hung_up {
                    self.queue_receive(slot);
                }
            }
            Err(Errno::AGAIN) => {}
            Err(_) => self.drop_connection(slot),
        }
        self.read_buffer = buffer;
    }

    /// Decodes what came before the connection was open; it is read from again when nothing of that is left.
    fn decode_early(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        let Some(mut opening) = connection.opening.take() else { return };
        let rest = opening.received.split_off(opening.received.len().min(MAX_DEFLATED_BYTES));
        let mut early = std::mem::replace(&mut opening.received, rest);
        if !opening.received.is_empty() {
            connection.opening = Some(opening);
        }
        self.queue_receive(slot);
        self.decode(slot, &mut early);
    }

    /// Decodes received bytes and does what they say.
    fn decode(&mut self, slot: Slot, received: &mut [u8]) {
        let id = self.table.id(slot);
        let Self { table, fanout, events, stats, inflater, .. } = self;
        let Some(connection) = table.get_mut(slot) else { return };
        let is_open = connection.phase == Phase::Open;
        let mut close = None;
        let mut on_event = |event: Event<'_>| match event {
            Event::Message { kind, data } if is_open => {
                stats.received_message_count += 1;
                events.message(id, data, kind == MessageKind::Binary);
            }
            Event::Ping(payload) if is_open => {
                let mut pong = Vec::with_capacity(MAX_FRAME_HEADER_BYTES + MAX_CONTROL_PAYLOAD_BYTES);
                encode_frame(Opcode::Pong, payload, &mut pong);
                fanout.send(slot, &Frame::copied(&pong));
            }
            Event::Message { .. } | Event::Ping(_) | Event::Pong(_) => {}
            Event::Close { code, reason } => close = Some((code, reason.to_owned())),
        };
        let decoder = &mut connection.decoder;
        let decoded = if connection.has_deflate {
            decoder.decode_inflating(received, inflater, &mut on_event)
        } else {
            decoder.decode(received, &mut on_event)
        };
        match (decoded, close) {
            (_, Some((code, reason))) => self.answer_close(slot, code, &reason),
            (Ok(_), None) if is_open => self.note_alive(slot),
            (Ok(_), None) => {}
            (Err(error), None) if is_open => {
                self.fail_connection(slot, error.close_code(), &format!("{}: {error}", error.code()));
            }
            // It was told to close and answers with something that is no frame.
            (Err(_), None) => self.drop_connection(slot),
        }
    }
}
