//! In a process of its own: it counts how often the threads of the engine wake, which only Linux tells.
#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "a test")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use webmq_engine::{Drained, Engine, Options};

const SHARDS: usize = 2;
const CONNECTIONS: usize = 20;
const HANDSHAKE: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const UPGRADE: u8 = 1;

#[test]
fn an_idle_shard_sleeps_until_its_next_deadline() {
    // Symptom: each shard with a connection woke 20 times a second, later twice. Cause: in inline mode its thread looked every
    // 50 ms, later deadlines were looked at every 500 ms, whenever the next one was.
    for is_inline in [true, false] {
        let engine = Engine::start(Options { shards: SHARDS, ..Options::default() }, Box::new(|| {})).expect("starts");
        if is_inline {
            engine.enable_inline();
        }
        let _clients = connect(&engine);
        let began = Instant::now();
        while (0..SHARDS).any(|shard| engine.is_inline(shard) != is_inline) {
            assert!(began.elapsed() < Duration::from_secs(10), "inline: {is_inline}");
            work(&engine);
        }
        // What is left of the last message: a look at the shard, and the end of it.
        std::thread::sleep(Duration::from_millis(200));

        let before = wake_count();
        std::thread::sleep(Duration::from_secs(2));
        let count = wake_count() - before;
        // One per shard: the interval may begin just before a wake-up.
        assert!(count <= SHARDS as u64, "{count} wake-ups; inline: {is_inline}");
    }
}

/// Opens connections, and plays JavaScript until all of them are open.
fn connect(engine: &Engine) -> Vec<TcpStream> {
    let address = engine.listen("127.0.0.1:0".parse().expect("an address")).expect("listens");
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| TcpStream::connect(address).expect("connects")).collect();
    clients.iter_mut().for_each(|client| client.write_all(HANDSHAKE).expect("sends"));
    let began = Instant::now();
    while engine.stats().connections < CONNECTIONS as u64 {
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", engine.stats());
        work(engine);
    }
    for client in &mut clients {
        client.read_exact(&mut [0; 12]).expect("an answer");
    }
    clients
}

/// One turn of an event loop that accepts every upgrade.
fn work(engine: &Engine) {
    (0..SHARDS).for_each(|shard| {
        engine.inline_turn(shard);
        engine.finish_inline_turn(shard);
    });
    let mut events = [0; 1 << 16];
    while let Drained::Bytes(count @ 1..) = engine.drain(&mut events) {
        let mut start = 0;
        while start < count {
            let event = &events[start..];
            if event[0] == UPGRADE {
                // accept, no flags, no subprotocol, 16 bytes, for this connection.
                let accept = [&[1, 0, 0xff, 0xff, 16, 0, 0, 0], &event[8..16]].concat();
                engine.submit(&accept).expect("well packed");
            }
            start += u32::from_le_bytes(*event[4..].first_chunk().expect("four bytes")) as usize;
        }
    }
    std::thread::sleep(Duration::from_millis(1));
}

/// How often the engine's threads have gone to sleep.
fn wake_count() -> u64 {
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task").expect("Linux").flatten() {
        let read = |name| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        if read("comm").starts_with("webmq-io-") {
            let status = read("status");
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            sum += line.and_then(|count| count.trim().parse::<u64>().ok()).expect("a count");
        }
    }
    sum
}
