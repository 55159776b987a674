//! Reads commands and writes answers.

use std::io;
use std::sync::mpsc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Arguments;
use super::publish::Rate;
use super::server::{Mode, Server};
use crate::clock::{CpuTime, raised_limit, rss_bytes};
use crate::lines::{self, Command};
use crate::poller::Waker;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PublishFlood {
    duration_ms: u64,
    payload_bytes: usize,
    #[serde(default = "default_batch")]
    batch: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PublishPaced {
    per_second: f64,
    duration_ms: u64,
    payload_bytes: usize,
}

fn default_batch() -> usize {
    64
}

/// Serves until `quit` or the end of stdin.
///
/// # Errors
/// The port is taken, the epoll fails, or stdout is closed.
pub(super) fn run(arguments: &Arguments) -> io::Result<()> {
    raised_limit();
    let waker = Waker::new()?;
    let (input, lines) = mpsc::channel();
    let thread_waker = waker.clone();
    lines::read_stdin(move |line| {
        // The receiver is gone only when the process ends, and then the line is not needed.
        let _ = input.send(line);
        thread_waker.wake();
    })?;
    let mut server = Server::new(arguments.mode, arguments.port, arguments.max_lag_bytes, &waker)?;
    let listening = json!({
        "port": server.port()?,
        "pid": std::process::id(),
        "version": env!("CARGO_PKG_VERSION"),
        "mode": if arguments.mode == Mode::Log { "log" } else { "loop" },
    });
    lines::write_event("listening", None, &listening)?;
    let mut publishing_id = None;
    loop {
        server.turn()?;
        if let Some(published) = server.published.take() {
            lines::write_event("published", publishing_id.take().as_ref(), &published)?;
        }
        while let Ok(line) = lines.try_recv() {
            let Some(line) = line else { return Ok(()) };
            let command = match Command::parse(&line) {
                Ok(command) if command.name == "quit" => return Ok(()),
                Ok(command) => command,
                Err(message) => {
                    lines::write_error(None, &message)?;
                    continue;
                }
            };
            match begin(&mut server, &command) {
                Ok(Some(sample)) => lines::write_event("sample", command.id.as_ref(), &sample)?,
                Ok(None) => publishing_id = command.id,
                Err(message) => lines::write_error(command.id.as_ref(), &message)?,
            }
        }
    }
}

/// Starts `command`; returns the answer if it is immediate.
fn begin(server: &mut Server, command: &Command) -> Result<Option<Value>, String> {
    match command.name.as_str() {
        "sample" => Ok(Some(sample_body(server))),
        "publish-flood" => {
            let fields: PublishFlood = command.fields()?;
            let rate = Rate::Flood { batch_count: fields.batch };
            server.begin_publish(rate, fields.duration_ms * 1_000, fields.payload_bytes).map(|()| None)
        }
        "publish-paced" => {
            let fields: PublishPaced = command.fields()?;
            if fields.per_second <= 0.0 {
                return Err("publish-paced: perSecond is more than 0".to_owned());
            }
            let rate = Rate::Paced { per_second: fields.per_second };
            server.begin_publish(rate, fields.duration_ms * 1_000, fields.payload_bytes).map(|()| None)
        }
        name => Err(format!("unknown command {name}")),
    }
}

fn sample_body(server: &Server) -> Value {
    let cpu = CpuTime::of_process();
    json!({
        "cpuUserUs": cpu.user_us,
        "cpuSystemUs": cpu.system_us,
        "rssBytes": rss_bytes(),
        "eventLoopLagUs": null,
        "deliveredCount": server.delivered_count(),
        "receivedCount": server.received_count,
        "connections": server.connection_count(),
    })
}
