//! The bytes of a connection, plain or through TLS.

use std::mem;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{AlertDescription, CertificateError, Error, HandshakeKind};

use super::tls::TlsClient;
use crate::socket;

/// RFC 8446 §5.2: 2^14 bytes, up to 256 of padding and authentication, and the header.
const MAX_RECORD_BYTES: usize = (16 << 10) + 256 + 5;
/// Plaintext of a record (RFC 8446 §5.1).
const MAX_FRAGMENT_BYTES: usize = 16 << 10;
/// Header, type, authentication, and the explicit nonce of TLS 1.2.
const MAX_RECORD_OVERHEAD_BYTES: usize = 5 + 1 + 16 + 8;

/// Why a connection cannot go on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Socket(Errno),
    /// As a sentence.
    Tls(String),
}

/// The result of a read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received {
    /// Bytes of the socket; 0 at the end.
    pub(crate) wire_bytes: usize,
    /// Bytes for the WebSocket.
    pub(crate) plain_bytes: usize,
    /// The socket gave all that was asked for, so it may have more.
    pub(crate) is_full: bool,
}

/// How a TLS connection was established.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Negotiated {
    /// `TLS13_AES_256_GCM_SHA384`.
    pub(crate) suite: &'static str,
    /// By a ticket of an earlier connection.
    pub(crate) is_resumed: bool,
}

/// Room for ciphertext, shared by the connections of a thread.
pub(crate) struct Scratch {
    incoming: Box<[u8]>,
    outgoing: Vec<u8>,
}

impl Scratch {
    /// For reads of at most `read_bytes`.
    pub(crate) fn new(read_bytes: usize) -> Self {
        Self { incoming: vec![0; read_bytes + MAX_RECORD_BYTES].into_boxed_slice(), outgoing: Vec::new() }
    }
}

/// The transport of one connection. The socket is dropped by the thread that opened it, because its number is valid
/// only in that thread's descriptor table.
pub(crate) enum Stream {
    Plain(OwnedFd),
    Tls(Box<TlsStream>),
}

impl Stream {
    /// Makes a plain stream one with TLS.
    pub(crate) fn secured(self, TlsClient { config, server_name }: &TlsClient) -> Result<Self, Fault> {
        let Self::Plain(socket) = self else { return Ok(self) };
        let session =
            UnbufferedClientConnection::new(config.clone(), server_name.clone()).map_err(|error| fault(&error))?;
        Ok(Self::Tls(Box::new(TlsStream { socket, session, incoming: Vec::new(), outgoing: Vec::new() })))
    }

    pub(crate) fn socket(&self) -> &OwnedFd {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &stream.socket,
        }
    }

    /// Reads at most `max_bytes` of the socket into `room`, without blocking.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        room: &mut [u8],
        max_bytes: usize,
        scratch: &mut Scratch,
    ) -> Result<Received, Fault> {
        match self {
            Self::Plain(socket) => {
                let room_bytes = max_bytes.min(room.len());
                let count = socket::receive(socket, &mut room[..room_bytes]).map_err(Fault::Socket)?;
                Ok(Received { wire_bytes: count, plain_bytes: count, is_full: count == room_bytes })
            }
            Self::Tls(stream) => stream.receive(room, max_bytes, scratch),
        }
    }

    /// Writes as much as the transport takes, possibly nothing.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8], scratch: &mut Scratch) -> Result<usize, Fault> {
        match self {
            Self::Plain(socket) => socket::send(socket, bytes).map_err(Fault::Socket),
            Self::Tls(stream) => stream.send(bytes, scratch),
        }
    }

    /// Writes the first message of the handshake; every `receive` continues it. Nothing for a plain connection.
    pub(crate) fn begin_handshake(&mut self, scratch: &mut Scratch) -> Result<(), Fault> {
        let Self::Tls(stream) = self else { return Ok(()) };
        stream.advance(&mut [], &mut [], scratch)?;
        stream.flush()
    }

    /// `None` while the handshake is not complete, and for a plain connection.
    pub(crate) fn negotiated(&self) -> Option<Negotiated> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => stream.negotiated(),
        }
    }

    /// Writes what an earlier `send` has encrypted and the socket did not take.
    pub(crate) fn flush(&mut self) -> Result<(), Fault> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }

    /// Whether encrypted output waits for the socket.
    pub(crate) fn has_pending(&self) -> bool {
        matches!(self, Self::Tls(stream) if !stream.outgoing.is_empty())
    }
}

/// The work of one step of a session.
struct Advanced {
    plain_bytes: usize,
    /// Bytes of complete records.
    record_bytes: usize,
}

/// A TLS session and its socket.
pub(crate) struct TlsStream {
    socket: OwnedFd,
    session: UnbufferedClientConnection,
    /// Start of an incomplete record.
    incoming: Vec<u8>,
    /// Ciphertext that the socket did not take.
    outgoing: Vec<u8>,
}

impl TlsStream {
    fn receive(&mut self, room: &mut [u8], max_bytes: usize, scratch: &mut Scratch) -> Result<Received, Fault> {
        let mut buffer = mem::take(&mut scratch.incoming);
        let received = self.receive_into(room, max_bytes, &mut buffer, scratch);
        scratch.incoming = buffer;
        received
    }

    fn receive_into(
        &mut self,
        room: &mut [u8],
        max_bytes: usize,
        buffer: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<Received, Fault> {
        let held_bytes = self.incoming.len();
        buffer[..held_bytes].copy_from_slice(&self.incoming);
        // A record is longer than its plaintext, so what is read here has room there.
        let wanted_bytes = max_bytes.min(room.len().min(buffer.len()).saturating_sub(held_bytes));
        let wire_bytes =
            socket::receive(&self.socket, &mut buffer[held_bytes..held_bytes + wanted_bytes]).map_err(Fault::Socket)?;
        let records = &mut buffer[..held_bytes + wire_bytes];
        let Advanced { plain_bytes, record_bytes } = self.advance(records, room, scratch)?;
        // Without a rest no buffer is kept: an idle connection is small.
        self.incoming = records[record_bytes..].to_vec();
        self.flush()?;
        Ok(Received { wire_bytes, plain_bytes, is_full: wire_bytes == wanted_bytes })
    }

    fn send(&mut self, bytes: &[u8], scratch: &mut Scratch) -> Result<usize, Fault> {
        self.flush()?;
        if !self.outgoing.is_empty() {
            return Ok(0);
        }
        self.advance(&mut [], &mut [], scratch)?;
        let record_count = bytes.len().div_ceil(MAX_FRAGMENT_BYTES).max(1);
        let out = &mut scratch.outgoing;
        out.resize(bytes.len() + record_count * MAX_RECORD_OVERHEAD_BYTES, 0);
        let UnbufferedStatus { state, .. } = self.session.process_tls_records(&mut []);
        let ConnectionState::WriteTraffic(mut traffic) = state.map_err(|error| fault(&error))? else {
            return Err(Fault::Tls("tls: the session takes no data".to_owned()));
        };
        let encrypted = traffic.encrypt(bytes, out).map_err(|error| Fault::Tls(format!("tls: {error}")))?;
        let count = socket::send(&self.socket, &out[..encrypted]).map_err(Fault::Socket)?;
        self.outgoing.extend_from_slice(&out[count..encrypted]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<(), Fault> {
        if !self.outgoing.is_empty() {
            let count = socket::send(&self.socket, &self.outgoing).map_err(Fault::Socket)?;
            self.outgoing.drain(..count);
            if self.outgoing.is_empty() {
                // An idle connection is small.
                self.outgoing = Vec::new();
            }
        }
        Ok(())
    }

    /// Processes `records` and whatever the session has to say, decrypts into `room`, encrypts into `outgoing`.
    fn advance(&mut self, records: &mut [u8], room: &mut [u8], scratch: &mut Scratch) -> Result<Advanced, Fault> {
        let mut plain_bytes = 0;
        let mut record_bytes = 0;
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.session.process_tls_records(&mut records[record_bytes..]);
            let has_more = match state.map_err(|error| fault(&error))? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(|error| fault(&error))?;
                        let end = plain_bytes + record.payload.len();
                        room[plain_bytes..end].copy_from_slice(record.payload);
                        plain_bytes = end;
                        discard += record.discard;
                    }
                    true
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    let out = &mut scratch.outgoing;
                    out.resize(MAX_RECORD_BYTES, 0);
                    let count = data.encode(out).map_err(|error| Fault::Tls(format!("tls: {error}")))?;
                    self.outgoing.extend_from_slice(&out[..count]);
                    true
                }
                ConnectionState::TransmitTlsData(data) => {
                    data.done();
                    true
                }
                // The end of the TCP connection follows.
                ConnectionState::PeerClosed => true,
                _ => false,
            };
            record_bytes += discard;
            if !has_more {
                return Ok(Advanced { plain_bytes, record_bytes });
            }
        }
    }

    fn negotiated(&self) -> Option<Negotiated> {
        if self.session.is_handshaking() {
            return None;
        }
        let suite = self.session.negotiated_cipher_suite()?.suite().as_str()?;
        Some(Negotiated { suite, is_resumed: self.session.handshake_kind() == Some(HandshakeKind::Resumed) })
    }
}

/// The fault as the README lists it.
fn fault(error: &Error) -> Fault {
    Fault::Tls(match error {
        Error::InvalidCertificate(reason) => match reason {
            CertificateError::UnknownIssuer => "certificate of an unknown issuer".to_owned(),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "certificate has expired".to_owned(),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "certificate is for another name".to_owned()
            }
            other => format!("certificate {other:?}"),
        },
        Error::AlertReceived(AlertDescription::HandshakeFailure | AlertDescription::ProtocolVersion) => {
            "tls: no common version or cipher".to_owned()
        }
        Error::AlertReceived(alert) => format!("tls alert {alert:?}"),
        Error::InvalidMessage(_) => "tls: the server speaks no TLS".to_owned(),
        other => format!("tls: {other}"),
    })
}

#[cfg(test)]
#[path = "stream_test.rs"]
mod tests;
