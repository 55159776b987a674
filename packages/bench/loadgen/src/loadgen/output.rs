//! Output of connections.

use webmq_websocket::{CloseCode, Opcode, encode_masked_frame};

use super::batch::MASK;
use super::connection::{NO_SENDER, Slot};
use super::connections::{Connections, EventKind};
use super::stream::Stream;

impl Connections {
    /// Writes whole frames now or when the socket takes them, in order.
    ///
    /// The next read reports a failed socket.
    pub(crate) fn write(&mut self, slot: Slot, bytes: &[u8]) {
        let connection = &mut self.table[slot.index()];
        let Some(stream) = &mut connection.stream else { return };
        self.traffic.messages_sent += 1;
        self.traffic.bytes_sent += bytes.len() as u64;
        if connection.has_backlog {
            self.backlogs.entry(slot).or_default().extend_from_slice(bytes);
            return;
        }
        let Ok(count) = stream.send(bytes, &mut self.scratch) else { return };
        if count < bytes.len() {
            self.keep(slot, &bytes[count..]);
        }
    }

    /// Writes as much as the socket takes; `None` when it takes nothing more, ever.
    #[inline]
    pub(crate) fn write_some(&mut self, slot: Slot, bytes: &[u8]) -> Option<usize> {
        let stream = self.table[slot.index()].stream.as_mut()?;
        stream.send(bytes, &mut self.scratch).ok()
    }

    /// Keeps the rest of a frame until the socket takes it.
    pub(crate) fn keep(&mut self, slot: Slot, rest: &[u8]) {
        if !rest.is_empty() {
            self.get_mut(slot).has_backlog = true;
            self.backlogs.entry(slot).or_default().extend_from_slice(rest);
        }
    }

    pub(crate) fn has_backlogs(&self) -> bool {
        !self.backlogs.is_empty()
    }

    pub(crate) fn backlog_bytes(&self, slot: Slot) -> usize {
        self.backlogs.get(&slot).map_or(0, Vec::len)
    }

    /// Whether a frame is partly written.
    pub(crate) fn is_unfinished(&self, slot: Slot) -> bool {
        let connection = self.get(slot);
        connection.has_backlog || connection.stream.as_ref().is_some_and(Stream::has_pending)
    }

    pub(super) fn send_close(&mut self, slot: Slot) {
        let mut frame = Vec::new();
        encode_masked_frame(Opcode::Close, &CloseCode::NORMAL.value().to_be_bytes(), MASK, &mut frame);
        self.write(slot, &frame);
    }

    pub(super) fn pong(&mut self, slot: Slot, payload: &[u8]) {
        let mut frame = Vec::with_capacity(payload.len() + 6);
        encode_masked_frame(Opcode::Pong, payload, MASK, &mut frame);
        self.write(slot, &frame);
    }

    /// Writes pending output.
    pub(super) fn flush(&mut self, slot: Slot) {
        let connection = &mut self.table[slot.index()];
        let (Some(stream), Some(backlog)) = (&mut connection.stream, self.backlogs.get_mut(&slot)) else { return };
        let Ok(count) = stream.send(backlog, &mut self.scratch) else { return };
        if count < backlog.len() {
            backlog.drain(..count);
            return;
        }
        connection.has_backlog = false;
        self.backlogs.remove(&slot);
        self.writable(slot);
    }

    pub(super) fn writable(&mut self, slot: Slot) {
        if self.get(slot).sender != NO_SENDER {
            self.report(slot, EventKind::Writable);
        }
    }
}
