//! The clients of one thread, and the event loop that plays them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError};

use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use webmq_websocket::{CloseCode, Opcode, encode_masked_frame};

use super::client::{Client, Phase};
use super::control::{Course, Order};
use super::counters::count;
use super::schedule::SendSchedule;
use super::tally::Tally;
use crate::clock::now_us;
use crate::link::Link;
use crate::loadgen::batch::{MASK, text_frame};
use crate::poller::{Poller, Ready};
use crate::socket;

/// Bytes of one read.
const READ_BYTES: usize = 256 << 10;
/// Clients of one thread that connect at the same time; more would only wait in the listen backlog.
const CONNECTING_COUNT: usize = 32;
/// Sockets read between two looks at the schedule, and messages sent in a row.
const READS_PER_LOOK: usize = 16;
const MAX_SENDS_PER_LOOK: usize = 64;
/// How often the thread's own lateness is measured.
const TICK_US: u64 = 10_000;

/// The window on the machine's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) start_us: f64,
    pub(super) end_us: f64,
}

/// A part of the clients, on one thread.
pub(super) struct Crew {
    pub(super) course: Arc<Course>,
    pub(super) clients: Vec<Client>,
    /// Number of the first client.
    first_client: u32,
    pub(super) tally: Tally,
    /// Absent before `begin`: nothing is sent.
    pub(super) window: Option<Window>,
    schedule: SendSchedule,
    /// Place of the next client to connect, and clients on their way.
    next_to_connect: usize,
    pub(super) connecting: usize,
    pub(super) live: usize,
    /// Why a client could not connect.
    pub(super) failure: Option<String>,
    is_sending_done: bool,
    meter: Meter,
    buffer: Vec<u8>,
}

impl Crew {
    pub(super) fn new(course: Arc<Course>, first_client: u32, end_client: u32) -> Self {
        let numbers: Vec<u32> = (first_client..end_client).collect();
        let backend_count = course.addresses.len();
        let client = |number: &u32| Client::new(&course.plan, *number, *number as usize % backend_count);
        Self {
            clients: numbers.iter().map(client).collect(),
            first_client,
            tally: Tally::new(backend_count),
            window: None,
            schedule: SendSchedule::new(&course.plan, numbers),
            next_to_connect: 0,
            connecting: 0,
            live: 0,
            failure: None,
            is_sending_done: false,
            meter: Meter::default(),
            buffer: vec![0; READ_BYTES],
            course,
        }
    }

    /// Connects all clients; returns when the server has confirmed every listen.
    ///
    /// # Errors
    /// A client could not connect in time, or the epoll fails.
    pub(super) fn connect(&mut self, poller: &mut Poller) -> Result<(), String> {
        let deadline_us = now_us() + self.course.timeout_us;
        while self.live < self.clients.len() {
            while self.connecting < CONNECTING_COUNT && self.next_to_connect < self.clients.len() {
                let place = self.next_to_connect;
                self.next_to_connect += 1;
                self.connecting += 1;
                self.start_connecting(place, poller)?;
            }
            poller.wait(Some(deadline_us)).map_err(|errno| format!("epoll {}", socket::errno_name(errno)))?;
            self.handle_ready(poller);
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            if now_us() >= deadline_us && self.live < self.clients.len() {
                return Err(format!("{} of {} clients are connected in time", self.live, self.clients.len()));
            }
        }
        Ok(())
    }

    /// Plays until the order to finish.
    ///
    /// # Errors
    /// The epoll fails.
    pub(super) fn play(&mut self, poller: &mut Poller, orders: &Receiver<Order>) -> Result<(), Errno> {
        loop {
            match orders.try_recv() {
                Ok(Order::Begin(window)) => self.window = Some(window),
                Ok(Order::Finish) | Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {}
            }
            let due_us = self.next_due_us();
            let tick_us = self.meter.next_tick_us();
            let now_before_us = now_us();
            poller.wait(Some(if due_us <= now_before_us { 0 } else { due_us.min(tick_us) }))?;
            self.meter.woke(now_before_us, now_us(), &mut self.tally);
            self.send_due();
            self.handle_ready(poller);
        }
        self.leave();
        Ok(())
    }

    fn start_connecting(&mut self, place: usize, poller: &Poller) -> Result<(), String> {
        let address = self.course.addresses[self.clients[place].backend];
        let failed = |errno| format!("client {place}: connect {}", socket::errno_name(errno));
        let socket = socket::connect(address, None, None).map_err(failed)?;
        poller.add(&socket, place as u64).map_err(failed)?;
        let client = &mut self.clients[place];
        client.phase = Phase::Connecting;
        client.link = Some(Link::new(socket));
        Ok(())
    }

    /// When the next message is due.
    fn next_due_us(&self) -> u64 {
        let Some(window) = self.window else { return u64::MAX };
        let due_us = window.start_us + self.schedule.next_at_us(&self.course.plan);
        // A float beyond the range becomes the largest integer: never.
        due_us.ceil() as u64
    }

    /// Sends what is due. A late thread still sends all of it, so the load does not shrink.
    fn send_due(&mut self) {
        let Some(window) = self.window else { return };
        let course = self.course.clone();
        for _ in 0..MAX_SENDS_PER_LOOK {
            let elapsed_us = now_us() as f64 - window.start_us;
            if self.schedule.next_at_us(&course.plan) > elapsed_us {
                break;
            }
            let Some(send) = self.schedule.shift(&course.plan) else { break };
            let place = (send.client - self.first_client) as usize;
            let publication = self.clients[place].publisher.next(send.turn, send.at_us);
            let is_counted = send.turn >= 0;
            let backend = self.clients[place].backend;
            if is_counted {
                let sent_us = now_us();
                self.meter.open(sent_us);
                let tally = &mut self.tally;
                tally.last_send_us = sent_us;
                tally.expected += u64::from(course.plan.listener_count(publication.key));
                tally.published_in_window += u64::from((sent_us as f64) < window.end_us);
                tally.send_lag.record((sent_us as f64 - window.start_us - send.at_us).max(0.0).round() as u64);
                tally.backends[backend].published += 1;
                count(&course.counters.published);
            }
            let client = &mut self.clients[place];
            if client.link.is_none() {
                // Still counts as published, and shows as a loss.
                self.tally.publish_errors += u64::from(is_counted);
                self.tally.first_publish_error.get_or_insert_with(|| "the connection has ended".to_owned());
                continue;
            }
            let payload = course.encoder.encode(&publication);
            let text = client.publish(&course.key_prefix, publication.key, &payload, is_counted);
            client.write(&text_frame(&text));
        }
        if !self.is_sending_done && self.schedule.next_at_us(&course.plan).is_infinite() {
            self.is_sending_done = true;
            // Here, because the idle seconds of the drain would dilute it.
            self.tally.utilization = self.meter.close(now_us());
            course.counters.done_threads.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn handle_ready(&mut self, poller: &mut Poller) {
        for index in 0..poller.ready_count() {
            if let Some(ready) = poller.ready(index) {
                self.on_ready(ready);
            }
            if index % READS_PER_LOOK == READS_PER_LOOK - 1 {
                self.send_due();
            }
        }
    }

    fn on_ready(&mut self, ready: Ready) {
        let place = ready.token as usize;
        if self.clients[place].phase == Phase::Connecting {
            if ready.writable || ready.ended {
                self.on_connected(place);
            }
            return;
        }
        if ready.writable
            && let Some(link) = &mut self.clients[place].link
        {
            link.flush();
        }
        if ready.readable || ready.ended {
            self.read(place, ready.ended);
        }
    }

    fn on_connected(&mut self, place: usize) {
        let client = &mut self.clients[place];
        let Some(link) = &mut client.link else { return };
        match socket_error(&link.socket).and_then(|status| status) {
            Ok(()) => {
                client.phase = Phase::Upgrading;
                link.write(&self.course.requests[client.backend]);
            }
            Err(errno) => self.on_end(place, &format!("connect {}", socket::errno_name(errno))),
        }
    }

    fn read(&mut self, place: usize, until_end: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(link) = &self.clients[place].link {
            match socket::receive(&link.socket, &mut buffer) {
                Err(Errno::AGAIN) => break,
                Ok(0) => {
                    self.on_end(place, "ended without a close frame");
                    break;
                }
                Err(errno) => {
                    self.on_end(place, &socket::errno_name(errno));
                    break;
                }
                Ok(bytes) => {
                    self.take(place, &buffer[..bytes]);
                    if bytes < buffer.len() && !until_end {
                        break;
                    }
                }
            }
        }
        self.buffer = buffer;
    }

    /// The connection of a client has ended before the run has.
    pub(super) fn on_end(&mut self, place: usize, reason: &str) {
        let client = &mut self.clients[place];
        let was_live = client.phase == Phase::Live;
        client.phase = Phase::Closed;
        client.link = None;
        // Their answers cannot come.
        client.unanswered.clear();
        if was_live {
            self.tally.closed += 1;
            self.tally.first_close.get_or_insert_with(|| reason.to_owned());
        } else {
            let number = self.first_client as usize + place;
            self.failure.get_or_insert_with(|| format!("client {number}: {reason}"));
        }
    }

    fn leave(&mut self) {
        let mut frame = Vec::new();
        encode_masked_frame(Opcode::Close, &CloseCode::NORMAL.value().to_be_bytes(), MASK, &mut frame);
        for client in &mut self.clients {
            client.write(&frame);
            client.link = None;
        }
    }
}

/// How busy and how late the thread itself is.
#[derive(Default)]
struct Meter {
    /// Start of the window, once it is open.
    opened_us: Option<u64>,
    waited_us: u64,
    tick_us: u64,
}

impl Meter {
    fn open(&mut self, now_us: u64) {
        if self.opened_us.is_none() {
            self.opened_us = Some(now_us);
            self.waited_us = 0;
            self.tick_us = now_us + TICK_US;
        }
    }

    fn next_tick_us(&self) -> u64 {
        if self.opened_us.is_some() { self.tick_us } else { u64::MAX }
    }

    fn woke(&mut self, since_us: u64, now_us: u64, tally: &mut Tally) {
        if self.opened_us.is_none() {
            return;
        }
        self.waited_us += now_us - since_us;
        if self.tick_us <= now_us {
            tally.wake_lag.record(now_us - self.tick_us);
            self.tick_us = now_us + TICK_US;
        }
    }

    /// The share of the window in which the thread did not wait.
    fn close(&mut self, now_us: u64) -> f64 {
        let Some(opened_us) = self.opened_us.take() else { return 0.0 };
        let duration_us = now_us - opened_us;
        if duration_us == 0 { 0.0 } else { 1.0 - self.waited_us.min(duration_us) as f64 / duration_us as f64 }
    }
}
