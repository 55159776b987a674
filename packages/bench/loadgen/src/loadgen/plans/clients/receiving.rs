//! What the clients receive, and how it is counted.

use std::cmp::Reverse;

use super::Clients;
use super::client::{Arrival, Phase};
use crate::clock::now_us;
use crate::digits;
use crate::loadgen::batch::text_frame;
use crate::loadgen::connection::Slot;
use crate::loadgen::connections::Connections;
use crate::loadgen::plans::incoming::{Incoming, Refusal, key_number};
use crate::loadgen::played::Player;

/// The request id of a listen is this and the place of its key.
const LISTEN_ID: &[u8] = b"l";
const PUBLISH_ID: &[u8] = b"p";

impl Clients {
    fn on_welcome(&mut self, place: usize, slot: Slot, connections: &mut Connections) {
        let client = &mut self.clients[place];
        if client.phase != Phase::Welcoming {
            self.tally.client_error_count += 1;
            return;
        }
        client.phase = Phase::Listening;
        let frame = |(slot, key)| text_frame(&format!("listen l{slot} {}.{key}", self.setup.key_prefix));
        let frames: Vec<u8> = client.listens.iter().enumerate().flat_map(frame).collect();
        connections.write(slot, &frames);
    }

    fn on_answer(
        &mut self,
        place: usize,
        slot: Slot,
        (id, refusal): (&[u8], Option<Refusal>),
        connections: &mut Connections,
    ) {
        let client = &mut self.clients[place];
        if id.starts_with(LISTEN_ID) && client.phase == Phase::Listening {
            if let Some(refusal) = refusal {
                connections.vacate(slot);
                return self.on_end(place, &format!("a listen was refused: {}", refusal.code()));
            }
            client.listens_left -= 1;
            if client.listens_left == 0 {
                client.phase = Phase::Live;
                self.tally.per_backend[client.backend].client_count += 1;
                self.live_count += 1;
                self.connecting_count -= 1;
            }
            return;
        }
        let request = id.strip_prefix(PUBLISH_ID).map_or(0, |number| digits::parse(number).0);
        let outgoing = &mut client.outgoing;
        let answered = match refusal {
            Some(refusal) if refusal.is_for_a_time() => {
                let pause = outgoing.refused(request, refusal.retry_after_us(), now_us());
                self.pauses.extend(pause.map(|until_us| Reverse((until_us, place))));
                return self.send_held(place, connections);
            }
            None => outgoing.accepted(request),
            Some(_) => outgoing.failed(request),
        };
        let Some(message) = answered else {
            self.tally.client_error_count += 1;
            return;
        };
        let is_counted = self.setup.plan.sends[message.place].turn >= 0;
        match refusal {
            None => self.tally.acknowledged_count += u64::from(is_counted),
            Some(refusal) => self.tally.lose(is_counted, &refusal.code()),
        }
        self.send_held(place, connections);
    }

    fn on_delivery(&mut self, place: usize, key: &[u8], payload: &[u8]) {
        let setup = &self.setup;
        let at_us = now_us();
        self.arrived_count += 1;
        let client = &mut self.clients[place];
        let tally = &mut self.tally.per_backend[client.backend];
        let slot = key_number(key, setup.key_prefix.as_bytes()).and_then(|key| client.listens.binary_search(&key).ok());
        let stamp = setup.encoder.decode(payload, &setup.plan);
        let (Some(slot), Some(stamp)) = (slot, stamp) else {
            tally.unexpected_count += 1;
            self.tally.last_arrival_us = at_us;
            return;
        };
        if stamp.turn < 0 {
            return;
        }
        self.tally.last_arrival_us = at_us;
        match client.tracker.record(slot, stamp.publisher, stamp.key_sequence) {
            Arrival::Duplicate => {
                tally.duplicate_count += 1;
                return;
            }
            Arrival::Reordered => tally.reordered_count += 1,
            Arrival::Delivered => {}
        }
        tally.delivered_count += 1;
        if let Some(window) = self.window {
            tally.delivered_in_window_count += u64::from((at_us as f64) < window.end_us);
            let latency_us = at_us as f64 - window.start_us - stamp.at_us as f64;
            tally.latency_us.record(latency_us.max(1.0).round() as u64);
        }
    }
}

impl Player for Clients {
    fn on_message(&mut self, slot: Slot, payload: &[u8], _at_us: u64, connections: &mut Connections) {
        let place = connections.get(slot).player as usize;
        match Incoming::parse(payload) {
            Some(Incoming::Message { key, payload, .. }) => self.on_delivery(place, key, payload),
            Some(Incoming::Ok { id, .. }) => self.on_answer(place, slot, (id, None), connections),
            Some(Incoming::Error { id, refusal }) => self.on_answer(place, slot, (id, Some(refusal)), connections),
            Some(Incoming::Welcome) => self.on_welcome(place, slot, connections),
            Some(Incoming::Gap) => self.tally.gap_count += 1,
            Some(Incoming::Other) => {}
            None => self.tally.client_error_count += 1,
        }
    }
}
