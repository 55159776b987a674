//! RFC 6455 without I/O: bytes in, events out; messages in, bytes out.
//!
//! - [`Decoder`] turns the bytes of one connection into [`Event`]s.
//! - [`encode_frame`], [`encode_close`] and [`FrameHeader`] make frames.
//! - [`Deflater`] and [`Inflater`] serve all connections with permessage-deflate (RFC 7692).
//! - [`handshake`] reads the request that opens a connection and writes its answer.
//!
//! Nothing here knows a socket, a thread, a key or a verb, and nothing here keeps global state.
#![forbid(unsafe_code)]

mod assembly;
mod close;
mod decoder;
mod deflate;
mod error;
mod event;
mod frame;
pub mod handshake;
mod header;
mod mask;
mod utf8;

pub use close::{CloseCode, MAX_CLOSE_REASON_BYTES, encode_close};
pub use decoder::{Decoder, Rest};
pub use deflate::{Deflater, Inflater};
pub use error::DecodeError;
pub use event::{Event, MessageKind, Role};
pub use frame::{
    FrameHeader, MAX_CONTROL_PAYLOAD_BYTES, MAX_FRAME_HEADER_BYTES, Opcode, encode_frame, encode_masked_frame,
};
pub use mask::unmask;
