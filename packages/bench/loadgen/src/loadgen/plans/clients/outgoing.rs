//! What one client has published, in order, and what it holds back after the server's rate limit [P-10.7].

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

/// Publishes sent after a refusal; each answer lets one more go, as in the client library.
const MIN_WINDOW: usize = 8;
/// A server that names no time, or less than this, is given this time.
const MIN_RETRY_US: u64 = 50_000;

/// A message that is to be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outbound {
    /// Another one each time that the message is sent.
    pub(super) request: u64,
    /// The message id, the same each time.
    pub(super) id: u64,
    /// Its place in the plan.
    pub(super) place: usize,
}

/// Messages with their ids, from the first attempt to the answer.
#[derive(Debug)]
pub(super) struct Outgoing {
    last_id: u64,
    last_request: u64,
    /// By request.
    unanswered: FxHashMap<u64, Outbound>,
    /// Refused, or behind one that was: message id and place in the plan.
    held: BTreeMap<u64, usize>,
    /// Until then nothing is sent, nor while an earlier one is unanswered: it may be refused, too.
    paused_until_us: Option<u64>,
    /// Most unanswered publishes, until nothing is held any more.
    window: usize,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self {
            last_id: 0,
            last_request: 0,
            unanswered: FxHashMap::default(),
            held: BTreeMap::new(),
            paused_until_us: None,
            window: usize::MAX,
        }
    }
}

impl Outgoing {
    /// Takes a message whose time has come; it goes behind all that are held.
    pub(super) fn add(&mut self, place: usize) -> Option<Outbound> {
        self.last_id += 1;
        if self.window < usize::MAX {
            self.held.insert(self.last_id, place);
            return None;
        }
        Some(self.send(self.last_id, place))
    }

    /// The next message that was held and may go now.
    pub(super) fn release(&mut self, now_us: u64) -> Option<Outbound> {
        if let Some(until_us) = self.paused_until_us {
            if now_us < until_us || !self.unanswered.is_empty() {
                return None;
            }
            self.paused_until_us = None;
        }
        if self.unanswered.len() >= self.window {
            return None;
        }
        let Some((id, place)) = self.held.pop_first() else {
            self.window = usize::MAX;
            return None;
        };
        Some(self.send(id, place))
    }

    /// Takes the message out that this answers.
    pub(super) fn accepted(&mut self, request: u64) -> Option<Outbound> {
        let message = self.unanswered.remove(&request)?;
        self.window = self.window.saturating_add(1);
        Some(message)
    }

    /// Takes the message out that this answers, and that was refused for good.
    pub(super) fn failed(&mut self, request: u64) -> Option<Outbound> {
        self.unanswered.remove(&request)
    }

    /// The message comes again after that time, and others behind it. Returns when, if the client was not waiting yet.
    pub(super) fn refused(&mut self, request: u64, retry_after_us: u64, now_us: u64) -> Option<u64> {
        let Outbound { id, place, .. } = self.unanswered.remove(&request)?;
        self.held.insert(id, place);
        if self.paused_until_us.is_some() {
            return None;
        }
        let retry_after_us = retry_after_us.max(MIN_RETRY_US);
        let until_us = now_us + retry_after_us + fastrand::u64(0..=retry_after_us / 4);
        self.window = MIN_WINDOW;
        self.paused_until_us = Some(until_us);
        Some(until_us)
    }

    pub(super) fn held_count(&self) -> usize {
        self.held.len()
    }

    /// The connection has ended: places of all messages that were held, and are lost. Answers cannot come either.
    pub(super) fn end(&mut self) -> impl Iterator<Item = usize> + use<> {
        let Self { held, .. } = std::mem::take(self);
        held.into_values()
    }

    fn send(&mut self, id: u64, place: usize) -> Outbound {
        self.last_request += 1;
        let message = Outbound { request: self.last_request, id, place };
        self.unanswered.insert(message.request, message);
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(outgoing: &mut Outgoing, now_us: u64) -> Vec<(u64, usize)> {
        std::iter::from_fn(|| outgoing.release(now_us)).map(|message| (message.request, message.place)).collect()
    }

    #[test]
    fn what_is_refused_comes_again_before_later_messages_and_after_the_time() {
        let mut outgoing = Outgoing::default();
        let [first, second] = [outgoing.add(10).unwrap(), outgoing.add(11).unwrap()];
        let until_us = outgoing.refused(first.request, 400_000, 1_000).unwrap();
        assert!((401_000..=501_000).contains(&until_us));
        assert_eq!(outgoing.add(12), None);
        assert_eq!(requests(&mut outgoing, until_us), [], "one of before is not answered yet");
        assert_eq!(outgoing.refused(second.request, 400_000, 2_000), None, "it waits already");
        assert_eq!(requests(&mut outgoing, until_us - 1), []);
        assert_eq!(requests(&mut outgoing, until_us), [(3, 10), (4, 11), (5, 12)]);
        assert_eq!(outgoing.held_count(), 0);
        assert_eq!(outgoing.accepted(3).map(|message| message.id), Some(first.id));
        assert_eq!(outgoing.add(13).map(|message| message.request), Some(6), "nothing is held any more");
    }

    #[test]
    fn few_go_first_and_one_more_with_each_answer() {
        let mut outgoing = Outgoing::default();
        let first = outgoing.add(0).unwrap();
        let until_us = outgoing.refused(first.request, 0, 0).unwrap();
        assert!(until_us >= MIN_RETRY_US);
        for place in 1..20 {
            assert_eq!(outgoing.add(place), None);
        }
        assert_eq!(requests(&mut outgoing, until_us).len(), MIN_WINDOW);
        assert!(outgoing.accepted(2).is_some());
        assert_eq!(requests(&mut outgoing, until_us).len(), 2);
        assert_eq!(outgoing.accepted(2), None);
        assert!(outgoing.failed(3).is_some());
        assert_eq!(requests(&mut outgoing, until_us).len(), 1);
        assert_eq!(outgoing.end().count(), 20 - MIN_WINDOW - 3);
        assert_eq!(outgoing.held_count(), 0);
    }
}
