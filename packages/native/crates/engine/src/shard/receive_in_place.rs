//! Large messages are received where their events are, not copied there: the head of the frame is read alone, and then as much
//! as it announces.

use rustix::io::Errno;
use webmq_websocket::{MessageKind, Rest};

use super::Shard;
use crate::bridge::event_queue::FULL_BLOCK_BYTES;
use crate::id::Slot;
use crate::shard::connection::{Connection, Phase};
use crate::shard::decode::MESSAGE_BYTES;
use crate::socket;

/// A message of this size costs less with one system call more than with two copies more.
pub(super) const LARGE_BYTES: usize = 32 << 10;
/// Bytes that are read of a large message at first.
pub(super) const HEAD_BYTES: usize = 1 << 10;
/// More than this is not copied again when the rest arrives: a message in many pieces would be copied as often.
const MAX_COPIED_BYTES: usize = 4 << 10;

impl Shard {
    /// Reads the rest of a large message, if that has just begun. Returns whether there may be more to read.
    pub(super) fn has_more_behind(&mut self, slot: Slot) -> bool {
        let is_in_place = self.table.get(slot).is_some_and(Connection::receives_in_place);
        !is_in_place || self.inline.is_running || self.receive_in_place(slot)
    }

    /// Reads the rest of a message to its place among the events. A part of the rest is decoded as usual. Returns
    /// whether there may be more to read.
    pub(super) fn receive_in_place(&mut self, slot: Slot) -> bool {
        let id = self.table.id(slot);
        let Some(connection) = self.table.get_mut(slot) else { return false };
        let Some(Rest { kind, received, missing_bytes }) = connection.decoder.rest() else { return false };
        let message_bytes = received.len() + missing_bytes;
        let start = self.events.len();
        let bytes = self.events.begin_message(id, message_bytes, kind == MessageKind::Binary);
        let begin = bytes.len();
        bytes.extend_from_slice(received);
        let place = bytes.len();
        let count = match socket::receive_appended(&connection.socket, bytes, missing_bytes) {
            Ok(count) => count,
            Err(errno) => {
                self.events.take_back(start);
                if errno != Errno::AGAIN {
                    self.drop_connection(slot);
                }
                return false;
            }
        };
        self.stats.received_byte_count += count as u64;
        let is_whole = count == missing_bytes;
        let decoded = match is_whole {
            true => connection.decoder.complete(&mut bytes[begin..]),
            false => connection.decoder.decode(&mut bytes[place..], None, &mut |_| {}).map(drop),
        };
        if is_whole && decoded.is_ok() {
            self.events.end_message(start);
            self.stats.received_message_count += 1;
            connection.unread_bytes += MESSAGE_BYTES + message_bytes;
            connection.events_end = self.events.position();
            connection.expects_large = true;
        } else {
            self.events.take_back(start);
        }
        connection.note_message_time(is_whole, is_whole, self.now_ms);
        match decoded {
            Ok(()) if count == 0 => self.drop_connection(slot),
            Ok(()) => self.note_alive(slot),
            Err(error) => {
                self.fail_connection(slot, (error.close_code().value(), &format!("{}: {error}", error.code())));
            }
        }
        self.count_partial_bytes(slot);
        is_whole
    }
}

impl Connection {
    /// Whether most of a large message is still to come.
    pub(super) fn receives_in_place(&self) -> bool {
        self.phase == Phase::Open
            && self.tls.is_none()
            && self.decoder.rest().is_some_and(|Rest { received, missing_bytes, .. }| {
                received.len() <= MAX_COPIED_BYTES
                    && (LARGE_BYTES - MAX_COPIED_BYTES..=FULL_BLOCK_BYTES).contains(&missing_bytes)
            })
    }
}
