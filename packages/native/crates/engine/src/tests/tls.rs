use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned, SupportedProtocolVersion};
use webmq_websocket::Opcode;

use super::client::{Client, Received};
use super::rig::{Rig, Told};
use crate::{CertificatePem, Options};

type Socket = StreamOwned<ClientConnection, TcpStream>;

/// A certificate of a test, and the PEM of it.
struct Certificate {
    der: CertificateDer<'static>,
    pem: CertificatePem,
}

impl Certificate {
    fn of(names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let pem = CertificatePem {
            certificate: made.cert.pem().into_bytes(),
            key: made.signing_key.serialize_pem().into_bytes(),
        };
        Self { der: made.cert.der().clone(), pem }
    }
}

fn options(certificates: &[&Certificate]) -> Options {
    let tls = certificates.iter().map(|certificate| certificate.pem.clone()).collect();
    Options { tls: Some(tls), hands_http_over: true, ..Options::default() }
}

/// Trusts these certificates, and resumes no session.
fn trusting(certificates: &[&Certificate], versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    certificates.iter().for_each(|certificate| roots.add(certificate.der.clone()).expect("a root"));
    let builder = ClientConfig::builder_with_protocol_versions(versions).with_root_certificates(roots);
    let mut config = builder.with_no_client_auth();
    config.resumption = Resumption::disabled();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

/// Connects and finishes the handshake.
fn connect(address: SocketAddr, name: &str, config: &Arc<ClientConfig>) -> Socket {
    let socket = TcpStream::connect(address).expect("connects");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let connection = ClientConnection::new(Arc::clone(config), name).expect("a client");
    let mut socket = StreamOwned::new(connection, socket);
    while socket.conn.is_handshaking() {
        socket.conn.complete_io(&mut socket.sock).expect("a handshake");
    }
    socket
}

/// Upgrades, and is accepted.
fn open(rig: &mut Rig, mut socket: Socket) -> (Client<Socket>, f64) {
    socket.write_all(Client::HANDSHAKE.as_bytes()).expect("sends");
    let id = rig.accept_next();
    let mut client = Client::over(socket);
    let answer = client.finish();
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    (client, id)
}

#[test]
fn event_streams_are_encrypted_and_end_with_a_notice() {
    let certificate = Certificate::of(&["localhost"]);
    let path = Some("/sse".to_owned());
    let mut rig = Rig::start(Options { event_stream_path: path, ..options(&[&certificate]) });
    let config = Arc::new(trusting(&[&certificate], &[&rustls::version::TLS13]));
    let mut socket = connect(rig.address, "localhost", &config);
    socket.write_all(b"GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sends");
    let Told::EventStream(id) = rig.next() else { panic!("not an event stream") };
    let large = vec![b'x'; 300_000];
    rig.submit(|packer| {
        packer
            .accept(id, None)
            .join(id, 1)
            .multicast(&[1], b"data: 1\n\n", None)
            .send(id, &large)
            .close(id, 4009, "drain");
    });
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("an end that was announced");
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n") && answer.ends_with(&large));
    drop(socket);
    assert_eq!(rig.next(), Told::Closed(id, 4009, "drain".to_owned()));
}

#[test]
fn messages_go_both_ways_in_both_versions() {
    let certificate = Certificate::of(&["localhost"]);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut rig = Rig::start(options(&[&certificate]));
        let config = Arc::new(trusting(&[&certificate], &[version]));
        let socket = connect(rig.address, "localhost", &config);
        assert_eq!(socket.conn.protocol_version(), Some(version.version));
        assert_eq!(socket.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        let (mut client, id) = open(&mut rig, socket);
        client.send(Opcode::Text, b"up");
        assert_eq!(rig.next(), Told::Message(id, b"up".to_vec()));
        client.send(Opcode::Binary, &[5; 200_000]);
        assert_eq!(rig.next(), Told::Message(id, vec![5; 200_000]));
        rig.submit(|packer| {
            packer.send(id, b"down").send(id, &[7; 300_000]);
        });
        assert_eq!(client.message(), b"down");
        assert_eq!(client.message(), [7; 300_000]);
        client.send(Opcode::Close, b"\x0f\xa1bye");
        assert_eq!(client.receive(), Received::Close(Some(4001), "bye".to_owned()));
        assert_eq!(client.receive(), Received::End, "with close_notify");
        assert_eq!(rig.next(), Told::Closed(id, 4001, "bye".to_owned()));
        drop(client);
        rig.until(|engine| engine.sockets() == 0);
    }
}

#[test]
fn the_server_name_decides_about_the_certificate() {
    let first = Certificate::of(&["first.test"]);
    let wildcard = Certificate::of(&["*.wild.test"]);
    let exact = Certificate::of(&["exact.wild.test"]);
    let all = [&first, &wildcard, &exact];
    let rig = Rig::start(options(&all));
    let config = Arc::new(trusting(&all, rustls::ALL_VERSIONS));
    let expected = [
        ("first.test", &first),
        ("any.wild.test", &wildcard),
        ("ANY.wild.test", &wildcard),
        ("exact.wild.test", &exact),
    ];
    for (name, certificate) in expected {
        let socket = connect(rig.address, name, &config);
        assert_eq!(socket.conn.peer_certificates().expect("a chain")[0], certificate.der, "{name}");
    }
    for other in ["other.test", "deep.any.wild.test", "wild.test"] {
        let socket = TcpStream::connect(rig.address).expect("connects");
        let name = ServerName::try_from(other.to_owned()).expect("a name");
        let connection = ClientConnection::new(Arc::clone(&config), name).expect("a client");
        let mut socket = StreamOwned::new(connection, socket);
        let refused = socket.conn.complete_io(&mut socket.sock).expect_err("a certificate of another name");
        assert!(refused.to_string().contains("first.test"), "{other} gets the first one: {refused}");
    }
}

#[test]
fn replaced_certificates_are_for_new_handshakes() {
    let (old, new) = (Certificate::of(&["localhost"]), Certificate::of(&["localhost"]));
    let mut rig = Rig::start(options(&[&old]));
    let config = Arc::new(trusting(&[&old, &new], rustls::ALL_VERSIONS));
    let (mut client, id) = {
        let socket = connect(rig.address, "localhost", &config);
        open(&mut rig, socket)
    };
    rig.engine.set_certificates(std::slice::from_ref(&new.pem)).expect("replaced");
    let socket = connect(rig.address, "localhost", &config);
    assert_eq!(socket.conn.peer_certificates().expect("a chain")[0], new.der);
    rig.submit(|packer| {
        packer.send(id, b"still here");
    });
    assert_eq!(client.message(), b"still here");

    let mixed = CertificatePem { certificate: old.pem.certificate.clone(), key: new.pem.key.clone() };
    let empty = CertificatePem { certificate: Vec::new(), key: new.pem.key.clone() };
    let no_key = CertificatePem { certificate: new.pem.certificate.clone(), key: b"nothing".to_vec() };
    let sentence = |pairs: &[CertificatePem]| {
        let refused = rig.engine.set_certificates(pairs).expect_err("refused");
        assert_eq!(refused.code(), "E_OPTION_INVALID");
        refused.to_string()
    };
    assert_eq!(sentence(&[]), "TLS needs a certificate and its key");
    assert_eq!(sentence(std::slice::from_ref(&mixed)), "the key does not belong to the certificate");
    let second = "certificate 2 of 2: the key does not belong to the certificate";
    assert_eq!(sentence(&[new.pem.clone(), mixed]), second);
    assert_eq!(sentence(&[empty]), "the certificate file has no PEM section CERTIFICATE");
    assert_eq!(sentence(&[no_key]), "the key file has no PEM section PRIVATE KEY");
    let socket = connect(rig.address, "localhost", &config);
    assert_eq!(socket.conn.peer_certificates().expect("a chain")[0], new.der, "the last good ones stay");
}

#[test]
fn a_session_is_resumed_until_the_certificates_are_replaced() {
    let certificate = Certificate::of(&["localhost"]);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let rig = Rig::start(options(&[&certificate]));
        let mut config = trusting(&[&certificate], &[version]);
        config.resumption = Resumption::in_memory_sessions(8);
        let config = Arc::new(config);
        let kind = || {
            let mut socket = connect(rig.address, "localhost", &config);
            socket.write_all(b"GET /ticket HTTP/1.1\r\n").expect("sends");
            // In TLS 1.3, the tickets come behind the handshake.
            socket.sock.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
            let until = Instant::now() + Duration::from_secs(10);
            loop {
                let _ = socket.read(&mut [0]);
                let is_1_3 = socket.conn.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3);
                if !is_1_3 || socket.conn.tls13_tickets_received() > 0 {
                    return socket.conn.handshake_kind();
                }
                assert!(Instant::now() < until, "a ticket comes");
            }
        };
        assert_eq!(kind(), Some(HandshakeKind::Full));
        assert_eq!(kind(), Some(HandshakeKind::Resumed));
        assert_eq!(kind(), Some(HandshakeKind::Resumed));
        rig.engine.set_certificates(std::slice::from_ref(&certificate.pem)).expect("replaced");
        assert_eq!(kind(), Some(HandshakeKind::Full));
    }
}

#[test]
fn a_slow_reader_gets_everything_in_order_and_its_ciphertext_counts() {
    let certificate = Certificate::of(&["localhost"]);
    let mut rig = Rig::start(Options { max_outbox_bytes: 16 << 20, ..options(&[&certificate]) });
    let config = Arc::new(trusting(&[&certificate], rustls::ALL_VERSIONS));
    let mut clients: Vec<_> = (0..2)
        .map(|_| {
            let socket = connect(rig.address, "localhost", &config);
            open(&mut rig, socket)
        })
        .collect();
    rig.submit(|packer| {
        for (_, id) in &clients {
            packer.join(*id, 1);
        }
    });
    // Both sockets are full: neither client reads.
    for number in 0..100_u8 {
        let (_, id) = clients[0];
        rig.submit(|packer| {
            packer.multicast(&[1], &vec![number; 90_000 + usize::from(number)], None).send(id, &[number]);
        });
    }
    rig.until(|engine| engine.stats().outbox_bytes > 1 << 20);
    for (index, (client, _)) in clients.iter_mut().enumerate() {
        for number in 0..100_u8 {
            assert_eq!(client.message(), vec![number; 90_000 + usize::from(number)]);
            if index == 0 {
                assert_eq!(client.message(), [number]);
            }
        }
    }
    rig.until(|engine| engine.stats().outbox_bytes == 0);
}

#[test]
fn a_peer_that_does_not_read_is_ended() {
    let certificate = Certificate::of(&["localhost"]);
    let mut rig = Rig::start(Options { max_outbox_bytes: 300_000, ..options(&[&certificate]) });
    let socket = connect(rig.address, "localhost", &Arc::new(trusting(&[&certificate], rustls::ALL_VERSIONS)));
    let (_client, id) = open(&mut rig, socket);
    let mut count = 0;
    while rig.engine.stats().slow_consumer_count == 0 {
        rig.submit(|packer| {
            packer.send(id, &[b'x'; 20_000]);
        });
        count += 1;
        assert!(count < 5_000, "the slow consumer was not found");
    }
    assert_eq!(rig.next(), Told::Closed(id, 4008, "E_SLOW_CONSUMER".to_owned()));
    // Left are one window of ciphertext, the rest of one frame, and the close frame.
    rig.until(|engine| engine.stats().outbox_bytes < 90_000);
}

#[test]
fn what_was_queued_leaves_before_the_close() {
    let certificate = Certificate::of(&["localhost"]);
    let mut rig = Rig::start(Options { max_outbox_bytes: 64 << 20, ..options(&[&certificate]) });
    let socket = connect(rig.address, "localhost", &Arc::new(trusting(&[&certificate], rustls::ALL_VERSIONS)));
    let (mut client, id) = open(&mut rig, socket);
    rig.submit(|packer| {
        for _ in 0..100 {
            packer.send(id, &[9; 100_000]);
        }
        packer.close(id, 4001, "bye");
    });
    (0..100).for_each(|_| assert_eq!(client.message(), [9; 100_000]));
    assert_eq!(client.receive(), Received::Close(Some(4001), "bye".to_owned()));
    client.send(Opcode::Close, b"\x0f\xa1bye");
    assert_eq!(client.receive(), Received::End);
    assert_eq!(rig.next(), Told::Closed(id, 4001, "bye".to_owned()));
}

/// Node's end of a relayed request, and what was read of it.
fn node_end(rig: &mut Rig) -> (std::os::unix::net::UnixStream, Vec<u8>) {
    let Told::Http(token, read) = rig.next() else { panic!("not a request") };
    let socket = std::os::unix::net::UnixStream::from(rig.engine.take_socket(token).expect("a socket"));
    socket.set_nonblocking(false).expect("blocks");
    (socket, read)
}

#[test]
fn plain_http_is_relayed_both_ways() {
    const BODY_BYTES: usize = 3_000_000;
    let certificate = Certificate::of(&["localhost"]);
    let mut rig = Rig::start(options(&[&certificate]));
    let config = Arc::new(trusting(&[&certificate], rustls::ALL_VERSIONS));
    let mut client = connect(rig.address, "localhost", &config);
    let port = client.sock.local_addr().expect("an address").port();
    client.write_all(b"POST /x HTTP/1.1\r\n\r\nbody").expect("sends");
    let (mut node, read) = node_end(&mut rig);
    assert_eq!(read, b"POST /x HTTP/1.1\r\n\r\nbody");
    assert_eq!(rig.http_peers, [("127.0.0.1".to_owned(), u32::from(port))]);
    // Much in one direction, then in the other, and both at once.
    let body: Vec<u8> = (0..BODY_BYTES).map(|index| (index % 251) as u8).collect();
    let pump = {
        let body = body.clone();
        std::thread::spawn(move || {
            let mut received = vec![0; BODY_BYTES];
            node.read_exact(&mut received).expect("a body");
            assert!(received == body);
            node.write_all(&body).expect("an answer");
            let mut rest = Vec::new();
            node.read_to_end(&mut rest).expect("the end");
            assert_eq!(rest, b"last");
            node.write_all(b"bye").expect("an answer");
        })
    };
    let sending = |client: &mut Socket, bytes: &[u8]| {
        client.write_all(bytes).expect("sends");
        client.flush().expect("sends");
    };
    let waiter = std::thread::spawn(move || {
        sending(&mut client, &body);
        let mut received = vec![0; BODY_BYTES];
        client.read_exact(&mut received).expect("an answer");
        assert!(received == body);
        sending(&mut client, b"last");
        // It ends its side only.
        client.conn.send_close_notify();
        client.flush().expect("sends");
        client.sock.shutdown(Shutdown::Write).expect("a half-close");
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).expect("close_notify");
        assert_eq!(rest, b"bye");
    });
    rig.until(|_| pump.is_finished() && waiter.is_finished());
    pump.join().expect("Node's side");
    waiter.join().expect("the client's side");
    rig.until(|engine| engine.sockets() == 0);
    assert_eq!(rig.engine.stats().partial_bytes, 0);
}

#[test]
fn a_relay_ends_when_either_side_is_gone() {
    let certificate = Certificate::of(&["localhost"]);
    let mut rig = Rig::start(options(&[&certificate]));
    let config = Arc::new(trusting(&[&certificate], rustls::ALL_VERSIONS));
    let request = |rig: &mut Rig| {
        let mut client = connect(rig.address, "localhost", &config);
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sends");
        (client, node_end(rig).0)
    };
    let (client, mut node) = request(&mut rig);
    drop(client);
    let mut rest = Vec::new();
    rig.until(|_| {
        node.set_nonblocking(true).expect("does not block");
        matches!(node.read_to_end(&mut rest), Ok(0))
    });
    drop(node);
    rig.until(|engine| engine.sockets() == 0);

    let (mut client, mut node) = request(&mut rig);
    node.write_all(b"answer").expect("sends");
    drop(node);
    // The rest of a body that Node does not read.
    client.write_all(&[0; 100_000]).expect("sends");
    let waiter = std::thread::spawn(move || {
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("close_notify");
        assert_eq!(answer, b"answer");
    });
    rig.until(|_| waiter.is_finished());
    waiter.join().expect("an answer");
    rig.until(|engine| engine.sockets() == 0);

    // Node never takes the socket, and the engine ends.
    let (client, node) = request(&mut rig);
    rig.engine.shut_down();
    rig.until(|engine| engine.sockets() == 0);
    drop((client, node));
}

#[test]
fn relays_give_way_to_newcomers() {
    let certificate = Certificate::of(&["localhost"]);
    let mut rig = Rig::start(Options { max_connections: 1, ..options(&[&certificate]) });
    let config = Arc::new(trusting(&[&certificate], rustls::ALL_VERSIONS));
    let mut held = Vec::new();
    for _ in 0..270 {
        let mut client = connect(rig.address, "localhost", &config);
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sends");
        held.push((node_end(&mut rig).0, client));
    }
    assert_eq!(rig.engine.sockets(), 257);
    let socket = connect(rig.address, "localhost", &config);
    let (mut client, id) = open(&mut rig, socket);
    rig.submit(|packer| {
        packer.send(id, b"served");
    });
    assert_eq!(client.message(), b"served");
    let (mut oldest, _) = held.swap_remove(0);
    assert_eq!(oldest.read(&mut [0]).expect("the end"), 0);
}

#[test]
fn a_request_without_tls_is_told_so() {
    let mut rig = Rig::start(options(&[&Certificate::of(&["localhost"])]));
    let mut client = TcpStream::connect(rig.address).expect("connects");
    client.write_all(b"GET /health HTTP/1.1\r\nHost: here\r\n\r\n").expect("sends");
    let mut answer = String::new();
    rig.until(|engine| engine.stats().refused_count == 1);
    client.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nthis port speaks TLS: use https:// or wss://\n"), "{answer}");
    rig.drain();
}

#[test]
fn what_is_no_handshake_ends_only_its_own_connection() {
    let certificate = Certificate::of(&["localhost"]);
    let handshake_timeout = Duration::from_millis(300);
    let mut rig = Rig::start(Options { handshake_timeout, ..options(&[&certificate]) });
    let config = Arc::new(trusting(&[&certificate], rustls::ALL_VERSIONS));
    let socket = connect(rig.address, "localhost", &config);
    let (mut client, id) = open(&mut rig, socket);
    let mut long_hello = b"\x16\x03\x01\x40\x00\x01\x00\xff\xf0".to_vec();
    long_hello.resize(60_000, 0);
    let hostile: [&[u8]; 6] = [
        b"\x00",
        b"\x80\x2e\x01\x03\x01",
        b"\x16\x03\x01\xff\xff\x01",
        b"\x17\x03\x03\x00\x10 sixteen bytes ",
        b"\x15\x03\x01\x00\x02\x01\x00\x15\x03\x01\x00\x02\x01\x00",
        &long_hello,
    ];
    for bytes in hostile {
        let mut socket = TcpStream::connect(rig.address).expect("connects");
        // It may be refused before everything is sent.
        let _ = socket.write_all(bytes);
        let _ = socket.read_to_end(&mut Vec::new());
    }
    // Silence, and a byte now and then.
    let _silent = TcpStream::connect(rig.address).expect("connects");
    let mut dripping = TcpStream::connect(rig.address).expect("connects");
    dripping.write_all(b"\x16\x03").expect("sends");
    rig.until(|engine| engine.sockets() == 1);
    client.send(Opcode::Text, b"still here");
    assert_eq!(rig.next(), Told::Message(id, b"still here".to_vec()));
    rig.until(|engine| engine.stats().partial_bytes < 100);
}

#[test]
fn endless_key_updates_end_the_connection_and_some_do_not() {
    let certificate = Certificate::of(&["localhost"]);
    let mut rig = Rig::start(options(&[&certificate]));
    let config = Arc::new(trusting(&[&certificate], &[&rustls::version::TLS13]));
    let socket = connect(rig.address, "localhost", &config);
    let (mut client, id) = open(&mut rig, socket);
    for _ in 0..100 {
        client.socket.conn.refresh_traffic_keys().expect("a key update");
        client.send(Opcode::Text, b"up");
        assert_eq!(rig.next(), Told::Message(id, b"up".to_vec()));
    }
    rig.submit(|packer| {
        packer.send(id, b"down");
    });
    assert_eq!(client.message(), b"down");
    for _ in 0..100 {
        client.socket.conn.refresh_traffic_keys().expect("a key update");
    }
    client.socket.flush().expect("sends");
    assert_eq!(rig.next(), Told::Closed(id, 1006, String::new()));
}

#[test]
fn tiny_records_are_read_like_large_ones() {
    let certificate = Certificate::of(&["localhost"]);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut rig = Rig::start(options(&[&certificate]));
        let mut config = trusting(&[&certificate], &[version]);
        config.max_fragment_size = Some(32);
        let socket = connect(rig.address, "localhost", &Arc::new(config));
        let (mut client, id) = open(&mut rig, socket);
        client.send(Opcode::Binary, &[3; 50_000]);
        assert_eq!(rig.next(), Told::Message(id, vec![3; 50_000]));
    }
}

#[test]
fn a_storm_of_handshakes_is_served() {
    let certificate = Certificate::of(&["localhost"]);
    let mut rig = Rig::start(options(&[&certificate]));
    let config = Arc::new(trusting(&[&certificate], rustls::ALL_VERSIONS));
    let address = rig.address;
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let connect = |_| connect(address, "localhost", &config);
                let mut sockets: Vec<Socket> = (0..15).map(connect).collect();
                let handshake = Client::HANDSHAKE.as_bytes();
                sockets.iter_mut().for_each(|socket| socket.write_all(handshake).expect("sends"));
                sockets
            })
        })
        .collect();
    let ids: Vec<f64> = (0..60).map(|_| rig.accept_next()).collect();
    let sockets: Vec<Socket> = clients.into_iter().flat_map(|client| client.join().expect("connected")).collect();
    rig.submit(|packer| {
        for id in &ids {
            packer.join(*id, 1);
        }
        packer.multicast(&[1], b"to all", None);
    });
    for socket in sockets {
        let mut client = Client::over(socket);
        client.finish();
        assert_eq!(client.message(), b"to all");
    }
}
