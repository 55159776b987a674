//! What a peer may send where TLS is spoken: any bytes; or the records of a client that is rustls, with some changed,
//! repeated or left out, before and after the handshake, and cut anywhere.
//!
//! Input: one byte of mode, one of the size of the pieces, then edits of three bytes (what, where, value), or the bytes.
#![no_main]

use std::io::{Read, Write};
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use webmq_engine::CertificatePem;
use webmq_engine::fuzzing::{TlsServer, TlsSettings};

static SETTINGS: LazyLock<(TlsSettings, [Arc<ClientConfig>; 2])> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = made.cert.pem().into_bytes();
    let pem = CertificatePem { certificate, key: made.signing_key.serialize_pem().into_bytes() };
    let client = |version| {
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("a root");
        let builder = ClientConfig::builder_with_protocol_versions(&[version]);
        Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
    };
    (TlsSettings::new(&pem), [client(&rustls::version::TLS12), client(&rustls::version::TLS13)])
});

/// What the client sends in the open phase.
const MESSAGE: &[u8] = &[7; 1_000];

fuzz_target!(|data: &[u8]| {
    let [mode, size, input @ ..] = data else { return };
    let (settings, clients) = &*SETTINGS;
    let mut server = TlsServer::new(settings);
    let pieces = 1 + 8 * usize::from(*size);
    if mode & 1 == 0 {
        feed(&mut server, input, pieces);
        assert!(server.received.is_empty(), "there are no data without keys");
        return;
    }
    let name = ServerName::try_from("localhost").expect("a name");
    let client = Arc::clone(&clients[usize::from(mode >> 1 & 1)]);
    let mut client = ClientConnection::new(client, name).expect("a client");
    let edits_handshake = mode & 4 == 0;
    // A full handshake takes three flights.
    for _ in 0..4 {
        let mut bytes = sent(&mut client);
        let is_edited = edits_handshake && edit(&mut bytes, input);
        feed(&mut server, &bytes, pieces);
        if is_edited && server.is_over {
            return server.end();
        }
        if !answer(&mut client, &server.take_output()) {
            assert!(edits_handshake, "the client is content");
            return server.end();
        }
    }
    if client.writer().write_all(MESSAGE).is_err() {
        assert!(edits_handshake, "the handshake succeeds");
        return server.end();
    }
    client.send_close_notify();
    let mut bytes = sent(&mut client);
    let is_edited = edits_handshake || edit(&mut bytes, input);
    feed(&mut server, &bytes, pieces);
    assert!(MESSAGE.starts_with(&server.received), "nothing is made up");
    assert!(is_edited || server.received == MESSAGE, "what was not touched arrives");
    server.send(b"down");
    server.end();
});

/// The server receives bytes in pieces, and writes between them, as a shard may.
fn feed(server: &mut TlsServer, bytes: &[u8], piece_bytes: usize) {
    for piece in bytes.chunks(piece_bytes) {
        server.receive(piece);
        if !server.is_over && !server.is_handshaking() {
            server.send(b"now");
        }
    }
}

/// Returns whether something has changed.
fn edit(bytes: &mut Vec<u8>, edits: &[u8]) -> bool {
    let before = bytes.clone();
    for edit in edits.chunks_exact(3).take(8) {
        let &[what, place, value] = edit else { return false };
        if bytes.is_empty() {
            break;
        }
        let at = match what & 1 {
            0 => usize::from(place) % bytes.len(),
            _ => bytes.len() * usize::from(place) / 256,
        };
        match what >> 1 & 3 {
            0 => bytes[at] = value,
            1 => bytes.truncate(at),
            2 => bytes.insert(at, value),
            // The bytes from here on come twice.
            _ => bytes.extend_from_within(at..),
        }
    }
    *bytes != before
}

fn sent(client: &mut ClientConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).expect("into memory");
    }
    bytes
}

/// Returns whether the client goes on.
fn answer(client: &mut ClientConnection, mut output: &[u8]) -> bool {
    while !output.is_empty() {
        client.read_tls(&mut output).expect("from memory");
        if client.process_new_packets().is_err() {
            return false;
        }
        let mut plain = Vec::new();
        // It is empty while nothing has come.
        let _ = client.reader().read_to_end(&mut plain);
    }
    true
}
