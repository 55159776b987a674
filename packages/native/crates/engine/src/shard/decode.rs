//! What received bytes of open connections say.

use std::ops::ControlFlow;

use webmq_websocket::{Event, MAX_CONTROL_PAYLOAD_BYTES, MAX_FRAME_HEADER_BYTES, MessageKind, Opcode, encode_frame};

use super::Shard;
use crate::bridge::batch::Frame;
use crate::fanout::Fanout;
use crate::id::Slot;
use crate::shard::connection::{Connection, Phase};
use crate::shard::prepared_answer::MAX_ANSWERS_PER_READ;
use crate::shard::receive_in_place::LARGE_BYTES;

/// Pings of one read that are answered each. Of those that follow, the last is answered (RFC 6455 §5.5.3), so that a flood
/// of pings costs little.
const MAX_PONGS: u32 = 16;

/// What a message counts beside its bytes, so that empty ones fill the room too.
pub(super) const MESSAGE_BYTES: usize = 16;

impl Shard {
    /// Decodes received bytes and does what they say, until their events fill the room. Keeps the bytes that are left.
    pub(super) fn decode(&mut self, slot: Slot, received: &mut [u8], room: usize) {
        let id = self.table.id(slot);
        let (answered_front_position, answered_position) = self.answered_positions();
        let goes_in_front = self.goes_in_front(slot, received.len());
        let Self { table, fanout, front, events, stats, inflater, answer, now_ms, .. } = self;
        let events = if goes_in_front { front } else { events };
        let Some(connection) = table.get_mut(slot) else { return };
        let is_open = connection.phase == Phase::Open;
        let may_answer = connection.front_end <= answered_front_position && connection.events_end <= answered_position;
        let (begin, message_count) = (events.len(), stats.received_message_count);
        let (mut taken_bytes, mut last_bytes) = (0, 0);
        let mut ping_count = 0;
        let mut answer_count = 0;
        let mut last_ping = Vec::new();
        let mut has_event = false;
        let mut close = None;
        let mut on_event = |event: Event<'_>| {
            has_event = true;
            match event {
                Event::Message { kind, data } if is_open => {
                    stats.received_message_count += 1;
                    if may_answer
                        && events.len() == begin
                        && kind == MessageKind::Text
                        && answer_count < MAX_ANSWERS_PER_READ
                        && let Some(frame) = answer.to(data, *now_ms)
                    {
                        answer_count += 1;
                        stats.answered_message_count += 1;
                        stats.delivered_count += 1;
                        fanout.send(slot, &Frame::copied(frame));
                        return ControlFlow::Continue(());
                    }
                    events.message(id, data, kind == MessageKind::Binary);
                    last_bytes = data.len();
                    taken_bytes += MESSAGE_BYTES + data.len();
                    if taken_bytes >= room {
                        return ControlFlow::Break(());
                    }
                }
                Event::Ping(payload) if is_open => {
                    ping_count += 1;
                    if ping_count <= MAX_PONGS {
                        send_pong(fanout, slot, payload);
                    } else {
                        last_ping.clear();
                        last_ping.extend_from_slice(payload);
                    }
                }
                Event::Message { .. } | Event::Ping(_) | Event::Pong(_) => {}
                Event::Close { code, reason } => close = Some((code, reason.to_owned())),
            }
            ControlFlow::Continue(())
        };
        let inflater = connection.has_deflate.then_some(inflater);
        let decoded = connection.decoder.decode_until(received, inflater, &mut on_event);
        if ping_count > MAX_PONGS {
            send_pong(fanout, slot, &last_ping);
        }
        if events.len() > begin {
            connection.expects_large = last_bytes >= LARGE_BYTES;
            if goes_in_front {
                connection.front_bytes += taken_bytes;
                connection.front_end = events.position();
            } else {
                connection.unread_bytes += taken_bytes;
                connection.events_end = events.position();
            }
        }
        match (decoded, close) {
            (_, Some((code, reason))) => self.answer_close(slot, code, &reason),
            (Ok(consumed), None) if is_open => {
                let has_message = stats.received_message_count > message_count;
                connection.note_message_time(has_message, has_event, self.now_ms);
                if consumed < received.len() {
                    connection.keep_received(&received[consumed..]);
                    self.queue_receive(slot);
                }
                self.note_alive(slot);
            }
            (Ok(_), None) => {}
            (Err(error), None) if is_open => {
                self.fail_connection(slot, (error.close_code().value(), &format!("{}: {error}", error.code())));
            }
            // It was told to close and answers with something that is no frame.
            (Err(_), None) => self.drop_connection(slot),
        }
        self.count_partial_bytes(slot);
    }

    /// Brings the statistics up to date with the input that a connection holds.
    pub(super) fn count_partial_bytes(&mut self, slot: Slot) {
        let Some(connection) = self.table.get_mut(slot) else { return };
        let held_bytes = connection.held_input_bytes();
        if held_bytes != connection.partial_bytes {
            self.stats.partial_bytes = self.stats.partial_bytes - connection.partial_bytes as u64 + held_bytes as u64;
            connection.partial_bytes = held_bytes;
        }
    }
}

impl Connection {
    /// Notes when the message or frame began that the received bytes ended in.
    pub(super) fn note_message_time(&mut self, has_message: bool, has_event: bool, now_ms: u64) {
        // A control frame between the fragments of a message does not end it.
        let is_new = has_message || (has_event && !self.decoder.is_inside_message());
        if !self.decoder.is_inside() {
            self.message_began_ms = None;
        } else if is_new || self.message_began_ms.is_none() {
            self.message_began_ms = Some(now_ms);
        }
    }

    /// Gives the rest of a message its whole time again, after a time in which nothing was read.
    pub(super) fn restart_message_time(&mut self, now_ms: u64) {
        self.message_began_ms = self.message_began_ms.map(|_| now_ms);
    }

    fn keep_received(&mut self, received: &[u8]) {
        self.opening.get_or_insert_default().received = received.to_vec();
    }
}

fn send_pong(fanout: &mut Fanout, slot: Slot, payload: &[u8]) {
    let mut pong = Vec::with_capacity(MAX_FRAME_HEADER_BYTES + MAX_CONTROL_PAYLOAD_BYTES);
    encode_frame(Opcode::Pong, payload, &mut pong);
    fanout.send(slot, &Frame::copied(&pong));
}
