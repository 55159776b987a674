use super::{Decoder, State};
use crate::close::parse_close;
use crate::deflate::{Inflater, max_deflated_bytes};
use crate::error::DecodeError;
use crate::event::{Event, MessageKind};
use crate::frame::Opcode;
use crate::utf8;

impl Decoder {
    /// Handles a piece of the payload of a data frame; the last one when nothing is missing.
    #[inline]
    pub(super) fn data(
        &mut self,
        piece: &[u8],
        fin: bool,
        inflater: Option<&mut Inflater>,
        on_event: &mut impl FnMut(Event<'_>),
    ) -> Result<(), DecodeError> {
        let kind = self.message.unwrap_or(MessageKind::Binary);
        let is_frame_end = self.missing_bytes == 0;
        if is_frame_end {
            self.state = State::Header;
        }
        if is_frame_end && fin && self.assembly.has_no_message() {
            self.message = None;
            if self.is_deflated {
                return self.inflate(kind, piece, inflater, on_event);
            }
            if kind == MessageKind::Text {
                utf8::validate(piece).map_err(|_| DecodeError::TextNotUtf8)?;
            }
            on_event(Event::Message { kind, data: piece });
            return Ok(());
        }
        self.assembly.push_message(piece, self.missing_bytes, self.max_arriving_bytes());
        if self.is_deflated {
            if is_frame_end && fin {
                self.message = None;
                let data = self.assembly.take_message();
                self.inflate(kind, &data, inflater, on_event)?;
            }
            return Ok(());
        }
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

    /// Decompresses a complete message and passes it on.
    fn inflate(
        &mut self,
        kind: MessageKind,
        deflated: &[u8],
        inflater: Option<&mut Inflater>,
        on_event: &mut impl FnMut(Event<'_>),
    ) -> Result<(), DecodeError> {
        // Without an inflater, frames with the bit fail at their header.
        let inflater = inflater.ok_or(DecodeError::ReservedBits)?;
        inflater.inflate(deflated, self.max_message_bytes, |data| {
            if kind == MessageKind::Text {
                utf8::validate(data).map_err(|_| DecodeError::TextNotUtf8)?;
            }
            on_event(Event::Message { kind, data });
            Ok(())
        })
    }

    /// The limit of received bytes of the current message.
    #[inline]
    pub(super) fn max_arriving_bytes(&self) -> u32 {
        if self.is_deflated { max_deflated_bytes(self.max_message_bytes) } else { self.max_message_bytes }
    }

    /// Handles a piece of the payload of a control frame; the last one when nothing is missing.
    pub(super) fn control(
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
}
