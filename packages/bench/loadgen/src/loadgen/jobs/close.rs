//! `close`: closes connections, with or without a close frame.

use std::collections::BTreeMap;

use super::{Job, Step};
use crate::clock::now_us;
use crate::loadgen::connection::{Awaited, Phase, Reading, Slot};
use crate::loadgen::connections::{Connections, Event, EventKind};
use crate::loadgen::figures::{Figure, Figures};
use crate::loadgen::protocol::Close;
use crate::loadgen::report::Report;
use crate::socket;

pub(crate) struct Closing {
    left_count: u64,
    by_code: BTreeMap<u16, u64>,
    deadline_us: u64,
    /// Those that did not answer have been cut; they are counted before the next step.
    has_cut: bool,
}

impl Closing {
    pub(crate) fn begin(command: &Close, max_connections: usize, connections: &mut Connections) -> Self {
        let slots = connections.open_slots(max_connections);
        let left_count = slots.len() as u64;
        let deadline_us = now_us() + command.timeout_ms * 1_000;
        for slot in slots {
            let connection = connections.get_mut(slot);
            connection.reading = Reading::Freely;
            if command.abrupt {
                connection.awaited.insert(Awaited::CLOSE);
                // If the option fails, the connection still ends.
                let _ = connection.stream.as_ref().map(|stream| socket::reset_on_close(stream.socket()));
                connections.cut(slot);
            } else {
                connections.close(slot);
                connections.read(slot, false);
            }
        }
        Self { left_count, by_code: BTreeMap::new(), deadline_us, has_cut: false }
    }
}

impl Job for Closing {
    fn on(&mut self, event: &Event, connections: &mut Connections) {
        if let EventKind::Lost { code } = event.kind
            && connections.get(event.slot).awaited.has(Awaited::CLOSE)
        {
            self.left_count -= 1;
            *self.by_code.entry(code).or_default() += 1;
        }
    }

    fn step(&mut self, now_us: u64, connections: &mut Connections) -> Step {
        if self.left_count > 0 && !self.has_cut {
            if now_us < self.deadline_us {
                return Step::Wait(Some(self.deadline_us));
            }
            self.has_cut = true;
            cut_all(connections, |awaited, _| awaited.has(Awaited::CLOSE));
            return Step::Wait(Some(0));
        }
        cut_all(connections, |_, phase| phase == Phase::Ending);
        let by_code = std::mem::take(&mut self.by_code);
        let count = Figure::Sum(by_code.values().sum());
        Step::Done(Report::Figures("closed", Figures::from([("count", count), ("byCode", Figure::counts(by_code))])))
    }
}

fn cut_all(connections: &mut Connections, is_cut: impl Fn(Awaited, Phase) -> bool) {
    let slots: Vec<Slot> = connections
        .iter()
        .filter(|(_, connection)| is_cut(connection.awaited, connection.phase))
        .map(|(slot, _)| slot)
        .collect();
    slots.into_iter().for_each(|slot| connections.cut(slot));
}
