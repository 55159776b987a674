//! Counts the frames of a read without copying them.

use std::rc::Rc;

use super::connection::{Awaited, Connection};
use super::fields::Fields;
use super::inflater::Inflater;
use super::protocol::Count;
use super::stash::{MAX_STASHED_BYTES, Stashes};
use super::window::{Tally, Window};
use crate::header::{BINARY, CLOSE, CONTINUATION, Header, PING, PONG, TEXT};

/// Longest message that `replies` can match.
pub(crate) const MAX_REPLIED_BYTES: usize = 32;

/// 1005: a close frame without a code (RFC 6455 §7.4.1).
pub(crate) const NO_CODE: u16 = 1005;

/// An event that a connection must react to. Counted frames are not events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The message that makes it ready has come.
    Ready,
    /// The answer to `send` has come.
    Answered,
    /// A ping is answered.
    Ponged,
    /// The reply with this index is due.
    Reply(usize),
    Pinged(Vec<u8>),
    Closed(u16),
    /// The peer violated RFC 6455; nothing after it is read.
    Broken,
}

/// Prefixes of the awaited messages.
#[derive(Debug, Default)]
pub(crate) struct Prefixes {
    pub(crate) ready: Box<[u8]>,
    pub(crate) answer: Box<[u8]>,
    pub(crate) pong: Box<[u8]>,
}

/// A message, and the frame that answers it.
pub(crate) struct Reply {
    pub(crate) to: Box<[u8]>,
    pub(crate) frame: Rc<[u8]>,
}

/// Counts received frames and collects events.
#[derive(Default)]
pub(crate) struct Intake {
    pub(crate) window: Option<Window>,
    /// Windows so far; a connection stores the number of its window.
    window_count: u32,
    /// Frames and bytes of the last window.
    last_totals: (u64, u64),
    pub(crate) prefixes: Prefixes,
    pub(crate) replies: Vec<Reply>,
    pub(crate) stashes: Stashes,
    pub(crate) notices: Vec<Notice>,
    fields: Fields,
    inflater: Inflater,
}

impl Intake {
    /// Opens a window: every frame counts from now on.
    pub(crate) fn begin_window(&mut self, plan: Count, now_us: u64) {
        self.window_count += 1;
        self.window = Some(Window::new(plan, self.window_count, now_us));
    }

    pub(crate) fn end_window(&mut self) -> Option<Window> {
        self.last_totals = self.totals();
        self.window.take()
    }

    /// Frames and bytes of the current window, or else of the last one.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let totals = |window: &Window| (window.counts.frame_count + window.slow_counts.frame_count, window.wire_bytes);
        self.window.as_ref().map_or(self.last_totals, totals)
    }

    /// Takes the stashed start of a frame, to precede the bytes of the next read. `None` when the rest of that frame is
    /// skipped.
    pub(crate) fn unstash(&mut self, connection: &mut Connection, into: &mut [u8]) -> usize {
        let Some(id) = connection.stash else { return 0 };
        if connection.skip_bytes > 0 {
            return 0;
        }
        connection.stash = None;
        let bytes = self.stashes.bytes(id);
        let start = into.len() - bytes.len();
        into[start..].copy_from_slice(bytes);
        let len = bytes.len();
        self.stashes.release(id);
        len
    }

    /// Counts the frames in `bytes`, of which `wire_bytes` are new, and stashes the start of an incomplete one.
    ///
    /// Fills `notices` with the events that need a reaction.
    pub(crate) fn take(&mut self, connection: &mut Connection, bytes: &[u8], wire_bytes: usize, now_us: u64) {
        if let Some(window) = &mut self.window {
            window.read_clock(now_us);
            window.enter(connection);
        }
        let mut tally = Tally::default();
        let mut rest = self.skip(connection, bytes, now_us, &mut tally);
        while let Some(header) = Header::parse(rest) {
            let frame_bytes = header.frame_bytes();
            if frame_bytes > rest.len() as u64 {
                break;
            }
            let (frame, after) = rest.split_at(frame_bytes as usize);
            rest = after;
            let payload = &frame[usize::from(header.header_bytes)..];
            if !self.frame(connection, header, payload, now_us, &mut tally) {
                rest = &[];
                break;
            }
        }
        if let Some(window) = &mut self.window {
            window.add(connection, tally, wire_bytes as u64, now_us);
        }
        if !rest.is_empty() {
            self.stash(connection, rest);
        }
    }

    /// Frees the stash of an incomplete frame.
    pub(crate) fn forget(&mut self, connection: &mut Connection) {
        connection.skip_bytes = 0;
        if let Some(id) = connection.stash.take() {
            self.stashes.release(id);
        }
    }

    /// Skips the unread rest of a frame whose start is stashed. The frame counts when it is complete.
    #[inline]
    fn skip<'b>(&mut self, connection: &mut Connection, bytes: &'b [u8], now_us: u64, tally: &mut Tally) -> &'b [u8] {
        if connection.skip_bytes == 0 {
            return bytes;
        }
        let step = connection.skip_bytes.min(bytes.len() as u64);
        connection.skip_bytes -= step;
        let rest = &bytes[step as usize..];
        if connection.skip_bytes > 0 {
            return rest;
        }
        let Some(id) = connection.stash.take() else { return rest };
        let mut beginning = [0; MAX_STASHED_BYTES];
        let len = self.stashes.bytes(id).len();
        beginning[..len].copy_from_slice(self.stashes.bytes(id));
        self.stashes.release(id);
        match Header::parse(&beginning[..len]) {
            Some(header) => {
                let payload = &beginning[usize::from(header.header_bytes)..len];
                if self.frame(connection, header, payload, now_us, tally) { rest } else { &[] }
            }
            None => rest,
        }
    }

    fn stash(&mut self, connection: &mut Connection, rest: &[u8]) {
        let kept = &rest[..rest.len().min(MAX_STASHED_BYTES)];
        if kept.len() == MAX_STASHED_BYTES {
            // The header is in there, because it is shorter.
            let frame_bytes = Header::parse(kept).map_or(0, Header::frame_bytes);
            connection.skip_bytes = frame_bytes.saturating_sub(rest.len() as u64);
        }
        connection.stash = Some(self.stashes.keep(kept));
    }

    /// Handles one complete frame; `payload` holds at least its start. `false` when nothing after it counts.
    #[inline]
    fn frame(
        &mut self,
        connection: &mut Connection,
        header: Header,
        payload: &[u8],
        now_us: u64,
        tally: &mut Tally,
    ) -> bool {
        match header.opcode() {
            TEXT | BINARY => {
                if !connection.awaited.is_nothing() || !self.replies.is_empty() {
                    self.look_at(connection, header, payload);
                }
                let Some(window) = &mut self.window else { return true };
                let is_counted = if header.is_compressed() {
                    window.count_compressed(connection, payload, &mut self.fields, &mut self.inflater, now_us)
                } else {
                    window.count(connection, payload, &mut self.fields, now_us)
                };
                if is_counted {
                    tally.frame_count += 1;
                    tally.payload_bytes += header.payload_bytes;
                }
                true
            }
            _ => self.other_frame(connection, header, payload, tally),
        }
    }

    #[cold]
    fn other_frame(&mut self, connection: &Connection, header: Header, payload: &[u8], tally: &mut Tally) -> bool {
        match header.opcode() {
            CONTINUATION => tally.payload_bytes += header.payload_bytes,
            PING => self.notices.push(Notice::Pinged(payload.to_vec())),
            PONG if connection.awaited.has(Awaited::PONG) => self.notices.push(Notice::Ponged),
            PONG => {}
            CLOSE => {
                let code = payload.first_chunk().map_or(NO_CODE, |code| u16::from_be_bytes(*code));
                self.notices.push(Notice::Closed(code));
                return false;
            }
            _ => {
                self.notices.push(Notice::Broken);
                return false;
            }
        }
        true
    }

    /// Whether a message is awaited.
    #[cold]
    fn look_at(&mut self, connection: &Connection, header: Header, payload: &[u8]) {
        let plain = if header.is_compressed() { self.inflater.plain(payload) } else { payload };
        let awaited = connection.awaited;
        if awaited.has(Awaited::READY) && plain.starts_with(&self.prefixes.ready) {
            self.notices.push(Notice::Ready);
        }
        if awaited.has(Awaited::ANSWER) && plain.starts_with(&self.prefixes.answer) {
            self.notices.push(Notice::Answered);
        }
        if awaited.has(Awaited::APP_PONG) && plain.starts_with(&self.prefixes.pong) {
            self.notices.push(Notice::Ponged);
        }
        if plain.len() <= MAX_REPLIED_BYTES {
            let reply = self.replies.iter().position(|reply| *reply.to == *plain);
            self.notices.extend(reply.map(Notice::Reply));
        }
    }
}

#[cfg(test)]
#[path = "intake_test.rs"]
mod tests;
