use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, InsufficientSizeError, UnbufferedStatus};
use rustls::{Error, ServerConfig};

use crate::fanout::Written;
use crate::socket;

/// Plaintext that is encrypted at a time. So much of it may be held as ciphertext when the socket is full.
const MAX_WINDOW_BYTES: usize = 64 << 10;
/// Header, explicit nonce and tag of the four records of a window, and a control record: 200 bytes.
const MAX_OVERHEAD_BYTES: usize = 1 << 10;
/// Size of the buffer for [`Session::write`].
pub(crate) const STAGING_BYTES: usize = MAX_WINDOW_BYTES + MAX_OVERHEAD_BYTES;
/// The longest record (RFC 5246 §6.2.3). A handshake message that is longer is refused: a `ClientHello` has a tenth of it.
const MAX_INPUT_BYTES: usize = (16 << 10) + 2_048 + 5;
/// Ciphertext that is held: a window, and what the peer makes us answer while it reads nothing.
const MAX_OUTPUT_BYTES: usize = STAGING_BYTES + (16 << 10);

/// What a call of [`Session::decrypt`] came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    Some,
    /// The peer has sent its `close_notify`: nothing more comes.
    End,
}

/// The TLS of one connection: about 3.3 KB while it idles, and no buffer.
pub(crate) struct Session {
    connection: UnbufferedServerConnection,
    /// Ciphertext that was received, of a record that is not complete.
    input: Vec<u8>,
    /// Ciphertext that the socket has not taken yet.
    output: Vec<u8>,
    has_begun: bool,
    /// After an error, rustls is not asked again: it has lost its place in the input.
    has_failed: bool,
}

impl Session {
    pub(crate) fn new(config: Arc<ServerConfig>) -> Result<Self, Error> {
        let connection = UnbufferedServerConnection::new(config)?;
        Ok(Self { connection, input: Vec::new(), output: Vec::new(), has_begun: false, has_failed: false })
    }

    /// Neither side may send data yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Nothing was received yet.
    pub(crate) fn is_new(&self) -> bool {
        !self.has_begun
    }

    /// Heap memory for input that is not complete.
    pub(crate) fn input_bytes(&self) -> usize {
        self.input.capacity()
    }

    /// Ciphertext that the socket has not taken yet.
    pub(crate) fn held_bytes(&self) -> usize {
        self.output.len()
    }

    /// Copies the incomplete record to the start of `buffer`. Bytes that are received next go behind it. Returns its length.
    pub(crate) fn begin_read(&self, buffer: &mut [u8]) -> usize {
        buffer[..self.input.len()].copy_from_slice(&self.input);
        self.input.len()
    }

    /// Decrypts what was received, in `ciphertext` behind the incomplete record, and appends the plaintext to `plain`. Answers
    /// of the protocol wait for [`flush`](Self::flush).
    ///
    /// # Errors
    /// The peer broke the rules, or cannot be talked to. The alert that says so waits to be flushed; then the connection ends.
    pub(crate) fn decrypt(&mut self, ciphertext: &mut [u8], plain: &mut Vec<u8>) -> Result<Received, Error> {
        if self.has_failed {
            return Err(Error::HandshakeNotComplete);
        }
        self.has_begun |= !ciphertext.is_empty();
        let mut received = Received::Some;
        let mut start = 0;
        let ended = loop {
            let UnbufferedStatus { mut discard, state } = self.connection.process_tls_records(&mut ciphertext[start..]);
            let goes_on = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        // Always there: it was decrypted before.
                        let Ok(record) = record else { continue };
                        discard += record.discard;
                        plain.extend_from_slice(record.payload);
                    }
                    Ok(true)
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    queue(&mut self.output, |room| data.encode(room)).map(|()| true)
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    Ok(true)
                }
                Ok(ConnectionState::PeerClosed) => {
                    received = Received::End;
                    Ok(true)
                }
                Ok(ConnectionState::Closed) => {
                    received = Received::End;
                    Ok(false)
                }
                Ok(_) => Ok(false),
                Err(error) => Err(error),
            };
            start += discard;
            match goes_on {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = ended {
            self.has_failed = true;
            self.queue_alerts();
            return Err(error);
        }
        let rest = if received == Received::End { &[][..] } else { &ciphertext[start..] };
        if rest.len() > MAX_INPUT_BYTES || self.output.len() > MAX_OUTPUT_BYTES {
            self.has_failed = true;
            return Err(Error::General("more bytes wait than TLS needs".to_owned()));
        }
        self.input = rest.to_vec();
        Ok(received)
    }

    /// Sends what is held. Returns whether nothing is left.
    pub(crate) fn flush(&mut self, socket: &OwnedFd) -> Result<bool, Errno> {
        if self.output.is_empty() {
            return Ok(true);
        }
        let count = socket::send(socket, &self.output)?;
        self.output.drain(..count);
        if self.output.is_empty() {
            self.output = Vec::new();
        }
        Ok(self.output.is_empty())
    }

    /// Encrypts and sends bytes until the socket is full. Adds what it took to `sent_bytes`.
    /// `staging` has [`STAGING_BYTES`] and is overwritten.
    pub(crate) fn write(
        &mut self,
        socket: &OwnedFd,
        bytes: &[u8],
        staging: &mut [u8],
        sent_bytes: &mut u64,
    ) -> Written {
        match self.flush(socket) {
            Ok(true) => {}
            Ok(false) => return Written::Part { taken: 0, held: self.output.len() },
            Err(_) => return Written::Failed,
        }
        let mut taken = 0;
        for window in bytes.chunks(MAX_WINDOW_BYTES) {
            let Some(count) = self.encrypt(window, staging) else { return Written::Failed };
            let Ok(sent) = socket::send(socket, &staging[..count]) else { return Written::Failed };
            taken += window.len();
            *sent_bytes += sent as u64;
            if sent < count {
                self.output = staging[sent..count].to_vec();
                return Written::Part { taken, held: self.output.len() };
            }
        }
        Written::All
    }

    /// Queues a `close_notify`: no more is written to the peer.
    pub(crate) fn end(&mut self) {
        if self.has_failed {
            return;
        }
        let state = self.connection.process_tls_records(&mut self.input).state;
        if let Ok(ConnectionState::WriteTraffic(mut traffic)) = state {
            let mut notice = [0; MAX_OVERHEAD_BYTES];
            if let Ok(count) = traffic.queue_close_notify(&mut notice) {
                self.output.extend_from_slice(&notice[..count]);
            }
        }
    }

    /// Encrypts a window. Returns the bytes of ciphertext; `None`: the connection is not open for writing.
    fn encrypt(&mut self, plain: &[u8], target: &mut [u8]) -> Option<usize> {
        if self.has_failed {
            return None;
        }
        let mut end = 0;
        loop {
            // The incomplete record goes along: rustls has noted how far it has looked at it.
            match self.connection.process_tls_records(&mut self.input).state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    return Some(end + traffic.encrypt(plain, &mut target[end..]).ok()?);
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => end += data.encode(&mut target[end..]).ok()?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                _ => return None,
            }
        }
    }

    /// Queues what was to be said before an error, the alert about it last. The record that caused it must not be looked at
    /// again.
    fn queue_alerts(&mut self) {
        while self.connection.wants_write() {
            let Ok(ConnectionState::EncodeTlsData(mut data)) = self.connection.process_tls_records(&mut []).state
            else {
                return;
            };
            if queue(&mut self.output, |room| data.encode(room)).is_err() {
                return;
            }
        }
    }
}

/// Appends what `encode` writes. It says how much room it needs.
fn queue(output: &mut Vec<u8>, mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>) -> Result<(), Error> {
    let start = output.len();
    let required_size = match encode(&mut []) {
        Ok(_) => return Ok(()),
        Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => required_size,
        Err(error) => return Err(Error::General(error.to_string())),
    };
    output.resize(start + required_size, 0);
    let encoded = encode(&mut output[start..]);
    output.truncate(start + *encoded.as_ref().unwrap_or(&0));
    encoded.map(drop).map_err(|error| Error::General(error.to_string()))
}

#[cfg(fuzzing)]
#[path = "session_fuzzing.rs"]
pub(crate) mod fuzzing;

#[cfg(test)]
#[path = "session_test.rs"]
mod tests;
