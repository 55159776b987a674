//! The HTTP request that opens a connection, and its answer (RFC 6455 §4).
//!
//! ```text
//! bytes -> parse_request_head -> RequestHead::intent -> Intent::Upgrade -> encode_switching_protocols | encode_response
//!                                                    -> Intent::Http: for an HTTP server, from the first byte on
//! ```

mod accept_key;
mod deflate_offer;
mod error;
mod request_head;
mod response;
mod upgrade;

pub use accept_key::AcceptKey;
pub use deflate_offer::AcceptedDeflate;
pub use error::HandshakeError;
pub use request_head::{Header, MAX_HEADER_COUNT, ParsedHead, RequestHead, parse_request_head};
pub use response::{
    JSON, ResponseError, encode_event_stream, encode_refusal, encode_response, encode_switching_protocols, refusal_body,
};
pub use upgrade::Intent;
