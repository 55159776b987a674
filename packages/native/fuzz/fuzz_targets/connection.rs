//! Any bytes on a connection of a running engine, over TCP: a PROXY header or none, heads of requests, event streams, plain
//! HTTP, and what follows an upgrade. JavaScript's side accepts, refuses, or says nothing.
//!
//! Input: a byte of mode (1: the engine expects a PROXY header; 2: the bytes begin with a handshake; then the decision), one of
//! the size of the pieces, then the bytes.
#![no_main]

use std::collections::HashSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use webmq_engine::{Drained, Engine, Options};

const PROXY_LINE: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n";
const HANDSHAKE: &[u8] = b"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
const PATIENCE: Duration = Duration::from_secs(30);

struct Rig {
    engine: Engine,
    address: SocketAddr,
    wakes: Receiver<()>,
}

static RIGS: LazyLock<[Mutex<Rig>; 2]> = LazyLock::new(|| [false, true].map(start).map(Mutex::new));

fn start(has_proxy: bool) -> Rig {
    let (wake, wakes) = sync_channel(1_000);
    let options = Options {
        max_header_bytes: 1_024,
        max_message_bytes: 4_096,
        deflate_from_bytes: Some(16),
        // A request that nobody decides about, or a close frame that is not answered, should not take long.
        handshake_timeout: Duration::from_millis(100),
        close_timeout: Duration::from_millis(100),
        hands_http_over: true,
        event_stream_path: Some("/sse".to_owned()),
        proxy_protocol_from: if has_proxy { vec!["127.0.0.0/8".parse().expect("a network")] } else { Vec::new() },
        ..Options::default()
    };
    // A full channel: it is awake already.
    let engine = Engine::start(options, Box::new(move || wake.try_send(()).unwrap_or_default())).expect("starts");
    let address = engine.listen("127.0.0.1:0".parse().expect("an address")).expect("listens");
    Rig { engine, address, wakes }
}

fuzz_target!(|data: &[u8]| {
    let [mode, size, input @ ..] = data else { return };
    let rig = RIGS[usize::from(mode & 1)].lock().expect("no panic before");
    let mut bytes = Vec::new();
    if mode & 5 == 5 {
        bytes.extend_from_slice(PROXY_LINE);
    }
    if mode & 2 == 2 {
        bytes.extend_from_slice(HANDSHAKE);
    }
    bytes.extend_from_slice(input);

    let mut socket = TcpStream::connect(rig.address).expect("connects");
    socket.set_nodelay(true).expect("no delay");
    for piece in bytes.chunks(1 + 4 * usize::from(*size)) {
        if socket.write_all(piece).is_err() {
            break;
        }
    }
    // It fails when the engine has closed.
    let _ = socket.shutdown(Shutdown::Write);
    socket.set_nonblocking(true).expect("non-blocking");
    let (mut told, mut answer, began) = (Told::default(), Vec::new(), Instant::now());
    let mut has_ended = false;
    while !has_ended || !told.open.is_empty() {
        rig.drain(mode >> 3 & 3, &mut told);
        match socket.read_to_end(&mut answer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // The end, or a reset.
            _ => has_ended = true,
        }
        assert!(began.elapsed() < PATIENCE, "the connection does not end");
        let _ = rig.wakes.recv_timeout(Duration::from_micros(200));
    }
    rig.drain(0, &mut told);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 "), "{}", String::from_utf8_lossy(&answer));
});

/// Connections that must still be told closed, and those that may be: it ended before the refusal came.
#[derive(Default)]
struct Told {
    open: HashSet<u64>,
    refused: HashSet<u64>,
}

impl Rig {
    /// Reads the events, and decides about upgrades.
    fn drain(&self, decision: u8, told: &mut Told) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match self.engine.drain(&mut buffer) {
                Drained::Bytes(0) => return,
                Drained::Bytes(count) => {
                    let mut events = &buffer[..count];
                    while !events.is_empty() {
                        let length = u32::from_le_bytes(*events[4..].first_chunk().expect("a length")) as usize;
                        let (event, rest) = events.split_at(length);
                        self.read(event, decision, told);
                        events = rest;
                    }
                    self.engine.note_handled(None);
                }
                Drained::Needs(count) => buffer = vec![0; count],
            }
        }
    }

    fn read(&self, event: &[u8], decision: u8, told: &mut Told) {
        let id = u64::from_le_bytes(*event[8..].first_chunk().expect("an id"));
        let body = &event[16..];
        match event[0] {
            1 => {
                assert!(told.open.insert(id), "an upgrade is told once");
                let lines: Vec<&[u8]> = body[4..].split(|byte| *byte == b'\n').collect();
                assert!(lines.len() >= 4 && lines[lines.len() - 1].is_empty(), "address, path, query, headers");
                for header in &lines[3..lines.len() - 1] {
                    let name = header.split(|byte| *byte == b':').next().unwrap_or_default();
                    assert!(!name.is_empty() && name.len() < header.len() && !name.iter().any(u8::is_ascii_uppercase));
                }
                let command = match decision {
                    0 => return,
                    1 => pack(2, 403, id, b"\0\0\0\0no"),
                    _ => pack(1, 0xffff, id, b""),
                };
                self.engine.submit(&command).expect("well packed");
                if decision == 1 {
                    told.open.remove(&id);
                    told.refused.insert(id);
                }
            }
            3 => assert!(told.open.remove(&id) || told.refused.remove(&id), "every upgrade is told closed once"),
            4 => {
                let token = u32::from_le_bytes(*body.first_chunk().expect("a token"));
                drop(self.engine.take_socket(token));
            }
            5 => assert!(body.starts_with(b"a connection of the trusted proxy"), "{}", String::from_utf8_lossy(body)),
            2 | 8 => {}
            kind => panic!("event {kind}"),
        }
    }
}

fn pack(kind: u8, number: u16, id: u64, body: &[u8]) -> Vec<u8> {
    let length = 16 + body.len() as u32;
    [&[kind, 0][..], &number.to_le_bytes(), &length.to_le_bytes(), &id.to_le_bytes(), body].concat()
}
