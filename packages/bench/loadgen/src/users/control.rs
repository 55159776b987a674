//! Reads commands and writes answers.

use std::io;
use std::sync::mpsc;

use serde_json::{Value, json};

use super::crowd::Crowd;
use super::replay::{ReplayPlan, replay};
use super::verify::verify;
use crate::clock::{CpuTime, now_us, rss_bytes};
use crate::descriptors;
use crate::lines::{self, Command};
use crate::poller::{Poller, Waker};

/// A run, and the command that started it.
struct Run {
    crowd: Crowd,
    id: Option<Value>,
    cpu_began: CpuTime,
}

/// Runs commands until `quit` or the end of stdin.
///
/// # Errors
/// The epoll fails, or stdout is closed.
pub(super) fn run() -> io::Result<()> {
    let descriptor_limit = descriptors::raised_limit();
    let waker = Waker::new()?;
    let (input, lines) = mpsc::channel();
    let thread_waker = waker.clone();
    lines::read_stdin(move |line| {
        // The receiver is gone only when the process ends, and then the line is not needed.
        let _ = input.send(line);
        thread_waker.wake();
    })?;
    let mut poller = Poller::new(&waker)?;
    let mut current: Option<Run> = None;
    let ready =
        json!({ "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION"), "descriptors": descriptor_limit });
    lines::write_event("ready", None, &ready)?;
    loop {
        match &mut current {
            Some(run) => run.crowd.turn(&mut poller)?,
            None => poller.wait(None)?,
        }
        while let Ok(line) = lines.try_recv() {
            let Some(line) = line else { return Ok(()) };
            match Command::parse(&line) {
                Ok(command) if command.name == "quit" => return Ok(()),
                Ok(command) => {
                    if let Err(message) = begin(&command, &mut current)? {
                        lines::write_error(command.id.as_ref(), &message)?;
                    }
                }
                Err(message) => lines::write_error(None, &message)?,
            }
        }
        if let Some(run) = current.take_if(|run| run.crowd.is_over()) {
            lines::write_event("ran", run.id.as_ref(), &report(&run))?;
        }
    }
}

fn begin(command: &Command, current: &mut Option<Run>) -> io::Result<Result<(), String>> {
    match (command.name.as_str(), &current) {
        ("stats", _) => lines::write_event("stats", command.id.as_ref(), &stats(current.as_ref()))?,
        ("run", Some(_)) => return Ok(Err("run is under way".to_owned())),
        ("run", None) => match command.fields().and_then(Crowd::new) {
            Ok(crowd) => *current = Some(Run { crowd, id: command.id.clone(), cpu_began: CpuTime::of_process() }),
            Err(message) => return Ok(Err(message)),
        },
        ("replay", _) => match command.fields() {
            Ok(plan) => start_replay(plan, command.id.clone())?,
            Err(message) => return Ok(Err(message)),
        },
        (name, _) => return Ok(Err(format!("unknown command {name}"))),
    }
    Ok(Ok(()))
}

/// Replays on a thread of its own, which also writes the answer.
fn start_replay(plan: ReplayPlan, id: Option<Value>) -> io::Result<()> {
    let work = move || {
        let answered = match replay(&plan) {
            Ok(body) => lines::write_event("replayed", id.as_ref(), &body),
            Err(error) => lines::write_error(id.as_ref(), &format!("replay: {error}")),
        };
        // Stdout is closed, so the process is about to end.
        drop(answered);
    };
    std::thread::Builder::new().name("replay".to_owned()).spawn(work).map(drop)
}

fn stats(run: Option<&Run>) -> Value {
    let cpu = CpuTime::of_process();
    let counts = run.map(|run| &run.crowd.metrics.counts);
    json!({
        "users": run.map_or(0, |run| run.crowd.present_count),
        "iterations": counts.map_or(0, |counts| counts.iterations),
        "broadcastsSent": counts.map_or(0, |counts| counts.broadcasts_sent),
        "broadcastsReceived": counts.map_or(0, |counts| counts.broadcasts_received),
        "cpuUserUs": cpu.user_us,
        "cpuSystemUs": cpu.system_us,
    })
}

fn report(run: &Run) -> Value {
    // Before the checks below, whose CPU time is not part of the measurement.
    let cpu = CpuTime::of_process().since(run.cpu_began);
    let crowd = &run.crowd;
    let duration_us = now_us() - crowd.began_us;
    let mut body = crowd.metrics.body();
    body["durationUs"] = json!(duration_us);
    body["maxUsers"] = json!(crowd.plan.max_users());
    body["cpuUserUs"] = json!(cpu.user_us);
    body["cpuSystemUs"] = json!(cpu.system_us);
    body["rssBytes"] = json!(rss_bytes());
    let window_us = crowd.plan.history.window_ms * 1_000;
    body["verified"] = json!(verify(&crowd.ledger, &crowd.sessions, window_us));
    body
}
