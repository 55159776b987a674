//! A follower of a log at NATS off the JavaScript thread, without a library: what it costs at least to take a message
//! that no listener of this node wants. It reads the socket, parses the protocol, JetStream's sequences and the
//! envelope, drops duplicates, computes the fingerprint, looks the key up, and keeps the message in a ring.
//! Built and run by homes-follower.mjs. Usage: homes-follower PORT STREAM COUNT INBOX [live]
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;

#[repr(C)]
struct Time {
    seconds: i64,
    nanoseconds: i64,
}
extern "C" {
    fn clock_gettime(clock: i32, time: *mut Time) -> i32;
}
const PROCESS_CPU: i32 = 2;

fn cpu_us() -> f64 {
    let mut time = Time {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the pointer is to a struct of the right layout on 64-bit Linux.
    unsafe { clock_gettime(PROCESS_CPU, &mut time) };
    time.seconds as f64 * 1e6 + time.nanoseconds as f64 / 1e3
}

const RING_MESSAGES: usize = 10_000;
const SEGMENT_BYTES: usize = 1 << 20;
const DUPLICATES: usize = 131_072;

struct Entry {
    sequence: u64,
    time_ns: u64,
    fingerprint: u32,
    key: u32,
    segment: u32,
    from: u32,
    length: u32,
}

struct Window {
    newest: u64,
    bits: Vec<u64>,
}

#[derive(Default)]
struct Log {
    keys: HashMap<Vec<u8>, u32>,
    wanted: Vec<bool>,
    windows: HashMap<[u8; 8], Window>,
    entries: Vec<Entry>,
    next: usize,
    segments: Vec<Vec<u8>>,
    current: usize,
    count: u64,
    wanted_count: u64,
    last: u64,
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, digit| {
        sum.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0')))
    })
}

fn fingerprint(time_ns: u64) -> u32 {
    let (seconds, nanoseconds) = ((time_ns / 1_000_000_000) as u32, (time_ns % 1_000_000_000) as u32);
    let mixed = |hash: u32, word: u32| {
        let bits = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593) ^ hash;
        bits.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    };
    let mut bits = mixed(mixed(mixed(3, 0), seconds), nanoseconds);
    bits = (bits ^ (bits >> 16)).wrapping_mul(0x85eb_ca6b);
    bits = (bits ^ (bits >> 13)).wrapping_mul(0xc2b2_ae35);
    ((bits ^ (bits >> 16)) >> 2).max(1)
}

impl Log {
    fn take(&mut self, subject: &[u8], reply: &[u8], data: &[u8]) {
        // `$JS.ACK.<stream>.<consumer>.<times>.<sequence>.<delivery>.<time>.<pending>`
        let mut words = reply.rsplit(|byte| *byte == b'.');
        let (_pending, time) = (words.next(), words.next().unwrap_or(b""));
        let (_delivery, sequence) = (words.next(), words.next().unwrap_or(b""));
        let (sequence, time_ns) = (number(sequence), number(time));
        assert!(self.last == 0 || sequence == self.last + 1, "a hole before {sequence}");
        self.last = sequence;
        if data.len() < 16 || data[0] != 0 {
            return;
        }
        let node: [u8; 8] = data[2..10].try_into().expect("8 bytes");
        let own = data[10..16].iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        let window = self.windows.entry(node).or_insert_with(|| Window {
            newest: 0,
            bits: vec![0; DUPLICATES / 64],
        });
        let (word, bit) = ((own / 64) as usize % window.bits.len(), 1u64 << (own % 64));
        if own <= window.newest && window.bits[word] & bit != 0 {
            return;
        }
        if own / 64 > window.newest / 64 {
            window.bits[word] = 0;
        }
        window.newest = window.newest.max(own);
        window.bits[word] |= bit;
        let key = match self.keys.get(subject) {
            Some(key) => *key,
            None => {
                let key = self.keys.len() as u32;
                self.keys.insert(subject.to_vec(), key);
                self.wanted.push(false);
                key
            }
        };
        let payload = &data[16..];
        if self.segments.is_empty() {
            self.segments = (0..4).map(|_| Vec::with_capacity(SEGMENT_BYTES)).collect();
        }
        if self.segments[self.current].len() + payload.len() > SEGMENT_BYTES {
            self.current = (self.current + 1) % self.segments.len();
            self.segments[self.current].clear();
        }
        let segment = &mut self.segments[self.current];
        let from = segment.len() as u32;
        segment.extend_from_slice(payload);
        let (segment, length) = (self.current as u32, payload.len() as u32);
        let entry = Entry {
            sequence,
            time_ns,
            fingerprint: fingerprint(time_ns),
            key,
            segment,
            from,
            length,
        };
        if self.entries.len() < RING_MESSAGES {
            self.entries.push(entry);
        } else {
            self.entries[self.next] = entry;
            self.next = (self.next + 1) % RING_MESSAGES;
        }
        if self.wanted[key as usize] {
            self.wanted_count += 1;
        }
        self.count += 1;
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (port, stream, wanted, inbox) = (
        &arguments[1],
        &arguments[2],
        arguments[3].parse::<u64>().unwrap(),
        &arguments[4],
    );
    let mut socket = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    socket.set_nodelay(true).unwrap();
    let from = if arguments.get(5).is_some_and(|word| word == "live") {
        "\"deliver_policy\":\"new\""
    } else {
        "\"deliver_policy\":\"by_start_sequence\",\"opt_start_seq\":1"
    };
    let config = format!(
        "{{\"stream_name\":\"{stream}\",\"config\":{{\"deliver_subject\":\"{inbox}.m\",{from},\"ack_policy\":\"none\",\"max_deliver\":1,\"replay_policy\":\"instant\",\"flow_control\":true,\"idle_heartbeat\":5000000000,\"mem_storage\":true,\"num_replicas\":1}}}}"
    );
    let hello = "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"protocol\":1,\"lang\":\"rust\",\"version\":\"0\"}\r\n";
    let request = format!("{hello}SUB {inbox}.m 1\r\nSUB {inbox}.r 2\r\nPUB $JS.API.CONSUMER.CREATE.{stream} {inbox}.r {}\r\n{config}\r\n", config.len());
    socket.write_all(request.as_bytes()).unwrap();
    let mut buffer = vec![0u8; 1 << 18];
    let (mut start, mut end) = (0, 0);
    let mut log = Log::default();
    let (mut reads, mut began) = (0u64, cpu_us());
    let mut answers: Vec<u8> = Vec::new();
    while log.count < wanted {
        if start > 0 {
            buffer.copy_within(start..end, 0);
            end -= start;
            start = 0;
        }
        let length = socket.read(&mut buffer[end..]).unwrap();
        assert!(length > 0, "the server has closed the connection");
        end += length;
        reads += 1;
        loop {
            let Some(line_end) = buffer[start..end].windows(2).position(|two| two == b"\r\n") else {
                break;
            };
            let line = &buffer[start..start + line_end];
            let body = start + line_end + 2;
            if line.starts_with(b"MSG ") || line.starts_with(b"HMSG ") {
                let has_headers = line[0] == b'H';
                let mut words = line.split(|byte| *byte == b' ').skip(1);
                let subject = words.next().unwrap();
                let _sid = words.next();
                let rest: Vec<&[u8]> = words.collect();
                let size = number(rest[rest.len() - 1]) as usize;
                if body + size + 2 > end {
                    break;
                }
                let reply: &[u8] = if rest.len() > if has_headers { 2 } else { 1 } {
                    rest[0]
                } else {
                    b""
                };
                let data = &buffer[body..body + size];
                if subject.ends_with(b".r") {
                    assert!(
                        !data.windows(7).any(|part| part == b"\"error\""),
                        "{}",
                        String::from_utf8_lossy(data)
                    );
                    eprintln!("ready");
                    began = cpu_us();
                } else if has_headers {
                    if !reply.is_empty() {
                        answers.extend_from_slice(b"PUB ");
                        answers.extend_from_slice(reply);
                        answers.extend_from_slice(b" 0\r\n\r\n");
                    }
                } else {
                    log.take(subject, reply, data);
                }
                start = body + size + 2;
            } else {
                if line.starts_with(b"PING") {
                    answers.extend_from_slice(b"PONG\r\n");
                }
                start = body;
            }
        }
        if !answers.is_empty() {
            socket.write_all(&answers).unwrap();
            answers.clear();
        }
    }
    let used = cpu_us() - began;
    let kept: u64 = log
        .entries
        .iter()
        .map(|entry| {
            entry.sequence
                ^ entry.time_ns
                ^ u64::from(entry.fingerprint ^ entry.key ^ entry.segment ^ entry.from ^ entry.length)
        })
        .fold(0, |a, b| a ^ b);
    println!(
        "{{\"count\":{},\"usedUs\":{used},\"reads\":{reads},\"check\":{kept}}}",
        log.count
    );
}
