use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use webpki::EndEntityCert;

/// A certificate with its chain, and its private key, both in PEM.
#[derive(Clone)]
pub struct CertificatePem {
    /// The certificate of the server first, then those that lead to its root.
    pub certificate: Vec<u8>,
    /// PKCS #8, PKCS #1 or SEC 1, without a passphrase.
    pub key: Vec<u8>,
}

impl fmt::Debug for CertificatePem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificatePem").finish_non_exhaustive()
    }
}

/// The certificates of a server. The first one is for clients that ask for a name of none of them, or for no name.
pub(super) struct Certificates {
    default: Arc<CertifiedKey>,
    /// By the name that a client asks for; a wildcard without its `*`, so `.example.com`.
    by_name: HashMap<String, Arc<CertifiedKey>>,
}

impl Certificates {
    /// # Errors
    /// A sentence that says what is wrong with which pair.
    pub(super) fn load(pairs: &[CertificatePem], provider: &CryptoProvider) -> Result<Self, String> {
        let mut default = None;
        let mut by_name = HashMap::new();
        for (index, pair) in pairs.iter().enumerate() {
            let key = load_pair(pair, provider).map_err(|defect| match pairs.len() {
                1 => defect,
                count => format!("certificate {} of {count}: {defect}", index + 1),
            })?;
            let key = Arc::new(key);
            for name in names_of(&key) {
                // As with the default, the first one wins.
                by_name.entry(name).or_insert_with(|| Arc::clone(&key));
            }
            default.get_or_insert(key);
        }
        let default = default.ok_or("TLS needs a certificate and its key")?;
        Ok(Self { default, by_name })
    }

    fn find(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        let name = name.to_ascii_lowercase();
        // RFC 9525 §6.3: a wildcard stands for one label.
        self.by_name.get(&name).or_else(|| self.by_name.get(name.find('.').map(|dot| &name[dot..])?))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = hello.server_name().and_then(|name| self.find(name));
        Some(Arc::clone(named.unwrap_or(&self.default)))
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("names", &self.by_name.keys()).finish_non_exhaustive()
    }
}

fn load_pair(pair: &CertificatePem, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pair.certificate).collect();
    let chain = chain.map_err(|error| format!("the certificate is not valid PEM: {error}"))?;
    if chain.is_empty() {
        return Err("the certificate file has no PEM section CERTIFICATE".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(&pair.key).map_err(|error| match error {
        pem::Error::NoItemsFound if is_encrypted(&pair.key) => {
            "the key is encrypted; TLS needs it without a passphrase".to_owned()
        }
        pem::Error::NoItemsFound => "the key file has no PEM section PRIVATE KEY".to_owned(),
        error => format!("the key is not valid PEM: {error}"),
    })?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            "the key does not belong to the certificate".to_owned()
        }
        Error::InvalidCertificate(error) => format!("the certificate cannot be read: {error:?}"),
        error => format!("the certificate or its key cannot be used: {error}"),
    })
}

fn is_encrypted(key: &[u8]) -> bool {
    key.windows(9).any(|window| window == b"ENCRYPTED")
}

/// Names that a certificate is valid for, as [`Certificates::by_name`] has them.
fn names_of(key: &CertifiedKey) -> Vec<String> {
    // Readable: its key was compared with the private one.
    let Some(certificate) = key.cert.first().and_then(|der| EndEntityCert::try_from(der).ok()) else {
        return Vec::new();
    };
    let names = certificate.valid_dns_names();
    names.map(|name| name.strip_prefix('*').unwrap_or(name).to_ascii_lowercase()).collect()
}
