//! A virtual user: how far it is in its iteration.

use super::attendance::Attendance;
use super::link::Link;

/// A user's place in the crowd, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UserId(pub(super) u32);

impl UserId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// As the plan counts users.
    pub(super) fn number(self) -> u32 {
        self.0 + 1
    }
}

/// What a user is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It has not begun, or has ended.
    Away,
    /// Before it connects.
    Pausing,
    Connecting,
    Upgrading,
    /// Upgraded; `welcome` has not come.
    Welcoming,
    /// It waits for the answer to its listen.
    Listening,
    /// It waits for the history.
    Reading,
    /// Rounds of sending and listening.
    Talking,
    /// After the last round.
    Lingering,
    /// It waits for the end of its connection.
    Leaving,
}

pub(super) struct User {
    pub(super) phase: Phase,
    pub(super) link: Option<Link>,
    /// Began its iteration.
    pub(super) began_us: u64,
    /// Began what it waits for.
    pub(super) asked_us: u64,
    /// Rounds that have begun.
    pub(super) round: u32,
    /// Of this page of the history, still to come.
    pub(super) replay_left: u64,
    /// What the history goes on from; empty: it is complete with this page.
    pub(super) next_page: Vec<u8>,
    /// From the answer to the listen on.
    pub(super) attendance: Option<Box<Attendance>>,
}

impl User {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Away,
            link: None,
            began_us: 0,
            asked_us: 0,
            round: 0,
            replay_left: 0,
            next_page: Vec::new(),
            attendance: None,
        }
    }
}
