//! `send`: a few texts to every connection, once, and their answer.

use rustc_hash::FxHashMap;

use super::{Job, Step};
use crate::clock::now_us;
use crate::loadgen::batch::text_frame;
use crate::loadgen::connection::{Awaited, GroupId};
use crate::loadgen::connections::{Connections, Event, EventKind};
use crate::loadgen::figures::{Figure, Figures};
use crate::loadgen::protocol::Send;
use crate::loadgen::report::Report;

pub(crate) struct Sending {
    waiting_count: u64,
    ok_count: u64,
    failed_count: u64,
    deadline_us: u64,
}

impl Sending {
    pub(crate) fn begin(command: &Send, max_connections: usize, connections: &mut Connections) -> Self {
        let mut frames: FxHashMap<GroupId, Vec<u8>> = FxHashMap::default();
        let slots = connections.open_slots(max_connections);
        let mut job =
            Self { waiting_count: 0, ok_count: 0, failed_count: 0, deadline_us: now_us() + command.timeout_ms * 1_000 };
        if let Some(prefix) = &command.r#await {
            connections.intake.prefixes.answer = prefix.as_bytes().into();
            job.waiting_count = slots.len() as u64;
        } else {
            job.ok_count = slots.len() as u64;
        }
        for slot in slots {
            let connection = connections.get_mut(slot);
            if command.r#await.is_some() {
                connection.awaited.insert(Awaited::ANSWER);
            }
            let group = connection.group;
            let bytes = frames.entry(group).or_insert_with(|| frames_of(&command.per_connection, group));
            connections.write(slot, bytes);
        }
        job
    }
}

impl Job for Sending {
    fn on(&mut self, event: &Event, connections: &mut Connections) {
        match event.kind {
            EventKind::Answered => {
                let connection = connections.get_mut(event.slot);
                if connection.awaited.has(Awaited::ANSWER) {
                    connection.awaited.remove(Awaited::ANSWER);
                    self.waiting_count -= 1;
                    self.ok_count += 1;
                }
            }
            EventKind::Lost { .. } if connections.get(event.slot).awaited.has(Awaited::ANSWER) => {
                self.waiting_count -= 1;
                self.failed_count += 1;
            }
            _ => {}
        }
    }

    fn step(&mut self, now_us: u64, connections: &mut Connections) -> Step {
        if self.waiting_count > 0 {
            if now_us < self.deadline_us {
                return Step::Wait(Some(self.deadline_us));
            }
            connections.iter_mut().for_each(|connection| connection.awaited.remove(Awaited::ANSWER));
        }
        let failed_count = Figure::Sum(self.failed_count + self.waiting_count);
        Step::Done(Report::Figures(
            "sent",
            Figures::from([("ok", Figure::Sum(self.ok_count)), ("failed", failed_count)]),
        ))
    }
}

/// The texts as frames, with the number of the group for `$GROUP`.
fn frames_of(texts: &[String], group: GroupId) -> Vec<u8> {
    texts.iter().flat_map(|text| text_frame(&text.replace("$GROUP", &group.0.to_string()))).collect()
}
