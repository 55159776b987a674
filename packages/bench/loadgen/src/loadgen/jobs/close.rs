//! `close`: closes connections, with or without a close frame.

use std::collections::BTreeMap;

use crate::clock::now_us;
use crate::loadgen::connection::{Awaited, Phase, Reading, Slot};
use crate::loadgen::order::{CloseTask, OrderNumber, Report};
use crate::loadgen::worker::{NO_CLOSE_FRAME, Worker};
use crate::socket;

pub(crate) struct Closing {
    number: OrderNumber,
    left_count: u64,
    by_code: BTreeMap<u16, u64>,
    deadline_us: u64,
}

impl Worker {
    pub(super) fn begin_close(&mut self, number: OrderNumber, task: CloseTask) {
        let slots = self.open_slots(task.max_connections);
        let deadline_us = now_us() + task.timeout_us;
        let left_count = slots.len() as u64;
        self.jobs.close = Some(Closing { number, left_count, by_code: BTreeMap::new(), deadline_us });
        for slot in slots {
            let connection = self.connection(slot);
            connection.awaited.insert(Awaited::CLOSE);
            connection.reading = Reading::Freely;
            if task.is_abrupt {
                // If the option fails, the connection still ends.
                let _ = connection.stream.as_ref().map(|stream| socket::reset_on_close(stream.socket()));
                self.cut(slot);
            } else {
                self.send_close(slot);
                self.read(slot, false);
            }
        }
    }

    pub(super) fn on_closed(&mut self, code: u16) {
        if let Some(job) = self.jobs.close.as_mut() {
            job.left_count -= 1;
            *job.by_code.entry(code).or_default() += 1;
        }
    }

    pub(super) fn tick_close(&mut self, now_us: u64) -> Option<u64> {
        let job = self.jobs.close.as_ref()?;
        if job.left_count > 0 && now_us < job.deadline_us {
            return Some(job.deadline_us);
        }
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            if connection.awaited.has(Awaited::CLOSE) || connection.phase == Phase::Ending {
                self.cut(Slot(index as u32));
            }
        }
        let job = self.jobs.close.take()?;
        self.answer(job.number, Report::Closed { by_code: job.by_code });
        None
    }

    fn cut(&mut self, slot: Slot) {
        self.lose(slot, NO_CLOSE_FRAME);
        self.vacate(slot);
    }
}
