//! The PROXY protocol, versions 1 and 2: a load balancer that passes TCP on says before the first byte who the client is.
//!
//! [The specification](https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt); its sections are named as [PROXY §2].

mod network;
mod v1;
mod v2;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub use network::{InvalidNetwork, Network};

/// Longest header that is accepted. An address takes at most 232 bytes, the rest is for what a proxy adds (TLVs).
pub(crate) const MAX_BYTES: usize = 4 << 10;

/// A client of whom the proxy knows no address. It must not count as the proxy, which may be trusted or on this machine.
pub(crate) const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// What the first bytes of a connection say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// It may become a header with more bytes.
    Incomplete,
    Complete {
        /// `None`: the connection is the proxy's own, such as a health check. [`UNKNOWN`]: it is somebody's, over what is no TCP.
        client: Option<SocketAddr>,
        /// Bytes of the header. What the client has sent follows.
        length: usize,
    },
}

/// Why bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("it does not begin with a PROXY header")]
    Absent,
    #[error("its PROXY header is malformed")]
    Invalid,
    #[error("its PROXY header has more than {MAX_BYTES} bytes")]
    TooLong,
}

/// Reads the header at the start of a connection.
pub(crate) fn parse(bytes: &[u8]) -> Result<Header, Malformed> {
    if begins_like(bytes, v2::SIGNATURE) {
        v2::parse(bytes)
    } else if begins_like(bytes, v1::PREFIX) {
        v1::parse(bytes)
    } else {
        Err(Malformed::Absent)
    }
}

fn begins_like(bytes: &[u8], start: &[u8]) -> bool {
    let length = bytes.len().min(start.len());
    bytes[..length] == start[..length]
}

#[cfg(test)]
mod properties_test;
