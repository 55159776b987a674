use crate::close::CloseCode;

/// Why a connection's bytes were refused. Send [`close_code`](Self::close_code) and close the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// RFC 6455 §5.2: RSV1-3 must be 0 unless an extension gives them a meaning.
    #[error("reserved bits are set, but no extension was negotiated")]
    ReservedBits,
    /// RFC 6455 §5.2: opcodes 3-7 and 11-15 are reserved.
    #[error("opcode {0} is reserved")]
    ReservedOpcode(u8),
    /// RFC 6455 §5.1: a client masks every frame.
    #[error("frame from a client is not masked")]
    Unmasked,
    /// RFC 6455 §5.1: a server masks none.
    #[error("frame from a server is masked")]
    Masked,
    /// RFC 6455 §5.5: control frames are never fragmented.
    #[error("control frame is fragmented")]
    FragmentedControl,
    /// RFC 6455 §5.5: control frames carry at most 125 bytes.
    #[error("control frame is longer than 125 bytes")]
    ControlTooLong,
    /// RFC 6455 §5.2: the shortest encoding of the length must be used.
    #[error("payload length is not encoded in the fewest bytes")]
    LengthNotMinimal,
    /// RFC 6455 §5.2: the most significant bit of a 64-bit length must be 0.
    #[error("payload length has its most significant bit set")]
    LengthOutOfRange,
    /// RFC 6455 §5.4: a continuation frame needs an unfinished message.
    #[error("continuation frame without a message to continue")]
    UnexpectedContinuation,
    /// RFC 6455 §5.4: messages are not interleaved.
    #[error("new message before the last one was complete")]
    UnfinishedMessage,
    /// RFC 6455 §5.5.1: a close payload is empty or starts with a two-byte code.
    #[error("close frame has a payload of one byte")]
    CloseTruncated,
    /// RFC 6455 §7.4: the code may not be sent.
    #[error("close code {0} may not be sent")]
    CloseCodeInvalid(u16),
    /// RFC 6455 §5.5.1: a close reason is UTF-8.
    #[error("close reason is not UTF-8")]
    CloseReasonNotUtf8,
    /// RFC 6455 §8.1: a text message is UTF-8.
    #[error("text message is not UTF-8")]
    TextNotUtf8,
    /// RFC 7692 §7.2.2: the payload of a compressed message, with four bytes added, is DEFLATE.
    #[error("compressed message is not DEFLATE")]
    DeflateInvalid,
    /// The announced length, together with the fragments before it, exceeds the limit.
    #[error("message of {announced_bytes} bytes or more exceeds the limit of {max_message_bytes} bytes")]
    MessageTooLarge {
        /// Bytes of the message announced or decompressed so far.
        announced_bytes: u64,
        /// The limit of this decoder.
        max_message_bytes: u32,
    },
}

impl DecodeError {
    /// Code in the error table of WebMQ.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TextNotUtf8 | Self::CloseReasonNotUtf8 => "E_UTF8_INVALID",
            Self::MessageTooLarge { .. } => "E_MESSAGE_TOO_LARGE",
            _ => "E_FRAME_INVALID",
        }
    }

    /// Code to close the connection with (RFC 6455 §7.4.1).
    #[must_use]
    pub fn close_code(&self) -> CloseCode {
        match self {
            Self::TextNotUtf8 | Self::CloseReasonNotUtf8 => CloseCode::PAYLOAD_INVALID,
            Self::MessageTooLarge { .. } => CloseCode::MESSAGE_TOO_LARGE,
            _ => CloseCode::PROTOCOL_ERROR,
        }
    }
}
