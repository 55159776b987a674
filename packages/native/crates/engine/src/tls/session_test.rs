//! A session against a client that is rustls, and against bytes that are no TLS.

use std::io::{Read, Write};
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::*;
use crate::tls::{CertificatePem, TlsConfig};

/// Made once: keys and certificates are the same in all cases.
static CONFIGS: LazyLock<(TlsConfig, [Arc<ClientConfig>; 2])> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let pem = CertificatePem {
        certificate: made.cert.pem().into_bytes(),
        key: made.signing_key.serialize_pem().into_bytes(),
    };
    let client = |version| {
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("a root");
        let builder = ClientConfig::builder_with_protocol_versions(&[version]);
        Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
    };
    let clients = [client(&rustls::version::TLS12), client(&rustls::version::TLS13)];
    (TlsConfig::new(&[pem]).expect("usable"), clients)
});

/// A server's session, a client, and what is on its way to the server.
struct Pair {
    session: Session,
    client: ClientConnection,
    received: Vec<u8>,
}

impl Pair {
    fn new(version: usize) -> Self {
        let (config, clients) = &*CONFIGS;
        let name = ServerName::try_from("localhost").expect("a name");
        Self {
            session: Session::new(config.current()).expect("a session"),
            client: ClientConnection::new(Arc::clone(&clients[version]), name).expect("a client"),
            received: Vec::new(),
        }
    }

    /// What the client wants to send.
    fn sent(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut bytes).expect("into memory");
        }
        bytes
    }

    /// The session receives bytes as a shard does.
    fn receive(&mut self, bytes: &[u8]) -> Result<Received, Error> {
        let mut buffer = vec![0; MAX_INPUT_BYTES + bytes.len()];
        let kept = self.session.begin_read(&mut buffer);
        buffer[kept..kept + bytes.len()].copy_from_slice(bytes);
        self.session.decrypt(&mut buffer[..kept + bytes.len()], &mut self.received)
    }

    /// The client receives what the session has to say.
    fn answer(&mut self) {
        let output = std::mem::take(&mut self.session.output);
        let mut rest = &output[..];
        while !rest.is_empty() {
            self.client.read_tls(&mut rest).expect("from memory");
            if self.client.process_new_packets().is_err() {
                return;
            }
        }
    }

    fn handshake(&mut self) {
        while self.session.is_handshaking() || self.client.is_handshaking() {
            let bytes = self.sent();
            self.receive(&bytes).expect("a handshake");
            self.answer();
        }
    }
}

#[test]
fn an_idle_session_keeps_no_buffer() {
    for version in [0, 1] {
        let mut pair = Pair::new(version);
        pair.handshake();
        assert_eq!((pair.session.input.capacity(), pair.session.output.capacity()), (0, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_a_client_sends_arrives_however_it_is_cut(
        version in 0_usize..2,
        messages in prop::collection::vec(0_usize..40_000, 1..4),
        cuts in prop::collection::vec(1_usize..5_000, 1..20),
    ) {
        let mut pair = Pair::new(version);
        let mut cuts = cuts.into_iter().cycle();
        let mut expected = Vec::new();
        let mut staging = vec![0; STAGING_BYTES];
        for (index, len) in messages.into_iter().enumerate() {
            // The first goes out as soon as the handshake allows.
            let message = vec![index as u8; len];
            pair.client.writer().write_all(&message).expect("into memory");
            expected.extend_from_slice(&message);
            loop {
                let bytes = pair.sent();
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let (first, others) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
                    rest = others;
                    prop_assert_eq!(pair.receive(first), Ok(Received::Some));
                    // It may write between any two reads.
                    if !pair.session.is_handshaking() && pair.session.output.is_empty() {
                        let count = pair.session.encrypt(b"now", &mut staging).expect("open for writing");
                        pair.session.output.extend_from_slice(&staging[..count]);
                    }
                }
                pair.answer();
                if !pair.client.wants_write() && !pair.client.is_handshaking() {
                    break;
                }
            }
        }
        prop_assert!(pair.received == expected);
        let mut answers = Vec::new();
        let _ = pair.client.reader().read_to_end(&mut answers);
        prop_assert!(answers.chunks(3).all(|answer| answer == b"now"));
        pair.client.send_close_notify();
        let bytes = pair.sent();
        prop_assert_eq!(pair.receive(&bytes), Ok(Received::End));
    }

    #[test]
    fn no_bytes_make_it_panic(
        version in 0_usize..2,
        is_open in any::<bool>(),
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
        garbage in prop::collection::vec(any::<u8>(), 0..300),
        cut in 1_usize..400,
    ) {
        let mut pair = Pair::new(version);
        if is_open {
            pair.handshake();
            pair.client.writer().write_all(&[7; 1_000]).expect("into memory");
        }
        let mut bytes = pair.sent();
        for (index, byte) in noise {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.extend_from_slice(&garbage);
        let mut staging = vec![0; STAGING_BYTES];
        for piece in bytes.chunks(cut) {
            if pair.receive(piece) != Ok(Received::Some) {
                break;
            }
            // Whatever has come, it can be written to and ended.
            pair.session.encrypt(b"down", &mut staging);
        }
        pair.session.end();
        prop_assert!(pair.session.output.len() < MAX_OUTPUT_BYTES);
    }
}
