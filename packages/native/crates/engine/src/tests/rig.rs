use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::client::Client;
use crate::bridge::event::event_len;
use crate::tests::packer::Packer;
use crate::{Drained, Engine, Options};

const PATIENCE: Duration = Duration::from_secs(20);

/// An event as JavaScript would read it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Told {
    Upgrade(f64),
    EventStream(f64),
    Message(f64, Vec<u8>),
    Closed(f64, u16, String),
    Http(u32, Vec<u8>),
    Failed(String),
    Quiet,
    Ended,
    Drained(f64),
}

/// An engine and JavaScript's side of it. With `IS_INLINE`, the test's thread runs the inline shards.
pub(crate) struct AnyRig<const IS_INLINE: bool> {
    pub(crate) engine: Engine,
    pub(crate) address: SocketAddr,
    wakes: Receiver<()>,
    told: VecDeque<Told>,
    /// Addresses and ports of the clients of upgrades.
    pub(crate) upgrade_peers: Vec<(String, u32)>,
    /// Addresses and ports of the clients of relayed HTTP requests; an empty address for the others.
    pub(crate) http_peers: Vec<(String, u32)>,
}

/// Leaves everything to the threads.
pub(crate) type Rig = AnyRig<false>;

impl<const IS_INLINE: bool> AnyRig<IS_INLINE> {
    pub(crate) fn start(options: Options) -> Self {
        let (wake, wakes) = sync_channel(1_000_000);
        let engine = Engine::start(options, Box::new(move || wake.send(()).unwrap_or_default())).expect("starts");
        if IS_INLINE {
            engine.enable_inline();
        }
        let address = engine.listen("127.0.0.1:0".parse().expect("an address")).expect("listens");
        Self { engine, address, wakes, told: VecDeque::new(), upgrade_peers: Vec::new(), http_peers: Vec::new() }
    }

    pub(crate) fn submit(&self, pack: impl FnOnce(&mut Packer)) {
        let mut packer = Packer::default();
        pack(&mut packer);
        self.engine.submit(&packer.0).expect("well packed");
    }

    /// The next event; waits for it.
    pub(crate) fn next(&mut self) -> Told {
        let began = Instant::now();
        loop {
            if let Some(told) = self.told.pop_front() {
                return told;
            }
            self.drain();
            if self.told.is_empty() {
                assert!(began.elapsed() < PATIENCE, "no event came");
                // Woken or not, it drains again.
                self.wait(Duration::from_millis(200));
            }
        }
    }

    /// Waits for a wake-up; with inline mode, for a millisecond at most, and does inline turns.
    fn wait(&self, time: Duration) {
        if !IS_INLINE {
            let _ = self.wakes.recv_timeout(time);
            return;
        }
        if self.wakes.try_recv().is_ok() || self.inline_turns() {
            return;
        }
        let inline = (0..self.engine.shard_count()).filter(|shard| self.engine.is_inline(*shard));
        let descriptors: Vec<_> = inline.map(|shard| self.engine.descriptor(shard)).collect();
        let mut watched: Vec<_> = descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let short = Timespec::try_from(Duration::from_millis(1)).expect("a time");
        poll(&mut watched, Some(&short)).expect("polls");
    }

    /// Does what inline shards have to do, without draining; returns whether there are events.
    pub(crate) fn inline_turns(&self) -> bool {
        (0..self.engine.shard_count()).fold(false, |has_events, shard| {
            self.engine.inline_turn(shard) | self.engine.finish_inline_turn(shard) | has_events
        })
    }

    /// Waits until all shards are inline.
    pub(crate) fn until_inline(&mut self) {
        let began = Instant::now();
        while !(0..self.engine.shard_count()).all(|shard| self.engine.is_inline(shard)) {
            assert!(began.elapsed() < PATIENCE, "it was not inline");
            self.drain();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the engine wakes JavaScript.
    pub(crate) fn wait_for_wake(&self) {
        self.wakes.recv_timeout(PATIENCE).expect("a wake-up");
    }

    /// Takes what waits without waiting.
    pub(crate) fn drain(&mut self) {
        let mut buffer = vec![0; 1 << 16];
        self.engine.note_handled(None);
        loop {
            match self.engine.drain(&mut buffer) {
                Drained::Bytes(0) => return,
                Drained::Bytes(count) => self.read(&buffer[..count]),
                Drained::Needs(count) => buffer = vec![0; count],
            }
        }
    }

    /// Connects a client and accepts it.
    pub(crate) fn connect(&mut self) -> (Client, f64) {
        let mut client = Client::begin(self.address);
        let id = self.accept_next();
        let answer = client.finish();
        assert!(answer.starts_with("HTTP/1.1 101 ") && answer.contains("\r\na: bc\r\n"), "{answer}");
        (client, id)
    }

    /// Connects a client with permessage-deflate.
    pub(crate) fn connect_deflating(&mut self) -> (Client, f64) {
        let mut client = Client::begin_with(self.address, Some("permessage-deflate; client_max_window_bits"));
        let id = self.accept_next();
        let answer = client.finish();
        let extension = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
        assert!(answer.contains(&format!("\r\nSec-WebSocket-Extensions: {extension}\r\n")), "{answer}");
        (client, id)
    }

    pub(crate) fn accept_next(&mut self) -> f64 {
        let Told::Upgrade(id) = self.next() else { panic!("not an upgrade") };
        self.submit(|packer| {
            packer.accept(id, None);
        });
        id
    }

    /// Waits for something to become true.
    pub(crate) fn until(&self, mut what: impl FnMut(&Engine) -> bool) {
        let began = Instant::now();
        while !what(&self.engine) {
            assert!(began.elapsed() < PATIENCE, "it did not become true: {:?}", self.engine.stats());
            if IS_INLINE {
                self.inline_turns();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn read(&mut self, mut events: &[u8]) {
        while !events.is_empty() {
            let (event, rest) = events.split_at(event_len(events));
            events = rest;
            let number = |at: usize| u32::from_le_bytes(*event[at..].first_chunk().expect("four bytes"));
            let id = f64::from_le_bytes(*event[8..].first_chunk().expect("eight bytes"));
            let text = || String::from_utf8(event[16..].to_vec()).expect("a text");
            if event[0] == 2 {
                self.read_messages(id, &event[16..]);
                continue;
            }
            self.told.push_back(match event[0] {
                1 if event[1] & 4 == 4 => Told::EventStream(id),
                1 => {
                    self.upgrade_peers.push((split_line(&event[20..]).0, number(16)));
                    Told::Upgrade(id)
                }
                3 => Told::Closed(id, u16::from_le_bytes([event[2], event[3]]), text()),
                4 => {
                    let (address, read) = split_line(&event[24..]);
                    self.http_peers.push((address, number(20)));
                    Told::Http(number(16), read.to_vec())
                }
                5 => Told::Failed(text()),
                6 => Told::Quiet,
                7 => Told::Ended,
                8 => Told::Drained(id),
                kind => panic!("unknown event {kind}"),
            });
        }
    }

    fn read_messages(&mut self, id: f64, mut run: &[u8]) {
        while let Some((number, rest)) = run.split_first_chunk() {
            let (message, others) = rest.split_at((u32::from_le_bytes(*number) >> 1) as usize);
            self.told.push_back(Told::Message(id, message.to_vec()));
            run = others;
        }
    }
}

fn split_line(bytes: &[u8]) -> (String, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').expect("a line");
    (String::from_utf8(bytes[..end].to_vec()).expect("a text"), &bytes[end + 1..])
}
