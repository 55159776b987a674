use crate::close::CloseCode;

/// Which end of the connection decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Receives from a client: frames must be masked.
    Server,
    /// Receives from a server: frames must not be masked.
    Client,
}

/// Kind of a message, as its sender declared it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// Valid UTF-8.
    Text,
    /// Any bytes.
    Binary,
}

/// An event of a connection, borrowed: valid until the callback returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// One complete message, whatever the number of its fragments.
    Message {
        /// Text or binary.
        kind: MessageKind,
        /// The payload. Valid UTF-8 when `kind` is text.
        data: &'a [u8],
    },
    /// Answer it with a pong of the same payload (RFC 6455 §5.5.3).
    Ping(&'a [u8]),
    /// An answer to a ping, or an unsolicited pong.
    Pong(&'a [u8]),
    /// The peer closes; always the last event. Answer it with a close frame unless you sent one.
    Close {
        /// `None` when the frame was empty: report it as 1005, never send that.
        code: Option<CloseCode>,
        /// At most [`MAX_CLOSE_REASON_BYTES`](crate::MAX_CLOSE_REASON_BYTES) bytes.
        reason: &'a str,
    },
}
