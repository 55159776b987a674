//! From connect() to a ready connection: TCP, TLS, the upgrade, and the message that makes it ready.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::sockopt::socket_error;

use super::connection::{Awaited, Connection, GroupId, NO_PLAYER, Phase, Slot};
use super::connections::{Connections, EventKind};
use super::stream::{Fault, Received, Stream};
use super::tls::TlsClient;
use super::upgrade::{Response, parse_response};
use crate::clock::now_us;
use crate::socket;

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
pub(super) struct Handshake {
    opening: Arc<Opening>,
    /// Start of the response.
    head: Vec<u8>,
}

/// Where one connection goes, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) address: SocketAddr,
    pub(crate) source: Option<Ipv4Addr>,
    pub(crate) group: GroupId,
    /// Gets its messages whole; [`NO_PLAYER`]: they are counted only.
    pub(crate) player: u32,
}

impl Route {
    pub(crate) fn of_player(address: SocketAddr, player: u32) -> Self {
        Self { address, source: None, group: GroupId::default(), player }
    }
}

impl Connections {
    /// Starts to connect. [`EventKind::Opened`] or [`EventKind::Failed`] follows.
    ///
    /// # Errors
    /// Why there is no socket.
    pub(crate) fn start(&mut self, opening: &Arc<Opening>, route: Route, began_us: u64) -> Result<Slot, String> {
        let socket =
            socket::connect(route.address, route.source, opening.receive_buffer_bytes).map_err(start_failure)?;
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.table.push(Connection::vacant());
            Slot(self.table.len() as u32 - 1)
        });
        let added = self.poller.add(&socket, u64::from(slot.0));
        let connection = &mut self.table[slot.index()];
        connection.stream = Some(Stream::Plain(socket));
        connection.phase = Phase::Connecting;
        connection.group = route.group;
        connection.player = route.player;
        connection.began_us = began_us;
        self.shared.held();
        self.handshakes.insert(slot, Handshake { opening: opening.clone(), head: Vec::new() });
        if let Err(errno) = added {
            self.fail(slot, format!("epoll {}", socket::errno_name(errno)));
        }
        Ok(slot)
    }

    /// Abandons a connection that is not ready.
    pub(crate) fn fail(&mut self, slot: Slot, reason: String) {
        self.report(slot, EventKind::Failed(reason));
        self.vacate(slot);
    }

    /// The TCP connection is established, or failed.
    pub(super) fn on_connected(&mut self, slot: Slot) {
        let Some(handshake) = self.handshakes.get(&slot) else { return };
        let connection = &mut self.table[slot.index()];
        let Some(stream) = connection.stream.take() else { return };
        if let Err(errno) = socket_error(stream.socket()).and_then(|status| status) {
            connection.stream = Some(stream);
            return self.fail(slot, start_failure(errno));
        }
        let Some(tls) = &handshake.opening.tls else {
            connection.stream = Some(stream);
            return self.request(slot);
        };
        let begun = stream.secured(tls).and_then(|mut stream| {
            stream.begin_handshake(&mut self.scratch)?;
            Ok(stream)
        });
        match begun {
            Ok(stream) => {
                connection.stream = Some(stream);
                connection.phase = Phase::Securing;
            }
            Err(fault) => self.fail(slot, reason(&fault)),
        }
    }

    /// Part of the TLS handshake has come, or the connection has ended.
    pub(super) fn on_handshake(&mut self, slot: Slot, has_ended: bool) {
        let Some(stream) = &mut self.table[slot.index()].stream else { return };
        let outcome = match stream.receive(&mut self.buffer, usize::MAX, &mut self.scratch) {
            Ok(Received { wire_bytes: 0, .. }) => Err("ended".to_owned()),
            Err(Fault::Socket(Errno::AGAIN)) => Ok(None),
            Ok(_) => Ok(stream.negotiated()),
            Err(fault) => Err(reason(&fault)),
        };
        match outcome {
            Err(reason) => self.fail(slot, reason),
            Ok(Some(negotiated)) => {
                self.report(slot, EventKind::Secured(negotiated));
                self.request(slot);
            }
            Ok(None) if has_ended => self.fail(slot, "ended".to_owned()),
            // A socket that was full takes the rest.
            Ok(None) => {
                let flushed = self.get_mut(slot).stream.as_mut().map(|stream| stream.flush());
                if let Some(Err(fault)) = flushed {
                    self.fail(slot, reason(&fault));
                }
            }
        }
    }

    fn request(&mut self, slot: Slot) {
        let Some(handshake) = self.handshakes.get(&slot) else { return };
        let opening = handshake.opening.clone();
        self.get_mut(slot).phase = Phase::Upgrading;
        self.write(slot, &opening.request);
    }

    /// Part of the response has come, or the connection has ended.
    pub(super) fn on_response(&mut self, slot: Slot, has_ended: bool) {
        let Some(mut handshake) = self.handshakes.remove(&slot) else { return };
        let connection = &mut self.table[slot.index()];
        let Some(stream) = &mut connection.stream else { return };
        let count = match stream.receive(&mut self.buffer, usize::MAX, &mut self.scratch) {
            Ok(Received { wire_bytes: 0, .. }) => return self.fail(slot, "ended".to_owned()),
            Ok(Received { plain_bytes, .. }) => plain_bytes,
            Err(Fault::Socket(Errno::AGAIN)) => {
                self.handshakes.insert(slot, handshake);
                return;
            }
            Err(fault) => return self.fail(slot, reason(&fault)),
        };
        handshake.head.extend_from_slice(&self.buffer[..count]);
        let Handshake { opening, head } = &handshake;
        match parse_response(head, opening.subprotocol.as_deref()) {
            Response::Incomplete => {
                self.handshakes.insert(slot, handshake);
            }
            Response::Refused(reason) => return self.fail(slot, reason),
            Response::Upgraded { head_bytes, is_compressed } => {
                connection.is_compressed = is_compressed;
                connection.phase = Phase::Preparing;
                if opening.awaits_message {
                    connection.awaited.insert(Awaited::READY);
                } else {
                    self.opened(slot);
                }
                self.begin_reading(slot, head, head_bytes);
            }
        }
        if has_ended {
            self.read(slot, true);
        }
    }

    /// Takes the bytes that came with the response.
    fn begin_reading(&mut self, slot: Slot, head: &[u8], head_bytes: usize) {
        let rest = &head[head_bytes..];
        let connection = &mut self.table[slot.index()];
        if connection.player != NO_PLAYER {
            self.traffic.bytes_received += head.len() as u64;
            if !rest.is_empty() {
                self.rests.insert(slot, rest.to_vec());
                self.read(slot, false);
            }
        } else if !rest.is_empty() {
            self.intake.take(connection, rest, rest.len(), now_us());
            self.react(slot);
        }
    }

    /// The message that makes a connection ready has come.
    pub(super) fn on_prepared(&mut self, slot: Slot) {
        let connection = self.get_mut(slot);
        if connection.awaited.has(Awaited::READY) {
            connection.awaited.remove(Awaited::READY);
            self.opened(slot);
        }
    }

    fn opened(&mut self, slot: Slot) {
        let connection = &mut self.table[slot.index()];
        connection.phase = Phase::Open;
        let after_us = now_us().saturating_sub(connection.began_us);
        self.shared.opened();
        self.report(slot, EventKind::Opened { after_us });
    }
}

fn reason(fault: &Fault) -> String {
    match fault {
        Fault::Socket(errno) => format!("upgrade {}", socket::errno_name(*errno)),
        Fault::Tls(reason) => reason.clone(),
    }
}

fn start_failure(errno: Errno) -> String {
    match errno {
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => "no source port".to_owned(),
        Errno::MFILE => "descriptor limit".to_owned(),
        errno => format!("connect {}", socket::errno_name(errno)),
    }
}
