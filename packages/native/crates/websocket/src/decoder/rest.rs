use super::{Decoder, State};
use crate::assembly::Assembly;
use crate::error::DecodeError;
use crate::event::{MessageKind, Role};
use crate::utf8;

/// The message that a [`Decoder`] is inside of, when all that is missing is the end of one frame.
#[derive(Debug, Clone, Copy)]
pub struct Rest<'a> {
    /// Text or binary.
    pub kind: MessageKind,
    /// The part of the message that has come.
    pub received: &'a [u8],
    /// Bytes until the end of the message. The bytes that the peer sends next are these.
    pub missing_bytes: usize,
}

impl Decoder {
    /// What is missing of the current message. `None`: it is compressed, has further fragments or a control frame inside, or
    /// there is no message.
    ///
    /// A caller that receives the missing bytes right behind a copy of the received ones passes the whole to
    /// [`complete`](Self::complete): they are then not copied again.
    #[must_use]
    #[inline]
    pub fn rest(&self) -> Option<Rest<'_>> {
        let kind = self.message.filter(|_| self.state == State::Data { fin: true } && !self.is_deflated)?;
        Some(Rest { kind, received: self.assembly.message(), missing_bytes: self.missing_bytes as usize })
    }

    /// Ends the message of [`rest`](Self::rest). `message` is what was received of it, and then the missing bytes as they came,
    /// which are unmasked in place.
    ///
    /// # Errors
    /// A text is not valid UTF-8. The decoder is finished.
    ///
    /// # Panics
    /// `message` has another length.
    pub fn complete(&mut self, message: &mut [u8]) -> Result<(), DecodeError> {
        let received_bytes = self.assembly.message_bytes() as usize;
        assert_eq!(message.len(), received_bytes + self.missing_bytes as usize, "the whole message");
        if self.role == Role::Server {
            crate::mask::unmask(&mut message[received_bytes..], self.mask);
        }
        if self.message == Some(MessageKind::Text) && utf8::validate(&message[self.assembly.valid_bytes()..]).is_err() {
            self.finish();
            return Err(DecodeError::TextNotUtf8);
        }
        (self.state, self.message, self.missing_bytes) = (State::Header, None, 0);
        self.assembly = Assembly::new();
        Ok(())
    }
}
