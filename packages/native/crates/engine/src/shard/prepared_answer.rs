use super::Shard;
use crate::bridge::batch::Frame;

/// Messages of one read that are answered without JavaScript. Those that follow are JavaScript's, which counts their work.
pub(super) const MAX_ANSWERS_PER_READ: u32 = 16;

/// The answer to a message that many connections send, given by JavaScript. It holds for a short time, and until the next
/// multicast: whoever asks then may have to be told something else. ADR 41 has the reasons.
///
/// The shard does not know what either says. A message with exactly these bytes gets exactly these bytes.
#[derive(Default)]
pub(super) struct PreparedAnswer {
    request: Vec<u8>,
    frame: Vec<u8>,
    valid_until_ms: u64,
    /// Positions up to which JavaScript had handled the events of the two lanes when the turn began.
    handled_front_position: u64,
    handled_position: u64,
}

impl PreparedAnswer {
    /// The encoded frame to answer a text message with; `None`: JavaScript answers it.
    pub(super) fn to(&self, message: &[u8], now_ms: u64) -> Option<&[u8]> {
        (now_ms < self.valid_until_ms && message == self.request).then_some(&self.frame)
    }

    /// From now on, JavaScript answers.
    pub(super) fn withdraw(&mut self) {
        self.valid_until_ms = 0;
    }
}

impl Shard {
    pub(crate) fn note_handled_position(&mut self) {
        let queue = &self.shared.shards[self.id.index()].event_queue;
        self.answer.handled_front_position = queue.front.handled_position();
        self.answer.handled_position = queue.rest.handled_position();
    }

    /// Position of the rest up to which JavaScript has handled the events.
    pub(super) fn handled_position(&self) -> u64 {
        self.answer.handled_position
    }

    /// Positions in both lanes up to which all answers of JavaScript have been applied: a prepared answer must not overtake one.
    pub(super) fn answered_positions(&self) -> (u64, u64) {
        match self.inbox.batches.is_empty() {
            true => (self.answer.handled_front_position, self.answer.handled_position),
            false => (0, 0),
        }
    }

    pub(super) fn prepare_answer(&mut self, request: &[u8], frame: &Frame<'_>, valid_ms: u16) {
        let answer = &mut self.answer;
        answer.request.clear();
        answer.request.extend_from_slice(request);
        answer.frame.clear();
        answer.frame.extend_from_slice(frame.bytes());
        answer.valid_until_ms = self.now_ms + u64::from(valid_ms);
    }
}
