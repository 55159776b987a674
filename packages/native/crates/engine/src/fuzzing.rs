//! Doors for the fuzz targets in `packages/native/fuzz`. Only `--cfg fuzzing` has them.

use std::net::SocketAddr;

use crate::proxy_protocol::{self, Header};
pub use crate::tls::{TlsServer, TlsSettings};

/// Most bytes that a PROXY header may have.
pub const MAX_PROXY_HEADER_BYTES: usize = proxy_protocol::MAX_BYTES;

/// Client and length of the PROXY header that the bytes begin with; `Ok(None)`: more bytes are needed.
///
/// # Errors
/// They are no header.
pub fn proxy_header(bytes: &[u8]) -> Result<Option<(Option<SocketAddr>, usize)>, String> {
    match proxy_protocol::parse(bytes) {
        Ok(Header::Incomplete) => Ok(None),
        Ok(Header::Complete { client, length }) => Ok(Some((client, length))),
        Err(error) => Err(error.to_string()),
    }
}
