//! A client's socket, with incomplete input and pending output.

use std::os::fd::OwnedFd;

use crate::socket;

/// One connection, written in order.
pub(crate) struct Link {
    pub(crate) socket: OwnedFd,
    /// The start of an incomplete frame.
    pub(crate) rest: Vec<u8>,
    backlog: Vec<u8>,
}

impl Link {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, rest: Vec::new(), backlog: Vec::new() }
    }

    /// Writes `bytes` now or when the socket takes them, in order. The next read reports a failed socket.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let written = if self.backlog.is_empty() { socket::send(&self.socket, bytes).unwrap_or(0) } else { 0 };
        self.backlog.extend_from_slice(&bytes[written..]);
    }

    /// Writes pending output.
    pub(crate) fn flush(&mut self) {
        if !self.backlog.is_empty() {
            let written = socket::send(&self.socket, &self.backlog).unwrap_or(0);
            self.backlog.drain(..written);
        }
    }
}
