//! All published messages, and those that each session received; recorded during the run, checked after it.

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
