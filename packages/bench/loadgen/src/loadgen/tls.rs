//! TLS of the connections: which certificates they accept, and the tickets that they keep for the next handshake.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, NamedGroup, RootCertStore, SignatureScheme};

use super::protocol::TlsOptions;

/// Most tickets that are kept; the oldest are dropped. A storm of this many connections can be resumed.
const MAX_TICKETS: usize = 65_536;
/// The generator speaks with one server.
const SERVER_COUNT: usize = 1;

/// What a handshake needs; the same for all connections of a `connect`.
#[derive(Clone)]
pub(crate) struct TlsClient {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) server_name: ServerName<'static>,
}

/// The settings of earlier `connect`s, so that a later one finds their tickets.
#[derive(Default)]
pub(crate) struct TlsClients {
    known: Vec<(TlsOptions, TlsClient)>,
}

impl TlsClients {
    /// # Errors
    /// The name is none, or the certificates cannot be read.
    pub(crate) fn client(&mut self, options: &TlsOptions) -> Result<TlsClient, String> {
        if let Some((_, client)) = self.known.iter().find(|(known, _)| known == options) {
            return Ok(client.clone());
        }
        let server_name = ServerName::try_from(options.server_name.clone())
            .map_err(|_| format!("connect: {} is no name of a server", options.server_name))?;
        let config = config(options).map_err(|error| format!("connect: {error}"))?;
        let client = TlsClient { config: Arc::new(config), server_name };
        self.known.push((options.clone(), client.clone()));
        Ok(client)
    }
}

fn config(options: &TlsOptions) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = if options.insecure {
        let verifier = Arc::new(AnyCertificate(provider));
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
    } else {
        builder.with_root_certificates(roots(options.ca.as_deref())?).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption =
        if options.resume { Resumption::store(Arc::new(Tickets::new())) } else { Resumption::disabled() };
    Ok(config)
}

/// Mozilla's certificates, and those of `pem`.
fn roots(pem: Option<&str>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for certificate in CertificateDer::pem_slice_iter(pem.unwrap_or_default().as_bytes()) {
        let certificate = certificate.map_err(|error| format!("ca: {error}"))?;
        roots.add(certificate).map_err(|error| format!("ca: {error}"))?;
    }
    Ok(roots)
}

/// Accepts every certificate and checks no signature: for servers of a test.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Tickets of TLS 1.3, each used once, as browsers do. rustls keeps eight per server, far fewer than a storm uses.
struct Tickets {
    others: ClientSessionMemoryCache,
    tickets: Mutex<VecDeque<Tls13ClientSessionValue>>,
}

impl Tickets {
    fn new() -> Self {
        Self { others: ClientSessionMemoryCache::new(SERVER_COUNT), tickets: Mutex::default() }
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tickets")
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.others.set_kx_hint(server_name, group);
    }

    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.others.kx_hint(server_name)
    }

    fn set_tls12_session(&self, server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.others.set_tls12_session(server_name, value);
    }

    fn tls12_session(&self, server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.others.tls12_session(server_name)
    }

    fn remove_tls12_session(&self, server_name: &ServerName<'static>) {
        self.others.remove_tls12_session(server_name);
    }

    fn insert_tls13_ticket(&self, _server_name: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        if tickets.len() == MAX_TICKETS {
            tickets.pop_front();
        }
        tickets.push_back(value);
    }

    fn take_tls13_ticket(&self, _server_name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}
