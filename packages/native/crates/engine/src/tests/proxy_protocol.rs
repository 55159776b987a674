use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use webmq_websocket::Opcode;

use super::client::Client;
use super::rig::{Rig, Told};
use crate::Options;

const V1: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n";
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    [SIGNATURE, &[command, family], &(rest.len() as u16).to_be_bytes(), rest].concat()
}

fn rig_behind(networks: &[&str]) -> Rig {
    let proxy_protocol_from = networks.iter().map(|text| text.parse().expect("a network")).collect();
    let handshake_timeout = Duration::from_millis(500);
    Rig::start(Options { proxy_protocol_from, hands_http_over: true, handshake_timeout, ..Options::default() })
}

fn open(rig: &Rig) -> TcpStream {
    let socket = TcpStream::connect(rig.address).expect("connects");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    socket.set_nodelay(true).expect("no delay");
    socket
}

/// Sends a header and a handshake, and returns the client that the engine tells of.
fn client_behind(rig: &mut Rig, header: &[u8]) -> (String, u32) {
    let socket = open(rig);
    (&socket).write_all(&[header, Client::HANDSHAKE.as_bytes()].concat()).expect("sends");
    let mut client = Client::over(socket);
    let id = rig.accept_next();
    assert!(client.finish().starts_with("HTTP/1.1 101 "));
    client.send(Opcode::Text, b"up");
    assert_eq!(rig.next(), Told::Message(id, b"up".to_vec()));
    drop(client);
    assert!(matches!(rig.next(), Told::Closed(..)));
    rig.upgrade_peers.pop().expect("a peer")
}

fn is_refused(rig: &Rig, bytes: &[u8]) {
    let before = rig.engine.stats().proxy_header_refused_count;
    let mut socket = open(rig);
    socket.write_all(bytes).expect("sends");
    // Unread bytes make a reset of the end.
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    assert_eq!(answer, b"");
    rig.until(|engine| engine.stats().proxy_header_refused_count == before + 1);
}

#[test]
fn a_trusted_proxy_says_who_the_client_is() {
    let mut rig = rig_behind(&["127.0.0.0/8"]);
    let v4 = [192, 0, 2, 2, 198, 51, 100, 1, 0, 9, 1, 187];
    let v6 = [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[1], &[0; 16], &[0, 7, 0, 9]].concat();
    assert_eq!(client_behind(&mut rig, V1), ("192.0.2.1".to_owned(), 56_324));
    assert_eq!(client_behind(&mut rig, &v2(0x21, 0x11, &v4)), ("192.0.2.2".to_owned(), 9));
    assert_eq!(client_behind(&mut rig, &v2(0x21, 0x21, &v6)), ("2001:db8::1".to_owned(), 7));
    let (own, _) = client_behind(&mut rig, &v2(0x20, 0, &[]));
    assert_eq!(own, "127.0.0.1", "a connection of the proxy itself");
    for header in [b"PROXY UNKNOWN\r\n".to_vec(), v2(0x21, 0x31, &[0; 216]), v2(0x21, 0, &[])] {
        assert_eq!(client_behind(&mut rig, &header), ("0.0.0.0".to_owned(), 0), "a client without an address");
    }
}

#[test]
fn a_header_may_come_in_parts() {
    let mut rig = rig_behind(&["127.0.0.1"]);
    let header = v2(0x21, 0x11, &[192, 0, 2, 2, 198, 51, 100, 1, 0, 9, 1, 187, 4, 0, 1, 0]);
    let socket = open(&rig);
    for part in header.chunks(7) {
        (&socket).write_all(part).expect("sends");
        // So that they do not arrive together.
        std::thread::sleep(Duration::from_millis(2));
    }
    (&socket).write_all(Client::HANDSHAKE.as_bytes()).expect("sends");
    rig.accept_next();
    assert_eq!(rig.upgrade_peers, [("192.0.2.2".to_owned(), 9)]);
}

#[test]
fn a_trusted_proxy_that_does_not_say_who_the_client_is_is_refused() {
    let mut rig = rig_behind(&["127.0.0.1"]);
    is_refused(&rig, Client::HANDSHAKE.as_bytes());
    let Told::Failed(report) = rig.next() else { panic!("no report") };
    assert_eq!(report, "a connection of the trusted proxy 127.0.0.1 was closed: it does not begin with a PROXY header");
    is_refused(&rig, b"PROXY TCP4 192.0.2.256 198.51.100.1 56324 443\r\nGET / HTTP/1.1\r\n\r\n");
    is_refused(&rig, &v2(0x21, 0x11, &[1, 0]));
    // Its length alone, not the bytes.
    is_refused(&rig, &[SIGNATURE, &[0x21, 0x11, 0xff, 0xff]].concat());
    // Twice: the second is the request.
    let mut socket = open(&rig);
    socket.write_all(&[V1, V1].concat()).expect("sends");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[test]
fn a_header_that_never_ends_is_not_waited_for_longer_than_a_request() {
    let rig = rig_behind(&["127.0.0.1"]);
    let mut socket = open(&rig);
    socket.write_all(&V1[..20]).expect("sends");
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    let ended = open(&rig);
    (&ended).write_all(&V1[..20]).expect("sends");
    ended.shutdown(std::net::Shutdown::Write).expect("ends");
    // Unread bytes make a reset of the end.
    assert_eq!((&ended).read(&mut [0]).unwrap_or_default(), 0);
}

#[test]
fn only_a_trusted_proxy_is_believed() {
    let mut rig = rig_behind(&["10.0.0.0/8", "::1"]);
    let (own, _) = client_behind(&mut rig, b"");
    assert_eq!(own, "127.0.0.1");
    let mut socket = open(&rig);
    socket.write_all(&[V1, Client::HANDSHAKE.as_bytes()].concat()).expect("sends");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(rig.engine.stats().proxy_header_refused_count, 0);
}

#[test]
fn node_is_told_who_the_client_of_a_plain_request_is() {
    let mut rig = rig_behind(&["127.0.0.1"]);
    let mut socket = open(&rig);
    socket.write_all(&[V1, b"GET /health HTTP/1.1\r\n\r\n"].concat()).expect("sends");
    let Told::Http(token, read) = rig.next() else { panic!("not a request") };
    assert_eq!(read, b"GET /health HTTP/1.1\r\n\r\n");
    assert_eq!(rig.http_peers, [("192.0.2.1".to_owned(), 56_324)]);
    let mut of_node = TcpStream::from(rig.engine.take_socket(token).expect("a socket"));
    of_node.set_nonblocking(false).expect("blocks");
    of_node.write_all(b"ok").expect("sends");
    drop(of_node);
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert_eq!(answer, "ok");
}
