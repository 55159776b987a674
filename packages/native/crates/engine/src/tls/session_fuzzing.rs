//! A session that receives what a fuzz target makes.

use super::{MAX_INPUT_BYTES, MAX_OUTPUT_BYTES, Received, STAGING_BYTES, Session};
use crate::tls::{CertificatePem, TlsConfig};

/// The server's side of one connection, over no socket.
pub struct TlsServer {
    session: Session,
    staging: Vec<u8>,
    /// Everything that was decrypted.
    pub received: Vec<u8>,
    /// The peer has broken the rules, or has ended.
    pub is_over: bool,
}

/// The settings that connections share.
pub struct TlsSettings(TlsConfig);

impl TlsSettings {
    /// # Panics
    /// The certificate cannot be used.
    pub fn new(certificate: &CertificatePem) -> Self {
        Self(TlsConfig::new(std::slice::from_ref(certificate)).unwrap_or_else(|error| panic!("{error}")))
    }
}

impl TlsServer {
    /// # Panics
    /// The certificate cannot be used.
    pub fn new(settings: &TlsSettings) -> Self {
        let session = Session::new(settings.0.current()).unwrap_or_else(|error| panic!("{error}"));
        Self { session, staging: vec![0; STAGING_BYTES], received: Vec::new(), is_over: false }
    }

    /// Receives bytes as a shard does, unless it is over.
    ///
    /// # Panics
    /// It holds more than it may.
    pub fn receive(&mut self, bytes: &[u8]) {
        if self.is_over {
            return;
        }
        let mut buffer = vec![0; MAX_INPUT_BYTES + bytes.len()];
        let kept = self.session.begin_read(&mut buffer);
        buffer[kept..kept + bytes.len()].copy_from_slice(bytes);
        let received = self.session.decrypt(&mut buffer[..kept + bytes.len()], &mut self.received);
        self.is_over = received != Ok(Received::Some);
        assert!(self.session.input.len() <= MAX_INPUT_BYTES, "the incomplete record is bounded");
        assert!(self.is_over || self.session.output.len() <= MAX_OUTPUT_BYTES, "the answers are bounded");
    }

    /// Whether neither side may send data yet.
    pub fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Encrypts bytes for the peer, if the connection is open for writing.
    pub fn send(&mut self, bytes: &[u8]) {
        if let Some(count) = self.session.encrypt(bytes, &mut self.staging) {
            self.session.output.extend_from_slice(&self.staging[..count]);
        }
    }

    /// Says that nothing follows.
    pub fn end(&mut self) {
        self.session.end();
    }

    /// What goes to the peer.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.session.output)
    }
}
