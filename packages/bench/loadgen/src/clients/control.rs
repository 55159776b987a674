//! Reads commands and writes answers.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use serde::Deserialize;
use serde_json::{Value, json};

use super::counters::{Counters, read};
use super::crew::{Crew, Window};
use super::payload::{MAX_MESSAGE_BYTES, MIN_MESSAGE_BYTES, PayloadEncoder};
use super::plan::{KeyPlan, PlanOptions};
use super::receiving::SUBPROTOCOL;
use super::tally::Tally;
use crate::clock::CpuTime;
use crate::descriptors;
use crate::lines::{self, Command};
use crate::loadgen::upgrade::Request;
use crate::poller::{Poller, Waker};

const MAX_BACKENDS: usize = 1_024;
const MAX_THREADS: u32 = 64;
const MAX_TIMEOUT_MS: u64 = 600_000;

/// Fields of the command `connect`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Connect {
    plan: PlanOptions,
    message_size_bytes: usize,
    /// At 127.0.0.1; client `c` connects to entry `c mod length`.
    ports: Vec<u16>,
    path: String,
    /// Before a key's number, and a dot.
    key_prefix: String,
    threads: u32,
    /// For all clients to be connected, with their listens confirmed.
    timeout_ms: u64,
}

/// Fields of the command `begin`, on the machine's monotonic clock.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Begin {
    start_us: f64,
    end_us: f64,
}

/// What all threads of a run share.
pub(super) struct Course {
    pub(super) plan: KeyPlan,
    pub(super) encoder: PayloadEncoder,
    pub(super) key_prefix: String,
    pub(super) addresses: Vec<SocketAddr>,
    /// The opening handshake for each address.
    pub(super) requests: Vec<Vec<u8>>,
    pub(super) timeout_us: u64,
    pub(super) counters: Counters,
}

impl Course {
    fn new(fields: Connect) -> Result<Self, String> {
        let Connect { plan, message_size_bytes, ports, path, key_prefix, timeout_ms, .. } = fields;
        plan.check()?;
        if !(MIN_MESSAGE_BYTES..=MAX_MESSAGE_BYTES).contains(&message_size_bytes) {
            return Err(format!("connect: messageSizeBytes is {MIN_MESSAGE_BYTES} to {MAX_MESSAGE_BYTES}"));
        }
        if ports.is_empty() || ports.len() > MAX_BACKENDS || timeout_ms > MAX_TIMEOUT_MS {
            return Err(format!("connect: 1 to {MAX_BACKENDS} ports, timeoutMs at most {MAX_TIMEOUT_MS}"));
        }
        let addresses: Vec<_> = ports.iter().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, *port))).collect();
        let headers = BTreeMap::new();
        let request = |address: &SocketAddr| {
            let authority = address.to_string();
            let subprotocol = Some(SUBPROTOCOL);
            let fixed = Request {
                authority: &authority,
                path: &path,
                subprotocol,
                token: None,
                headers: &headers,
                compression: false,
            };
            fixed.encode()
        };
        let requests = addresses.iter().map(request).collect::<Result<_, _>>()?;
        Ok(Self {
            encoder: PayloadEncoder::new(message_size_bytes, plan.seed),
            plan: KeyPlan::new(plan),
            key_prefix,
            addresses,
            requests,
            timeout_us: timeout_ms * 1_000,
            counters: Counters::default(),
        })
    }
}

/// The main thread's order to the others.
pub(super) enum Order {
    Begin(Window),
    Finish,
}

enum Input {
    /// A line of stdin, or its end.
    Line(Option<String>),
    /// All clients of a thread are connected.
    Connected,
    Finished(Box<Tally>),
    /// A thread has ended before its time.
    Failed(String),
}

struct Thread {
    orders: Sender<Order>,
    waker: Waker,
}

/// A run, from `connect` to the answer of `finish`.
struct Run {
    course: Arc<Course>,
    threads: Vec<Thread>,
    connected: usize,
    tallies: Vec<Value>,
    connect_id: Option<Value>,
    finish_id: Option<Value>,
}

impl Run {
    fn order(&self, order: impl Fn() -> Order) {
        for thread in &self.threads {
            // A thread that has ended has reported why.
            let _ = thread.orders.send(order());
            thread.waker.wake();
        }
    }
}

/// Runs commands until `quit` or the end of stdin.
///
/// # Errors
/// The epoll fails, or stdout is closed.
pub(super) fn run() -> io::Result<()> {
    let descriptor_limit = descriptors::raised_limit();
    let (input, inputs) = mpsc::channel();
    let lines_input = input.clone();
    lines::read_stdin(move |line| {
        // The receiver is gone only when the process ends, and then the line is not needed.
        let _ = lines_input.send(Input::Line(line));
    })?;
    let ready =
        json!({ "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION"), "descriptors": descriptor_limit });
    lines::write_event("ready", None, &ready)?;
    let mut current: Option<Run> = None;
    loop {
        let received = inputs.recv().map_err(io::Error::other)?;
        match (received, &mut current) {
            (Input::Line(None), _) => return Ok(()),
            (Input::Line(Some(line)), current) => match Command::parse(&line) {
                Ok(command) if command.name == "quit" => return Ok(()),
                Ok(command) => {
                    if let Err(message) = execute(&command, current, &input)? {
                        lines::write_error(command.id.as_ref(), &message)?;
                    }
                }
                Err(message) => lines::write_error(None, &message)?,
            },
            (Input::Connected, Some(run)) => {
                run.connected += 1;
                if run.connected == run.threads.len() {
                    let body = json!({ "clients": run.course.plan.options.client_count });
                    lines::write_event("connected", run.connect_id.as_ref(), &body)?;
                }
            }
            (Input::Finished(tally), Some(run)) => {
                run.tallies.push(tally.body());
                if run.tallies.len() == run.threads.len() {
                    lines::write_event("finished", run.finish_id.as_ref(), &json!({ "threads": run.tallies }))?;
                }
            }
            (Input::Failed(message), Some(run)) => {
                let id = if run.connected < run.threads.len() { run.connect_id.as_ref() } else { None };
                lines::write_error(id, &message)?;
            }
            (_, None) => {}
        }
    }
}

fn execute(command: &Command, current: &mut Option<Run>, input: &Sender<Input>) -> io::Result<Result<(), String>> {
    let id = command.id.as_ref();
    match (command.name.as_str(), current) {
        ("connect", Some(_)) => return Ok(Err("connect: the clients of this process are connected".to_owned())),
        ("connect", none) => {
            let started = command.fields::<Connect>().and_then(|fields| start(fields, command.id.clone(), input));
            match started {
                Ok(run) => *none = Some(run),
                Err(message) => return Ok(Err(message)),
            }
        }
        ("begin", Some(run)) if run.connected == run.threads.len() => match command.fields::<Begin>() {
            Ok(Begin { start_us, end_us }) => {
                run.order(|| Order::Begin(Window { start_us, end_us }));
                lines::write_event("begun", id, &json!({}))?;
            }
            Err(message) => return Ok(Err(message)),
        },
        ("stats", Some(run)) => lines::write_event("stats", id, &stats(&run.course.counters, run.threads.len()))?,
        ("finish", Some(run)) if run.connected == run.threads.len() && run.finish_id.is_none() => {
            run.finish_id = Some(command.id.clone().unwrap_or(Value::Null));
            run.order(|| Order::Finish);
        }
        (name @ ("begin" | "stats" | "finish"), _) => return Ok(Err(format!("{name}: no clients are connected"))),
        (name, _) => return Ok(Err(format!("unknown command {name}"))),
    }
    Ok(Ok(()))
}

fn start(fields: Connect, connect_id: Option<Value>, input: &Sender<Input>) -> Result<Run, String> {
    let thread_count = fields.threads;
    if !(1..=MAX_THREADS).contains(&thread_count) {
        return Err(format!("connect: threads is 1 to {MAX_THREADS}"));
    }
    let course = Arc::new(Course::new(fields)?);
    let client_count = u64::from(course.plan.options.client_count);
    let first_of = |index: u32| (u64::from(index) * client_count / u64::from(thread_count)) as u32;
    let threads = (0..thread_count).map(|index| {
        let crew = Crew::new(course.clone(), first_of(index), first_of(index + 1));
        start_thread(index, crew, input.clone()).map_err(|error| format!("connect: {error}"))
    });
    let threads = threads.collect::<Result<_, _>>()?;
    Ok(Run { course, threads, connected: 0, tallies: Vec::new(), connect_id, finish_id: None })
}

fn start_thread(index: u32, mut crew: Crew, input: Sender<Input>) -> io::Result<Thread> {
    let waker = Waker::new()?;
    let thread_waker = waker.clone();
    let (orders, received): (_, Receiver<Order>) = mpsc::channel();
    let work = move || {
        let played = Poller::new(&thread_waker).map_err(|error| error.to_string()).and_then(|mut poller| {
            crew.connect(&mut poller)?;
            let _ = input.send(Input::Connected);
            crew.play(&mut poller, &received).map_err(|errno| errno.to_string())
        });
        // The receiver is gone only when the process ends.
        let _ = match played {
            Ok(()) => input.send(Input::Finished(Box::new(crew.tally))),
            Err(message) => input.send(Input::Failed(message)),
        };
    };
    std::thread::Builder::new().name(format!("clients-{index}")).spawn(work)?;
    Ok(Thread { orders, waker })
}

fn stats(counters: &Counters, thread_count: usize) -> Value {
    let cpu = CpuTime::of_process();
    json!({
        "connectedCount": read(&counters.connected),
        "publishedCount": read(&counters.published),
        "deliveredCount": read(&counters.delivered),
        "arrivedCount": read(&counters.arrived),
        "isSendingDone": read(&counters.done_threads) == thread_count as u64,
        "cpuUserUs": cpu.user_us,
        "cpuSystemUs": cpu.system_us,
    })
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::options;
    use super::*;

    fn fields() -> Connect {
        Connect {
            plan: options(),
            message_size_bytes: 200,
            ports: vec![1, 2],
            path: "/ws".to_owned(),
            key_prefix: "bench".to_owned(),
            threads: 1,
            timeout_ms: 1_000,
        }
    }

    #[test]
    fn a_run_that_is_too_large_or_cannot_be_is_refused() {
        let (input, _inputs) = mpsc::channel();
        let refused = |change: &dyn Fn(&mut Connect)| {
            let mut fields = fields();
            change(&mut fields);
            assert!(start(fields, None, &input).is_err());
        };
        assert!(Course::new(fields()).is_ok());
        refused(&|fields| fields.threads = 0);
        refused(&|fields| fields.threads = MAX_THREADS + 1);
        refused(&|fields| fields.message_size_bytes = MIN_MESSAGE_BYTES - 1);
        refused(&|fields| fields.message_size_bytes = MAX_MESSAGE_BYTES + 1);
        refused(&|fields| fields.ports.clear());
        refused(&|fields| fields.ports = vec![1; MAX_BACKENDS + 1]);
        refused(&|fields| fields.timeout_ms = MAX_TIMEOUT_MS + 1);
        refused(&|fields| fields.path = "/\r\nX: y".to_owned());
        refused(&|fields| fields.plan.client_count = 0);
    }
}
