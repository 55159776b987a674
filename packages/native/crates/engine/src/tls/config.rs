use std::sync::{Arc, Mutex, PoisonError};

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::server::NoServerSessionStorage;

use super::certificates::{CertificatePem, Certificates};
use crate::error::EngineError;

/// Session tickets that a client gets. It gets another one with every connection.
const TICKETS: usize = 1;

/// The settings of new handshakes. Handshakes that began before a replacement go on with the old one.
#[derive(Debug)]
pub(crate) struct TlsConfig(Mutex<Arc<ServerConfig>>);

impl TlsConfig {
    /// # Errors
    /// `E_OPTION_INVALID` with a sentence about the pair that cannot be used.
    pub(crate) fn new(pairs: &[CertificatePem]) -> Result<Self, EngineError> {
        Ok(Self(Mutex::new(build(pairs)?)))
    }

    /// Uses other certificates from now on. Session tickets from before are void: the client sees the new certificate.
    ///
    /// # Errors
    /// As [`new`](Self::new). The old certificates stay.
    pub(crate) fn replace(&self, pairs: &[CertificatePem]) -> Result<(), EngineError> {
        let config = build(pairs)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What ring offers, without that which checks the certificates of a client: no client is asked for one.
fn provider() -> CryptoProvider {
    let signature_verification_algorithms = WebPkiSupportedAlgorithms { all: &[], mapping: &[] };
    CryptoProvider { signature_verification_algorithms, ..ring::default_provider() }
}

fn build(pairs: &[CertificatePem]) -> Result<Arc<ServerConfig>, EngineError> {
    let provider = Arc::new(provider());
    let certificates = Certificates::load(pairs, &provider).map_err(EngineError::OptionInvalid)?;
    let unusable = |error: rustls::Error| EngineError::System(std::io::Error::other(error));
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(rustls::ALL_VERSIONS);
    let mut config = builder.map_err(unusable)?.with_no_client_auth().with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Sessions are resumed by tickets, whose keys rotate every 6 hours and live for 12. There is no cache to bound.
    config.ticketer = ring::Ticketer::new().map_err(unusable)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = TICKETS;
    Ok(Arc::new(config))
}
