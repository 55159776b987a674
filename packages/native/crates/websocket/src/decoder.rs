mod payload;
mod rest;

use std::cell::Cell;
use std::ops::ControlFlow;

use crate::assembly::Assembly;
use crate::deflate::Inflater;
use crate::error::DecodeError;
use crate::event::{Event, MessageKind, Role};
use crate::frame::Opcode;
use crate::header::{self, MAX_RECEIVED_HEADER_BYTES, RESERVED, RESERVED_BUT_DEFLATE, ReceivedHeader};
use crate::mask::{rotated, unmask};

pub use rest::Rest;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between frames, or inside a header.
    Header,
    /// Inside the payload of a text, binary or continuation frame.
    Data { fin: bool },
    /// Inside the payload of a control frame.
    Control(Opcode),
    /// After a close frame or an error.
    Finished,
}

/// Incremental decoder of one direction of one connection.
///
/// It owns incomplete input: the bytes of a cut header, and the message or control frame whose end has not arrived. So
/// the caller keeps no bytes between reads, and connections can share one read buffer.
///
/// Memory: 64 bytes and nothing on the heap for an idle connection. Inside a message it has at most `max_message_bytes`
/// on the heap (a little more for a compressed one), and at most twice the received bytes. A control frame between
/// fragments adds 125 bytes.
#[derive(Debug)]
pub struct Decoder {
    assembly: Assembly,
    max_message_bytes: u32,
    /// Bytes of the current payload that have not arrived.
    missing_bytes: u32,
    /// Mask of the next payload byte on.
    mask: [u8; 4],
    header: [u8; MAX_RECEIVED_HEADER_BYTES],
    header_bytes: u8,
    state: State,
    role: Role,
    /// Kind of the current message, from its first frame to its last.
    message: Option<MessageKind>,
    /// Whether that message is compressed.
    is_deflated: bool,
}

impl Decoder {
    /// A decoder for one connection, before its first byte.
    #[must_use]
    pub const fn new(role: Role, max_message_bytes: u32) -> Self {
        Self {
            assembly: Assembly::new(),
            max_message_bytes,
            missing_bytes: 0,
            mask: [0; 4],
            header: [0; MAX_RECEIVED_HEADER_BYTES],
            header_bytes: 0,
            state: State::Header,
            role,
            message: None,
            is_deflated: false,
        }
    }

    /// Decodes `input`, the bytes that follow those of the last call, and hands every complete event to `on_event`.
    ///
    /// Returns how many bytes were consumed: all of them, or those up to the end of a close frame. The caller must
    /// discard bytes after a close frame. Once [finished](Self::is_finished) the decoder consumes nothing more.
    ///
    /// `input` is unmasked in place. A message in one complete frame is passed as a slice of it. Only messages cut by
    /// the end of `input` or by fragmentation are copied, into a buffer that is freed with the message.
    ///
    /// `inflater`: of a connection that negotiated permessage-deflate without context takeover. Its compressed messages
    /// are decompressed when complete, so an inflater holds no state of a connection between calls and can serve many.
    ///
    /// # Errors
    /// The peer violated RFC 6455 or the limit; events before the violation were passed on. A message over the limit is
    /// refused by its header, and a text by its first bad byte, before the rest arrives. The decoder is finished. The limit
    /// holds for a decompressed message, and decompression stops there. The received bytes may exceed it by the overhead of
    /// DEFLATE on incompressible data.
    pub fn decode(
        &mut self,
        input: &mut [u8],
        inflater: Option<&mut Inflater>,
        on_event: &mut impl FnMut(Event<'_>),
    ) -> Result<usize, DecodeError> {
        self.decode_until(input, inflater, &mut |event| {
            on_event(event);
            ControlFlow::Continue(())
        })
    }

    /// [`decode`](Self::decode) until `on_event` breaks off. Then it returns how many bytes were consumed up to the end of
    /// that event's frame; the caller passes the others later.
    ///
    /// # Errors
    /// As `decode`.
    #[inline]
    pub fn decode_until(
        &mut self,
        input: &mut [u8],
        mut inflater: Option<&mut Inflater>,
        on_event: &mut impl FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<usize, DecodeError> {
        let mut consumed = 0;
        let goes_on = Cell::new(true);
        let mut on_event = |event: Event<'_>| goes_on.set(on_event(event).is_continue());
        while consumed < input.len() && self.state != State::Finished && goes_on.get() {
            match self.decode_some(&mut input[consumed..], inflater.as_deref_mut(), &mut on_event) {
                Ok(count) => consumed += count,
                Err(error) => {
                    self.finish();
                    return Err(error);
                }
            }
        }
        Ok(consumed)
    }

    /// After a close frame or an error: no event will come.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    /// A message has begun and not ended. Its next frame may not have begun.
    #[must_use]
    pub fn is_inside_message(&self) -> bool {
        self.message.is_some()
    }

    /// A message or a frame has begun and not ended.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.message.is_some() || self.header_bytes > 0 || matches!(self.state, State::Data { .. } | State::Control(_))
    }

    /// Heap memory that the decoder holds now; 0 between messages.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.assembly.allocated_bytes()
    }

    /// Decodes one frame, or its received part. Consumes at least one byte of a non-empty input.
    #[inline]
    fn decode_some(
        &mut self,
        input: &mut [u8],
        inflater: Option<&mut Inflater>,
        on_event: &mut impl FnMut(Event<'_>),
    ) -> Result<usize, DecodeError> {
        let mut consumed = 0;
        if self.state == State::Header {
            let reserved = if inflater.is_some() { RESERVED_BUT_DEFLATE } else { RESERVED };
            let (header, count) = self.read_header(input, reserved)?;
            let Some(header) = header else {
                return Ok(count);
            };
            self.begin_frame(&header)?;
            consumed = count;
        }
        let rest = &mut input[consumed..];
        let piece_bytes = rest.len().min(self.missing_bytes as usize);
        let piece = &mut rest[..piece_bytes];
        if self.role == Role::Server {
            unmask(piece, self.mask);
            self.mask = rotated(self.mask, piece_bytes);
        }
        self.missing_bytes -= piece_bytes as u32;
        match self.state {
            State::Data { fin } => self.data(piece, fin, inflater, on_event)?,
            State::Control(opcode) => self.control(opcode, piece, on_event)?,
            State::Header | State::Finished => {}
        }
        Ok(consumed + piece_bytes)
    }

    /// The header, if it is complete, and the bytes of `input` that it took.
    #[inline]
    fn read_header(&mut self, input: &[u8], reserved: u8) -> Result<(Option<ReceivedHeader>, usize), DecodeError> {
        let stored = usize::from(self.header_bytes);
        if stored == 0
            && let Some(header) = header::parse(input, self.role, reserved)?
        {
            return Ok((Some(header), header.header_bytes));
        }
        let taken = input.len().min(MAX_RECEIVED_HEADER_BYTES - stored);
        self.header[stored..stored + taken].copy_from_slice(&input[..taken]);
        match header::parse(&self.header[..stored + taken], self.role, reserved)? {
            Some(header) => {
                self.header_bytes = 0;
                Ok((Some(header), header.header_bytes - stored))
            }
            None => {
                self.header_bytes = (stored + taken) as u8;
                Ok((None, taken))
            }
        }
    }

    /// Checks a frame against what came before it and against the limit (RFC 6455 §5.4).
    #[inline]
    fn begin_frame(&mut self, header: &ReceivedHeader) -> Result<(), DecodeError> {
        self.state = match (header.opcode, self.message) {
            (Opcode::Close | Opcode::Ping | Opcode::Pong, _) => State::Control(header.opcode),
            (Opcode::Continuation, None) => return Err(DecodeError::UnexpectedContinuation),
            (Opcode::Text | Opcode::Binary, Some(_)) => return Err(DecodeError::UnfinishedMessage),
            (opcode, message) => {
                if opcode != Opcode::Continuation {
                    self.is_deflated = header.is_deflated;
                }
                let announced_bytes = u64::from(self.assembly.message_bytes()) + header.payload_bytes;
                if announced_bytes > u64::from(self.max_arriving_bytes()) {
                    let max_message_bytes = self.max_message_bytes;
                    return Err(DecodeError::MessageTooLarge { announced_bytes, max_message_bytes });
                }
                self.message = match opcode {
                    Opcode::Text => Some(MessageKind::Text),
                    Opcode::Binary => Some(MessageKind::Binary),
                    _ => message,
                };
                State::Data { fin: header.fin }
            }
        };
        // Checked above: within the message limit, or the 125 bytes of a control frame.
        self.missing_bytes = header.payload_bytes as u32;
        self.mask = header.mask;
        Ok(())
    }

    fn finish(&mut self) {
        self.state = State::Finished;
        self.message = None;
        self.assembly = Assembly::new();
    }
}
