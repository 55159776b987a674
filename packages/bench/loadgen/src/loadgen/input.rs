//! Input of connections, which is counted.

use rustix::io::Errno;

use super::connection::{Awaited, NO_PLAYER, Phase, Reading, Slot};
use super::connections::{Connections, EventKind, PROTOCOL_ERROR, READ_BYTES};
use super::intake::Notice;
use super::stash::MAX_STASHED_BYTES;
use super::stream::{Fault, Received};
use crate::clock::now_us;
use crate::poller::Ready;

/// Reads of one connection before the next gets its turn.
const MAX_READS_PER_TURN: usize = 4;

impl Connections {
    pub(super) fn on_ready(&mut self, ready: Ready) {
        let slot = Slot(ready.token as u32);
        let connection = self.get_mut(slot);
        match connection.phase {
            Phase::Vacant => {}
            Phase::Connecting => {
                if ready.writable || ready.ended {
                    self.on_connected(slot);
                }
            }
            Phase::Securing => self.on_handshake(slot, ready.ended),
            Phase::Upgrading => self.on_response(slot, ready.ended),
            Phase::Preparing | Phase::Open | Phase::Ending => {
                // Read a slow connection that the server ends to its end, because the close code is there.
                let is_read = match connection.reading {
                    Reading::Freely => ready.readable || ready.ended,
                    Reading::Throttled | Reading::Stopped => ready.ended,
                };
                if ready.writable
                    && let Some(stream) = &mut connection.stream
                    && stream.has_pending()
                {
                    // The next read reports a failed socket.
                    let _ = stream.flush();
                }
                if ready.writable && connection.has_backlog {
                    self.flush(slot);
                } else if ready.writable {
                    self.writable(slot);
                }
                if is_read {
                    self.read(slot, ready.ended);
                }
            }
        }
    }

    /// Reads available input, up to the end of the connection if that has been announced.
    pub(crate) fn read(&mut self, slot: Slot, until_end: bool) {
        if self.get(slot).player != NO_PLAYER {
            return self.report(slot, EventKind::Readable { until_end });
        }
        for _ in 0..MAX_READS_PER_TURN {
            match self.read_once(slot, READ_BYTES) {
                // The poller is edge-triggered: the rest in the socket is announced only when more comes.
                Some(is_full) if !is_full && !until_end => return,
                Some(_) => {}
                None => return,
            }
        }
        self.unfinished.push_back(slot);
    }

    /// One read. Returns whether there may be more input now; `None`: there is not, or the connection has ended.
    pub(crate) fn read_once(&mut self, slot: Slot, max_bytes: usize) -> Option<bool> {
        let connection = &mut self.table[slot.index()];
        let stream = connection.stream.as_mut()?;
        let (head, room) = self.buffer.split_at_mut(MAX_STASHED_BYTES);
        let Received { wire_bytes, plain_bytes, is_full } = match stream.receive(room, max_bytes, &mut self.scratch) {
            Ok(received) if received.wire_bytes > 0 => received,
            Err(Fault::Socket(Errno::AGAIN)) => return None,
            Ok(_) | Err(_) => {
                self.cut(slot);
                return None;
            }
        };
        if connection.phase != Phase::Ending && plain_bytes > 0 {
            let held_bytes = self.intake.unstash(connection, head);
            let bytes = &self.buffer[MAX_STASHED_BYTES - held_bytes..MAX_STASHED_BYTES + plain_bytes];
            self.intake.take(connection, bytes, wire_bytes, now_us());
            self.react(slot);
        }
        Some(is_full)
    }

    /// Reacts to the last bytes of a connection.
    pub(super) fn react(&mut self, slot: Slot) {
        if self.intake.notices.is_empty() {
            return;
        }
        let mut notices = std::mem::take(&mut self.intake.notices);
        for notice in notices.drain(..) {
            match notice {
                Notice::Ready => self.on_prepared(slot),
                Notice::Answered => self.report(slot, EventKind::Answered),
                Notice::Ponged => self.report(slot, EventKind::Ponged { at_us: now_us() }),
                Notice::Reply(index) => {
                    let frame = self.intake.replies[index].frame.clone();
                    self.write(slot, &frame);
                }
                Notice::Pinged(payload) => self.pong(slot, &payload),
                Notice::Closed(code) => self.on_close_frame(slot, code),
                Notice::Broken => {
                    self.lose(slot, PROTOCOL_ERROR);
                    self.cut(slot);
                }
            }
        }
        self.intake.notices = notices;
    }

    pub(super) fn on_close_frame(&mut self, slot: Slot, code: u16) {
        let was_closing = self.get(slot).awaited.has(Awaited::CLOSE);
        self.lose(slot, code);
        if !was_closing {
            self.send_close(slot);
        }
    }
}
