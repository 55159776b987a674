//! One client that replays a whole log, by one listen or by several at once: its speed, whether the replay is complete, and
//! how long publishes of the same client wait.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::ops::Range;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use webmq_websocket::{CloseCode, Opcode, encode_masked_frame};

use super::crowd::SUBPROTOCOL;
use super::incoming::Incoming;
use crate::clock::{now_us, thread_cpu_us};
use crate::header::Header;
use crate::latencies::Latencies;
use crate::loadgen::batch::{MASK, text_frame};
use crate::loadgen::upgrade::{Request, Response, parse_response};

/// Bytes of one read.
const READ_BYTES: usize = 256 << 10;
const CLOSE: u8 = 8;
const PING: u8 = 9;

/// Fields of the command `replay`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReplayPlan {
    /// At 127.0.0.1.
    port: u16,
    path: String,
    /// One listen each, sent together.
    keys: Vec<String>,
    /// Options of the first `listen`: `rewind=600000`.
    first: String,
    /// Of each key, the messages numbered from 1 to this must come, in order.
    messages: u32,
    /// Key of the messages that the client publishes beside.
    publish_key: String,
    publish_every_ms: u64,
    /// Replays repeat for this long; at least one runs.
    duration_ms: u64,
    /// Limit of each read.
    timeout_ms: u64,
}

/// What all replays of a plan have had.
struct Figures {
    replays: u64,
    messages: u64,
    pages: u64,
    misses: u64,
    /// Messages that did not follow the one before: repeated or out of order.
    disorders: u64,
    gaps: u64,
    replayed_us: u64,
    replay: Latencies,
    publish: Latencies,
}

/// Replays everything repeatedly, each time on a new connection.
///
/// # Errors
/// A connection fails, or is silent for too long.
pub(super) fn replay(plan: &ReplayPlan) -> Result<Value> {
    let (began_us, cpu_began_us) = (now_us(), thread_cpu_us());
    let mut figures = Figures {
        replays: 0,
        messages: 0,
        pages: 0,
        misses: 0,
        disorders: 0,
        gaps: 0,
        replayed_us: 0,
        replay: Latencies::new(),
        publish: Latencies::new(),
    };
    while figures.replays == 0 || now_us() - began_us < plan.duration_ms * 1_000 {
        replay_once(plan, &mut figures)?;
    }
    Ok(json!({
        "replays": figures.replays,
        "messages": figures.messages,
        "pages": figures.pages,
        "misses": figures.misses,
        "disorders": figures.disorders,
        "gaps": figures.gaps,
        "durationUs": now_us() - began_us,
        "replayedUs": figures.replayed_us,
        "replayUs": figures.replay.summary(),
        "publishUs": figures.publish.summary(),
        "cpuUs": thread_cpu_us() - cpu_began_us,
    }))
}

/// From the first listen to the last message of the last page of the last listen.
fn replay_once(plan: &ReplayPlan, figures: &mut Figures) -> Result<()> {
    let mut client = Client::connect(plan)?;
    let mut publishes = Publishes { sent_us: VecDeque::new(), next_us: 0 };
    let mut last_numbers = vec![0; plan.keys.len()];
    let asked_us = now_us();
    for (index, key) in plan.keys.iter().enumerate() {
        client.send(&format!("listen {index} {key} {}", plan.first))?;
    }
    figures.pages += plan.keys.len() as u64;
    let mut live_count = 0;
    while live_count < plan.keys.len() {
        publishes.send_due(&mut client, plan)?;
        let range = client.next_message()?;
        let Some(Incoming::Ok(answer)) = checked(&client.buffer[range])? else { continue };
        if answer.id == PUBLISH_ID {
            publishes.answered(&mut figures.publish);
            continue;
        }
        let (index, count) = crate::digits::parse(answer.id);
        let index = index as usize;
        if count == 0 || index >= plan.keys.len() {
            return Err(invalid("an answer to no request"));
        }
        figures.gaps += u64::from(answer.has_gap);
        let next = answer.has_more.then(|| String::from_utf8_lossy(answer.position).into_owned());
        // The replayed messages follow their answer with nothing in between [P-6.4].
        for _ in 0..answer.replayed_count {
            publishes.send_due(&mut client, plan)?;
            let range = client.next_message()?;
            let Some(Incoming::Message { number, .. }) = checked(&client.buffer[range])? else {
                return Err(invalid("a replay with something in between"));
            };
            let last_number = &mut last_numbers[index];
            figures.messages += 1;
            figures.misses += u64::from(number.saturating_sub(*last_number).saturating_sub(1));
            figures.disorders += u64::from(number <= *last_number);
            *last_number = number.max(*last_number);
        }
        if let Some(position) = next {
            client.send(&format!("listen {index} {} since={position}", plan.keys[index]))?;
            figures.pages += 1;
        } else {
            live_count += 1;
        }
    }
    let duration_us = now_us() - asked_us;
    while !publishes.sent_us.is_empty() {
        let range = client.next_message()?;
        if matches!(checked(&client.buffer[range])?, Some(Incoming::Ok(_))) {
            publishes.answered(&mut figures.publish);
        }
    }
    figures.misses += last_numbers.iter().map(|last| u64::from(plan.messages.saturating_sub(*last))).sum::<u64>();
    figures.replays += 1;
    figures.replayed_us += duration_us;
    figures.replay.record(duration_us);
    client.close()
}

/// Reads a message of the server, which MUST refuse nothing.
fn checked(bytes: &[u8]) -> Result<Option<Incoming<'_>>> {
    match Incoming::parse(bytes) {
        Some(Incoming::Error { code, .. }) => Err(invalid(&String::from_utf8_lossy(code))),
        incoming => Ok(incoming),
    }
}

/// Of every publish: a broker answers them in order.
const PUBLISH_ID: &[u8] = b"p";

/// Messages that the client publishes while it replays.
struct Publishes {
    /// When the unanswered ones were sent.
    sent_us: VecDeque<u64>,
    next_us: u64,
}

impl Publishes {
    fn send_due(&mut self, client: &mut Client, plan: &ReplayPlan) -> Result<()> {
        let now_us = now_us();
        if now_us < self.next_us {
            return Ok(());
        }
        client.send(&format!("publish p {}\n1", plan.publish_key))?;
        self.sent_us.push_back(now_us);
        self.next_us = now_us + plan.publish_every_ms * 1_000;
        Ok(())
    }

    fn answered(&mut self, latencies: &mut Latencies) {
        if let Some(sent_us) = self.sent_us.pop_front() {
            latencies.record(now_us() - sent_us);
        }
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidData, message.to_owned())
}

/// A connection with blocking reads.
struct Client {
    socket: TcpStream,
    buffer: Vec<u8>,
    /// The part of the buffer that was received and not yet parsed.
    unread: Range<usize>,
}

impl Client {
    fn connect(plan: &ReplayPlan) -> Result<Self> {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, plan.port);
        let timeout = Duration::from_millis(plan.timeout_ms);
        let socket = TcpStream::connect_timeout(&address.into(), timeout)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        let mut client = Self { socket, buffer: vec![0; READ_BYTES], unread: 0..0 };
        let request = Request {
            authority: &address.to_string(),
            path: &plan.path,
            subprotocol: Some(SUBPROTOCOL),
            token: None,
            headers: &std::collections::BTreeMap::new(),
            compression: false,
        };
        client.socket.write_all(&request.encode().map_err(|message| invalid(&message))?)?;
        loop {
            client.read()?;
            match parse_response(&client.buffer[client.unread.clone()], Some(SUBPROTOCOL)) {
                Response::Incomplete => {}
                Response::Refused(reason) => return Err(invalid(&reason)),
                Response::Upgraded { head_bytes, .. } => {
                    client.unread.start += head_bytes;
                    break;
                }
            }
        }
        let range = client.next_message()?;
        match Incoming::parse(&client.buffer[range]) {
            Some(Incoming::Welcome) => Ok(client),
            _ => Err(invalid("no welcome")),
        }
    }

    fn send(&mut self, text: &str) -> Result<()> {
        self.socket.write_all(&text_frame(text))
    }

    /// The range of the next text or binary message's payload in the buffer.
    fn next_message(&mut self) -> Result<Range<usize>> {
        loop {
            let bytes = &self.buffer[self.unread.clone()];
            let header = Header::parse(bytes).filter(|header| header.frame_bytes() <= bytes.len() as u64);
            let Some(header) = header else {
                self.read()?;
                continue;
            };
            let start = self.unread.start + usize::from(header.header_bytes);
            let end = self.unread.start + header.frame_bytes() as usize;
            self.unread.start = end;
            match header.opcode() {
                PING => {
                    let mut frame = Vec::new();
                    encode_masked_frame(Opcode::Pong, &self.buffer[start..end], MASK, &mut frame);
                    self.socket.write_all(&frame)?;
                }
                CLOSE => return Err(invalid("the server closed the connection")),
                _ => return Ok(start..end),
            }
        }
    }

    /// Reads more, into the space of parsed messages.
    fn read(&mut self) -> Result<()> {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        if self.unread.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let count = self.socket.read(&mut self.buffer[self.unread.end..])?;
        if count == 0 {
            return Err(invalid("the server ended the connection"));
        }
        self.unread.end += count;
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let mut frame = Vec::new();
        encode_masked_frame(Opcode::Close, &CloseCode::NORMAL.value().to_be_bytes(), MASK, &mut frame);
        self.socket.write_all(&frame)
    }
}
