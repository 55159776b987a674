//! `webmq-loadgen raw`: a shared log and a cursor per connection, without any other cost.

mod connection;
mod control;
mod inbound;
mod log;
mod message;
mod publish;
mod server;

use std::process::ExitCode;

use server::Mode;

/// How far a peer may fall behind before the log waits for it.
const DEFAULT_MAX_LAG_BYTES: usize = 4 << 20;

struct Arguments {
    mode: Mode,
    port: u16,
    max_lag_bytes: usize,
}

impl Arguments {
    fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self { mode: Mode::Log, port: 0, max_lag_bytes: DEFAULT_MAX_LAG_BYTES };
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            let wrong = || format!("{name} cannot be {value}");
            match (name.as_str(), value.as_str()) {
                ("--mode", "log") => parsed.mode = Mode::Log,
                ("--mode", "loop") => parsed.mode = Mode::Loop,
                ("--port", port) => parsed.port = port.parse().map_err(|_| wrong())?,
                ("--max-lag-bytes", bytes) => parsed.max_lag_bytes = bytes.parse().map_err(|_| wrong())?,
                _ => return Err(wrong()),
            }
        }
        Ok(parsed)
    }
}

/// Runs the program with `arguments`, the command line without the program's name.
pub fn run(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let arguments = match Arguments::parse(arguments) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("webmq-loadgen raw: {message}");
            return ExitCode::from(2);
        }
    };
    match control::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("webmq-loadgen raw: {error}");
            ExitCode::FAILURE
        }
    }
}
