//! `connect`: a storm of handshakes, a limited number at a time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;

use crate::clock::now_us;
use crate::latencies::Latencies;
use crate::loadgen::batch::text_frame;
use crate::loadgen::connection::{Awaited, Connection, Phase, Slot};
use crate::loadgen::intake::Reply;
use crate::loadgen::order::{ConnectTask, Connected, OrderNumber, Report, Secured};
use crate::loadgen::stream::{Fault, Received, Stream};
use crate::loadgen::upgrade::{Response, parse_response};
use crate::loadgen::worker::Worker;
use crate::socket;

/// Handshakes started before the others are checked again. Starting one costs about 20 us, and handshakes that are
/// ready in the meantime would seem slow.
const MAX_STARTS_PER_TURN: usize = 32;

pub(crate) struct Connecting {
    number: OrderNumber,
    task: ConnectTask,
    started_count: usize,
    in_flight_count: usize,
    /// Handshakes of the current batch that may still start.
    batch_left_count: usize,
    /// In the order of their start.
    pending: VecDeque<(Slot, u64)>,
    /// Starts of responses.
    heads: FxHashMap<Slot, Vec<u8>>,
    ok_count: u64,
    latencies: Latencies,
    errors: BTreeMap<String, u64>,
    secured: Secured,
    began_us: u64,
}

impl Connecting {
    fn failed(&mut self, reason: String) {
        *self.errors.entry(reason).or_default() += 1;
    }

    /// When the connection after those that have started may start, by the rate.
    fn next_start_us(&self) -> u64 {
        let waited_us = self.task.per_second.map_or(0.0, |per_second| self.started_count as f64 * 1e6 / per_second);
        self.began_us + waited_us as u64
    }

    fn may_start_count(&mut self, now_us: u64) -> usize {
        if now_us < self.next_start_us() {
            return 0;
        }
        if self.task.waits_for_batch && self.in_flight_count == 0 {
            self.batch_left_count = self.task.max_in_flight;
        }
        let room = if self.task.waits_for_batch {
            self.batch_left_count
        } else {
            self.task.max_in_flight.saturating_sub(self.in_flight_count)
        };
        let room = room.min(self.task.places.len() - self.started_count);
        // With a rate, one at a time.
        if self.task.per_second.is_some() { room.min(1) } else { room }
    }
}

impl Worker {
    pub(super) fn begin_connect(&mut self, number: OrderNumber, task: ConnectTask) {
        self.intake.prefixes.ready = task.ready_prefix.clone().unwrap_or_default();
        let reply =
            |(to, text): &(String, String)| Reply { to: to.as_bytes().into(), frame: Rc::from(text_frame(text)) };
        self.intake.replies = task.replies.iter().map(reply).collect();
        self.jobs.connect = Some(Connecting {
            number,
            task,
            started_count: 0,
            in_flight_count: 0,
            batch_left_count: 0,
            pending: VecDeque::new(),
            heads: FxHashMap::default(),
            ok_count: 0,
            latencies: Latencies::new(),
            errors: BTreeMap::new(),
            secured: Secured::default(),
            began_us: now_us(),
        });
    }

    pub(super) fn tick_connect(&mut self, now_us: u64) -> Option<u64> {
        let next_timeout_us = self.expire(now_us);
        let job = self.jobs.connect.as_mut()?;
        for _ in 0..job.may_start_count(now_us).min(MAX_STARTS_PER_TURN) {
            self.start_connection();
        }
        let job = self.jobs.connect.as_mut()?;
        let has_more = job.may_start_count(now_us) > 0;
        if job.in_flight_count == 0 && job.started_count == job.task.places.len() {
            let job = self.jobs.connect.take()?;
            let Connecting { number, ok_count, latencies, errors, secured, .. } = job;
            self.answer(number, Report::Connected(Connected { ok_count, latencies, errors, secured }));
            return None;
        }
        if has_more {
            return Some(0);
        }
        let next_start_us = job.next_start_us();
        let is_paced = job.started_count < job.task.places.len() && next_start_us > now_us;
        let timeout_us = next_timeout_us.unwrap_or(now_us + job.task.timeout_us);
        Some(if is_paced { timeout_us.min(next_start_us) } else { timeout_us })
    }

    /// Abandons handshakes that took too long and returns the next deadline.
    fn expire(&mut self, now_us: u64) -> Option<u64> {
        loop {
            let job = self.jobs.connect.as_mut()?;
            let (slot, began_us) = *job.pending.front()?;
            let expires_us = began_us + job.task.timeout_us;
            let connection = &self.connections[slot.index()];
            let is_pending = !matches!(connection.phase, Phase::Vacant | Phase::Open | Phase::Ending)
                && connection.began_us == began_us;
            if is_pending && expires_us > now_us {
                return Some(expires_us);
            }
            job.pending.pop_front();
            if is_pending {
                self.connect_failed(slot, "timeout".to_owned());
            }
        }
    }

    fn start_connection(&mut self) {
        let Some(job) = self.jobs.connect.as_mut() else { return };
        let number = job.task.first_number + job.started_count as u64;
        let place = job.task.places[job.started_count];
        let address = SocketAddr::new(job.task.ip, place.port);
        job.started_count += 1;
        job.batch_left_count = job.batch_left_count.saturating_sub(1);
        let began_us = now_us();
        let source = job.task.sources.of(number);
        let socket = match socket::connect(address, source, job.task.receive_buffer_bytes) {
            Ok(socket) => socket,
            Err(errno) => return job.failed(start_failure(errno)),
        };
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.connections.push(Connection::vacant());
            Slot(self.connections.len() as u32 - 1)
        });
        let added = self.poller.add(&socket, u64::from(slot.0));
        let connection = &mut self.connections[slot.index()];
        connection.stream = Some(Stream::Plain(socket));
        connection.phase = Phase::Connecting;
        connection.group = place.group;
        connection.began_us = began_us;
        self.shared.held();
        job.in_flight_count += 1;
        job.pending.push_back((slot, began_us));
        if let Err(errno) = added {
            self.connect_failed(slot, format!("epoll {}", socket::errno_name(errno)));
        }
    }

    /// The TCP connection is established, or failed.
    pub(crate) fn on_connected(&mut self, slot: Slot) {
        let Some(job) = self.jobs.connect.as_ref() else { return };
        let connection = &mut self.connections[slot.index()];
        let Some(stream) = connection.stream.take() else { return };
        if let Err(errno) = socket_error(stream.socket()).and_then(|status| status) {
            connection.stream = Some(stream);
            return self.connect_failed(slot, start_failure(errno));
        }
        let Some(tls) = &job.task.tls else {
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
            Err(fault) => self.connect_failed(slot, reason(&fault)),
        }
    }

    /// Part of the TLS handshake has come, or the connection has ended.
    pub(crate) fn on_handshake(&mut self, slot: Slot, has_ended: bool) {
        let Some(stream) = &mut self.connections[slot.index()].stream else { return };
        let outcome = match stream.receive(&mut self.buffer, usize::MAX, &mut self.scratch) {
            Ok(Received { wire_bytes: 0, .. }) => Err("ended".to_owned()),
            Err(Fault::Socket(Errno::AGAIN)) => Ok(None),
            Ok(_) => Ok(stream.negotiated()),
            Err(fault) => Err(reason(&fault)),
        };
        match outcome {
            Err(reason) => self.connect_failed(slot, reason),
            Ok(Some(negotiated)) => {
                if let Some(job) = self.jobs.connect.as_mut() {
                    job.secured.add(negotiated);
                }
                self.request(slot);
            }
            Ok(None) if has_ended => self.connect_failed(slot, "ended".to_owned()),
            // A socket that was full takes the rest.
            Ok(None) => {
                let flushed = self.connections[slot.index()].stream.as_mut().map(|stream| stream.flush());
                if let Some(Err(fault)) = flushed {
                    self.connect_failed(slot, reason(&fault));
                }
            }
        }
    }

    fn request(&mut self, slot: Slot) {
        let Some(job) = self.jobs.connect.as_ref() else { return };
        let request = job.task.request.clone();
        self.connection(slot).phase = Phase::Upgrading;
        self.write(slot, &request);
    }

    /// Part of the response has come, or the connection has ended.
    pub(crate) fn on_response(&mut self, slot: Slot, has_ended: bool) {
        let Some(job) = self.jobs.connect.as_mut() else { return };
        let connection = &mut self.connections[slot.index()];
        let Some(stream) = &mut connection.stream else { return };
        let count = match stream.receive(&mut self.buffer, usize::MAX, &mut self.scratch) {
            Ok(Received { wire_bytes: 0, .. }) => return self.connect_failed(slot, "ended".to_owned()),
            Ok(Received { plain_bytes, .. }) => plain_bytes,
            Err(Fault::Socket(Errno::AGAIN)) => return,
            Err(fault) => return self.connect_failed(slot, reason(&fault)),
        };
        let mut head = job.heads.remove(&slot).unwrap_or_default();
        head.extend_from_slice(&self.buffer[..count]);
        match parse_response(&head, job.task.subprotocol.as_deref()) {
            Response::Incomplete => {
                job.heads.insert(slot, head);
            }
            Response::Refused(reason) => return self.connect_failed(slot, reason),
            Response::Upgraded { head_bytes, is_compressed } => {
                connection.is_compressed = is_compressed;
                connection.phase = Phase::Preparing;
                if job.task.ready_prefix.is_some() {
                    connection.awaited.insert(Awaited::READY);
                } else {
                    self.opened(slot);
                }
                let rest = &head[head_bytes..];
                if !rest.is_empty() {
                    self.intake.take(&mut self.connections[slot.index()], rest, rest.len(), now_us());
                    self.react(slot);
                }
            }
        }
        if has_ended {
            self.read(slot, true);
        }
    }

    /// The message that makes a connection ready has come.
    pub(crate) fn on_prepared(&mut self, slot: Slot) {
        let connection = self.connection(slot);
        if connection.awaited.has(Awaited::READY) {
            connection.awaited.remove(Awaited::READY);
            self.opened(slot);
        }
    }

    pub(crate) fn connect_failed(&mut self, slot: Slot, reason: String) {
        if let Some(job) = self.jobs.connect.as_mut() {
            job.in_flight_count -= 1;
            job.heads.remove(&slot);
            job.failed(reason);
        }
        self.vacate(slot);
    }

    fn opened(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.index()];
        connection.phase = Phase::Open;
        self.shared.opened();
        if let Some(job) = self.jobs.connect.as_mut() {
            job.in_flight_count -= 1;
            job.ok_count += 1;
            job.latencies.record(now_us().saturating_sub(connection.began_us));
        }
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
