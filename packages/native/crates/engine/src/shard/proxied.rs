//! Connections whose first bytes are a proxy's: a header of the PROXY protocol.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::Shard;
use crate::id::Slot;
use crate::proxy_protocol::{self, Header, Malformed};
use crate::shard::connection::Connection;
use crate::socket::{self, Peer};

/// Refused headers are reported this often at most.
const REPORT_INTERVAL_MS: u64 = 10_000;

/// When a refused header was reported last.
#[derive(Default)]
pub(super) struct ProxyReports {
    reported_at_ms: Option<u64>,
}

impl Shard {
    /// Whether a new connection comes from a proxy that says who the client is.
    pub(super) fn expects_proxy_header(&self, socket: &OwnedFd) -> bool {
        let networks = &self.shared.options.proxy_protocol_from;
        // A peer that is gone is found to be so when it is read from.
        !networks.is_empty() && ip_of_peer(socket).is_some_and(|ip| networks.iter().any(|it| it.contains(ip)))
    }

    /// Takes the header off the start of a connection. `false`: it has not come yet, or the connection is gone.
    ///
    /// The header stays in the socket until it is complete, so that nothing behind it is read with it.
    pub(super) fn receive_proxy_header(&mut self, slot: Slot) -> bool {
        let Some(connection) = self.table.get_mut(slot) else { return false };
        let has_hung_up = connection.has_hung_up;
        let buffer = &mut self.read_buffer[..proxy_protocol::MAX_BYTES];
        let header = match socket::peek(&connection.socket, buffer) {
            Ok(count) if count > 0 => proxy_protocol::parse(&buffer[..count]),
            Err(Errno::AGAIN) => return false,
            Ok(_) | Err(_) => {
                self.drop_connection(slot);
                return false;
            }
        };
        match header {
            // Of more, the poller tells.
            Ok(Header::Incomplete) if !has_hung_up => false,
            Ok(Header::Complete { client, length }) if connection.skip(length, buffer) => {
                if let Some(opening) = &mut connection.opening {
                    opening.awaits_proxy_header = false;
                    opening.client = client;
                }
                true
            }
            // It says no more, and never said who it is.
            Ok(_) => {
                self.drop_connection(slot);
                false
            }
            Err(error) => {
                self.refuse_proxy_header(slot, error);
                false
            }
        }
    }

    fn refuse_proxy_header(&mut self, slot: Slot, error: Malformed) {
        self.stats.proxy_header_refused_count += 1;
        let reported_at_ms = &mut self.proxies.reported_at_ms;
        if reported_at_ms.is_none_or(|at_ms| self.now_ms - at_ms >= REPORT_INTERVAL_MS) {
            *reported_at_ms = Some(self.now_ms);
            let ip = self.table.get(slot).and_then(|connection| ip_of_peer(&connection.socket));
            let proxy = ip.map_or_else(String::new, |ip| format!(" {}", ip.to_canonical()));
            self.events.failed(&format!("a connection of the trusted proxy{proxy} was closed: {error}"));
        }
        self.drop_connection(slot);
    }
}

fn ip_of_peer(socket: &OwnedFd) -> Option<IpAddr> {
    match socket::peer(socket) {
        Some(Peer::At(address)) => Some(address.ip()),
        Some(Peer::Unix) | None => None,
    }
}

impl Connection {
    pub(super) fn awaits_proxy_header(&self) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.awaits_proxy_header)
    }

    /// Reads bytes that are known to be there.
    fn skip(&self, length: usize, buffer: &mut [u8]) -> bool {
        socket::receive(&self.socket, &mut buffer[..length]) == Ok(length)
    }
}
