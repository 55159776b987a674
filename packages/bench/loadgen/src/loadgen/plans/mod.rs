//! Jobs that play clients of webmq.v1 by a plan. They get the messages of their connections whole.

pub(crate) mod clients;
mod incoming;
pub(crate) mod replay;
pub(crate) mod users;

use std::net::{Ipv4Addr, SocketAddr};

use super::opening::Opening;
use super::upgrade::Request;

pub(crate) const SUBPROTOCOL: &str = "webmq.v1";

/// How the connections to a server of this machine are opened.
///
/// # Errors
/// A path that a request cannot carry.
fn opening(address: SocketAddr, path: &str) -> Result<Opening, String> {
    let request = Request {
        authority: &address.to_string(),
        path,
        subprotocol: Some(SUBPROTOCOL),
        token: None,
        headers: &std::collections::BTreeMap::new(),
        compression: false,
    };
    Ok(Opening {
        request: request.encode()?.into(),
        subprotocol: Some(SUBPROTOCOL.into()),
        tls: None,
        awaits_message: false,
        receive_buffer_bytes: None,
    })
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
