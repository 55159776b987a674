//! `webmq-loadgen`: opens tens of thousands of connections and counts what they receive.

mod answer;
mod arguments;
pub(crate) mod batch;
mod command;
mod connection;
mod control;
mod fanouts;
mod fields;
mod inflater;
mod intake;
mod jobs;
mod offset;
mod order;
mod output;
mod places;
mod planning;
mod receipts;
mod sequence;
mod stash;
mod stream;
mod tls;
pub(crate) mod upgrade;
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
