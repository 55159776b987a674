use rustix::net::{Shutdown, shutdown};
use webmq_websocket::{CloseCode, encode_close};

use super::Shard;
use crate::bridge::batch::Frame;
use crate::bridge::event::Events;
use crate::fanout::OutboxLevel;
use crate::id::{ConnectionId, Slot};
use crate::shard::connection::{Connection, Ending, Phase};
use crate::stats::Stats;

/// The outbox is over its limit.
const SLOW_CONSUMER: (u16, &str) = (4008, "E_SLOW_CONSUMER");
/// Nothing came after a ping.
const SILENT: (u16, &str) = (4003, "E_HEARTBEAT_TIMEOUT");
/// A message was begun and not ended in time.
pub(super) const LATE_MESSAGE: (u16, &str) = (4004, "E_MESSAGE_TIMEOUT");
/// The peer of an event stream sends more than its request.
pub(super) const UNREAD: (u16, &str) = (4500, "E_PROTOCOL_VIOLATION");
/// The shard's thread died.
const THREAD_DIED: (u16, &str) = (4011, "E_INTERNAL");
/// Time in which a peer to whom everything was said may go on sending.
const LINGER_MS: u64 = 1_000;
const GOING_AWAY_REASON: &str = "server stops";

impl Shard {
    /// Sends what is queued, then a close frame, and waits for the peer's. `otherwise` is told if none comes.
    pub(super) fn begin_closing(&mut self, slot: Slot, code: Option<CloseCode>, reason: &str, otherwise: Ending) {
        self.fanout.leave_all(slot);
        if self.is_stream(slot) {
            // Nobody answers: what is queued is all that is said.
            return self.linger(slot, Some(code.map_or(otherwise, |code| Ending::ours(code, reason))));
        }
        self.send_close(slot, code, reason);
        self.enter_ending(slot, Phase::Closing, Some(otherwise));
    }

    /// The peer closes: it gets its close frame back, or ours was the first and all is said.
    pub(super) fn answer_close(&mut self, slot: Slot, code: Option<CloseCode>, reason: &str) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        connection.has_peer_closed = true;
        if connection.phase == Phase::Open {
            self.fanout.leave_all(slot);
            self.send_close(slot, code, reason);
        }
        self.linger(slot, Some(Ending::received(code, reason)));
    }

    /// The peer broke the rules: it is told so, and nothing it sends is read any more (RFC 6455 §7.1.7).
    pub(super) fn fail_connection(&mut self, slot: Slot, (code, reason): (u16, &str)) {
        self.fanout.leave_all(slot);
        self.send_close(slot, CloseCode::new(code), reason);
        self.linger_told(slot, Ending { code, reason: reason.to_owned() });
    }

    /// Frees what waits for a connection that reads too slowly. It gets the rest of the frame it has begun and a close
    /// frame, if it reads that far in time.
    pub(super) fn end_slow(&mut self, slot: Slot) {
        let Some(connection) = self.table.get(slot) else { return };
        match connection.phase {
            Phase::Open => {
                self.stats.slow_consumer_count += 1;
                let (code, reason) = SLOW_CONSUMER;
                self.fanout.cut(slot);
                self.send_close(slot, CloseCode::new(code), reason);
                self.linger_told(slot, Ending { code, reason: reason.to_owned() });
            }
            // Has a deadline already, and nothing is added to its outbox any more.
            Phase::Head | Phase::Deciding | Phase::Relaying | Phase::Closing | Phase::Lingering => {}
        }
    }

    /// Drops a peer that did not answer a ping. It gets a close frame if its socket takes one right now.
    pub(super) fn end_silent(&mut self, slot: Slot) {
        let (code, reason) = SILENT;
        self.fanout.cut(slot);
        self.send_close(slot, CloseCode::new(code), reason);
        self.enter_ending(slot, Phase::Lingering, Some(Ending { code, reason: reason.to_owned() }));
        self.flush();
        self.drop_connection(slot);
    }

    /// Writes what is queued, then closes.
    pub(super) fn linger(&mut self, slot: Slot, ending: Option<Ending>) {
        self.enter_ending(slot, Phase::Lingering, ending);
        if self.fanout.report_at(slot, OutboxLevel::Empty) {
            self.finish_lingering(slot);
        }
    }

    /// Like [`linger`](Self::linger), but JavaScript is told the end now: nothing that comes can change it, and the peer
    /// may take its time.
    fn linger_told(&mut self, slot: Slot, ending: Ending) {
        self.linger(slot, Some(ending));
        let id = self.table.id(slot);
        let Self { table, events, stats, .. } = self;
        if let Some(connection) = table.get_mut(slot) {
            report_closed(id, connection, events, stats);
        }
    }

    /// Everything was written: the peer gets our FIN, and may send a little longer if it has not said that it will not.
    pub(super) fn finish_lingering(&mut self, slot: Slot) {
        let is_encrypted = self.end_session(slot);
        let Some(connection) = self.table.get(slot) else { return };
        if (connection.has_peer_closed && !is_encrypted) || shutdown(&connection.socket, Shutdown::Write).is_err() {
            return self.drop_connection(slot);
        }
        let linger_ms = LINGER_MS.min(self.shared.options.close_timeout.as_millis() as u64);
        self.table.set_deadline(slot, Some(self.now_ms + linger_ms));
    }

    /// Stops to accept and closes every connection.
    pub(super) fn shut_down(&mut self) {
        self.stop_accepting();
        self.is_shutting_down = true;
        for slot in self.table.slots() {
            match self.table.get(slot).map(|connection| connection.phase) {
                Some(Phase::Open) => {
                    let ending = Ending::ours(CloseCode::GOING_AWAY, GOING_AWAY_REASON);
                    self.begin_closing(slot, Some(CloseCode::GOING_AWAY), GOING_AWAY_REASON, ending);
                }
                Some(Phase::Head | Phase::Deciding) => self.drop_connection(slot),
                // Relays end with the shard.
                Some(Phase::Closing | Phase::Lingering | Phase::Relaying) | None => {}
            }
        }
    }

    /// Tells JavaScript the end of whatever is left, after the loop.
    pub(super) fn end(&mut self, failure: Option<&str>) {
        self.listener = None;
        if failure.is_none() {
            self.finish_relays();
        }
        self.end_connections(failure);
        self.events.quiet(self.id);
        self.events.ended(self.id);
        self.report();
    }

    /// Tells JavaScript of a failure and of the end of every connection.
    pub(super) fn end_connections(&mut self, failure: Option<&str>) {
        self.front.drop_unfinished();
        self.events.drop_unfinished();
        if let Some(failure) = failure {
            self.events.failed(failure);
        }
        for slot in self.table.slots() {
            let id = self.table.id(slot);
            let Some(mut connection) = self.take_out(slot) else { continue };
            if failure.is_some() {
                let (code, reason) = THREAD_DIED;
                connection.ending = Some(Box::new(Ending { code, reason: reason.to_owned() }));
            }
            report_closed(id, &mut connection, &mut self.events, &mut self.stats);
        }
    }

    fn is_stream(&self, slot: Slot) -> bool {
        self.table.get(slot).is_some_and(|connection| connection.is_stream)
    }

    /// Sends a close frame, which an event stream does not have: its end is that of its connection.
    fn send_close(&mut self, slot: Slot, code: Option<CloseCode>, reason: &str) {
        if self.is_stream(slot) {
            return;
        }
        let mut frame = Vec::new();
        encode_close(code, reason, &mut frame);
        self.fanout.send(slot, &Frame::copied(&frame));
    }

    fn enter_ending(&mut self, slot: Slot, phase: Phase, ending: Option<Ending>) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        connection.phase = phase;
        if let Some(ending) = ending {
            connection.ending = Some(Box::new(ending));
        }
        let was_paused = std::mem::take(&mut connection.is_paused);
        let deadline_ms = self.now_ms + self.shared.options.close_timeout.as_millis() as u64;
        self.table.set_deadline(slot, Some(deadline_ms));
        if was_paused {
            // For the peer's close frame.
            self.read_on(slot);
        }
    }
}

/// Tells JavaScript that a connection is closed, if it knows of it.
pub(super) fn report_closed(id: ConnectionId, connection: &mut Connection, events: &mut Events, stats: &mut Stats) {
    if std::mem::take(&mut connection.owes_closed) {
        let ending = connection.ending.take().map_or_else(Ending::abnormal, |ending| *ending);
        events.closed(id, ending.code, &ending.reason);
    }
    if std::mem::take(&mut connection.was_open) {
        stats.connections -= 1;
        stats.closed_count += 1;
    }
}
