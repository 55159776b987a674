//! A virtual user, and its progress in its iteration.

use super::ledger::Session;
use crate::loadgen::connection::Slot;

/// A user's place in the crowd, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UserId(pub(super) u32);

impl UserId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// Its number in the plan.
    pub(super) fn number(self) -> u32 {
        self.0 + 1
    }
}

/// The step that a user is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not started, or finished.
    Away,
    /// Before it connects.
    Pausing,
    Connecting,
    /// Upgraded; `welcome` has not come.
    Welcoming,
    /// Waits for the answer to its listen.
    Listening,
    /// Waits for the history.
    Reading,
    /// Rounds of sending and listening.
    Talking,
    /// After the last round.
    Lingering,
    /// Waits for the end of its connection.
    Leaving,
}

pub(super) struct User {
    pub(super) phase: Phase,
    pub(super) slot: Option<Slot>,
    /// When it started its iteration.
    pub(super) began_us: u64,
    /// When it started to wait for the next answer.
    pub(super) asked_us: u64,
    /// Rounds started.
    pub(super) round: u32,
    /// Messages of this page of the history that are still to come.
    pub(super) replay_left: u64,
    /// The position of the next page of the history; empty: this page is the last.
    pub(super) next_page: Vec<u8>,
    /// Exists from the answer to the listen on.
    pub(super) session: Option<Box<Session>>,
}

impl User {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Away,
            slot: None,
            began_us: 0,
            asked_us: 0,
            round: 0,
            replay_left: 0,
            next_page: Vec::new(),
            session: None,
        }
    }
}
