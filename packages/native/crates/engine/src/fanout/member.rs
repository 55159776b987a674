use super::chain::Chain;
use super::cohort::{CohortId, Encoding};

/// What the fan-out knows of one connection.
#[derive(Default)]
pub(crate) struct Member {
    /// Goes before anything in the cohort's log.
    pub(crate) chain: Chain,
    pub(crate) cohort: Option<CohortId>,
    pub(crate) encoding: Encoding,
    pub(crate) state: State,
    /// Index in the cohort's list: `caught_up` or `behind`, as the state says.
    pub(crate) list_index: u32,
    /// Bytes that the wire holds for it. Not 0 only while it is blocked.
    pub(crate) held_bytes: u32,
    /// [`Outcome::drained`](super::Outcome::drained) reports when no more than this waits.
    pub(crate) reports_at: Option<OutboxLevel>,
}

/// Output that waits for one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutboxLevel {
    Empty,
    /// At most a quarter of an outbox.
    Low,
}

/// Where a member is in its output. The table in [`fanout`](super) lists what holds in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing waits for this member alone.
    #[default]
    CaughtUp,
    /// Something waits for this member, and the next flush writes it.
    CatchingUp,
    /// Waits only for output of the whole cohort. After the next flush the member is caught up.
    Rejoining,
    /// The socket took less than was offered. Nothing is written before it is ready again.
    Blocked {
        /// [`Outcome::slow`](super::Outcome::slow) has reported it.
        is_reported: bool,
    },
}

impl Member {
    /// Bytes that wait for it alone.
    pub(crate) fn own_bytes(&self) -> u64 {
        self.chain.bytes() as u64 + u64::from(self.held_bytes)
    }

    pub(crate) fn is_blocked(&self) -> bool {
        matches!(self.state, State::Blocked { .. })
    }

    /// The cohort in whose `behind` list the member is.
    pub(crate) fn behind_in(&self) -> Option<CohortId> {
        self.cohort.filter(|_| self.state != State::CaughtUp)
    }
}
