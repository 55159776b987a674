//! One client that replays a whole log: its speed, and whether the replay is complete.

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
    key: String,
    /// Options of the first `listen`: `rewind=600000`.
    first: String,
    /// The messages numbered from 1 to this must come, in order.
    messages: u32,
    /// Replays repeat for this long; at least one runs.
    duration_ms: u64,
    /// Limit of each read.
    timeout_ms: u64,
}

#[derive(Default)]
struct Counts {
    replays: u64,
    messages: u64,
    pages: u64,
    misses: u64,
    /// Messages that did not follow the one before: repeated or out of order.
    disorders: u64,
    gaps: u64,
}

/// Replays everything repeatedly, each time on a new connection.
///
/// # Errors
/// A connection fails, or is silent for too long.
pub(super) fn replay(plan: &ReplayPlan) -> Result<Value> {
    let (began_us, cpu_began_us) = (now_us(), thread_cpu_us());
    let mut counts = Counts::default();
    let mut durations = Latencies::new();
    let mut replayed_us = 0;
    while counts.replays == 0 || now_us() - began_us < plan.duration_ms * 1_000 {
        let duration_us = replay_once(plan, &mut counts)?;
        durations.record(duration_us);
        replayed_us += duration_us;
    }
    Ok(json!({
        "replays": counts.replays,
        "messages": counts.messages,
        "pages": counts.pages,
        "misses": counts.misses,
        "disorders": counts.disorders,
        "gaps": counts.gaps,
        "durationUs": now_us() - began_us,
        "replayedUs": replayed_us,
        "replayUs": durations.summary(),
        "cpuUs": thread_cpu_us() - cpu_began_us,
    }))
}

/// From the first listen to the last message of the last page.
fn replay_once(plan: &ReplayPlan, counts: &mut Counts) -> Result<u64> {
    let mut client = Client::connect(plan)?;
    let asked_us = now_us();
    let mut options = plan.first.clone();
    let mut last_number = 0;
    for page in 0.. {
        client.send(&format!("listen l{page} {} {options}", plan.key))?;
        counts.pages += 1;
        let (mut left, position) = loop {
            let range = client.next_message()?;
            match Incoming::parse(&client.buffer[range]) {
                Some(Incoming::Ok(answer)) => {
                    counts.gaps += u64::from(answer.has_gap);
                    let position = String::from_utf8_lossy(answer.position).into_owned();
                    break (answer.replayed_count, answer.has_more.then_some(position));
                }
                Some(Incoming::Error { code, .. }) => return Err(invalid(&String::from_utf8_lossy(code))),
                _ => {}
            }
        };
        while left > 0 {
            let range = client.next_message()?;
            if let Some(Incoming::Message { number, .. }) = Incoming::parse(&client.buffer[range]) {
                left -= 1;
                counts.messages += 1;
                counts.misses += u64::from(number.saturating_sub(last_number).saturating_sub(1));
                counts.disorders += u64::from(number <= last_number);
                last_number = last_number.max(number);
            }
        }
        let Some(position) = position else { break };
        options = format!("since={position}");
    }
    let duration_us = now_us() - asked_us;
    counts.misses += u64::from(plan.messages.saturating_sub(last_number));
    counts.replays += 1;
    client.close()?;
    Ok(duration_us)
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
            address,
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
