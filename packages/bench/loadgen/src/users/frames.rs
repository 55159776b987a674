//! Splits received bytes into messages.

use webmq_websocket::{Opcode, encode_masked_frame};

use super::crowd::{Crowd, SUBPROTOCOL};
use super::incoming::Incoming;
use super::user::{Phase, UserId};
use crate::header::Header;
use crate::loadgen::batch::MASK;
use crate::loadgen::upgrade::{Response, parse_response};

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

impl Crowd {
    /// Handles bytes read from a user's connection.
    pub(super) fn take(&mut self, user: UserId, bytes: &[u8], now_us: u64) {
        let Some(link) = &mut self.users[user.index()].link else { return };
        if link.rest.is_empty() {
            let used = self.take_whole(user, bytes, now_us);
            self.keep(user, &bytes[used..]);
            return;
        }
        let mut held = std::mem::take(&mut link.rest);
        held.extend_from_slice(bytes);
        let used = self.take_whole(user, &held, now_us);
        self.keep(user, &held[used..]);
    }

    fn keep(&mut self, user: UserId, rest: &[u8]) {
        if let Some(link) = &mut self.users[user.index()].link {
            link.rest.extend_from_slice(rest);
        }
    }

    /// Handles the complete frames and returns their length.
    fn take_whole(&mut self, user: UserId, bytes: &[u8], now_us: u64) -> usize {
        let mut used = 0;
        if self.user(user).phase == Phase::Upgrading {
            match parse_response(bytes, Some(SUBPROTOCOL)) {
                Response::Incomplete => return 0,
                Response::Refused(reason) => {
                    self.interrupt(user, &reason);
                    return bytes.len();
                }
                Response::Upgraded { head_bytes, .. } => {
                    used = head_bytes;
                    self.on_upgraded(user, now_us);
                }
            }
        }
        while let Some(header) = Header::parse(&bytes[used..]) {
            let end = (used as u64).saturating_add(header.frame_bytes());
            if end > bytes.len() as u64 {
                break;
            }
            let payload = &bytes[used + usize::from(header.header_bytes)..end as usize];
            used = end as usize;
            self.on_frame(user, header, payload, now_us);
            if self.user(user).link.is_none() {
                return bytes.len();
            }
        }
        used
    }

    fn on_frame(&mut self, user: UserId, header: Header, payload: &[u8], now_us: u64) {
        match header.opcode() {
            TEXT | BINARY if header.is_final() && !header.is_compressed() => {
                self.metrics.counts.messages_received += 1;
                match Incoming::parse(payload) {
                    Some(incoming) => self.on_message(user, incoming, now_us),
                    None => self.interrupt(user, "a message that is not understood"),
                }
            }
            PING => {
                let mut frame = Vec::with_capacity(payload.len() + 6);
                encode_masked_frame(Opcode::Pong, payload, MASK, &mut frame);
                self.write(user, &frame);
            }
            PONG => {}
            CLOSE => {
                let code = payload.first_chunk().map_or(1005, |code| u16::from_be_bytes(*code));
                self.on_end(user, &format!("closed {code}"));
            }
            _ => self.interrupt(user, "a frame that was not expected"),
        }
    }
}
