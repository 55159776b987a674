//! One thread: accepts, reads, and writes to every connection with pending bytes.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::connection::{Connection, Writer, Wrote};
use super::inbound::{self, Upgrade, upgrade};
use super::log::{Log, Position};
use super::publish::{Published, Publishing};
use crate::clock::now_us;
use crate::poller::{Poller, Ready, Waker};
use crate::socket;

/// How frames are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Everything pending at once, straight from the log.
    Log,
    /// One write per frame.
    Loop,
}

const READ_BYTES: usize = 256 << 10;
/// Token of the listening socket; connections are numbered from 0.
const LISTENER: u64 = u32::MAX as u64;

pub(crate) struct Server {
    pub(super) mode: Mode,
    pub(super) log: Log,
    pub(super) max_lag_bytes: usize,
    /// Size of the frames since `run_start`.
    pub(super) frame_bytes: usize,
    /// Where the frames of the current publish command begin.
    pub(super) run_start: Position,
    /// The cursor that is furthest behind; the log's head when there is none.
    pub(super) slowest: Position,
    pub(super) publishing: Option<Publishing>,
    pub(super) last_sequence: u64,
    pub(super) published: Option<Published>,
    /// Frames delivered before `run_start`.
    pub(super) delivered_before_count: u64,
    /// Bytes of the log written to sockets since.
    pub(super) written_bytes: u64,
    pub(super) received_count: u64,
    pub(super) connections: Vec<Option<Connection>>,
    poller: Poller,
    listener: OwnedFd,
    is_accept_due: bool,
    vacant: Vec<u32>,
    buffer: Box<[u8]>,
}

impl Server {
    pub(crate) fn new(mode: Mode, port: u16, max_lag_bytes: usize, waker: &Waker) -> io::Result<Self> {
        let listener = socket::listen(port)?;
        let poller = Poller::new(waker)?;
        poller.add(&listener, LISTENER)?;
        Ok(Self {
            mode,
            log: Log::new(max_lag_bytes),
            max_lag_bytes,
            frame_bytes: 1,
            run_start: Position(0),
            slowest: Position(0),
            publishing: None,
            last_sequence: 0,
            published: None,
            delivered_before_count: 0,
            written_bytes: 0,
            received_count: 0,
            connections: Vec::new(),
            poller,
            listener,
            is_accept_due: false,
            vacant: Vec::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
        })
    }

    pub(crate) fn port(&self) -> io::Result<u16> {
        let address: std::net::SocketAddr = rustix::net::getsockname(&self.listener)?.try_into()?;
        Ok(address.port())
    }

    /// Connections that are upgraded.
    pub(crate) fn connection_count(&self) -> usize {
        self.connections.iter().flatten().filter(|connection| connection.is_upgraded).count()
    }

    /// Frames that sockets took.
    pub(crate) fn delivered_count(&self) -> u64 {
        self.delivered_before_count + self.written_bytes / self.frame_bytes as u64
    }

    /// Publishes due messages, writes once to every connection, then waits and reads.
    ///
    /// # Errors
    /// The epoll fails.
    pub(crate) fn turn(&mut self) -> io::Result<()> {
        self.publish(now_us());
        let has_more = self.write_all();
        let deadline_us = self.publish_deadline(now_us());
        let is_immediate = has_more || self.published.is_some();
        self.poller.wait(if is_immediate { Some(0) } else { deadline_us })?;
        for index in 0..self.poller.ready_count() {
            if let Some(ready) = self.poller.ready(index) {
                self.on_ready(ready);
            }
        }
        if self.is_accept_due {
            self.accept();
        }
        Ok(())
    }

    fn on_ready(&mut self, ready: Ready) {
        if ready.token == LISTENER {
            self.is_accept_due = true;
            return;
        }
        let index = ready.token as usize;
        if ready.writable
            && let Some(connection) = self.connections[index].as_mut()
        {
            connection.is_writable = true;
        }
        if ready.readable || ready.ended {
            self.read(index);
        }
    }

    fn accept(&mut self) {
        self.is_accept_due = false;
        // Ends when no connection waits or no descriptor is free; the next free descriptor resumes it.
        while let Ok(socket) = socket::accept(&self.listener) {
            let index = self.vacant.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() as u32 - 1
            });
            if self.poller.add(&socket, u64::from(index)).is_ok() {
                self.connections[index as usize] = Some(Connection::new(socket, self.log.head()));
            } else {
                self.vacant.push(index);
            }
        }
    }

    pub(super) fn remove(&mut self, index: usize) {
        if self.connections[index].take().is_some() {
            self.vacant.push(index as u32);
            self.is_accept_due = true;
        }
    }

    fn read(&mut self, index: usize) {
        while let Some(connection) = self.connections[index].as_mut() {
            let held_bytes = connection.partial.len();
            if held_bytes > 0 && self.buffer.len() < held_bytes + READ_BYTES {
                self.buffer = vec![0; held_bytes + READ_BYTES].into_boxed_slice();
            }
            let count = match socket::receive(&connection.socket, &mut self.buffer[held_bytes..held_bytes + READ_BYTES])
            {
                Ok(0) => return self.remove(index),
                Ok(count) => count,
                Err(Errno::AGAIN) => return,
                Err(_) => return self.remove(index),
            };
            self.buffer[..held_bytes].copy_from_slice(&connection.partial);
            connection.partial.clear();
            if !self.take(index, held_bytes + count) {
                return self.remove(index);
            }
        }
    }

    /// Handles the first `len` bytes of the buffer; `false` when the connection must close.
    fn take(&mut self, index: usize, len: usize) -> bool {
        let Some(connection) = self.connections[index].as_mut() else { return true };
        let mut bytes = &mut self.buffer[..len];
        if !connection.is_upgraded {
            match upgrade(bytes) {
                Upgrade::Incomplete => {
                    connection.partial.extend_from_slice(bytes);
                    return true;
                }
                Upgrade::Refused => return false,
                Upgrade::Accepted { response, head_bytes } => {
                    connection.is_upgraded = true;
                    connection.cursor = self.log.head();
                    connection.direct = response;
                    bytes = &mut bytes[head_bytes..];
                }
            }
        }
        let received = inbound::receive(bytes, &mut connection.direct);
        self.received_count += received.message_count;
        connection.partial.extend_from_slice(&bytes[received.consumed_bytes..]);
        connection.is_closing |= received.is_over;
        true
    }

    /// Writes to every connection with pending bytes; whether one has more and its socket would take it.
    fn write_all(&mut self) -> bool {
        let mut writer = Writer {
            log: &self.log,
            mode: self.mode,
            run_start: self.run_start,
            frame_bytes: self.frame_bytes,
            written_bytes: 0,
        };
        let mut has_more = false;
        let mut slowest = self.log.head();
        let mut gone = Vec::new();
        for (index, entry) in self.connections.iter_mut().enumerate() {
            let Some(connection) = entry.as_mut().filter(|connection| connection.is_upgraded) else { continue };
            if connection.is_writable {
                match writer.write(connection) {
                    Wrote::Everything | Wrote::Blocked => {}
                    Wrote::Part => has_more = true,
                    Wrote::Gone => {
                        gone.push(index);
                        continue;
                    }
                }
            }
            slowest = slowest.min(connection.cursor);
        }
        self.written_bytes += writer.written_bytes;
        self.slowest = slowest;
        gone.into_iter().for_each(|index| self.remove(index));
        has_more
    }
}
