//! `send`: a few texts to every connection, once, and their answer.

use rustc_hash::FxHashMap;

use crate::clock::now_us;
use crate::loadgen::batch::text_frame;
use crate::loadgen::connection::{Awaited, GroupId, Slot};
use crate::loadgen::order::{OrderNumber, Report, SendTask};
use crate::loadgen::worker::Worker;

pub(crate) struct Sending {
    number: OrderNumber,
    waiting_count: u64,
    ok_count: u64,
    failed_count: u64,
    deadline_us: u64,
}

impl Worker {
    pub(super) fn begin_send(&mut self, number: OrderNumber, task: &SendTask) {
        let mut frames: FxHashMap<GroupId, Vec<u8>> = FxHashMap::default();
        let slots = self.open_slots(task.max_connections);
        let mut job =
            Sending { number, waiting_count: 0, ok_count: 0, failed_count: 0, deadline_us: now_us() + task.timeout_us };
        if let Some(prefix) = &task.awaited_prefix {
            self.intake.prefixes.answer = prefix.clone();
            job.waiting_count = slots.len() as u64;
        } else {
            job.ok_count = slots.len() as u64;
        }
        self.jobs.send = Some(job);
        for slot in slots {
            let connection = self.connection(slot);
            if task.awaited_prefix.is_some() {
                connection.awaited.insert(Awaited::ANSWER);
            }
            let group = connection.group;
            let bytes = frames.entry(group).or_insert_with(|| frames_of(&task.texts, group));
            self.write(slot, bytes);
        }
    }

    pub(crate) fn on_answered(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.index()];
        if let Some(job) = self.jobs.send.as_mut().filter(|_| connection.awaited.has(Awaited::ANSWER)) {
            connection.awaited.remove(Awaited::ANSWER);
            job.waiting_count -= 1;
            job.ok_count += 1;
        }
    }

    pub(super) fn answer_lost(&mut self) {
        if let Some(job) = self.jobs.send.as_mut() {
            job.waiting_count -= 1;
            job.failed_count += 1;
        }
    }

    pub(super) fn tick_send(&mut self, now_us: u64) -> Option<u64> {
        let job = self.jobs.send.as_ref()?;
        if job.waiting_count > 0 && now_us < job.deadline_us {
            return Some(job.deadline_us);
        }
        let job = self.jobs.send.take()?;
        if job.waiting_count > 0 {
            for connection in &mut self.connections {
                connection.awaited.remove(Awaited::ANSWER);
            }
        }
        let failed_count = job.failed_count + job.waiting_count;
        self.answer(job.number, Report::Sent { ok_count: job.ok_count, failed_count });
        None
    }
}

/// The texts as frames, with the number of the group for `$GROUP`.
fn frames_of(texts: &[String], group: GroupId) -> Vec<u8> {
    texts.iter().flat_map(|text| text_frame(&text.replace("$GROUP", &group.0.to_string()))).collect()
}
