//! Clocks, and the resources that this process uses.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Microseconds of `CLOCK_MONOTONIC`, which all processes of a machine share.
pub(crate) fn now_us() -> u64 {
    micros(ClockId::Monotonic)
}

/// Microseconds of `CLOCK_REALTIME` since 1970.
pub(crate) fn wall_us() -> u64 {
    micros(ClockId::Realtime)
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_us() -> u64 {
    micros(ClockId::ThreadCPUTime)
}

fn micros(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

/// CPU time of this process with all of its threads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuTime {
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
}

impl CpuTime {
    pub(crate) fn of_process() -> Self {
        // SAFETY: `rusage` consists of integers, for which zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a `rusage` that outlives the call.
        if unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) } != 0 {
            return Self::default();
        }
        let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        Self { user_us: micros(usage.ru_utime), system_us: micros(usage.ru_stime) }
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
        }
    }
}

/// Resident memory of this process; 0 when the system does not say.
pub(crate) fn rss_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Descriptors where there is no limit.
const UNLIMITED: u64 = 1 << 20;

/// Raises the descriptor limit as far as allowed and returns it.
pub(crate) fn raised_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    limit.unwrap_or(UNLIMITED)
}
