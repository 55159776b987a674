//! Connections whose messages a plan gets whole.

use std::mem;

use rustix::io::Errno;

use super::connection::{Phase, Slot};
use super::connections::{Connections, NO_CLOSE_FRAME, PROTOCOL_ERROR};
use super::intake::NO_CODE;
use super::stash::MAX_STASHED_BYTES;
use super::stream::{Fault, Received};
use crate::clock::now_us;
use crate::header::{BINARY, CLOSE, Header, PING, PONG, TEXT};

/// Gets the messages of its connections.
pub(crate) trait Player {
    /// `payload` is borrowed from the read buffer; `at_us` is when it was read.
    fn on_message(&mut self, slot: Slot, payload: &[u8], at_us: u64, connections: &mut Connections);
}

impl Connections {
    /// Reads all input of a player's connection, and hands on its messages one by one.
    pub(crate) fn play(&mut self, slot: Slot, until_end: bool, player: &mut impl Player) {
        if let Some(held) = self.rests.remove(&slot) {
            self.split(slot, &held, now_us(), player);
        }
        let mut buffer = mem::take(&mut self.buffer);
        let room = &mut buffer[MAX_STASHED_BYTES..];
        while self.get(slot).phase == Phase::Open {
            let Some(stream) = &mut self.table[slot.index()].stream else { break };
            match stream.receive(room, usize::MAX, &mut self.scratch) {
                Err(Fault::Socket(Errno::AGAIN)) => break,
                Ok(Received { wire_bytes: 0, .. }) | Err(_) => {
                    self.cut(slot);
                    break;
                }
                Ok(Received { wire_bytes, plain_bytes, is_full }) => {
                    self.traffic.bytes_received += wire_bytes as u64;
                    self.take_messages(slot, &room[..plain_bytes], now_us(), player);
                    if !is_full && !until_end {
                        break;
                    }
                }
            }
        }
        self.buffer = buffer;
    }

    fn take_messages(&mut self, slot: Slot, bytes: &[u8], at_us: u64, player: &mut impl Player) {
        match self.rests.remove(&slot) {
            None => self.split(slot, bytes, at_us, player),
            Some(mut held) => {
                held.extend_from_slice(bytes);
                self.split(slot, &held, at_us, player);
            }
        }
    }

    /// Handles the complete frames and keeps the rest.
    fn split(&mut self, slot: Slot, bytes: &[u8], at_us: u64, player: &mut impl Player) {
        let mut rest = bytes;
        while let Some(header) = Header::parse(rest) {
            if header.frame_bytes() > rest.len() as u64 {
                break;
            }
            let (frame, after) = rest.split_at(header.frame_bytes() as usize);
            rest = after;
            let payload = &frame[usize::from(header.header_bytes)..];
            self.take_frame(slot, (header, payload), at_us, player);
            if self.get(slot).phase != Phase::Open {
                return;
            }
        }
        if !rest.is_empty() {
            self.rests.insert(slot, rest.to_vec());
        }
    }

    fn take_frame(&mut self, slot: Slot, (header, payload): (Header, &[u8]), at_us: u64, player: &mut impl Player) {
        match header.opcode() {
            TEXT | BINARY if header.is_final() && !header.is_compressed() => {
                self.traffic.messages_received += 1;
                player.on_message(slot, payload, at_us, self);
            }
            PING => self.pong(slot, payload),
            PONG => {}
            CLOSE => {
                let code = payload.first_chunk().map_or(NO_CODE, |code| u16::from_be_bytes(*code));
                self.on_close_frame(slot, code);
            }
            // The plans send and want no compressed and no fragmented messages.
            _ => self.lose(slot, PROTOCOL_ERROR),
        }
    }
}

/// The end of a player's connection, as a sentence.
pub(crate) fn end_reason(code: u16) -> String {
    match code {
        NO_CLOSE_FRAME => "ended without a close frame".to_owned(),
        PROTOCOL_ERROR => "a frame that was not expected".to_owned(),
        code => format!("closed {code}"),
    }
}
