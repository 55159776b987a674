//! Splits received bytes into messages, and counts them.

use webmq_websocket::{Opcode, encode_masked_frame};

use super::client::Phase;
use super::counters::count;
use super::crew::Crew;
use super::incoming::{Incoming, key_number};
use super::tracker::Arrival;
use crate::clock::now_us;
use crate::digits;
use crate::header::Header;
use crate::loadgen::batch::{MASK, text_frame};
use crate::loadgen::upgrade::{Response, parse_response};

pub(super) const SUBPROTOCOL: &str = "webmq.v1";
/// The request id of a listen is this and the place of its key.
const LISTEN_ID: &[u8] = b"l";
const PUBLISH_ID: &[u8] = b"p";

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

impl Crew {
    /// Handles bytes read from a client's connection.
    pub(super) fn take(&mut self, place: usize, bytes: &[u8]) {
        let Some(link) = &mut self.clients[place].link else { return };
        if link.rest.is_empty() {
            let used = self.take_whole(place, bytes);
            self.keep(place, &bytes[used..]);
            return;
        }
        let mut held = std::mem::take(&mut link.rest);
        held.extend_from_slice(bytes);
        let used = self.take_whole(place, &held);
        self.keep(place, &held[used..]);
    }

    fn keep(&mut self, place: usize, rest: &[u8]) {
        if let Some(link) = &mut self.clients[place].link {
            link.rest.extend_from_slice(rest);
        }
    }

    /// Handles the complete frames and returns their length.
    fn take_whole(&mut self, place: usize, bytes: &[u8]) -> usize {
        let mut used = 0;
        if self.clients[place].phase == Phase::Upgrading {
            match parse_response(bytes, Some(SUBPROTOCOL)) {
                Response::Incomplete => return 0,
                Response::Refused(reason) => {
                    self.on_end(place, &reason);
                    return bytes.len();
                }
                Response::Upgraded { head_bytes, .. } => {
                    used = head_bytes;
                    self.clients[place].phase = Phase::Welcoming;
                }
            }
        }
        while let Some(header) = Header::parse(&bytes[used..]) {
            let end = (used as u64).saturating_add(header.frame_bytes());
            if end > bytes.len() as u64 {
                break;
            }
            let payload = &bytes[used + usize::from(header.header_bytes)..end as usize];
            used = end as usize;
            self.on_frame(place, header, payload);
            if self.clients[place].link.is_none() {
                return bytes.len();
            }
        }
        used
    }

    fn on_frame(&mut self, place: usize, header: Header, payload: &[u8]) {
        match header.opcode() {
            TEXT | BINARY if header.is_final() && !header.is_compressed() => match Incoming::parse(payload) {
                Some(incoming) => self.on_message(place, incoming),
                None => self.tally.client_errors += 1,
            },
            PING => {
                let mut frame = Vec::with_capacity(payload.len() + 6);
                encode_masked_frame(Opcode::Pong, payload, MASK, &mut frame);
                self.clients[place].write(&frame);
            }
            PONG => {}
            CLOSE => {
                let code = payload.first_chunk().map_or(1005, |code| u16::from_be_bytes(*code));
                self.on_end(place, &format!("closed {code}"));
            }
            _ => self.on_end(place, "a frame that was not expected"),
        }
    }

    fn on_message(&mut self, place: usize, incoming: Incoming<'_>) {
        match incoming {
            Incoming::Message { key, payload } => self.on_delivery(place, key, payload),
            Incoming::Ok { id } => self.on_answer(place, id, None),
            Incoming::Error { id, code } => self.on_answer(place, id, Some(code)),
            Incoming::Welcome => self.on_welcome(place),
            Incoming::Gap => self.tally.gaps += 1,
            Incoming::Other => {}
        }
    }

    fn on_welcome(&mut self, place: usize) {
        let client = &mut self.clients[place];
        if client.phase != Phase::Welcoming {
            self.tally.client_errors += 1;
            return;
        }
        client.phase = Phase::Listening;
        let frame = |(slot, key)| text_frame(&format!("listen l{slot} {}.{key}", self.course.key_prefix));
        let frames: Vec<u8> = client.listens.iter().enumerate().flat_map(frame).collect();
        client.write(&frames);
    }

    /// `code`: of a refusal.
    fn on_answer(&mut self, place: usize, id: &[u8], code: Option<&[u8]>) {
        let client = &mut self.clients[place];
        if id.starts_with(LISTEN_ID) && client.phase == Phase::Listening {
            if let Some(code) = code {
                let reason = format!("a listen was refused: {}", String::from_utf8_lossy(code));
                return self.on_end(place, &reason);
            }
            client.listens_left -= 1;
            if client.listens_left == 0 {
                client.phase = Phase::Live;
                self.tally.backends[client.backend].client_count += 1;
                self.live += 1;
                self.connecting -= 1;
                count(&self.course.counters.connected);
            }
            return;
        }
        let request = id.strip_prefix(PUBLISH_ID).map(|number| digits::parse(number).0);
        match (request.and_then(|request| client.unanswered.remove(&request)), code) {
            (None, _) => self.tally.client_errors += 1,
            (Some(is_counted), None) => self.tally.acknowledged += u64::from(is_counted),
            (Some(is_counted), Some(code)) => {
                self.tally.publish_errors += u64::from(is_counted);
                self.tally.first_publish_error.get_or_insert_with(|| String::from_utf8_lossy(code).into_owned());
            }
        }
    }

    fn on_delivery(&mut self, place: usize, key: &[u8], payload: &[u8]) {
        let course = &self.course;
        let at_us = now_us();
        count(&course.counters.arrived);
        let client = &mut self.clients[place];
        let tally = &mut self.tally.backends[client.backend];
        let slot =
            key_number(key, course.key_prefix.as_bytes()).and_then(|key| client.listens.binary_search(&key).ok());
        let stamp = course.encoder.decode(payload, &course.plan.options);
        let (Some(slot), Some(stamp)) = (slot, stamp) else {
            tally.unexpected += 1;
            self.tally.last_arrival_us = at_us;
            return;
        };
        if stamp.turn < 0 {
            return;
        }
        self.tally.last_arrival_us = at_us;
        match client.tracker.record(slot, stamp.publisher, stamp.key_sequence) {
            Arrival::Duplicate => {
                tally.duplicates += 1;
                return;
            }
            Arrival::Reordered => tally.reordered += 1,
            Arrival::Delivered => {}
        }
        tally.delivered += 1;
        count(&course.counters.delivered);
        if let Some(window) = self.window {
            tally.delivered_in_window += u64::from((at_us as f64) < window.end_us);
            let latency_us = at_us as f64 - window.start_us - stamp.at_us as f64;
            tally.latency.record(latency_us.max(1.0).round() as u64);
        }
    }
}
