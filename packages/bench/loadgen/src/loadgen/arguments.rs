//! The command line.

use std::str::FromStr;
use std::time::Duration;

use crate::clock::raised_limit;

/// Descriptors of a thread that are not connections: stdio, epoll, timer, wakers.
const OTHER_DESCRIPTORS: u64 = 64;

pub(crate) struct Arguments {
    pub(crate) thread_count: usize,
    pub(crate) connections_per_thread: usize,
    pub(crate) poll_interval: Duration,
}

impl Arguments {
    /// # Errors
    /// An argument is unknown or not a number.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self {
            thread_count: 1,
            connections_per_thread: raised_limit().saturating_sub(OTHER_DESCRIPTORS) as usize,
            poll_interval: Duration::ZERO,
        };
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--threads" => parsed.thread_count = number(&name, &value)?,
                "--connections-per-thread" => parsed.connections_per_thread = number(&name, &value)?,
                "--poll-interval-us" => parsed.poll_interval = Duration::from_micros(number(&name, &value)?),
                _ => return Err(format!("unknown argument {name}")),
            }
        }
        if parsed.thread_count == 0 || parsed.connections_per_thread == 0 {
            return Err("--threads and --connections-per-thread are at least 1".to_owned());
        }
        Ok(parsed)
    }
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name} is a number, not {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Arguments, String> {
        Arguments::parse(arguments.iter().map(|argument| (*argument).to_owned()))
    }

    #[test]
    fn numbers_are_taken_and_everything_else_is_refused() {
        let parsed = parse(&["--threads", "2", "--poll-interval-us", "500"]).expect("valid");
        assert_eq!((parsed.thread_count, parsed.poll_interval), (2, Duration::from_micros(500)));
        assert!(parsed.connections_per_thread > 0);
        for wrong in [&["--threads"][..], &["--threads", "0"], &["--threads", "two"], &["--what", "1"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
