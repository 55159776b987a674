use super::backlog::Backlog;
use super::chain::{Chain, Piece};
use super::cohort::{CohortId, Encoding};

/// What the fan-out knows of one connection.
#[derive(Default)]
pub(crate) struct Member {
    /// Goes before anything in the cohort's log.
    pub(crate) chain: Chain,
    /// Goes behind the chain and before its cursor in the log. Only of a member whose socket was full.
    pub(crate) backlog: Option<Box<Backlog>>,
    pub(crate) cohort: Option<CohortId>,
    pub(crate) encoding: Encoding,
    pub(crate) state: State,
    /// Index in the cohort's list: `caught_up` or `behind`, as the state says.
    pub(crate) list_index: u32,
    /// Bytes that the wire holds for it. Not 0 only while it is blocked.
    pub(crate) held_bytes: u32,
    /// [`Outcome::drained`](super::Outcome::drained) reports when no more than this waits.
    pub(crate) reports_at: Option<OutboxLevel>,
    /// Its socket was full since it was last caught up.
    pub(crate) has_lagged: bool,
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
        let backlog_bytes = self.backlog.as_ref().map_or(0, |backlog| backlog.live_bytes());
        (self.chain.bytes() + backlog_bytes) as u64 + u64::from(self.held_bytes)
    }

    /// Whether something goes before its cursor in the log.
    pub(crate) fn has_own(&self) -> bool {
        !self.chain.is_empty() || self.backlog.is_some()
    }

    /// More frames wait for it than may, whatever their size.
    pub(crate) fn is_overlong(&self) -> bool {
        self.chain.is_overlong() || self.backlog.as_ref().is_some_and(|backlog| backlog.is_overlong())
    }

    /// Adds whole frames behind everything that waits but the log. They are never left out.
    pub(crate) fn push_piece(&mut self, piece: Piece) {
        match &mut self.backlog {
            None => self.chain.push_piece(piece),
            Some(backlog) => piece.with(|frames| backlog.push_kept(frames)),
        }
    }

    pub(crate) fn is_blocked(&self) -> bool {
        matches!(self.state, State::Blocked { .. })
    }

    /// The cohort in whose `behind` list the member is.
    pub(crate) fn behind_in(&self) -> Option<CohortId> {
        self.cohort.filter(|_| self.state != State::CaughtUp)
    }
}
