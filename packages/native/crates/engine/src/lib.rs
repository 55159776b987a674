//! WebMQ's I/O engine.
mod batch;
mod command;
mod fanout;
mod id;
#[cfg(test)]
mod packer;
