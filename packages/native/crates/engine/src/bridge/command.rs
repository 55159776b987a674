//! Commands from JavaScript, packed little-endian:
//!
//! ```text
//! 0  u8   kind
//! 1  u8   flags: 1 binary · 2 the connection is excluded · 4 with a topic · 8 with a notice ·
//!           16 not to be held back
//! 2  u16  number: status or close code; length of the subprotocol, 0xffff without one; level of notify;
//!           policy of overflow: 0 none, 1 the oldest frames are left out, 2 all but the newest of a topic;
//!           milliseconds for which an answer holds
//! 4  u32  bytes of the command, these 16 included
//! 8  f64  connection
//! 16      accept     subprotocol, headers
//!         reject     u32 bytes of the headers, headers, body
//!         join       u32 group            leave likewise
//!         send       gap of 10 bytes, payload
//!         multicast  u32 count of groups, groups, u32 topic if flagged, gap of 10 bytes, payload
//!         overflow   u32 group, gap of 10 bytes and payload of the notice if flagged
//!         close      reason
//!         notify     nothing; level 0: an empty outbox, 1: a low one
//!         pause      nothing              resume likewise
//!         answer     u32 bytes of the request, request, gap of 10 bytes, payload
//! headers: per header u32 bytes of the name, u32 bytes of the value, name, value
//! ```
//!
//! The gap gets the frame's header ([`Batch`]).

use std::ops::Range;
use std::sync::Arc;

use webmq_websocket::{MAX_FRAME_HEADER_BYTES, Opcode};

use crate::bridge::batch::{Batch, Frame};
use crate::fanout::{OutboxLevel, Policy};
use crate::id::{ConnectionId, GroupId, TopicId};

const HEADER_BYTES: usize = 16;
const NO_SUBPROTOCOL: u16 = 0xffff;
const FLAG_BINARY: u8 = 1;
const FLAG_EXCEPT: u8 = 2;
const FLAG_TOPIC: u8 = 4;
const FLAG_NOTICE: u8 = 8;
const FLAG_URGENT: u8 = 16;

const ACCEPT: u8 = 1;
const REJECT: u8 = 2;
const JOIN: u8 = 3;
const LEAVE: u8 = 4;
const SEND: u8 = 5;
const MULTICAST: u8 = 6;
const CLOSE: u8 = 7;
const NOTIFY: u8 = 8;
const PAUSE: u8 = 9;
const RESUME: u8 = 10;
const OVERFLOW: u8 = 11;
const ANSWER: u8 = 12;

/// A batch that was not packed as this module says: a bug of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("command at byte {0} of its batch is malformed")]
pub struct MalformedBatch(pub usize);

/// One thing that JavaScript wants done.
pub(crate) enum Command<'a> {
    Accept { id: ConnectionId, subprotocol: Option<&'a str>, headers: Headers<'a> },
    Reject { id: ConnectionId, status: u16, headers: Headers<'a>, body: &'a str },
    Join { id: ConnectionId, group: GroupId },
    Leave { id: ConnectionId, group: GroupId },
    Send { id: ConnectionId, frame: Frame<'a> },
    Multicast(Multicast<'a>),
    Overflow { group: GroupId, overflow: Option<(Policy, Option<Frame<'a>>)> },
    Close { id: ConnectionId, code: u16, reason: &'a str },
    Notify { id: ConnectionId, level: OutboxLevel },
    Pause { id: ConnectionId },
    Resume { id: ConnectionId },
    Answer { request: &'a [u8], frame: Frame<'a>, valid_ms: u16 },
}

/// One message for every member of any of the groups.
pub(crate) struct Multicast<'a> {
    pub(crate) groups: Groups<'a>,
    pub(crate) frame: Frame<'a>,
    pub(crate) except: Option<ConnectionId>,
    pub(crate) topic: Option<TopicId>,
    /// A busy shard does not hold it back.
    pub(crate) is_urgent: bool,
}

/// The fixed part of a command, and where its variable part lies.
pub(crate) struct Fields {
    start: usize,
    kind: u8,
    flags: u8,
    number: u16,
    id: f64,
    body: Range<usize>,
}

impl Fields {
    pub(crate) fn read(bytes: &[u8], start: usize) -> Result<Self, MalformedBatch> {
        let malformed = MalformedBatch(start);
        let header: &[u8; HEADER_BYTES] = bytes.get(start..).and_then(<[u8]>::first_chunk).ok_or(malformed)?;
        let [kind, flags, n0, n1, l0, l1, l2, l3, id @ ..] = *header;
        let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if len < HEADER_BYTES || bytes.len() - start < len || !(ACCEPT..=ANSWER).contains(&kind) {
            return Err(malformed);
        }
        let body = start + HEADER_BYTES..start + len;
        Ok(Self { start, kind, flags, number: u16::from_le_bytes([n0, n1]), id: f64::from_le_bytes(id), body })
    }

    pub(crate) fn end(&self) -> usize {
        self.body.end
    }

    pub(crate) fn is_multicast(&self) -> bool {
        self.kind == MULTICAST
    }

    /// Whether a busy shard may hold it back.
    pub(crate) fn may_be_held(&self) -> bool {
        self.is_multicast() && !self.is_urgent()
    }

    fn is_urgent(&self) -> bool {
        self.flags & FLAG_URGENT != 0
    }

    /// Opcode and place of the payload, for the commands that have one.
    pub(crate) fn payload(&self, bytes: &[u8]) -> Result<Option<(Opcode, Range<usize>)>, MalformedBatch> {
        let before = match self.kind {
            SEND => 0,
            MULTICAST => {
                let topic_bytes = if self.flags & FLAG_TOPIC == 0 { 0 } else { 4 };
                4 + 4 * self.u32(bytes)? as usize + topic_bytes
            }
            OVERFLOW if self.flags & FLAG_NOTICE != 0 => 4,
            ANSWER => 4 + self.u32(bytes)? as usize,
            _ => return Ok(None),
        };
        let start = self.body.start + before + MAX_FRAME_HEADER_BYTES;
        if start > self.body.end {
            return Err(MalformedBatch(self.start));
        }
        let opcode = if self.flags & FLAG_BINARY == 0 { Opcode::Text } else { Opcode::Binary };
        Ok(Some((opcode, start..self.body.end)))
    }

    fn u32(&self, bytes: &[u8]) -> Result<u32, MalformedBatch> {
        let first = bytes[self.body.clone()].first_chunk().ok_or(MalformedBatch(self.start))?;
        Ok(u32::from_le_bytes(*first))
    }
}

/// The commands of a batch, in order.
pub(crate) struct Commands<'a> {
    batch: &'a Arc<Batch>,
    start: usize,
}

impl<'a> Commands<'a> {
    pub(crate) fn new(batch: &'a Arc<Batch>, start: usize) -> Self {
        Self { batch, start }
    }

    /// Where the next command begins; the end of the batch after the last.
    pub(crate) fn position(&self) -> usize {
        self.start
    }

    fn read(&self, fields: &Fields) -> Result<Command<'a>, MalformedBatch> {
        let malformed = MalformedBatch(fields.start);
        let bytes = self.batch.bytes();
        let body = &bytes[fields.body.clone()];
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| malformed);
        if let Some((opcode, payload)) = fields.payload(bytes)? {
            let frame = self.batch.frame(opcode, payload);
            if fields.kind == SEND {
                return Ok(Command::Send { id: self.id(fields)?, frame });
            }
            if fields.kind == OVERFLOW {
                return self.overflow(fields, Some(frame));
            }
            if fields.kind == ANSWER {
                let request = &body[4..4 + fields.u32(bytes)? as usize];
                return Ok(Command::Answer { request, frame, valid_ms: fields.number });
            }
            let groups_end = 4 + 4 * fields.u32(bytes)? as usize;
            let groups = Groups(&body[4..groups_end]);
            let topic = if fields.flags & FLAG_TOPIC == 0 {
                None
            } else {
                let topic = body[groups_end..].first_chunk().ok_or(malformed)?;
                Some(TopicId(u32::from_le_bytes(*topic)))
            };
            let except = if fields.flags & FLAG_EXCEPT == 0 { None } else { Some(self.id(fields)?) };
            let is_urgent = fields.is_urgent();
            return Ok(Command::Multicast(Multicast { groups, frame, except, topic, is_urgent }));
        }
        if fields.kind == OVERFLOW {
            return self.overflow(fields, None);
        }
        let id = self.id(fields)?;
        Ok(match fields.kind {
            ACCEPT => {
                let len = if fields.number == NO_SUBPROTOCOL { 0 } else { usize::from(fields.number) };
                let (subprotocol, headers) = body.split_at_checked(len).ok_or(malformed)?;
                let subprotocol = if fields.number == NO_SUBPROTOCOL { None } else { Some(text(subprotocol)?) };
                Command::Accept { id, subprotocol, headers: Headers(headers) }
            }
            REJECT => {
                let header_bytes = fields.u32(bytes)? as usize;
                let (headers, body) = body[4..].split_at_checked(header_bytes).ok_or(malformed)?;
                Command::Reject { id, status: fields.number, headers: Headers(headers), body: text(body)? }
            }
            JOIN => Command::Join { id, group: GroupId(fields.u32(bytes)?) },
            LEAVE => Command::Leave { id, group: GroupId(fields.u32(bytes)?) },
            CLOSE => Command::Close { id, code: fields.number, reason: text(body)? },
            NOTIFY => {
                let level = if fields.number == 0 { OutboxLevel::Empty } else { OutboxLevel::Low };
                Command::Notify { id, level }
            }
            PAUSE => Command::Pause { id },
            RESUME => Command::Resume { id },
            _ => return Err(malformed),
        })
    }

    fn overflow(&self, fields: &Fields, notice: Option<Frame<'a>>) -> Result<Command<'a>, MalformedBatch> {
        let policy = match fields.number {
            0 => None,
            1 => Some(Policy::DropOldest),
            2 => Some(Policy::Latest),
            _ => return Err(MalformedBatch(fields.start)),
        };
        let group = GroupId(fields.u32(self.batch.bytes())?);
        Ok(Command::Overflow { group, overflow: policy.map(|policy| (policy, notice)) })
    }

    fn id(&self, fields: &Fields) -> Result<ConnectionId, MalformedBatch> {
        ConnectionId::from_number(fields.id).ok_or(MalformedBatch(fields.start))
    }
}

impl<'a> Iterator for Commands<'a> {
    type Item = Result<Command<'a>, MalformedBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.start >= self.batch.bytes().len() {
            return None;
        }
        match Fields::read(self.batch.bytes(), self.start) {
            Ok(fields) => {
                self.start = fields.end();
                Some(self.read(&fields))
            }
            Err(malformed) => {
                self.start = self.batch.bytes().len();
                Some(Err(malformed))
            }
        }
    }
}

#[derive(Clone)]
pub(crate) struct Groups<'a>(&'a [u8]);

impl Iterator for Groups<'_> {
    type Item = GroupId;

    fn next(&mut self) -> Option<GroupId> {
        let (group, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(GroupId(u32::from_le_bytes(*group)))
    }
}

/// Headers of a response. Ends early where they are malformed.
#[derive(Clone)]
pub(crate) struct Headers<'a>(&'a [u8]);

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let (name_bytes, rest) = self.0.split_first_chunk()?;
        let (value_bytes, rest) = rest.split_first_chunk()?;
        let (name, rest) = rest.split_at_checked(u32::from_le_bytes(*name_bytes) as usize)?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*value_bytes) as usize)?;
        self.0 = rest;
        Some((std::str::from_utf8(name).ok()?, std::str::from_utf8(value).ok()?))
    }
}

#[cfg(test)]
#[path = "command_test.rs"]
mod tests;
