//! All users, and the event loop that drives them.

use std::net::{Ipv4Addr, SocketAddr};

use rustix::io::Errno;
use rustix::net::sockopt::socket_error;

use super::ledger::{Ledger, Session};
use super::metrics::Metrics;
use super::plan::Plan;
use super::random::Random;
use super::timers::Timers;
use super::user::{Phase, User, UserId};
use crate::clock::now_us;
use crate::loadgen::upgrade::Request;
use crate::poller::{Poller, Ready};
use crate::socket;

/// How often the number of users is adjusted.
const RAMP_TICK_US: u64 = 10_000;
/// Bytes of one read: enough for a whole history.
const READ_BYTES: usize = 256 << 10;
pub(super) const SUBPROTOCOL: &str = "webmq.v1";

/// A run under way.
pub(super) struct Crowd {
    pub(super) plan: Plan,
    pub(super) address: SocketAddr,
    pub(super) request: Vec<u8>,
    pub(super) users: Vec<User>,
    pub(super) timers: Timers,
    pub(super) random: Random,
    pub(super) metrics: Metrics,
    pub(super) ledger: Ledger,
    pub(super) sessions: Vec<Session>,
    pub(super) began_us: u64,
    /// Users who are in an iteration.
    pub(super) present_count: u32,
    next_ramp_us: u64,
    buffer: Vec<u8>,
}

impl Crowd {
    /// # Errors
    /// A path that a request cannot carry.
    pub(super) fn new(plan: Plan) -> Result<Self, String> {
        plan.check()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, plan.port));
        let request = Request {
            authority: &address.to_string(),
            path: &plan.path,
            subprotocol: Some(SUBPROTOCOL),
            token: None,
            headers: &std::collections::BTreeMap::new(),
            compression: false,
        };
        let request = request.encode()?;
        let user_count = plan.max_users();
        let now_us = now_us();
        Ok(Self {
            address,
            request,
            users: (0..user_count).map(|_| User::new()).collect(),
            timers: Timers::with_users(user_count),
            random: Random::new(plan.seed),
            metrics: Metrics::new(),
            ledger: Ledger::default(),
            sessions: Vec::new(),
            began_us: now_us,
            present_count: 0,
            next_ramp_us: now_us,
            buffer: vec![0; READ_BYTES],
            plan,
        })
    }

    /// Whether no user is left and none will come.
    pub(super) fn is_over(&self) -> bool {
        self.present_count == 0 && now_us().saturating_sub(self.began_us) >= self.plan.duration_us()
    }

    /// Waits for events and handles them.
    ///
    /// # Errors
    /// The epoll fails.
    pub(super) fn turn(&mut self, poller: &mut Poller) -> Result<(), Errno> {
        let deadline_us = self.timers.next_us().unwrap_or(u64::MAX).min(self.next_ramp_us);
        poller.wait(Some(deadline_us))?;
        for index in 0..poller.ready_count() {
            if let Some(ready) = poller.ready(index) {
                self.on_ready(ready);
            }
        }
        while let Some((user, due_us)) = self.timers.pop(now_us()) {
            let now_us = now_us();
            self.metrics.late.record(now_us - due_us);
            self.on_timer(user, now_us, poller);
        }
        let now_us = now_us();
        if now_us >= self.next_ramp_us {
            self.next_ramp_us = now_us + RAMP_TICK_US;
            for index in 0..self.wanted_count(now_us) {
                let user = UserId(index);
                if self.users[user.index()].phase == Phase::Away {
                    self.present_count += 1;
                    self.begin_iteration(user, now_us);
                }
            }
        }
        Ok(())
    }

    /// How many users there should be.
    pub(super) fn wanted_count(&self, now_us: u64) -> u32 {
        self.plan.users_at(now_us.saturating_sub(self.began_us)).min(self.users.len() as u32)
    }

    pub(super) fn user(&mut self, user: UserId) -> &mut User {
        &mut self.users[user.index()]
    }

    /// Writes a whole frame.
    pub(super) fn write(&mut self, user: UserId, frame: &[u8]) {
        if let Some(link) = &mut self.users[user.index()].link {
            link.write(frame);
            self.metrics.counts.messages_sent += 1;
            self.metrics.counts.bytes_sent += frame.len() as u64;
        }
    }

    fn on_ready(&mut self, ready: Ready) {
        // Closing a socket removes it from the epoll. An event of it that was returned together with its end finds
        // another phase, or at worst a read without data.
        let user = UserId(ready.token as u32);
        if self.user(user).phase == Phase::Connecting {
            if ready.writable || ready.ended {
                self.on_connected(user);
            }
            return;
        }
        if ready.writable
            && let Some(link) = &mut self.user(user).link
        {
            link.flush();
        }
        if ready.readable || ready.ended {
            self.read(user, ready.ended);
        }
    }

    fn on_connected(&mut self, user: UserId) {
        let Some(link) = &self.user(user).link else { return };
        let status = socket_error(&link.socket).and_then(|status| status);
        match status {
            Ok(()) => {
                self.user(user).phase = Phase::Upgrading;
                let request = self.request.clone();
                self.write(user, &request);
            }
            Err(errno) => self.interrupt(user, &format!("connect {}", socket::errno_name(errno))),
        }
    }

    fn read(&mut self, user: UserId, until_end: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(link) = &self.users[user.index()].link {
            match socket::receive(&link.socket, &mut buffer) {
                Err(Errno::AGAIN) => break,
                Ok(0) | Err(_) => {
                    self.on_end(user, "ended");
                    break;
                }
                Ok(count) => {
                    self.metrics.counts.bytes_received += count as u64;
                    self.take(user, &buffer[..count], now_us());
                    if count < buffer.len() && !until_end {
                        break;
                    }
                }
            }
        }
        self.buffer = buffer;
    }
}
