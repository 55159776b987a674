//! `webmq-loadgen`: connects, listens, publishes, counts and verifies.
//!
//! `control` reads commands (`protocol`) and plans a task for each I/O thread (`planning`, `order`). A `worker` is such a
//! thread: its `connections`, and the `jobs` on them. A job that plays clients by a plan is in `plans`. A `report` has
//! `figures`, and the threads' reports make an answer.

mod arguments;
mod batch;
mod connection;
mod connections;
mod control;
mod fanouts;
mod fields;
mod figures;
mod inflater;
mod input;
mod intake;
mod jobs;
mod opening;
mod order;
mod output;
mod places;
mod planning;
mod plans;
mod played;
mod protocol;
mod receipts;
mod report;
mod sequence;
mod stash;
mod stream;
mod threads;
mod tls;
mod upgrade;
mod window;
mod worker;

use std::process::ExitCode;

/// Runs the program with `arguments`, the command line without the program's name.
pub fn run(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let arguments = match arguments::Arguments::parse(arguments) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("webmq-loadgen: {message}");
            return ExitCode::from(2);
        }
    };
    match control::Control::new(arguments).and_then(|mut control| control.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("webmq-loadgen: {error}");
            ExitCode::FAILURE
        }
    }
}
