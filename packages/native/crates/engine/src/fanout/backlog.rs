use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::chain::MAX_PIECES;
use super::chunk::Gauge;
use super::records::{Policy, Record};
use crate::id::TopicId;

/// Entries and bytes that may be dead before the live ones are moved together: each is moved at most once more per such pass.
const MIN_DEAD_ENTRIES: usize = 64;
const MIN_DEAD_BYTES: usize = 4 << 10;

/// Output of one connection that lags, between its chain and its cursor: frames of which some may still be left out.
///
/// Keeps the order of the frames. Cost: a constant per frame that is added, and per frame that is left out.
pub(crate) struct Backlog {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The newest frame of each topic whose older ones are left out.
    latest: FxHashMap<TopicId, u32>,
    live_bytes: usize,
    /// Entries that are dead or say that frames were left out.
    left_out_entries: usize,
    /// Bytes of frames of which the oldest may be left out, and the entry to begin with.
    oldest_bytes: usize,
    oldest_index: usize,
    newest_oldest_index: usize,
    /// What is told where frames are missing: the text of its time, as the group may be gone when it is told.
    notices: Vec<Rc<[u8]>>,
    notice_ids: FxHashMap<Rc<[u8]>, NoticeId>,
    notice_bytes: usize,
    gauge: Gauge,
}

/// A notice of one backlog. Notices with the same text are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NoticeId(u32);

#[derive(Debug, Clone, Copy)]
struct Entry {
    from: u32,
    len: u32,
    kind: Kind,
    /// To tell when the frame is left out.
    told: Option<NoticeId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kept,
    Droppable(Policy),
    /// One more notice for the frame before it.
    Extra,
    /// A frame was left out here, which is told.
    LeftOut,
    Dead,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// A newer one of their topic follows.
    pub(crate) conflated_count: u64,
    /// They were the oldest.
    pub(crate) dropped_count: u64,
}

impl Backlog {
    pub(crate) fn new(gauge: &Gauge) -> Self {
        Self {
            bytes: Vec::new(),
            entries: Vec::new(),
            latest: FxHashMap::default(),
            live_bytes: 0,
            left_out_entries: 0,
            oldest_bytes: 0,
            oldest_index: 0,
            newest_oldest_index: 0,
            notices: Vec::new(),
            notice_ids: FxHashMap::default(),
            notice_bytes: 0,
            gauge: gauge.clone(),
        }
    }

    /// Bytes that wait, with one of each notice.
    pub(crate) fn live_bytes(&self) -> usize {
        self.live_bytes + self.notice_bytes
    }

    pub(crate) fn is_overlong(&self) -> bool {
        self.entries.len() - self.left_out_entries > MAX_PIECES
    }

    /// Adds frames that are never left out.
    pub(crate) fn push_kept(&mut self, frames: &[u8]) {
        self.push(frames, Kind::Kept, None);
    }

    /// The notice with this text, which counts as waiting from now on.
    pub(crate) fn notice(&mut self, text: &Rc<[u8]>) -> NoticeId {
        if let Some(known) = self.notice_ids.get(text) {
            return *known;
        }
        let id = NoticeId(self.notices.len() as u32);
        self.notices.push(Rc::clone(text));
        self.notice_ids.insert(Rc::clone(text), id);
        self.notice_bytes += text.len();
        self.gauge.add(text.len());
        id
    }

    /// Adds a frame that may be left out, and leaves out what it replaces.
    pub(crate) fn push_droppable(
        &mut self,
        frame: &[u8],
        record: &Record,
        told: Option<NoticeId>,
        left_out: &mut LeftOut,
    ) {
        let index = self.entries.len();
        self.push(frame, Kind::Droppable(record.policy), told);
        match record.policy {
            Policy::DropOldest => {
                self.oldest_bytes += frame.len();
                self.newest_oldest_index = index;
            }
            Policy::Latest => {
                if let Some(older) = self.latest.insert(record.topic, index as u32) {
                    self.leave_out(older as usize);
                    left_out.conflated_count += 1;
                }
            }
        }
    }

    /// Adds one more notice for the frame that was added last.
    pub(crate) fn push_extra(&mut self, told: Option<NoticeId>) {
        self.push(&[], Kind::Extra, told);
    }

    /// Notes the place of a frame that is left out and was never added.
    pub(crate) fn note_left_out(&mut self, told: Option<NoticeId>) {
        if told.is_some() {
            self.push(&[], Kind::LeftOut, told);
            self.left_out_entries += 1;
        }
    }

    /// Leaves out the oldest frames that may be, until `max_bytes` of their kind are left, but never the newest one.
    pub(crate) fn drop_oldest(&mut self, max_bytes: usize, left_out: &mut LeftOut) {
        while self.oldest_bytes > max_bytes && self.oldest_index < self.newest_oldest_index {
            let index = self.oldest_index;
            self.oldest_index += 1;
            if self.entries[index].kind == Kind::Droppable(Policy::DropOldest) {
                self.oldest_bytes -= self.entries[index].len as usize;
                self.leave_out(index);
                left_out.dropped_count += 1;
            }
        }
    }

    /// Frees the bytes of frames that are left out, once they are more than the others.
    pub(crate) fn compact(&mut self) {
        let live_entries = self.entries.len() - self.left_out_entries;
        if self.left_out_entries <= live_entries + MIN_DEAD_ENTRIES
            && self.bytes.len() <= 2 * self.live_bytes + MIN_DEAD_BYTES
        {
            return;
        }
        let mut compacted = Self::new(&self.gauge);
        let topics: FxHashMap<u32, TopicId> = self.latest.iter().map(|(topic, index)| (*index, *topic)).collect();
        let mut open = OpenGaps::default();
        for (index, entry) in self.entries.iter().enumerate() {
            if !open.passes(entry) {
                continue;
            }
            let at = compacted.entries.len();
            let told = entry.told.map(|told| compacted.notice(self.text(told)));
            compacted.push(self.frame(entry), entry.kind, told);
            match entry.kind {
                Kind::LeftOut => compacted.left_out_entries += 1,
                Kind::Droppable(Policy::DropOldest) => {
                    compacted.oldest_bytes += entry.len as usize;
                    compacted.newest_oldest_index = at;
                }
                Kind::Droppable(Policy::Latest) => {
                    if let Some(topic) = topics.get(&(index as u32)) {
                        compacted.latest.insert(*topic, at as u32);
                    }
                }
                Kind::Kept | Kind::Extra | Kind::Dead => {}
            }
        }
        *self = compacted;
    }

    /// All frames in their order, and each notice once before the next frame that it may be about.
    pub(crate) fn frames(&self) -> Vec<u8> {
        let mut frames = Vec::with_capacity(self.live_bytes());
        let mut open = OpenGaps::default();
        for entry in &self.entries {
            match (open.passes(entry), entry.kind, entry.told) {
                (true, Kind::LeftOut, Some(told)) => frames.extend_from_slice(self.text(told)),
                (true, ..) => frames.extend_from_slice(self.frame(entry)),
                (false, ..) => {}
            }
        }
        frames
    }

    fn frame(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.from as usize..(entry.from + entry.len) as usize]
    }

    fn text(&self, notice: NoticeId) -> &Rc<[u8]> {
        &self.notices[notice.0 as usize]
    }

    fn push(&mut self, frames: &[u8], kind: Kind, told: Option<NoticeId>) {
        self.entries.push(Entry { from: self.bytes.len() as u32, len: frames.len() as u32, kind, told });
        self.bytes.extend_from_slice(frames);
        self.live_bytes += frames.len();
        self.gauge.add(frames.len());
    }

    fn leave_out(&mut self, index: usize) {
        let entry = &mut self.entries[index];
        self.live_bytes -= entry.len as usize;
        entry.len = 0;
        entry.kind = if entry.told.is_some() { Kind::LeftOut } else { Kind::Dead };
        self.left_out_entries += 1;
        for extra in self.entries[index + 1..].iter_mut().take_while(|entry| entry.kind == Kind::Extra) {
            extra.kind = Kind::LeftOut;
            self.left_out_entries += 1;
        }
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.gauge.subtract(self.bytes.len() + self.notice_bytes);
    }
}

/// Notices of gaps after which no frame of their group has come yet: one stands for all frames left out there.
#[derive(Default)]
struct OpenGaps(FxHashSet<NoticeId>);

impl OpenGaps {
    /// Whether the entry is still needed behind those that came before it.
    fn passes(&mut self, entry: &Entry) -> bool {
        match (entry.kind, entry.told) {
            (Kind::Dead, _) | (Kind::LeftOut, None) => false,
            (Kind::LeftOut, Some(told)) => self.0.insert(told),
            (Kind::Droppable(_) | Kind::Extra, Some(told)) => {
                self.0.remove(&told);
                true
            }
            (Kind::Droppable(_) | Kind::Extra, None) => true,
            // It does not say for which groups it is.
            (Kind::Kept, _) => {
                self.0.clear();
                true
            }
        }
    }
}
