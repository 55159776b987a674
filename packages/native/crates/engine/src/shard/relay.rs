//! Plain HTTP over TLS: the shard keeps the connection and passes its plaintext on to Node through a pair of sockets.
//!
//! Bounded in both directions: bytes that one side does not take stay in the socket of the other.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use super::Shard;
use crate::fanout::Written;
use crate::id::{ConnectionId, Slot};
use crate::shard::connection::{Connection, Phase};
use crate::shard::table::Table;
use crate::socket;
use crate::tls::{Received, Session};

/// Times that both directions are looked at before other connections get their turn.
const MAX_ROUNDS: usize = 4;
/// Time in which a peer may close, or go on sending, after Node's answer has been sent.
const LINGER_MS: u64 = 1_000;
/// Time in which a peer must take something of an answer that Node has finished.
const STALL_MS: u64 = 30_000;

/// Entries that the queue of relays may have before it is tidied up.
const MIN_QUEUE: usize = 64;

/// The other side of a relayed connection.
pub(crate) struct Relay {
    /// Our end of the pair; Node has the other.
    pair: OwnedFd,
    /// Plaintext that the pair has not taken yet.
    to_node: Vec<u8>,
    /// The peer sends nothing more.
    has_peer_ended: bool,
    /// Node was told so, or takes nothing more.
    is_node_told: bool,
    /// Node sends nothing more.
    has_node_ended: bool,
    /// The peer was told so.
    is_peer_told: bool,
}

/// Relayed connections, oldest first, and some that are gone.
#[derive(Default)]
pub(super) struct Relays {
    queue: VecDeque<ConnectionId>,
    count: usize,
}

impl Relays {
    /// Connections that are relayed now.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    fn push(&mut self, id: ConnectionId, table: &Table) {
        self.count += 1;
        self.queue.push_back(id);
        if self.queue.len() > 2 * self.count + MIN_QUEUE {
            self.queue.retain(|id| table.find(*id).is_some());
        }
    }
}

/// What one look at one direction came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// It waits for a socket.
    Idle,
    Progress,
    Broken,
}

impl Shard {
    /// Gives a plain HTTP request of an encrypted connection to Node, and what was read from it.
    pub(super) fn begin_relay(&mut self, slot: Slot, read: &[u8]) {
        let id = self.table.id(slot);
        let Some(connection) = self.table.get_mut(slot) else { return };
        let Some(peer) = connection.client() else { return self.drop_connection(slot) };
        let pair = socket::pair().and_then(|(pair, of_node)| {
            self.poller.add_relay(&pair, id)?;
            Ok((pair, of_node))
        });
        let (pair, of_node) = match pair {
            Ok(pair) => pair,
            Err(errno) => {
                self.events.failed(&format!("an HTTP request cannot be passed on: {errno}"));
                return self.refuse_full(slot, "server has no descriptors left");
            }
        };
        connection.opening = None;
        connection.phase = Phase::Relaying;
        connection.relay = Some(Box::new(Relay {
            pair,
            to_node: Vec::new(),
            has_peer_ended: false,
            is_node_told: false,
            has_node_ended: false,
            is_peer_told: false,
        }));
        self.relays.push(id, &self.table);
        // Node has timeouts of its own.
        self.table.set_deadline(slot, None);
        self.count_partial_bytes(slot);
        let (token, has_closed_oldest) = self.shared.http_sockets.put(of_node);
        self.stats.refused_count += u64::from(has_closed_oldest);
        self.events.http(token, Some(peer), true, read);
    }

    /// Moves bytes both ways.
    pub(super) fn relay(&mut self, slot: Slot) {
        let mut has_moved = false;
        for round in 0..MAX_ROUNDS {
            let Some(connection) = self.table.get_mut(slot) else { return };
            let (up, down) = connection.relay_once(&mut self.read_buffer, &mut self.tls.staging);
            if up == Flow::Broken || down == Flow::Broken || connection.is_relay_over() {
                return self.drop_connection(slot);
            }
            if up == Flow::Idle && down == Flow::Idle {
                break;
            }
            has_moved = true;
            if round + 1 == MAX_ROUNDS {
                self.queue_receive(slot);
            }
        }
        self.count_partial_bytes(slot);
        if has_moved && let Some(linger_ms) = self.table.get(slot).and_then(Connection::relay_linger_ms) {
            self.table.set_deadline(slot, Some(self.now_ms + linger_ms));
        }
    }

    pub(super) fn forget_relay(&mut self, connection: &Connection) {
        self.relays.count -= usize::from(connection.relay.is_some());
    }

    /// Closes the oldest relayed connection; `false`: there is none.
    pub(super) fn drop_oldest_relay(&mut self) -> bool {
        let oldest = std::iter::from_fn(|| self.relays.queue.pop_front()).find_map(|id| self.table.find(id));
        oldest.into_iter().for_each(|slot| self.drop_connection(slot));
        oldest.is_some()
    }

    /// Sends the last output of Node, before the shard ends.
    pub(super) fn finish_relays(&mut self) {
        let is_relayed = |slot: &Slot| self.table.get(*slot).is_some_and(|connection| connection.relay.is_some());
        let slots: Vec<Slot> = self.table.slots().into_iter().filter(is_relayed).collect();
        slots.into_iter().for_each(|slot| self.relay(slot));
    }
}

impl Connection {
    fn relay_once(&mut self, buffer: &mut [u8], staging: &mut [u8]) -> (Flow, Flow) {
        let Self { socket, tls: Some(session), relay: Some(relay), .. } = self else {
            return (Flow::Broken, Flow::Broken);
        };
        (relay.pass_up(socket, session, buffer), relay.pass_down(socket, session, buffer, staging))
    }

    fn is_relay_over(&self) -> bool {
        let (Some(relay), Some(session)) = (&self.relay, &self.tls) else { return true };
        relay.has_peer_ended && relay.is_node_told && relay.is_peer_told && session.held_bytes() == 0
    }

    /// Time in which something must happen after Node has ended; `None`: it has not.
    fn relay_linger_ms(&self) -> Option<u64> {
        let (relay, session) = (self.relay.as_ref()?, self.tls.as_ref()?);
        relay.has_node_ended.then_some(if session.held_bytes() == 0 { LINGER_MS } else { STALL_MS })
    }
}

impl Relay {
    /// Heap memory for input that the pair has not taken yet.
    pub(super) fn input_bytes(&self) -> usize {
        self.to_node.capacity()
    }

    /// From the peer to Node.
    fn pass_up(&mut self, socket: &OwnedFd, session: &mut Session, buffer: &mut [u8]) -> Flow {
        if !self.to_node.is_empty() && !self.flush_to_node() {
            return Flow::Idle;
        }
        if self.has_peer_ended {
            if std::mem::replace(&mut self.is_node_told, true) {
                return Flow::Idle;
            }
            // Fails only if Node's end is gone, and then nobody has to be told.
            let _ = shutdown(&self.pair, Shutdown::Write);
            return Flow::Progress;
        }
        let kept = session.begin_read(buffer);
        match socket::receive(socket, &mut buffer[kept..]) {
            Ok(0) => self.has_peer_ended = true,
            Ok(count) => {
                let received = session.decrypt(&mut buffer[..kept + count], &mut self.to_node);
                match received {
                    Ok(Received::Some) => {}
                    Ok(Received::End) => self.has_peer_ended = true,
                    Err(_) => {
                        // Its alert, if the socket takes it; the connection ends either way.
                        let _ = session.flush(socket);
                        return Flow::Broken;
                    }
                }
                self.flush_to_node();
            }
            Err(Errno::AGAIN) => return Flow::Idle,
            Err(_) => return Flow::Broken,
        }
        Flow::Progress
    }

    /// Returns whether the pair has taken everything. If Node reads no more, it is thrown away: the answer may still come.
    fn flush_to_node(&mut self) -> bool {
        let sent = if self.is_node_told { Ok(self.to_node.len()) } else { socket::send(&self.pair, &self.to_node) };
        match sent {
            Ok(count) => drop(self.to_node.drain(..count)),
            Err(_) => {
                self.is_node_told = true;
                self.to_node.clear();
            }
        }
        if self.to_node.is_empty() {
            self.to_node = Vec::new();
        }
        self.to_node.is_empty()
    }

    /// From Node to the peer.
    fn pass_down(&mut self, socket: &OwnedFd, session: &mut Session, buffer: &mut [u8], staging: &mut [u8]) -> Flow {
        match session.flush(socket) {
            Ok(true) => {}
            Ok(false) => return Flow::Idle,
            Err(_) => return Flow::Broken,
        }
        if self.has_node_ended {
            if std::mem::replace(&mut self.is_peer_told, true) {
                return Flow::Idle;
            }
            session.end();
            let is_told = session.flush(socket).is_ok() && shutdown(socket, Shutdown::Write).is_ok();
            return if is_told { Flow::Progress } else { Flow::Broken };
        }
        match socket::receive(&self.pair, buffer) {
            Ok(0) => self.has_node_ended = true,
            Ok(count) => {
                if session.write(socket, &buffer[..count], staging, &mut 0) == Written::Failed {
                    return Flow::Broken;
                }
            }
            Err(Errno::AGAIN) => return Flow::Idle,
            // Node has destroyed its end.
            Err(_) => self.has_node_ended = true,
        }
        Flow::Progress
    }
}
