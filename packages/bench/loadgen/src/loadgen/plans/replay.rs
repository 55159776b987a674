//! One client that replays a whole log, by one listen or by several at once: its speed, whether the replay is complete, and
//! how long publishes of the same client wait.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::incoming::{Answer, Incoming, stamp};
use super::{loopback, opening};
use crate::clock::{now_us, thread_cpu_us};
use crate::digits;
use crate::latencies::Latencies;
use crate::loadgen::batch::text_frame;
use crate::loadgen::connection::Slot;
use crate::loadgen::connections::{Connections, Event, EventKind};
use crate::loadgen::jobs::{Job, Step};
use crate::loadgen::opening::{Opening, Route};
use crate::loadgen::played::{Player, end_reason};
use crate::loadgen::protocol::plans::ReplayPlan;
use crate::loadgen::report::Report;

/// The only player of its thread.
const PLAYER: u32 = 0;
/// Of every publish: a broker answers them in order.
const PUBLISH_ID: &[u8] = b"p";

/// What all replays of a plan have had.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    replays: u64,
    messages: u64,
    pages: u64,
    misses: u64,
    /// Messages that did not follow the one before: repeated or out of order.
    disorders: u64,
    gaps: u64,
    replayed_us: u64,
    replay_us: Latencies,
    publish_us: Latencies,
}

/// An answered listen whose messages are coming.
struct Page {
    index: usize,
    left_count: u64,
    /// The position of the next page; `None`: this is the last.
    next: Option<String>,
}

/// Replays everything repeatedly, each time on a new connection.
pub(crate) struct Replay {
    plan: ReplayPlan,
    address: SocketAddr,
    opening: Arc<Opening>,
    slot: Option<Slot>,
    /// Why it cannot go on.
    failure: Option<String>,
    began_us: u64,
    cpu_began_us: u64,
    /// When the last message of the server came.
    heard_us: u64,
    /// When the listens of this replay were sent.
    asked_us: u64,
    page: Option<Page>,
    /// Listens whose last page has come.
    live_count: usize,
    /// By key: the highest number so far.
    last_numbers: Vec<u32>,
    /// When the unanswered publishes were sent.
    published_us: VecDeque<u64>,
    next_publish_us: u64,
    figures: Figures,
}

impl Replay {
    /// # Errors
    /// There is nothing to replay, or a path that a request cannot carry.
    pub(crate) fn new(plan: ReplayPlan) -> Result<Self, String> {
        if plan.keys.is_empty() {
            return Err("replay: a key is needed".to_owned());
        }
        let address = loopback(plan.port);
        let now_us = now_us();
        Ok(Self {
            address,
            opening: Arc::new(opening(address, &plan.path)?),
            slot: None,
            failure: None,
            began_us: now_us,
            cpu_began_us: thread_cpu_us(),
            heard_us: now_us,
            asked_us: 0,
            page: None,
            live_count: 0,
            last_numbers: Vec::new(),
            published_us: VecDeque::new(),
            next_publish_us: 0,
            figures: Figures::default(),
            plan,
        })
    }

    fn connect(&mut self, now_us: u64, connections: &mut Connections) {
        self.heard_us = now_us;
        let route = Route::of_player(self.address, PLAYER);
        match connections.start(&self.opening, route, now_us) {
            Ok(slot) => self.slot = Some(slot),
            Err(reason) => self.failure = Some(reason),
        }
    }

    fn leave(&mut self, connections: &mut Connections) {
        if let Some(slot) = self.slot.take() {
            connections.close(slot);
            connections.vacate(slot);
        }
    }

    /// From the first listen to the last message of the last page of the last listen.
    fn begin(&mut self, slot: Slot, connections: &mut Connections) {
        self.published_us.clear();
        self.next_publish_us = 0;
        self.last_numbers = vec![0; self.plan.keys.len()];
        self.live_count = 0;
        self.page = None;
        self.asked_us = now_us();
        for (index, key) in self.plan.keys.iter().enumerate() {
            connections.write(slot, &text_frame(&format!("listen {index} {key} {}", self.plan.first)));
        }
        self.figures.pages += self.plan.keys.len() as u64;
        self.publish_due(slot, connections);
    }

    fn publish_due(&mut self, slot: Slot, connections: &mut Connections) {
        let now_us = now_us();
        if now_us >= self.next_publish_us {
            connections.write(slot, &text_frame(&format!("publish p {}\n1", self.plan.publish_key)));
            self.published_us.push_back(now_us);
            self.next_publish_us = now_us + self.plan.publish_every_ms * 1_000;
        }
    }

    fn is_replayed(&self) -> bool {
        self.live_count == self.plan.keys.len()
    }

    /// # Errors
    /// The server answers with something else than it must.
    fn take(&mut self, slot: Slot, message: &[u8], connections: &mut Connections) -> Result<(), String> {
        let incoming = Incoming::parse(message).ok_or("a message that is not understood")?;
        if let Incoming::Error { refusal, .. } = incoming {
            return Err(refusal.code().into_owned());
        }
        if self.page.is_some() {
            // The replayed messages follow their answer with nothing in between [P-6.4].
            let Incoming::Message { payload, .. } = incoming else {
                return Err("a replay with something in between".to_owned());
            };
            let (_, number) = stamp(payload).ok_or("a message that is not of the log")?;
            self.on_replayed(slot, number, connections);
        } else {
            match incoming {
                Incoming::Welcome => self.begin(slot, connections),
                Incoming::Ok { id: PUBLISH_ID, .. } => {
                    if let Some(sent_us) = self.published_us.pop_front() {
                        self.figures.publish_us.record(now_us() - sent_us);
                    }
                }
                Incoming::Ok { id, options } => self.on_page(slot, id, options, connections)?,
                _ => {}
            }
        }
        if !self.is_replayed() {
            self.publish_due(slot, connections);
        } else if self.published_us.is_empty() {
            self.end(connections);
        }
        Ok(())
    }

    fn on_page(&mut self, slot: Slot, id: &[u8], options: &[u8], connections: &mut Connections) -> Result<(), String> {
        let (index, count) = digits::parse(id);
        let index = index as usize;
        if count == 0 || index >= self.plan.keys.len() {
            return Err("an answer to no request".to_owned());
        }
        let answer = Answer::parse(options).ok_or("an answer that is not understood")?;
        self.figures.gaps += u64::from(answer.has_gap);
        let next = answer.has_more.then(|| String::from_utf8_lossy(answer.position).into_owned());
        let page = Page { index, left_count: answer.replayed_count, next };
        if page.left_count > 0 {
            self.page = Some(page);
        } else {
            self.end_page(slot, page, connections);
        }
        Ok(())
    }

    fn on_replayed(&mut self, slot: Slot, number: u32, connections: &mut Connections) {
        let Some(mut page) = self.page.take() else { return };
        let last_number = &mut self.last_numbers[page.index];
        self.figures.messages += 1;
        self.figures.misses += u64::from(number.saturating_sub(*last_number).saturating_sub(1));
        self.figures.disorders += u64::from(number <= *last_number);
        *last_number = number.max(*last_number);
        page.left_count -= 1;
        if page.left_count > 0 {
            self.page = Some(page);
        } else {
            self.end_page(slot, page, connections);
        }
    }

    fn end_page(&mut self, slot: Slot, Page { index, next, .. }: Page, connections: &mut Connections) {
        if let Some(position) = next {
            let text = format!("listen {index} {} since={position}", self.plan.keys[index]);
            connections.write(slot, &text_frame(&text));
            self.figures.pages += 1;
            return;
        }
        self.live_count += 1;
        if self.is_replayed() {
            let duration_us = now_us() - self.asked_us;
            self.figures.replayed_us += duration_us;
            self.figures.replay_us.record(duration_us);
        }
    }

    /// Everything is replayed, and every publish is answered.
    fn end(&mut self, connections: &mut Connections) {
        let missing = |last: &u32| u64::from(self.plan.messages.saturating_sub(*last));
        self.figures.misses += self.last_numbers.iter().map(missing).sum::<u64>();
        self.figures.replays += 1;
        self.leave(connections);
    }

    fn report(&self) -> Report {
        let mut body = json!(self.figures);
        body["durationUs"] = json!(now_us() - self.began_us);
        body["cpuUs"] = json!(thread_cpu_us() - self.cpu_began_us);
        Report::Alone("replayed", body)
    }
}

impl Job for Replay {
    fn step(&mut self, now_us: u64, connections: &mut Connections) -> Step {
        if self.slot.is_none() && self.failure.is_none() {
            if self.figures.replays > 0 && now_us - self.began_us >= self.plan.duration_ms * 1_000 {
                return Step::Done(self.report());
            }
            self.connect(now_us, connections);
        }
        let silent_us = self.heard_us + self.plan.timeout_ms * 1_000;
        if now_us >= silent_us {
            self.failure.get_or_insert_with(|| "the server is silent".to_owned());
        }
        if let Some(failure) = self.failure.take() {
            self.leave(connections);
            return Step::Done(Report::Failed(format!("replay: {failure}")));
        }
        Step::Wait(Some(silent_us))
    }

    fn on(&mut self, event: &Event, connections: &mut Connections) {
        if self.slot != Some(event.slot) || event.player != PLAYER {
            return;
        }
        match &event.kind {
            EventKind::Failed(reason) => self.failure = Some(reason.clone()),
            EventKind::Lost { code } => self.failure = Some(end_reason(*code)),
            EventKind::Readable { until_end } => connections.play(event.slot, *until_end, self),
            _ => {}
        }
    }
}

impl Player for Replay {
    fn on_message(&mut self, slot: Slot, payload: &[u8], at_us: u64, connections: &mut Connections) {
        self.heard_us = at_us;
        if let Err(reason) = self.take(slot, payload, connections) {
            self.failure = Some(reason);
            connections.vacate(slot);
        }
    }
}
