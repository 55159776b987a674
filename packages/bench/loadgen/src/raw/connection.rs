//! A subscriber: a socket and a cursor.

use std::os::fd::OwnedFd;

use super::log::Position;

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
