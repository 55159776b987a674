use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use webmq_websocket::Opcode;

use super::client::Client;
use super::rig::{AnyRig, Rig, Told};
use crate::Options;
use crate::fanout::OutboxLevel;

const REQUEST: &str = "GET /sse?listen=a HTTP/1.1\r\nHost: here\r\n\r\n";
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store, no-transform\r\n\
    X-Accel-Buffering: no\r\nConnection: close\r\na: bc\r\n\r\n";

fn options() -> Options {
    Options { event_stream_path: Some("/sse".to_owned()), ..Options::default() }
}

fn request(address: SocketAddr, request: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).expect("connects");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    socket.write_all(request.as_bytes()).expect("sends");
    socket
}

/// Opens an event stream, and reads the head of the response.
fn open<const IS_INLINE: bool>(rig: &mut AnyRig<IS_INLINE>) -> (TcpStream, f64) {
    let mut socket = request(rig.address, REQUEST);
    let Told::EventStream(id) = rig.next() else { panic!("not an event stream") };
    rig.submit(|packer| {
        packer.accept(id, None);
    });
    assert_eq!(text(&mut socket, HEAD.len()), HEAD);
    (socket, id)
}

fn text(socket: &mut impl Read, len: usize) -> String {
    let mut bytes = vec![0; len];
    socket.read_exact(&mut bytes).expect("all bytes");
    String::from_utf8(bytes).expect("a text")
}

fn rest(socket: &mut TcpStream) -> String {
    let mut rest = String::new();
    socket.read_to_string(&mut rest).expect("an end");
    rest
}

#[test]
fn streams_get_bytes_without_frames_and_websockets_get_frames() {
    let mut rig = Rig::start(options());
    let (mut stream, stream_id) = open(&mut rig);
    let (mut client, client_id) = rig.connect();
    rig.submit(|packer| {
        packer.join(stream_id, 1).join(client_id, 1).join(stream_id, 2).join(client_id, 2);
        packer.multicast(&[1, 2], b"data: 1\n\n", None).send(stream_id, b"data: 2\n\n").send(client_id, b"own");
        packer.multicast(&[2], b"data: 3\n\n", Some(client_id)).multicast(&[2], b"data: 4\n\n", Some(stream_id));
        packer.leave(stream_id, 1).multicast(&[1], b"no\n\n", None).multicast(&[2], &[b'x'; 100_000], None);
    });
    assert_eq!(text(&mut stream, 27), "data: 1\n\ndata: 2\n\ndata: 3\n\n");
    assert_eq!(text(&mut stream, 100_000), "x".repeat(100_000));
    for message in [&b"data: 1\n\n"[..], b"own", b"data: 4\n\n", b"no\n\n", &[b'x'; 100_000]] {
        assert_eq!(client.message(), message);
    }
}

#[test]
fn only_a_get_of_the_path_asks_for_a_stream() {
    let mut rig = Rig::start(options());
    for (wrong, status) in [
        ("POST /sse HTTP/1.1\r\nHost: here\r\n\r\n", "426 "),
        ("GET /sse/ HTTP/1.1\r\nHost: here\r\n\r\n", "426 "),
        ("GET /sse HTTP/1.1\r\n\r\n", "400 "),
        ("GET /sse HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc", "400 "),
        ("GET /sse HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n", "400 "),
    ] {
        let answer = rest(&mut request(rig.address, wrong));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{wrong}: {answer}");
    }
    let mut refused = request(rig.address, REQUEST);
    let Told::EventStream(id) = rig.next() else { panic!("not an event stream") };
    rig.submit(|packer| {
        packer.reject(id, 403, "no");
    });
    assert!(rest(&mut refused).starts_with("HTTP/1.1 403 Forbidden\r\n"));

    let mut without = Rig::start(Options::default());
    assert!(rest(&mut request(without.address, REQUEST)).starts_with("HTTP/1.1 426 "));
    without.drain();
}

#[test]
fn a_stream_counts_towards_the_limit_of_connections() {
    let mut rig = Rig::start(Options { max_connections: 1, ..options() });
    let (stream, id) = open(&mut rig);
    let answer = rest(&mut request(rig.address, REQUEST));
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("E_CONNECTION_LIMIT"), "{answer}");
    drop(stream);
    assert_eq!(rig.next(), Told::Closed(id, 1006, String::new()));
    open(&mut rig);
}

#[test]
fn a_stream_that_is_closed_gets_what_is_queued_and_an_end() {
    let mut rig = Rig::start(options());
    let (mut stream, id) = open(&mut rig);
    rig.submit(|packer| {
        packer.send(id, b"event: bye\n\n").close(id, 4009, "drain").send(id, b"no");
    });
    assert_eq!(rest(&mut stream), "event: bye\n\n");
    drop(stream);
    assert_eq!(rig.next(), Told::Closed(id, 4009, "drain".to_owned()));
}

#[test]
fn the_end_of_the_peer_ends_a_stream() {
    let mut rig = Rig::start(options());
    let (stream, id) = open(&mut rig);
    stream.shutdown(Shutdown::Write).expect("half closes");
    assert_eq!(rig.next(), Told::Closed(id, 1006, String::new()));
}

#[test]
fn input_is_thrown_away_and_too_much_of_it_ends_a_stream() {
    let mut rig = Rig::start(options());
    let (mut stream, id) = open(&mut rig);
    stream.write_all(&[b'a'; 4_096]).expect("sends");
    rig.until(|engine| engine.stats().received_byte_count == 4_096);
    rig.submit(|packer| {
        packer.send(id, b"data: still there\n\n");
    });
    assert_eq!(text(&mut stream, 19), "data: still there\n\n");
    stream.write_all(b"a").expect("sends");
    assert_eq!(rig.next(), Told::Closed(id, 4500, "E_PROTOCOL_VIOLATION".to_owned()));
    assert_eq!(rest(&mut stream), "");
}

#[test]
fn a_silent_stream_gets_heartbeats() {
    let ping_interval = Duration::from_millis(20);
    let mut rig = Rig::start(Options { ping_interval, ping_timeout: Duration::from_secs(10), ..options() });
    let (mut stream, id) = open(&mut rig);
    assert_eq!(text(&mut stream, 6), ":\n\n:\n\n");
    rig.submit(|packer| {
        packer.send(id, b"data\n\n");
    });
    let mut seen = String::new();
    while !seen.ends_with("data\n\n") {
        seen += &text(&mut stream, 1);
    }
    assert_eq!(seen.replace(":\n\n", ""), "data\n\n");
}

#[test]
fn a_reader_that_never_reads_is_a_slow_consumer_and_others_are_not() {
    let mut rig = Rig::start(Options { max_outbox_bytes: 1 << 16, ping_interval: Duration::ZERO, ..options() });
    let (mut stuck, stuck_id) = open(&mut rig);
    let (mut reader, reader_id) = open(&mut rig);
    rig.submit(|packer| {
        packer.join(stuck_id, 1).join(reader_id, 1);
    });
    let read_bytes = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&read_bytes);
    let reading = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            counter.fetch_add(count, Ordering::SeqCst);
        }
    });
    let mut sent_bytes = 0;
    while rig.engine.stats().slow_consumer_count == 0 {
        rig.submit(|packer| {
            packer.multicast(&[1], &[b'x'; 16_384], None);
        });
        sent_bytes += 16_384;
        rig.until(|_| read_bytes.load(Ordering::SeqCst) == sent_bytes);
    }
    let told = rig.next();
    assert_eq!(told, Told::Closed(stuck_id, 4008, "E_SLOW_CONSUMER".to_owned()));
    rig.submit(|packer| {
        packer.close(reader_id, 1000, "");
    });
    reading.join().expect("reads");
    assert_eq!(read_bytes.load(Ordering::SeqCst), sent_bytes);
    // What was cut off is an event without its end, which readers drop.
    let mut left = Vec::new();
    stuck.read_to_end(&mut left).expect("an end");
    assert!(left.iter().all(|byte| *byte == b'x'));
}

#[test]
fn a_reader_that_takes_nothing_between_two_heartbeats_is_dropped() {
    let ping_interval = Duration::from_millis(100);
    let mut rig = Rig::start(Options { max_outbox_bytes: 64 << 20, ping_interval, ..options() });
    let (stream, id) = open(&mut rig);
    rig.submit(|packer| {
        packer.send(id, &vec![b'x'; 32 << 20]);
    });
    assert_eq!(rig.next(), Told::Closed(id, 4003, "E_HEARTBEAT_TIMEOUT".to_owned()));
    drop(stream);
}

#[test]
fn a_stream_tells_when_its_outbox_is_empty() {
    let mut rig = Rig::start(options());
    let (mut stream, id) = open(&mut rig);
    rig.submit(|packer| {
        packer.send(id, &vec![b'x'; 512 << 10]).notify(id, OutboxLevel::Empty);
    });
    assert_eq!(text(&mut stream, 512 << 10).len(), 512 << 10);
    assert_eq!(rig.next(), Told::Drained(id));
}

#[test]
fn streams_end_with_the_engine() {
    let mut rig = Rig::start(options());
    let (mut stream, id) = open(&mut rig);
    rig.engine.shut_down();
    assert_eq!(rest(&mut stream), "");
    drop(stream);
    assert_eq!(rig.next(), Told::Closed(id, 1001, "server stops".to_owned()));
}

#[test]
fn streams_are_served_inline() {
    let mut rig = AnyRig::<true>::start(options());
    rig.until_inline();
    let mut socket = request(rig.address, REQUEST);
    let Told::EventStream(id) = rig.next() else { panic!("not an event stream") };
    rig.submit(|packer| {
        packer.accept(id, None).join(id, 1).multicast(&[1], b"data: 1\n\n", None);
    });
    rig.until(|engine| engine.stats().sent_byte_count >= (HEAD.len() + 9) as u64);
    assert_eq!(text(&mut socket, HEAD.len() + 9), format!("{HEAD}data: 1\n\n"));
    let mut client = Client::begin(rig.address);
    rig.accept_next();
    rig.until(|engine| engine.stats().connections == 2);
    client.finish();
    client.send(Opcode::Text, b"up");
    assert!(matches!(rig.next(), Told::Message(_, data) if data == b"up"));
}
