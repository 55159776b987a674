//! A connection that is not upgraded yet.

use std::rc::Rc;

use super::tls::TlsClient;

/// What the connections of a command have in common.
pub(crate) struct Opening {
    pub(crate) request: Box<[u8]>,
    pub(crate) subprotocol: Option<Box<str>>,
    pub(crate) tls: Option<TlsClient>,
    /// Whether a message makes it ready, rather than the upgrade.
    pub(crate) awaits_message: bool,
    pub(crate) receive_buffer_bytes: Option<usize>,
}

/// A connection that is not upgraded yet.
pub(crate) struct Handshake {
    pub(super) opening: Rc<Opening>,
    /// Start of the response.
    pub(super) head: Vec<u8>,
}
