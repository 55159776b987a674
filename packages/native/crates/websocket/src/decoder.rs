use crate::assembly::Assembly;
use crate::close::parse_close;
use crate::error::DecodeError;
use crate::event::{Event, MessageKind, Role};
use crate::frame::Opcode;
use crate::header::{self, MAX_RECEIVED_HEADER_BYTES, ReceivedHeader};
use crate::mask::{rotated, unmask};
use crate::utf8;

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
/// It owns whatever is incomplete: the bytes of a header that was cut, the message or control frame whose end has not
/// arrived. So the caller keeps no bytes between reads, and connections can share one read buffer. The decoder of an idle
/// connection has 64 bytes and nothing on the heap. Inside a message it has at most `max_message_bytes` on the heap, and
/// no more than twice what has arrived; a control frame between fragments adds 125 bytes.
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
    /// Kind of the message that is being received, from its first frame to its last.
    message: Option<MessageKind>,
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
        }
    }

    /// Decodes `input`, the bytes that follow those of the last call, and hands every complete event to `on_event`.
    ///
    /// Returns how many bytes were consumed: all of them, or those up to the end of a close frame. What follows a close
    /// frame means nothing and is to be thrown away. Once [finished](Self::is_finished) nothing more is consumed.
    ///
    /// `input` is unmasked in place. A message that is in it as one frame is handed over as a slice of it; only what is
    /// cut by the end of `input` or by fragmentation is copied, into a buffer that is freed with the message.
    ///
    /// # Errors
    /// The peer broke RFC 6455 or the limit; events before the offence were handed over. A message over the limit is
    /// refused by its header, and a text by its first bad byte, before the rest arrives. The decoder is finished.
    pub fn decode(&mut self, input: &mut [u8], on_event: &mut impl FnMut(Event<'_>)) -> Result<usize, DecodeError> {
        let mut consumed = 0;
        while consumed < input.len() && self.state != State::Finished {
            match self.decode_some(&mut input[consumed..], on_event) {
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

    /// Heap memory that the decoder holds now; 0 between messages.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.assembly.allocated_bytes()
    }

    /// One frame, or as much of it as is there. Consumes at least one byte of a non-empty input.
    #[inline]
    fn decode_some(&mut self, input: &mut [u8], on_event: &mut impl FnMut(Event<'_>)) -> Result<usize, DecodeError> {
        let mut consumed = 0;
        if self.state == State::Header {
            let (header, count) = self.read_header(input)?;
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
            State::Data { fin } => self.data(piece, fin, on_event)?,
            State::Control(opcode) => self.control(opcode, piece, on_event)?,
            State::Header | State::Finished => {}
        }
        Ok(consumed + piece_bytes)
    }

    /// The header, if it is complete, and the bytes of `input` that it took.
    #[inline]
    fn read_header(&mut self, input: &[u8]) -> Result<(Option<ReceivedHeader>, usize), DecodeError> {
        let stored = usize::from(self.header_bytes);
        if stored == 0
            && let Some(header) = header::parse(input, self.role)?
        {
            return Ok((Some(header), header.header_bytes));
        }
        let taken = input.len().min(MAX_RECEIVED_HEADER_BYTES - stored);
        self.header[stored..stored + taken].copy_from_slice(&input[..taken]);
        match header::parse(&self.header[..stored + taken], self.role)? {
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
                let announced_bytes = u64::from(self.assembly.message_bytes()) + header.payload_bytes;
                if announced_bytes > u64::from(self.max_message_bytes) {
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
        // Checked above: at most `max_message_bytes`, or 125 of a control frame.
        self.missing_bytes = header.payload_bytes as u32;
        self.mask = header.mask;
        Ok(())
    }

    /// A piece of the payload of a data frame; the last one when nothing is missing.
    #[inline]
    fn data(&mut self, piece: &[u8], fin: bool, on_event: &mut impl FnMut(Event<'_>)) -> Result<(), DecodeError> {
        let kind = self.message.unwrap_or(MessageKind::Binary);
        let is_frame_end = self.missing_bytes == 0;
        if is_frame_end {
            self.state = State::Header;
        }
        if is_frame_end && fin && self.assembly.has_no_message() {
            self.message = None;
            if kind == MessageKind::Text {
                utf8::validate(piece).map_err(|_| DecodeError::TextNotUtf8)?;
            }
            on_event(Event::Message { kind, data: piece });
            return Ok(());
        }
        self.assembly.push_message(piece, self.max_message_bytes);
        if kind == MessageKind::Text {
            self.assembly.validate_text().map_err(|_| DecodeError::TextNotUtf8)?;
        }
        if is_frame_end && fin {
            self.message = None;
            if kind == MessageKind::Text && !self.assembly.is_whole_text() {
                return Err(DecodeError::TextNotUtf8);
            }
            let data = self.assembly.take_message();
            on_event(Event::Message { kind, data: &data });
        }
        Ok(())
    }

    /// A piece of the payload of a control frame; the last one when nothing is missing.
    fn control(
        &mut self,
        opcode: Opcode,
        piece: &[u8],
        on_event: &mut impl FnMut(Event<'_>),
    ) -> Result<(), DecodeError> {
        if self.missing_bytes > 0 {
            self.assembly.push_control(piece);
            return Ok(());
        }
        let is_whole = self.assembly.has_no_control();
        if !is_whole {
            self.assembly.push_control(piece);
        }
        let payload = if is_whole { piece } else { self.assembly.control() };
        self.state = State::Header;
        match opcode {
            Opcode::Ping => on_event(Event::Ping(payload)),
            Opcode::Pong => on_event(Event::Pong(payload)),
            _ => {
                let (code, reason) = parse_close(payload)?;
                on_event(Event::Close { code, reason });
                self.finish();
            }
        }
        self.assembly.drop_control();
        Ok(())
    }

    fn finish(&mut self) {
        self.state = State::Finished;
        self.message = None;
        self.assembly = Assembly::new();
    }
}
