use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::Shard;
use crate::bridge::mailbox::{Adopted, Mail};
use crate::shard::connection::{Connection, Opening, Phase};
use crate::socket;

/// Connections that are accepted per wake-up; the others wait for the next, maybe of another shard.
const MAX_ACCEPTED: usize = 64;
/// Rest after the system refused a descriptor: those who want to connect wait in the backlog meanwhile.
const PAUSE_MS: u64 = 100;
/// Refused descriptors are reported this often at most.
const REPORT_INTERVAL_MS: u64 = 10_000;

/// The listening socket. All shards wait for it, and one that has time accepts; the connection goes to the shard that has
/// the fewest.
///
/// Not `SO_REUSEPORT`: the kernel would deal connections out by chance, and a second server on the port would not fail to
/// start but share it.
pub(super) struct Listener {
    socket: Arc<OwnedFd>,
    paused_until_ms: Option<u64>,
    reported_at_ms: Option<u64>,
}

impl Listener {
    pub(super) fn resumes_at_ms(&self) -> Option<u64> {
        self.paused_until_ms
    }
}

impl Shard {
    pub(super) fn listen(&mut self, socket: Arc<OwnedFd>) {
        if self.is_shutting_down {
            return;
        }
        self.listener = Some(Listener { socket, paused_until_ms: None, reported_at_ms: None });
        self.watch_listener();
    }

    pub(super) fn stop_accepting(&mut self) {
        if let Some(listener) = self.listener.take()
            && listener.paused_until_ms.is_none()
        {
            let removed = self.poller.remove_listener(&listener.socket);
            self.report_refusal(removed);
        }
    }

    /// Goes on with accepting when the pause is over.
    pub(super) fn resume_accepting(&mut self) {
        let Some(listener) = &mut self.listener else { return };
        if listener.paused_until_ms.take_if(|until_ms| *until_ms <= self.now_ms).is_some() {
            self.watch_listener();
        }
    }

    pub(super) fn accept_some(&mut self) {
        for _ in 0..MAX_ACCEPTED {
            let Some(listener) = &self.listener else { return };
            match socket::accept(&listener.socket) {
                Ok(socket) => {
                    let may_go_on = self.inline.policy.allows_accept(self.now_ms);
                    self.assign(socket);
                    if self.inline.is_running && !may_go_on {
                        return;
                    }
                }
                Err(Errno::AGAIN) => return,
                // The peer was gone before it was accepted, or its packets were refused: not our trouble.
                Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO | Errno::PERM | Errno::NETDOWN) => {}
                Err(errno) => {
                    self.report_unaccepted(errno);
                    if !matches!(errno, Errno::MFILE | Errno::NFILE) || !self.make_room() {
                        return self.pause_accepting();
                    }
                    self.stats.refused_count += 1;
                    self.stats.full_count += 1;
                }
            }
        }
    }

    /// Takes a connected socket in.
    pub(super) fn adopt(&mut self, adopted: Adopted) {
        let Adopted { socket, head, is_attached } = adopted;
        let mut connection = Connection::new(socket, self.shared.options.max_message_bytes);
        // Connections of another HTTP server are not encrypted.
        let session = if is_attached { Ok(None) } else { self.new_session() };
        let is_refused = session.is_err();
        if !is_attached && self.expects_proxy_header(&connection.socket) {
            connection.opening = Some(Box::new(Opening { awaits_proxy_header: true, ..Opening::default() }));
        }
        connection.tls = session.unwrap_or_else(|error| {
            self.events.failed(&format!("TLS cannot begin: {error}"));
            None
        });
        let Some(slot) = self.table.insert(connection) else {
            self.handle().mailbox.load.fetch_sub(1, Ordering::AcqRel);
            return self.events.failed("a shard has no connection ids left");
        };
        self.fanout.insert(slot);
        if self.is_shutting_down || is_refused {
            return self.drop_connection(slot);
        }
        let id = self.table.id(slot);
        self.newcomers.push(id, &self.table);
        let Some(connection) = self.table.get_mut(slot) else { return };
        if let Err(errno) = self.poller.add_connection(&connection.socket, id) {
            self.events.failed(&format!("the system does not watch a connection: {errno}"));
            return self.drop_connection(slot);
        }
        let deadline_ms = self.now_ms + self.shared.options.handshake_timeout.as_millis() as u64;
        self.table.set_deadline(slot, Some(deadline_ms));
        if is_attached || !head.is_empty() {
            if let Some(connection) = self.table.get_mut(slot) {
                debug_assert_eq!(connection.phase, Phase::Head);
                connection.opening = Some(Box::new(Opening { is_attached, ..Opening::default() }));
            }
            self.receive_head(slot, &head);
        }
    }

    fn assign(&mut self, socket: OwnedFd) {
        let mut assigned = self.shared.assign(self.id);
        if assigned.is_none() {
            // Without a word: words would cost a descriptor.
            self.stats.refused_count += 1;
            self.stats.full_count += 1;
            if self.make_room() {
                assigned = self.shared.assign(self.id);
            }
        }
        let Some(shard) = assigned else { return };
        let adopted = Adopted { socket, head: Vec::new(), is_attached: false };
        if shard == self.id {
            self.adopt(adopted);
        } else if let Err(Mail::Adopt(adopted)) = self.shared.shards[shard.index()].mailbox.post(Mail::Adopt(adopted)) {
            // That shard has ended since; this one keeps the connection.
            self.handle().mailbox.load.fetch_add(1, Ordering::AcqRel);
            self.adopt(adopted);
        }
    }

    fn report_unaccepted(&mut self, errno: Errno) {
        let Some(listener) = &mut self.listener else { return };
        if listener.reported_at_ms.is_none_or(|at_ms| self.now_ms - at_ms >= REPORT_INTERVAL_MS) {
            listener.reported_at_ms = Some(self.now_ms);
            self.events.failed(&format!("connections cannot be accepted: {errno}"));
        }
    }

    fn pause_accepting(&mut self) {
        let Some(listener) = &mut self.listener else { return };
        listener.paused_until_ms = Some(self.now_ms + PAUSE_MS);
        let removed = self.poller.remove_listener(&listener.socket);
        self.report_refusal(removed);
        // The shard's thread ends the pause: inline, its next deadline would be too late.
        self.inline.policy.note_busy(self.now_ms);
    }

    fn watch_listener(&mut self) {
        let Some(listener) = &self.listener else { return };
        if let Err(errno) = self.poller.add_listener(&listener.socket) {
            self.events.failed(&format!("the system does not watch the listening socket: {errno}"));
        }
    }

    pub(super) fn report_refusal(&mut self, removed: Result<(), Errno>) {
        if let Err(errno) = removed {
            self.events.failed(&format!("the system does not stop to watch a socket: {errno}"));
        }
    }
}
