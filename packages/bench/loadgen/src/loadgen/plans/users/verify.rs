//! All published messages, and those that each session received: recorded during the run. After it, the check that every
//! user got everything once and in order, and that the history and the live messages join.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use serde::Serialize;

/// One message that a user has published.
#[derive(Debug, Clone, Copy)]
pub(super) struct Publication {
    pub(super) channel: u32,
    /// Number of the user.
    pub(super) sender: u32,
    pub(super) sent_us: u64,
    /// `u64::MAX`: never.
    pub(super) acked_us: u64,
}

/// All messages of a run, by their number.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) publications: Vec<Publication>,
}

impl Ledger {
    /// Records a message and returns its number.
    pub(super) fn publish(&mut self, channel: u32, sender: u32, sent_us: u64) -> u32 {
        self.publications.push(Publication { channel, sender, sent_us, acked_us: u64::MAX });
        self.publications.len() as u32 - 1
    }

    /// Records the server's answer and returns when the message was sent.
    ///
    /// `None`: there is no such message, or it was answered before.
    pub(super) fn ack(&mut self, number: u32, now_us: u64) -> Option<u64> {
        let publication = self.publications.get_mut(number as usize)?;
        (publication.acked_us == u64::MAX).then(|| {
            publication.acked_us = now_us;
            publication.sent_us
        })
    }
}

/// A message as a session received it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) number: u32,
    /// `None`: the broker gives no positions.
    pub(super) offset: Option<u64>,
}

/// The answer to a request for the history.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) answered_us: u64,
    /// Up to which it is complete.
    pub(super) offset: Option<u64>,
    pub(super) receipts: Vec<Receipt>,
}

/// What one user received between the answer to its listen and its end.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) channel: u32,
    /// When the answer to the listen came.
    pub(super) since_us: u64,
    /// When the last round ended: messages acknowledged earlier must have come. `None`: the connection was lost, so
    /// nothing is known.
    pub(super) until_us: Option<u64>,
    pub(super) epoch: Vec<u8>,
    pub(super) history: Option<History>,
    pub(super) live: Vec<Receipt>,
}

/// The faults of a sequence of messages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Faults {
    /// Messages that should have come.
    pub(super) expected: u64,
    pub(super) misses: u64,
    pub(super) duplicates: u64,
    /// Messages after which an earlier one came: by position, and by the order in which their sender sent them.
    pub(super) inversions: u64,
}

/// The result of the checks of a run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Verdict {
    pub(super) sessions: u64,
    pub(super) live: Faults,
    /// Iterations that got a history.
    pub(super) histories: u64,
    /// The history, and then the live messages after the position of its answer.
    pub(super) joined: Faults,
}

/// Checks all sessions.
///
/// Expected live: messages that were sent after the answer to the listen and acknowledged before the last round ended.
/// The user leaves at least half a second later. Expected of history and live together: also messages that were sent
/// and acknowledged earlier, as far back as the request for the history reaches.
pub(super) fn verify(ledger: &Ledger, sessions: &[Session], window_us: u64) -> Verdict {
    let mut verdict = Verdict::default();
    let mut examiner = Examiner::new(ledger);
    for session in sessions {
        verdict.sessions += 1;
        let live = session.live.iter().copied();
        examiner.examine(live, session, session.since_us, &mut verdict.live);
        let Some(history) = &session.history else { continue };
        let Some(joint) = history.offset else { continue };
        verdict.histories += 1;
        // [P-8.6]: the history contains the live messages up to its position.
        let after = session.live.iter().filter(|receipt| receipt.offset.is_none_or(|offset| offset > joint));
        let joined = history.receipts.iter().chain(after).copied();
        let from_us = history.answered_us.saturating_sub(window_us).min(session.since_us);
        examiner.examine(joined, session, from_us, &mut verdict.joined);
    }
    verdict
}

struct Examiner<'a> {
    ledger: &'a Ledger,
    /// Numbers of the messages of each channel, in the order of sending.
    channels: FxHashMap<u32, Vec<u32>>,
    /// By message: the last examined sequence that contained it.
    seen_in: Vec<u32>,
    sequence: u32,
    /// By sender: its last message.
    last_of: FxHashMap<u32, u32>,
}

impl<'a> Examiner<'a> {
    fn new(ledger: &'a Ledger) -> Self {
        let mut channels: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (number, publication) in (0..).zip(&ledger.publications) {
            channels.entry(publication.channel).or_default().push(number);
        }
        let seen_in = vec![0; ledger.publications.len()];
        Self { ledger, channels, seen_in, sequence: 0, last_of: FxHashMap::default() }
    }

    fn examine(
        &mut self,
        receipts: impl Iterator<Item = Receipt>,
        session: &Session,
        from_us: u64,
        faults: &mut Faults,
    ) {
        self.sequence += 1;
        self.last_of.clear();
        let mut last_offset = None;
        for receipt in receipts {
            let Some(seen_in) = self.seen_in.get_mut(receipt.number as usize) else { continue };
            if std::mem::replace(seen_in, self.sequence) == self.sequence {
                faults.duplicates += 1;
                continue;
            }
            let sender = self.ledger.publications[receipt.number as usize].sender;
            let before = self.last_of.insert(sender, receipt.number);
            let is_early = before.is_some_and(|before| before > receipt.number);
            if is_early || compare(last_offset, receipt.offset) != Ordering::Less {
                faults.inversions += 1;
            }
            last_offset = receipt.offset;
        }
        let Some(until_us) = session.until_us else { return };
        let Some(numbers) = self.channels.get(&session.channel) else { return };
        let first = numbers.partition_point(|number| self.ledger.publications[*number as usize].sent_us < from_us);
        for number in &numbers[first..] {
            let publication = &self.ledger.publications[*number as usize];
            if publication.sent_us > until_us {
                break;
            }
            if publication.acked_us <= until_us {
                faults.expected += 1;
                faults.misses += u64::from(self.seen_in[*number as usize] != self.sequence);
            }
        }
    }
}

/// Without positions any order is right.
fn compare(before: Option<u64>, after: Option<u64>) -> Ordering {
    match (before, after) {
        (Some(before), Some(after)) => before.cmp(&after),
        _ => Ordering::Less,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages 0 to 9 of one channel, sent at 0, 10, … by two senders in turn, acknowledged 5 later.
    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        for number in 0..10 {
            assert_eq!(ledger.publish(1, number % 2, u64::from(number) * 10), number);
            assert_eq!(ledger.ack(number, u64::from(number) * 10 + 5), Some(u64::from(number) * 10));
        }
        ledger
    }

    fn receipts(numbers: &[u32]) -> Vec<Receipt> {
        numbers.iter().map(|number| Receipt { number: *number, offset: Some(u64::from(*number) + 100) }).collect()
    }

    /// Begins after message 3, with its history up to 4; all of it is over after message 8.
    fn session(history: &[u32], live: &[u32]) -> Session {
        let history = History { answered_us: 47, offset: Some(104), receipts: receipts(history) };
        Session {
            channel: 1,
            since_us: 36,
            until_us: Some(88),
            epoch: Vec::new(),
            history: Some(history),
            live: receipts(live),
        }
    }

    fn faults(history: &[u32], live: &[u32]) -> (Faults, Faults) {
        let verdict = verify(&ledger(), &[session(history, live)], 30);
        assert_eq!((verdict.sessions, verdict.histories), (1, 1));
        (verdict.live, verdict.joined)
    }

    const LIVE: [u32; 5] = [4, 5, 6, 7, 8];
    const RIGHT: Faults = Faults { expected: 5, misses: 0, duplicates: 0, inversions: 0 };
    const JOINED: Faults = Faults { expected: 7, ..RIGHT };

    #[test]
    fn everything_once_and_in_order_is_right() {
        // Asked at 47 for the last 30: from message 2 on. More is allowed.
        assert_eq!(faults(&[2, 3, 4], &LIVE), (RIGHT, JOINED));
        assert_eq!(faults(&[0, 1, 2, 3, 4], &[4, 5, 6, 7, 8, 9]), (RIGHT, JOINED));
    }

    #[test]
    fn what_is_missing_or_doubled_or_early_is_told() {
        let missed = faults(&[2, 3, 4], &[4, 5, 7, 8]);
        assert_eq!(missed, (Faults { misses: 1, ..RIGHT }, Faults { misses: 1, ..JOINED }));
        let doubled = faults(&[2, 3, 4], &[4, 5, 5, 6, 7, 8]);
        assert_eq!(doubled, (Faults { duplicates: 1, ..RIGHT }, Faults { duplicates: 1, ..JOINED }));
        let early = faults(&[2, 3, 4], &[4, 6, 5, 7, 8]);
        assert_eq!(early, (Faults { inversions: 1, ..RIGHT }, Faults { inversions: 1, ..JOINED }));
    }

    #[test]
    fn a_history_that_does_not_fit_is_told() {
        // Message 4 came live, but a client that follows the position skips it.
        assert_eq!(faults(&[2, 3], &LIVE), (RIGHT, Faults { misses: 1, ..JOINED }));
        // Message 5 is after the position of the answer, yet in it.
        assert_eq!(faults(&[2, 3, 4, 5], &LIVE), (RIGHT, Faults { duplicates: 1, ..JOINED }));
        assert_eq!(faults(&[3, 2, 4], &LIVE), (RIGHT, Faults { inversions: 1, ..JOINED }));
    }

    #[test]
    fn of_a_connection_that_was_lost_nothing_is_expected() {
        let lost = Session { until_us: None, ..session(&[2, 3, 4], &[4, 4]) };
        let verdict = verify(&ledger(), &[lost], 30);
        assert_eq!(verdict.live, Faults { duplicates: 1, ..Faults::default() });
    }

    #[test]
    fn without_positions_only_the_order_of_each_sender_counts() {
        let bare = |numbers: &[u32]| numbers.iter().map(|number| Receipt { number: *number, offset: None }).collect();
        let mut session = Session { history: None, ..session(&[], &[]) };
        session.live = bare(&[5, 4, 7, 6, 8]);
        assert_eq!(verify(&ledger(), &[session], 30).live, RIGHT);
    }
}
