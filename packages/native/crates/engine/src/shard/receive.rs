use rustix::io::Errno;

use super::Shard;
use crate::bridge::event_queue::FULL_BLOCK_BYTES;
use crate::id::Slot;
use crate::shard::connection::{Connection, Phase};
use crate::shard::receive_in_place::HEAD_BYTES;
use crate::socket;

/// Bytes of events of one connection that may wait for JavaScript, and one event more. The rest stays in its socket, so that
/// the events of others wait behind this much of it and no more.
pub(crate) const MAX_UNREAD_BYTES: usize = 64 << 10;
/// Bytes that one connection has read in front of others, until JavaScript takes them; and of all together. What is more waits
/// with the rest. JavaScript's buffer has room for twice as much, so that it always gets some of the rest, too.
const MAX_FRONT_BYTES: usize = 4 << 10;
const MAX_FRONT_LANE_BYTES: u64 = 64 << 10;
/// Least bytes that are asked of a socket, and least room for them. Less would cost a system call for next to nothing, and what
/// there is no room for would be kept beside the socket, which no bound counts.
const MIN_READ_BYTES: usize = 4 << 10;
/// Bytes that are read at a time of a connection with compression: they can become a thousand times as many (RFC 1951
/// §3.2.5), and what there is no room for is kept.
const MAX_DEFLATED_BYTES: usize = 16 << 10;
/// Connections that are read from between two parts of a flush: a broadcast takes at most about twice as long beside a flood
/// of requests.
const MAX_READS_PER_LOOK: usize = 16;
/// Bytes that an inline turn reads from one connection. If more comes, the shard's thread takes over.
const MAX_INLINE_READ_BYTES: usize = 16 << 10;
const MAX_INLINE_DEFLATED_BYTES: usize = 1 << 10;

impl Shard {
    /// Notes that something is to be read. The poller says it once (edge-triggered), so it is remembered until it is read.
    pub(super) fn queue_receive(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        // What comes before the decision is looked at after it.
        if connection.phase == Phase::Deciding || connection.is_paused {
            connection.has_more = true;
        } else if !std::mem::replace(&mut connection.is_readable, true) {
            self.readable.push_back(slot);
        }
    }

    /// Stops or continues to read from an open connection.
    pub(super) fn set_paused(&mut self, slot: Slot, is_paused: bool) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        let was_paused = std::mem::replace(&mut connection.is_paused, is_paused);
        if was_paused && !is_paused {
            connection.restart_message_time(self.now_ms);
            // Its pong may wait in the socket.
            self.note_alive(slot);
            self.read_on(slot);
        }
    }

    /// Reads what came during a pause.
    pub(super) fn read_on(&mut self, slot: Slot) {
        if self.table.get_mut(slot).is_some_and(|connection| std::mem::take(&mut connection.has_more)) {
            self.queue_receive(slot);
        }
    }

    /// Something can be read, and JavaScript has room for it.
    pub(super) fn can_receive(&self) -> bool {
        let is_held_over = self.held.front().is_some_and(|(_, position)| *position <= self.read_position());
        is_held_over || (!self.readable.is_empty() && self.has_inbound_room())
    }

    /// Requests a wake-up when JavaScript has read enough for [`can_receive`](Self::can_receive).
    pub(super) fn await_room(&self) {
        let half_bytes = self.shared.options.max_inbound_bytes as u64 / 2;
        let for_all = (!self.readable.is_empty()).then(|| self.events.position().saturating_sub(half_bytes));
        let for_held = self.held.front().map(|(_, position)| *position);
        if let Some(position) = for_all.into_iter().chain(for_held).min() {
            self.handle().event_queue.await_position(position);
        }
    }

    /// Reads from each connection that has something, once.
    pub(crate) fn receive_all(&mut self) {
        self.release_held();
        self.begin_turn_of_handshakes();
        let max_count = if self.fanout.is_flushing() { MAX_READS_PER_LOOK } else { usize::MAX };
        for _ in 0..self.readable.len().min(max_count) {
            if !self.has_inbound_room() {
                return;
            }
            let Some(slot) = self.readable.pop_front() else { return };
            if self.postpones_handshake(slot) {
                self.readable.push_back(slot);
            } else {
                self.receive(slot);
                self.hand_over_full_block();
            }
        }
    }

    /// Inline turns read less: their events stay together.
    fn hand_over_full_block(&mut self) {
        if self.events.len() >= FULL_BLOCK_BYTES && !self.inline.is_running {
            self.shared.shards[self.id.index()].event_queue.put(&mut self.front, &mut self.events);
            self.shared.waker.wake();
        }
    }

    pub(crate) fn has_inbound_room(&self) -> bool {
        self.events.position() - self.read_position() < self.shared.options.max_inbound_bytes as u64
    }

    fn read_position(&self) -> u64 {
        self.handle().event_queue.rest.read_position()
    }

    /// Whether the events of a read go to the front lane: JavaScript has handled the connection's events in the other lane,
    /// and those that the connection has in front are few, with this read.
    pub(super) fn goes_in_front(&mut self, slot: Slot, bytes: usize) -> bool {
        let read_position = self.shared.shards[self.id.index()].event_queue.front.read_position();
        let has_room = self.front.position() - read_position < MAX_FRONT_LANE_BYTES;
        let handled_position = self.handled_position();
        let Some(connection) = self.table.get_mut(slot).filter(|_| has_room) else { return false };
        if connection.front_end <= read_position {
            connection.front_bytes = 0;
        }
        // Of compressed bytes nobody knows how many they become.
        !connection.has_deflate
            && connection.events_end <= handled_position
            && connection.front_bytes + bytes <= MAX_FRONT_BYTES
    }

    /// Reads from a connection only when JavaScript has read its events.
    fn hold(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        connection.is_readable = true;
        let position = connection.events_end;
        self.held.push_back((slot, position));
    }

    /// Puts held connections whose events JavaScript has read back among those to read from. The first one decides: it may
    /// delay others, but not for ever.
    fn release_held(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let read_position = self.read_position();
        while let Some(&(slot, position)) = self.held.front() {
            if position > read_position {
                return;
            }
            self.held.pop_front();
            self.readable.push_back(slot);
        }
    }

    pub(crate) fn receive(&mut self, slot: Slot) {
        // The slot may have changed hands since it was queued; then this is one look too many and nothing worse.
        let Some(connection) = self.table.get_mut(slot) else { return };
        connection.is_readable = false;
        if connection.phase == Phase::Head && connection.awaits_proxy_header() {
            // TLS, if there is any, begins behind the header.
            if self.receive_proxy_header(slot) {
                self.receive(slot);
            }
            return;
        }
        let phase = connection.phase;
        let has_hung_up = connection.has_hung_up;
        if phase == Phase::Relaying {
            return self.relay(slot);
        }
        // Before the decision, too: an entry of the connection that had the slot before may be held.
        if connection.is_paused || phase == Phase::Deciding {
            connection.has_more = true;
            return;
        }
        let room = connection.unread_room(self.shared.shards[self.id.index()].event_queue.rest.read_position());
        if room < MIN_READ_BYTES && phase == Phase::Open {
            return self.hold(slot);
        }
        if matches!(phase, Phase::Open | Phase::Closing) && connection.opening.is_some() {
            return self.decode_rest(slot, room);
        }
        if connection.receives_in_place() && !self.inline.is_running {
            if self.receive_in_place(slot) || has_hung_up {
                self.queue_receive(slot);
            }
            return;
        }
        let limit = match phase {
            Phase::Head => {
                let received = connection.opening.as_ref().map_or(0, |opening| opening.received.len());
                (self.shared.options.max_header_bytes + 1).saturating_sub(received).clamp(1, self.read_buffer.len())
            }
            _ if connection.has_deflate && self.inline.is_running => MAX_INLINE_DEFLATED_BYTES,
            _ if connection.has_deflate => MAX_DEFLATED_BYTES,
            _ if self.inline.is_running => MAX_INLINE_READ_BYTES,
            _ if connection.expects_large && !connection.decoder.is_inside() => HEAD_BYTES,
            _ => room.clamp(MIN_READ_BYTES, self.read_buffer.len()),
        };
        let mut buffer = std::mem::take(&mut self.read_buffer);
        if connection.tls.is_some() {
            self.receive_encrypted(slot, &mut buffer, limit, room);
            self.read_buffer = buffer;
            return;
        }
        match socket::receive(&connection.socket, &mut buffer[..limit]) {
            // The peer closes without a close frame, or after it.
            Ok(0) => self.drop_connection(slot),
            Ok(count) => {
                if matches!(phase, Phase::Open | Phase::Closing) {
                    self.stats.received_byte_count += count as u64;
                }
                self.receive_plain(slot, &mut buffer[..count], room);
                // Of a socket that gave less than was asked for, the poller tells when there is more; of the end it has told.
                if (count == limit && self.has_more_behind(slot)) || has_hung_up {
                    self.queue_receive(slot);
                }
            }
            Err(Errno::AGAIN) => {}
            Err(_) => self.drop_connection(slot),
        }
        self.read_buffer = buffer;
    }

    /// Takes received bytes, decrypted if they were encrypted.
    pub(super) fn receive_plain(&mut self, slot: Slot, plain: &mut [u8], room: usize) {
        let Some(connection) = self.table.get_mut(slot).filter(|_| !plain.is_empty()) else { return };
        match connection.phase {
            Phase::Head => self.receive_head(slot, plain),
            Phase::Open if connection.is_stream => self.discard(slot, plain.len()),
            Phase::Open | Phase::Closing => self.decode(slot, plain, room),
            Phase::Deciding | Phase::Lingering | Phase::Relaying => {}
        }
    }

    /// Decodes what was received before; it is read from again when nothing of that is left.
    fn decode_rest(&mut self, slot: Slot, room: usize) {
        let Some(opening) = self.table.get_mut(slot).and_then(|connection| connection.opening.take()) else { return };
        let mut rest = opening.received;
        self.decode(slot, &mut rest, room);
        self.queue_receive(slot);
    }
}

impl Connection {
    /// Bytes of events that it may add, when JavaScript has read up to `read_position`.
    fn unread_room(&mut self, read_position: u64) -> usize {
        if self.events_end <= read_position {
            self.unread_bytes = 0;
        }
        MAX_UNREAD_BYTES.saturating_sub(self.unread_bytes)
    }
}
