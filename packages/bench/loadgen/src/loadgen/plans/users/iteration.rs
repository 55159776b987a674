//! What a user does, step by step: the iteration of AnyCable's broker benchmark.

use super::Users;
use super::user::{Phase, UserId};
use super::verify::{Receipt, Session};
use crate::clock::now_us;
use crate::digits;
use crate::loadgen::batch::text_frame;
use crate::loadgen::connections::Connections;
use crate::loadgen::opening::Route;
use crate::loadgen::plans::incoming::{Answer, Incoming, Place, payload, stamp};

/// Milliseconds from and to.
const PAUSE_BEFORE_MS: (f64, f64) = (400.0, 2_000.0);
const PAUSE_AFTER_SENDING_MS: (f64, f64) = (50.0, 100.0);
const LISTENING_US: u64 = 1_000_000;
const PAUSE_AFTER_LISTENING_MS: (f64, f64) = (500.0, 1_000.0);
const PAUSE_AT_END_MS: (f64, f64) = (500.0, 1_000.0);
/// How long the server may take to answer the close.
const LEAVING_US: u64 = 2_000_000;

const LISTEN_ID: &[u8] = b"listen";
const HISTORY_ID: &[u8] = b"history";
/// A message's number follows.
const PUBLISH_ID: &[u8] = b"p";

impl Users {
    pub(super) fn begin_iteration(&mut self, user: UserId, now_us: u64) {
        let pause_us = self.chance.pause_us(PAUSE_BEFORE_MS);
        let state = self.user(user);
        state.phase = Phase::Pausing;
        state.began_us = now_us;
        state.round = 0;
        self.timers.set(user, now_us + pause_us);
    }

    pub(super) fn on_timer(&mut self, user: UserId, now_us: u64, connections: &mut Connections) {
        match self.user(user).phase {
            Phase::Away => {}
            Phase::Pausing => self.connect(user, now_us, connections),
            Phase::Talking => self.next_round(user, now_us, connections),
            Phase::Lingering => self.leave(user, now_us, connections),
            Phase::Leaving => self.end_iteration(user, connections),
            waiting => self.interrupt(user, &format!("timeout while {waiting:?}").to_lowercase(), connections),
        }
    }

    fn wait_for(&mut self, user: UserId, phase: Phase, now_us: u64) {
        let state = self.user(user);
        state.phase = phase;
        state.asked_us = now_us;
        self.timers.set(user, now_us + self.plan.timeout_ms * 1_000);
    }

    fn connect(&mut self, user: UserId, now_us: u64, connections: &mut Connections) {
        self.wait_for(user, Phase::Connecting, now_us);
        let route = Route::of_player(self.address, user.0);
        match connections.start(&self.opening, route, now_us) {
            Ok(slot) => {
                self.metrics.counts.sessions += 1;
                self.user(user).slot = Some(slot);
            }
            Err(reason) => self.interrupt(user, &reason, connections),
        }
    }

    pub(super) fn on_upgraded(&mut self, user: UserId, now_us: u64) {
        let asked_us = self.user(user).asked_us;
        self.metrics.connecting_us.record(now_us - asked_us);
        self.wait_for(user, Phase::Welcoming, now_us);
    }

    /// `None`: the message violates the protocol.
    pub(super) fn take(
        &mut self,
        user: UserId,
        message: &[u8],
        now_us: u64,
        connections: &mut Connections,
    ) -> Option<()> {
        let phase = self.user(user).phase;
        match Incoming::parse(message)? {
            Incoming::Message { position, is_replay, payload, .. } => {
                let place = if position == b"-" { None } else { Some(Place::parse(position)?) };
                self.on_broadcast(user, (place, is_replay), stamp(payload)?, now_us, connections);
            }
            Incoming::Ok { id: LISTEN_ID, options } if phase == Phase::Listening => {
                self.on_listening(user, &Answer::parse(options)?, now_us, connections);
            }
            Incoming::Ok { id: HISTORY_ID, options } if phase == Phase::Reading => {
                self.on_page(user, &Answer::parse(options)?, now_us, connections);
            }
            Incoming::Ok { id, .. } => self.on_ack(id, now_us),
            Incoming::Error { id: LISTEN_ID, refusal } if phase == Phase::Listening => {
                self.interrupt(user, &refusal.code(), connections);
            }
            Incoming::Error { id: HISTORY_ID, .. } if phase == Phase::Reading => {
                self.on_history(user, false, now_us, connections);
            }
            Incoming::Error { refusal, .. } => {
                *self.metrics.errors.entry(refusal.code().into_owned()).or_default() += 1;
            }
            Incoming::Welcome if phase == Phase::Welcoming => {
                self.metrics.checks.connection.note(true);
                let key = self.plan.key_of(self.plan.channel_of(user.number()));
                self.write(user, &text_frame(&format!("listen listen {key}")), connections);
                self.wait_for(user, Phase::Listening, now_us);
            }
            Incoming::Welcome | Incoming::Gap | Incoming::Other => {}
        }
        Some(())
    }

    fn on_listening(&mut self, user: UserId, answer: &Answer<'_>, now_us: u64, connections: &mut Connections) {
        let asked_us = self.user(user).asked_us;
        self.metrics.suback_us.record(now_us - asked_us);
        self.metrics.checks.subscription.note(true);
        let session = Session {
            channel: self.plan.channel_of(user.number()),
            since_us: now_us,
            until_us: None,
            epoch: answer.place.map(|place| place.epoch).unwrap_or_default().to_vec(),
            history: None,
            live: Vec::new(),
        };
        self.user(user).session = Some(Box::new(session));
        let options = self.plan.history.first.clone();
        self.ask_for_history(user, &options, connections);
        self.wait_for(user, Phase::Reading, now_us);
    }

    fn ask_for_history(&self, user: UserId, options: &str, connections: &mut Connections) {
        let key = self.plan.key_of(self.plan.channel_of(user.number()));
        self.write(user, &text_frame(format!("history history {key} {options}").trim_end()), connections);
    }

    /// Handles an answer to `history`; the messages follow.
    fn on_page(&mut self, user: UserId, answer: &Answer<'_>, now_us: u64, connections: &mut Connections) {
        self.metrics.counts.history_gaps += u64::from(answer.has_gap);
        let state = self.user(user);
        state.replay_left = answer.replayed_count;
        state.next_page.clear();
        if answer.has_more {
            state.next_page.extend_from_slice(answer.position);
        }
        if let Some(session) = &mut state.session {
            let history = session.history.get_or_insert_default();
            history.answered_us = now_us;
            history.offset = answer.place.map(|place| place.offset);
        }
        if answer.replayed_count == 0 {
            self.on_page_end(user, now_us, connections);
        }
    }

    fn on_page_end(&mut self, user: UserId, now_us: u64, connections: &mut Connections) {
        if self.user(user).next_page.is_empty() {
            return self.on_history(user, true, now_us, connections);
        }
        let position = String::from_utf8_lossy(&self.user(user).next_page).into_owned();
        let options = format!("since={position} {}", self.plan.history.next);
        self.ask_for_history(user, &options, connections);
    }

    fn on_history(&mut self, user: UserId, is_received: bool, now_us: u64, connections: &mut Connections) {
        let asked_us = self.user(user).asked_us;
        self.metrics.history_us.record(now_us - asked_us);
        self.metrics.checks.history.note(is_received);
        self.user(user).phase = Phase::Talking;
        self.next_round(user, now_us, connections);
    }

    #[inline]
    fn on_broadcast(
        &mut self,
        user: UserId,
        (place, is_replay): (Option<Place<'_>>, bool),
        (sent_us, number): (u64, u32),
        now_us: u64,
        connections: &mut Connections,
    ) {
        let state = &mut self.users[user.index()];
        let Some(session) = state.session.as_mut().filter(|_| state.phase != Phase::Leaving) else { return };
        if let Some(epoch) = place.map(|place| place.epoch)
            && epoch != session.epoch
        {
            self.metrics.counts.epoch_changes += 1;
        }
        let receipt = Receipt { number, offset: place.map(|place| place.offset) };
        let is_earlier = sent_us < session.since_us;
        self.metrics.counts.history_received += u64::from(is_earlier);
        if !is_replay {
            session.live.push(receipt);
            if !is_earlier {
                self.metrics.counts.broadcasts_received += 1;
                self.metrics.broadcast_us.record(now_us.saturating_sub(sent_us));
            }
            return;
        }
        self.metrics.counts.replayed += 1;
        session.history.get_or_insert_default().receipts.push(receipt);
        state.replay_left = state.replay_left.saturating_sub(1);
        if state.replay_left == 0 && state.phase == Phase::Reading {
            self.on_page_end(user, now_us, connections);
        }
    }

    fn next_round(&mut self, user: UserId, now_us: u64, connections: &mut Connections) {
        if self.user(user).round == self.plan.rounds {
            let state = self.user(user);
            state.phase = Phase::Lingering;
            if let Some(session) = &mut state.session {
                session.until_us = Some(now_us);
            }
            let pause_us = self.chance.pause_us(PAUSE_AT_END_MS);
            return self.timers.set(user, now_us + pause_us);
        }
        self.user(user).round += 1;
        if self.plan.is_sender(user.number()) && self.chance.is_at_most(self.plan.sending_rate) {
            self.publish(user, connections);
        }
        let pause_us = self.chance.pause_us(PAUSE_AFTER_SENDING_MS);
        let rest_us = self.chance.pause_us(PAUSE_AFTER_LISTENING_MS);
        self.timers.set(user, now_us + pause_us + LISTENING_US + rest_us);
    }

    fn publish(&mut self, user: UserId, connections: &mut Connections) {
        let channel = self.plan.channel_of(user.number());
        let sent_us = now_us();
        let number = self.ledger.publish(channel, user.number(), sent_us);
        let payload = payload(sent_us, number, user.number());
        let frame = text_frame(&format!("publish p{number} {}\n{payload}", self.plan.key_of(channel)));
        self.metrics.counts.broadcasts_sent += 1;
        self.write(user, &frame, connections);
    }

    fn on_ack(&mut self, id: &[u8], now_us: u64) {
        let number = id.strip_prefix(PUBLISH_ID).map(|digits| digits::parse(digits).0);
        let number = number.and_then(|number| u32::try_from(number).ok());
        if let Some(sent_us) = number.and_then(|number| self.ledger.ack(number, now_us)) {
            self.metrics.counts.acks_received += 1;
            self.metrics.rtt_us.record(now_us - sent_us);
        }
    }

    fn leave(&mut self, user: UserId, now_us: u64, connections: &mut Connections) {
        let began_us = self.user(user).began_us;
        self.metrics.iteration_us.record(now_us - began_us);
        self.user(user).phase = Phase::Leaving;
        if let Some(slot) = self.user(user).slot {
            connections.close(slot);
        }
        self.timers.set(user, now_us + LEAVING_US);
    }

    pub(super) fn on_end(&mut self, user: UserId, reason: &str, connections: &mut Connections) {
        match self.user(user).phase {
            Phase::Leaving => self.end_iteration(user, connections),
            _ => self.interrupt(user, reason, connections),
        }
    }

    /// Ends the iteration early and fails its next check.
    pub(super) fn interrupt(&mut self, user: UserId, reason: &str, connections: &mut Connections) {
        match self.user(user).phase {
            Phase::Connecting | Phase::Welcoming => self.metrics.checks.connection.note(false),
            Phase::Listening => self.metrics.checks.subscription.note(false),
            Phase::Reading => self.metrics.checks.history.note(false),
            _ => {}
        }
        if let Some(session) = &mut self.user(user).session {
            session.until_us = None;
        }
        self.metrics.counts.interrupted += 1;
        *self.metrics.failures.entry(reason.to_owned()).or_default() += 1;
        self.end_iteration(user, connections);
    }

    fn end_iteration(&mut self, user: UserId, connections: &mut Connections) {
        let now_us = now_us();
        let state = self.user(user);
        let slot = state.slot.take();
        state.phase = Phase::Away;
        let session = state.session.take();
        self.sessions.extend(session.map(|session| *session));
        self.timers.clear(user);
        self.metrics.counts.iterations += 1;
        // A connection that has failed or ended may be another's by now.
        if let Some(slot) = slot.filter(|slot| connections.get(*slot).player == user.0) {
            connections.vacate(slot);
        }
        if user.0 < self.wanted_count(now_us) {
            self.begin_iteration(user, now_us);
        } else {
            self.present_count -= 1;
        }
    }
}
