use std::sync::atomic::Ordering;

use webmq_websocket::CloseCode;

use super::Shard;
use super::ending::report_closed;
use crate::bridge::command::{Command, Multicast};
use crate::id::{ConnectionId, Slot};
use crate::shard::connection::{Connection, Ending, Phase};
use crate::socket;

/// A tenth of a second of a connection of 1 Mbit/s.
const MAX_UNSENT_BYTES: usize = 16 << 10;

impl Shard {
    pub(super) fn apply(&mut self, command: Command<'_>) {
        match command {
            Command::Multicast(Multicast { groups, frame, except, topic, is_urgent }) => {
                self.answer.withdraw();
                let except = except.and_then(|id| self.table.find(id));
                let sent = self.fanout.multicast(groups, &frame, except, topic, is_urgent);
                self.stats.delivered_count += sent as u64;
            }
            Command::Answer { request, frame, valid_ms } => self.prepare_answer(request, &frame, valid_ms),
            Command::Overflow { group, overflow } => self.fanout.set_overflow(group, overflow),
            Command::Send { id, frame } => {
                if let Some(slot) = self.find_open(id) {
                    self.fanout.send(slot, &frame);
                    self.stats.delivered_count += 1;
                }
            }
            Command::Join { id, group } => {
                if let Some(slot) = self.find_open(id) {
                    self.fanout.join(slot, group);
                    if self.fanout.may_leave_out(group) {
                        self.limit_unsent(slot);
                    }
                }
            }
            Command::Leave { id, group } => {
                if let Some(slot) = self.find_open(id) {
                    self.fanout.leave(slot, group);
                }
            }
            Command::Notify { id, level } => {
                if let Some(slot) = self.find_open(id)
                    && self.fanout.report_at(slot, level)
                {
                    self.events.drained(id);
                }
            }
            Command::Pause { id } => {
                if let Some(slot) = self.find_open(id) {
                    self.set_paused(slot, true);
                }
            }
            Command::Resume { id } => {
                if let Some(slot) = self.find_open(id) {
                    self.set_paused(slot, false);
                }
            }
            Command::Close { id, code, reason } => {
                if let Some(slot) = self.find_open(id) {
                    self.begin_closing(slot, CloseCode::new(code), reason, Ending::abnormal());
                }
            }
            Command::Accept { id, subprotocol, headers } => {
                if let Some(slot) = self.find_deciding(id) {
                    self.accept(slot, subprotocol, headers);
                }
            }
            Command::Reject { id, status, headers, body } => {
                if let Some(slot) = self.find_deciding(id) {
                    self.reject(slot, status, headers, body);
                }
            }
        }
    }

    /// Bytes that the kernel has taken cannot be left out any more: it takes fewer before it has sent them.
    fn limit_unsent(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        // Fails only for a socket that is broken, which the next read or write tells.
        let _ = socket::limit_unsent(&connection.socket, MAX_UNSENT_BYTES);
    }

    fn find_open(&self, id: ConnectionId) -> Option<Slot> {
        self.find_in(id, Phase::Open)
    }

    fn find_deciding(&self, id: ConnectionId) -> Option<Slot> {
        self.find_in(id, Phase::Deciding)
    }

    /// The connection, if it is of this shard, still there and in this phase. Otherwise its end is on its way to
    /// JavaScript, and the command means nothing.
    fn find_in(&self, id: ConnectionId, phase: Phase) -> Option<Slot> {
        let slot = self.table.find(id)?;
        (self.table.get(slot)?.phase == phase).then_some(slot)
    }

    /// Removes a connection at once, without a close frame. Reports the end to JavaScript if it has to know.
    pub(super) fn drop_connection(&mut self, slot: Slot) {
        // The id of a slot changes with its connection.
        let id = self.table.id(slot);
        let Some(mut connection) = self.take_out(slot) else { return };
        self.forget_relay(&connection);
        self.fanout.remove(slot);
        self.stats.partial_bytes -= connection.partial_bytes as u64;
        report_closed(id, &mut connection, &mut self.events, &mut self.stats);
    }

    /// Removes a connection that counts no more towards any limit.
    pub(super) fn take_out(&mut self, slot: Slot) -> Option<Connection> {
        let connection = self.table.remove(slot)?;
        self.handle().mailbox.load.fetch_sub(1, Ordering::AcqRel);
        if connection.is_admitted {
            self.shared.release();
        }
        Some(connection)
    }
}
