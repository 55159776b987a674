//! In a process of its own: it lowers the limit of open files.
#![expect(clippy::expect_used, reason = "a test")]

use std::fs::File;
use std::net::TcpStream;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use webmq_engine::{Drained, Engine, Options};

const FAILED: u8 = 5;

/// One test: the limit is of the process.
#[test]
fn when_no_descriptors_are_left_idle_newcomers_give_way_and_without_any_it_is_reported_until_some_are_free() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(80), ..limit }).expect("lowered");
    idle_newcomers_give_way();
    none_left_is_reported();
}

/// Symptom: sockets that sent no request kept everybody out until their handshake was late. Cause: newcomers had more descriptors
/// than were spared, and none of them gave way when the system had no more.
fn idle_newcomers_give_way() {
    let engine = Engine::start(Options::default(), Box::new(|| {})).expect("starts");
    let address = engine.listen("127.0.0.1:0".parse().expect("an address")).expect("listens");
    let mut idle: Vec<_> = (0..10).map(|_| TcpStream::connect(address).expect("connects")).collect();
    idle.iter_mut().for_each(|client| std::io::Write::write_all(client, b"GET").expect("sends"));
    let began = Instant::now();
    while engine.stats().partial_bytes < 10 * b"GET".len() as u64 {
        assert!(began.elapsed() < Duration::from_secs(10), "not accepted");
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut files = files();
    drop(files.pop());
    // It takes the last one.
    expect_answer(&TcpStream::connect(address).expect("connects"));
    drop(idle);
}

/// All descriptors that are left.
fn files() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

fn none_left_is_reported() {
    let (ring, bell) = sync_channel(1_000);
    let engine =
        Engine::start(Options::default(), Box::new(move || ring.send(()).unwrap_or_default())).expect("starts");
    // The engine counts on all descriptors that it was promised; these are gone.
    let address = engine.listen("127.0.0.1:0".parse().expect("an address")).expect("listens");
    let mut files = files();
    drop(files.pop());
    let client = TcpStream::connect(address).expect("connects");
    let cpu_before = cpu_time();
    let mut buffer = [0; 4_096];
    bell.recv_timeout(Duration::from_secs(10)).expect("something is told");
    assert!(matches!(engine.drain(&mut buffer), Drained::Bytes(count) if count > 0));
    assert_eq!(buffer[0], FAILED);
    let said = String::from_utf8_lossy(&buffer[16..100]).into_owned();
    assert!(said.starts_with("connections cannot be accepted: "), "{said}");
    std::thread::sleep(Duration::from_millis(500));
    assert!(cpu_time() - cpu_before < Duration::from_millis(100), "it spins");

    drop(files);
    expect_answer(&client);
}

fn expect_answer(mut client: &TcpStream) {
    let began = Instant::now();
    std::io::Write::write_all(&mut client, b"GET / HTTP/1.1\r\n\r\n").expect("sends");
    client.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    let mut answer = [0; 12];
    std::io::Read::read_exact(&mut client, &mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 426");
    assert!(began.elapsed() < Duration::from_secs(2));
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
