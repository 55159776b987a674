//! A subscriber: a socket and a cursor. Writes the log, and the subscriber's own frames, to the socket.

use std::os::fd::OwnedFd;

use super::log::{Log, Position};
use super::server::Mode;
use crate::socket;

/// Bytes of one write. A longer one would delay the other connections.
const MAX_WRITE_BYTES: usize = 64 << 10;

pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) is_upgraded: bool,
    /// The socket took everything at the last write.
    pub(crate) is_writable: bool,
    /// Close it once `direct` is written.
    pub(crate) is_closing: bool,
    /// Next byte of the log.
    pub(crate) cursor: Position,
    /// Frames for this connection alone, sent between two frames of the log.
    pub(crate) direct: Vec<u8>,
    /// Bytes of an incomplete request or frame.
    pub(crate) partial: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, cursor: Position) -> Self {
        Self {
            socket,
            is_upgraded: false,
            is_writable: true,
            is_closing: false,
            cursor,
            direct: Vec::new(),
            partial: Vec::new(),
        }
    }
}

/// The outcome of writing pending bytes.
pub(super) enum Wrote {
    Everything,
    /// More is pending, and the socket would take it.
    Part,
    /// More is pending, and the socket does not take it.
    Blocked,
    /// The connection is over.
    Gone,
}

pub(super) struct Writer<'a> {
    pub(super) log: &'a Log,
    pub(super) mode: Mode,
    /// Where frames of `frame_bytes` begin.
    pub(super) run_start: Position,
    pub(super) frame_bytes: usize,
    /// Bytes of the log written.
    pub(super) written_bytes: u64,
}

impl Writer<'_> {
    pub(super) fn write(&mut self, connection: &mut Connection) -> Wrote {
        loop {
            let into_frame = (connection.cursor.since(self.run_start) % self.frame_bytes as u64) as usize;
            if !connection.direct.is_empty() && into_frame == 0 {
                let Ok(count) = socket::send(&connection.socket, &connection.direct) else { return Wrote::Gone };
                connection.direct.drain(..count);
                if !connection.direct.is_empty() {
                    connection.is_writable = false;
                    return Wrote::Blocked;
                }
            }
            if connection.is_closing && connection.direct.is_empty() {
                return Wrote::Gone;
            }
            let is_frame_only = self.mode == Mode::Loop || !connection.direct.is_empty();
            let max_bytes = if is_frame_only { self.frame_bytes - into_frame } else { MAX_WRITE_BYTES };
            let pending = self.log.pending(connection.cursor, max_bytes);
            if pending.is_empty() {
                return Wrote::Everything;
            }
            let Ok(count) = socket::send(&connection.socket, pending) else { return Wrote::Gone };
            connection.cursor = connection.cursor.plus(count);
            self.written_bytes += count as u64;
            if count < pending.len() {
                connection.is_writable = false;
                return Wrote::Blocked;
            }
            if !is_frame_only {
                let has_more = connection.cursor < self.log.head();
                return if has_more { Wrote::Part } else { Wrote::Everything };
            }
        }
    }
}
