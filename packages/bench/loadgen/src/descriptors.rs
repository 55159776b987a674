//! How many descriptors there may be.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Where there is no limit.
const UNLIMITED: u64 = 1 << 20;

/// The number of descriptors of a table, after it was raised as far as allowed.
pub(crate) fn raised_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    limit.unwrap_or(UNLIMITED)
}
