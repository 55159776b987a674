//! The limit of descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Used where there is no limit.
const UNLIMITED: u64 = 1 << 20;

/// Raises the descriptor limit as far as allowed and returns it.
pub(crate) fn raised_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    limit.unwrap_or(UNLIMITED)
}
