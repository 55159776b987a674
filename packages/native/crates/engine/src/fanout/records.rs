use std::collections::VecDeque;

use crate::id::{GroupId, TopicId};

/// Which frames may be left out for a member that lags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Policy {
    /// The oldest ones.
    DropOldest,
    /// All but the newest of each topic.
    Latest,
}

/// A frame of a log that may be left out. A frame without a record is never left out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) start: u64,
    pub(crate) len: u32,
    pub(crate) topic: TopicId,
    pub(crate) policy: Policy,
    /// Its members are told when the frame is left out. The cohort has this group, and the group its notice, for as long as a
    /// member may read the frame.
    pub(crate) told: Option<GroupId>,
    /// Names one more group to tell of the frame of the record before it.
    pub(crate) is_extra: bool,
}

impl Record {
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
}

/// What one group says about a frame of a topic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Droppable {
    pub(crate) topic: TopicId,
    pub(crate) policy: Policy,
    pub(crate) told: Option<GroupId>,
}

/// The frames of a log that may be left out, oldest first.
#[derive(Default)]
pub(crate) struct Records(VecDeque<Record>);

impl Records {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a frame that begins at `from` or later may be left out.
    pub(crate) fn has_from(&self, from: u64) -> bool {
        self.0.back().is_some_and(|record| record.start >= from)
    }

    /// Notes the frame that was appended last, for the first group that it is for.
    pub(crate) fn push(&mut self, start: u64, len: u32, droppable: Droppable) {
        let Droppable { topic, policy, told } = droppable;
        self.0.push_back(Record { start, len, topic, policy, told, is_extra: false });
    }

    /// The frame that began at `start` is for one more group: the strictest group decides.
    pub(crate) fn add_group(&mut self, start: u64, droppable: Option<Droppable>) {
        let Some(Droppable { policy, told, .. }) = droppable else {
            while self.0.back().is_some_and(|record| record.start == start) {
                self.0.pop_back();
            }
            return;
        };
        let Some(first) = self.0.iter().rposition(|record| !record.is_extra) else { return };
        let record = &mut self.0[first];
        if record.start != start {
            return;
        }
        record.policy = record.policy.max(policy);
        if told.is_some() {
            let extra = Record { told, is_extra: true, ..*record };
            if record.told.is_none() {
                record.told = told;
            } else {
                self.0.push_back(extra);
            }
        }
    }

    /// The records of frames that begin at `from` or later, and before `until`.
    pub(crate) fn between(&self, from: u64, until: u64) -> impl DoubleEndedIterator<Item = &Record> {
        let first = self.0.partition_point(|record| record.start < from);
        let end = self.0.partition_point(|record| record.start < until);
        self.0.range(first..end.max(first))
    }

    pub(crate) fn release_before(&mut self, position: u64) {
        while self.0.front().is_some_and(|record| record.start < position) {
            self.0.pop_front();
        }
        if self.0.is_empty() {
            self.0.shrink_to(KEPT_RECORDS);
        }
    }
}

/// Records that a log keeps room for while it is empty.
const KEPT_RECORDS: usize = 64;
