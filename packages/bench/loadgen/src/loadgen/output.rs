//! Output of connections, apart from `flood-in`.

use webmq_websocket::{CloseCode, Opcode, encode_masked_frame};

use super::batch::MASK;
use super::connection::{NO_SENDER, Slot};
use super::worker::Worker;

impl Worker {
    /// Writes whole frames now or when the socket takes them, in order.
    ///
    /// The next read reports a failed socket.
    pub(crate) fn write(&mut self, slot: Slot, bytes: &[u8]) {
        let connection = &mut self.connections[slot.index()];
        let Some(stream) = &mut connection.stream else { return };
        if connection.has_backlog {
            self.backlogs.entry(slot).or_default().extend_from_slice(bytes);
            return;
        }
        let Ok(count) = stream.send(bytes, &mut self.scratch) else { return };
        if count < bytes.len() {
            self.keep(slot, &bytes[count..]);
        }
    }

    /// Keeps the rest of a frame until the socket takes it.
    pub(crate) fn keep(&mut self, slot: Slot, rest: &[u8]) {
        if !rest.is_empty() {
            self.connection(slot).has_backlog = true;
            self.backlogs.entry(slot).or_default().extend_from_slice(rest);
        }
    }

    /// Writes pending output.
    pub(crate) fn flush(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.index()];
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

    /// Whether the socket takes output and none is pending.
    pub(crate) fn writable(&mut self, slot: Slot) {
        let sender = self.connection(slot).sender;
        if sender != NO_SENDER {
            self.resume_sender(sender);
        }
    }

    pub(crate) fn backlog_bytes(&self, slot: Slot) -> usize {
        self.backlogs.get(&slot).map_or(0, Vec::len)
    }

    pub(crate) fn pong(&mut self, slot: Slot, payload: &[u8]) {
        let mut frame = Vec::with_capacity(payload.len() + 6);
        encode_masked_frame(Opcode::Pong, payload, MASK, &mut frame);
        self.write(slot, &frame);
    }

    pub(crate) fn send_close(&mut self, slot: Slot) {
        let mut frame = Vec::new();
        encode_masked_frame(Opcode::Close, &CloseCode::NORMAL.value().to_be_bytes(), MASK, &mut frame);
        self.write(slot, &frame);
    }
}
