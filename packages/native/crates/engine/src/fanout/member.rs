use super::chain::Chain;
use super::cohort::{CohortId, Encoding};

/// What a shard's output knows of one connection.
#[derive(Default)]
pub(crate) struct Member {
    /// Goes before anything in the cohort's log.
    pub(crate) chain: Chain,
    pub(crate) cohort: Option<CohortId>,
    pub(crate) encoding: Encoding,
    /// Where the cohort lists the member: among those with an own cursor, or among the level ones.
    pub(crate) place: u32,
    pub(crate) has_own_cursor: bool,
    /// Is in the list of connections to write to.
    pub(crate) is_dirty: bool,
    /// Is in the list of connections that are written to together with their cohort.
    pub(crate) is_trailing: bool,
    /// The socket took less than was offered; nothing is written before it says that it takes more.
    pub(crate) is_blocked: bool,
    /// Its chain may refer to memory of this turn.
    pub(crate) is_fresh: bool,
    /// Was reported as slow.
    pub(crate) is_slow: bool,
    /// Is to be reported when nothing waits.
    pub(crate) is_watched: bool,
}
