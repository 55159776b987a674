use crate::utf8::{self, NotUtf8};

/// Bytes of an incomplete message or control frame.
///
/// One buffer serves both. A control frame may come between the fragments of a message, never inside one, so its bytes
/// stand behind the message's and leave first. An empty assembly allocates nothing.
#[derive(Debug)]
pub(crate) struct Assembly {
    bytes: Vec<u8>,
    /// Bytes of the message; what follows belongs to a control frame.
    message_bytes: u32,
    /// The message is valid UTF-8 up to here; kept for text only.
    valid_bytes: u32,
}

impl Assembly {
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new(), message_bytes: 0, valid_bytes: 0 }
    }

    /// Whether no part of a message waits; a control frame may.
    pub(crate) fn has_no_message(&self) -> bool {
        self.message_bytes == 0
    }

    /// Whether no part of a control frame waits; a message may.
    pub(crate) fn has_no_control(&self) -> bool {
        self.bytes.len() == self.message_bytes as usize
    }

    pub(crate) fn message_bytes(&self) -> u32 {
        self.message_bytes
    }

    pub(crate) fn message(&self) -> &[u8] {
        &self.bytes[..self.message_bytes as usize]
    }

    /// Bytes of a text that [`validate_text`](Self::validate_text) has found valid.
    pub(crate) fn valid_bytes(&self) -> usize {
        self.valid_bytes as usize
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Adds a piece of the message, which will not grow over `max_message_bytes`. Of its frame, `missing_bytes` follow.
    pub(crate) fn push_message(&mut self, piece: &[u8], missing_bytes: u32, max_message_bytes: u32) {
        debug_assert!(self.has_no_control());
        self.grow(piece.len(), missing_bytes as usize, max_message_bytes as usize);
        self.bytes.extend_from_slice(piece);
        self.message_bytes += piece.len() as u32;
    }

    /// Validates the received text; an unfinished character at its end is valid.
    pub(crate) fn validate_text(&mut self) -> Result<(), NotUtf8> {
        self.valid_bytes = utf8::extend_valid(&self.bytes, self.valid_bytes as usize)? as u32;
        Ok(())
    }

    /// Whether the text ends with a whole character. [`validate_text`](Self::validate_text) has come first.
    pub(crate) fn is_whole_text(&self) -> bool {
        self.valid_bytes == self.message_bytes
    }

    /// Takes the message with its memory.
    pub(crate) fn take_message(&mut self) -> Vec<u8> {
        debug_assert!(self.has_no_control());
        std::mem::replace(self, Self::new()).bytes
    }

    /// Adds a piece of a control frame. Grows by exactly that much, because the message may be near its limit.
    pub(crate) fn push_control(&mut self, piece: &[u8]) {
        self.bytes.reserve_exact(piece.len());
        self.bytes.extend_from_slice(piece);
    }

    pub(crate) fn control(&self) -> &[u8] {
        &self.bytes[self.message_bytes as usize..]
    }

    /// Forgets the control frame, and its memory when no message shares it.
    pub(crate) fn drop_control(&mut self) {
        if self.has_no_message() {
            *self = Self::new();
        } else {
            self.bytes.truncate(self.message_bytes as usize);
        }
    }

    /// Makes room for `additional` bytes: doubles, but never over the limit. The announced length is trusted once half of
    /// it is there: a peer pays with bytes for the memory it takes.
    fn grow(&mut self, additional: usize, missing: usize, max_bytes: usize) {
        let needed = self.bytes.len() + additional;
        if needed > self.bytes.capacity() {
            let target = match needed + missing {
                whole if whole <= 2 * needed => whole,
                _ => needed.max(max_bytes.min(2 * self.bytes.capacity())),
            };
            self.bytes.reserve_exact(target - self.bytes.len());
        }
    }
}
