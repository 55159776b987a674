//! The main thread: turns commands into orders to the I/O threads, and their reports into answers.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::order::{Answer, Order, OrderNumber};
use super::planning;
use super::protocol::Count;
use super::report::{Context, Report};
use super::threads::{Input, Threads};
use crate::clock::{CpuTime, now_us};
use crate::lines::{self, Command};

/// The clients of the command `clients`.
#[derive(PartialEq, Eq)]
enum ClientsState {
    None,
    Connected,
    /// Some are connected, which nobody can use.
    Failed,
}

/// A command that some threads have not reported on yet.
struct Pending {
    name: String,
    id: Option<Value>,
    left_count: usize,
    report: Report,
    began_us: u64,
    cpu_began: CpuTime,
}

pub(crate) struct Control {
    threads: Threads,
    inputs: Receiver<Input>,
    pending: BTreeMap<u64, Pending>,
    order_count: u64,
    /// CPU time at the start of a window that ends with `count-stop`.
    window_cpu: Option<CpuTime>,
    clients: ClientsState,
}

impl Control {
    pub(crate) fn new(arguments: Arguments) -> io::Result<Self> {
        let (input, inputs) = mpsc::channel();
        let lines = input.clone();
        lines::read_stdin(move |line| {
            // The receiver is gone only when the process ends, and then the line is not needed.
            let _ = lines.send(Input::Line(line));
        })?;
        Ok(Self {
            threads: Threads::start(arguments, input)?,
            inputs,
            pending: BTreeMap::new(),
            order_count: 0,
            window_cpu: None,
            clients: ClientsState::None,
        })
    }

    /// Answers commands until stdin ends.
    ///
    /// # Errors
    /// Stdout is closed, or a thread has failed.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let ready = json!({
            "pid": std::process::id(),
            "version": env!("CARGO_PKG_VERSION"),
            "threads": self.threads.all.len(),
            "connectionsPerThread": self.threads.arguments.connections_per_thread,
        });
        lines::write_event("ready", None, &ready)?;
        loop {
            match self.inputs.recv() {
                Ok(Input::Line(Some(line))) => match Command::parse(&line) {
                    Ok(command) if command.name == "quit" => return Ok(()),
                    Ok(command) => self.command(&command)?,
                    Err(message) => lines::write_error(None, &message)?,
                },
                Ok(Input::Line(None)) | Err(_) => return Ok(()),
                Ok(Input::Answer(answer)) => self.answered(answer)?,
                Ok(Input::Broken(error)) => return Err(error),
            }
        }
    }

    fn command(&mut self, command: &Command) -> io::Result<()> {
        if let Err(message) = self.check_plan(&command.name) {
            return lines::write_error(command.id.as_ref(), &message);
        }
        let is_under_way = self.pending.values().any(|pending| pending.name == command.name)
            || (command.name == "count" && self.window_cpu.is_some());
        let tasks = if is_under_way && command.name != "stats" {
            Err(format!("{} is under way", command.name))
        } else if command.name == "count-stop" && self.window_cpu.is_none() {
            Err("count-stop: no window without a duration is open".to_owned())
        } else {
            planning::tasks(&mut self.threads, command)
        };
        let tasks = match tasks {
            Ok(tasks) => tasks,
            Err(message) => return lines::write_error(command.id.as_ref(), &message),
        };
        self.order_count += 1;
        let number = OrderNumber(self.order_count);
        let cpu_now = CpuTime::of_process();
        let cpu_began = if command.name == "count-stop" { self.window_cpu.take().unwrap_or(cpu_now) } else { cpu_now };
        if command.name == "count" && command.fields::<Count>().is_ok_and(|count| count.duration_ms.is_none()) {
            self.window_cpu = Some(cpu_began);
        }
        let pending = Pending {
            name: command.name.clone(),
            id: command.id.clone(),
            left_count: tasks.len(),
            report: Report::Nothing,
            began_us: now_us(),
            cpu_began,
        };
        self.pending.insert(number.0, pending);
        let name: Arc<str> = command.name.as_str().into();
        for (index, task) in tasks {
            let thread = &self.threads.all[index];
            if thread.orders.send(Order { number, name: name.clone(), task }).is_err() {
                return Err(io::Error::other("an I/O thread has ended"));
            }
            thread.shared.waker.wake();
        }
        Ok(())
    }

    /// Players of two plans cannot be told apart, so there is one plan at a time.
    ///
    /// # Errors
    /// The command does not belong to the state of the plan.
    fn check_plan(&self, name: &str) -> Result<(), String> {
        let is_plan = |name: &str| matches!(name, "clients" | "users" | "replay");
        let has_plan =
            self.clients != ClientsState::None || self.pending.values().any(|pending| is_plan(&pending.name));
        match name {
            name if is_plan(name) && has_plan => Err(format!("{name}: another plan is under way")),
            "clients-begin" | "clients-finish" if self.clients != ClientsState::Connected => {
                Err(format!("{name}: no clients are connected"))
            }
            _ => Ok(()),
        }
    }

    fn answered(&mut self, answer: Answer) -> io::Result<()> {
        let number = answer.number.0;
        if let Report::Failed(message) = &answer.report {
            let Some(pending) = self.pending.remove(&number) else { return Ok(()) };
            if pending.name == "clients" {
                self.clients = ClientsState::Failed;
            }
            return lines::write_error(pending.id.as_ref(), message);
        }
        let Some(pending) = self.pending.get_mut(&number) else { return Ok(()) };
        pending.report.merge(answer.report);
        pending.left_count -= 1;
        if pending.left_count > 0 {
            return Ok(());
        }
        let Some(pending) = self.pending.remove(&number) else { return Ok(()) };
        match pending.name.as_str() {
            "clients" => self.clients = ClientsState::Connected,
            "clients-finish" => self.clients = ClientsState::None,
            _ => {}
        }
        let context = Context {
            duration_us: now_us() - pending.began_us,
            cpu: CpuTime::of_process().since(pending.cpu_began),
            thread_count: self.threads.all.len(),
            open_count: self.threads.open_count(),
        };
        let (event, body) = pending.report.answer(&context);
        lines::write_event(event, pending.id.as_ref(), &body)
    }
}
