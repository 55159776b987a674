use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use webmq_websocket::Opcode;

use super::client::{Client, Received};
use super::rig::{Rig, Told};
use crate::Options;
use crate::shared::MAX_NEWCOMERS;

#[test]
fn messages_go_both_ways() {
    let mut rig = Rig::start(Options::default());
    let (mut client, id) = rig.connect();
    client.send(Opcode::Text, b"up");
    assert_eq!(rig.next(), Told::Message(id, b"up".to_vec()));
    rig.submit(|packer| {
        packer.send(id, b"down").send(id, &[7; 100_000]);
    });
    assert_eq!(client.message(), b"down");
    assert_eq!(client.message(), [7; 100_000]);
    client.send(Opcode::Close, b"\x0f\xa1bye");
    assert_eq!(client.receive(), Received::Close(Some(4001), "bye".to_owned()));
    assert_eq!(client.receive(), Received::End);
    assert_eq!(rig.next(), Told::Closed(id, 4001, "bye".to_owned()));
}

#[test]
fn an_upgrade_is_refused_with_what_javascript_says() {
    let mut rig = Rig::start(Options::default());
    let mut client = Client::begin(rig.address);
    let Told::Upgrade(id) = rig.next() else { panic!("not an upgrade") };
    rig.submit(|packer| {
        packer.reject(id, 403, "no");
    });
    let mut answer = String::new();
    client.socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n") && answer.ends_with("\r\n\r\nno"), "{answer}");
}

#[test]
fn every_upgrade_that_is_not_refused_by_javascript_is_told_an_end_once() {
    let handshake_timeout = Duration::from_millis(100);
    let mut rig = Rig::start(Options { handshake_timeout, ..Options::default() });
    let mut late = Client::begin(rig.address);
    let Told::Upgrade(id) = rig.next() else { panic!("not an upgrade") };
    assert_eq!(rig.next(), Told::Closed(id, 1006, String::new()), "nobody decided in time");
    let mut answer = String::new();
    late.socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");

    let gone = Client::begin(rig.address);
    let Told::Upgrade(gone_id) = rig.next() else { panic!("not an upgrade") };
    drop(gone);
    assert_eq!(rig.next(), Told::Closed(gone_id, 1006, String::new()), "the client left");

    let mut refused = Client::begin(rig.address);
    let Told::Upgrade(refused_id) = rig.next() else { panic!("not an upgrade") };
    rig.submit(|packer| {
        // What JavaScript decides too late means nothing.
        packer.accept(id, None).accept(gone_id, None).send(gone_id, b"welcome").reject(refused_id, 403, "no");
    });
    refused.socket.read_to_string(&mut String::new()).expect("an answer");
    let (_client, open_id) = rig.connect();
    rig.engine.close();
    assert_eq!(rig.next(), Told::Closed(open_id, 1006, String::new()), "and nothing of the others");
    assert_eq!((rig.engine.stats().accepted_count, rig.engine.stats().closed_count), (1, 1));
}

#[test]
fn who_leaves_a_group_or_is_told_to_close_gets_nothing_more_of_it() {
    let mut rig = Rig::start(Options::default());
    let (mut client, id) = rig.connect();
    rig.submit(|packer| {
        packer.join(id, 1).multicast(&[1], b"in", None).leave(id, 1).multicast(&[1], b"out", None);
        packer.join(id, 1).close(id, 4001, "enough").multicast(&[1], b"after", None);
    });
    assert_eq!(client.message(), b"in");
    assert_eq!(client.receive(), Received::Close(Some(4001), "enough".to_owned()));
    client.send(Opcode::Close, b"\x0f\xa1");
    assert_eq!(rig.next(), Told::Closed(id, 4001, String::new()));
    assert_eq!(client.receive(), Received::End);
}

#[test]
fn frames_that_come_with_the_handshake_are_not_lost() {
    let mut rig = Rig::start(Options::default());
    let mut client = Client::begin(rig.address);
    client.send(Opcode::Text, b"early");
    let id = rig.accept_next();
    assert_eq!(rig.next(), Told::Message(id, b"early".to_vec()));
}

#[test]
fn connections_are_dealt_out_evenly() {
    let mut rig = Rig::start(Options { shards: 3, ..Options::default() });
    let clients: Vec<_> = (0..30).map(|_| rig.connect()).collect();
    rig.until(|engine| engine.stats().connections == 30);
    assert_eq!(rig.engine.connections_per_shard(), [10, 10, 10]);
    let ids: BTreeSet<u64> = clients.iter().map(|(_, id)| *id as u64).collect();
    assert_eq!(ids.len(), 30);
}

#[test]
fn each_of_many_connections_in_ten_groups_of_its_own_choice_gets_a_multicast_once() {
    const CONNECTIONS: u32 = 300;
    let mut rig = Rig::start(Options { shards: 2, ..Options::default() });
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| rig.connect()).collect();
    rig.submit(|packer| {
        for (index, (_, id)) in (0_u32..).zip(&clients) {
            // No two have the same set; every set meets the multicast's groups several times.
            for group in 0..9 {
                packer.join(*id, (index * 7 + group) % 50);
            }
            packer.join(*id, 1_000 + index);
        }
    });
    let all: Vec<u32> = (0..50).collect();
    rig.submit(|packer| {
        for number in 0..20 {
            packer.multicast(&all, &[b'0' + number], None);
        }
        for (_, id) in &clients {
            packer.send(*id, b"end");
        }
    });
    for (client, _) in &mut clients {
        (0..20_u8).for_each(|number| assert_eq!(client.message(), [b'0' + number]));
        assert_eq!(client.message(), b"end");
    }
    // Counted when the turn ends, which the clients need not wait for.
    rig.until(|engine| engine.stats().delivered_count == u64::from(CONNECTIONS) * 21);
    rig.until(|engine| engine.stats().outbox_bytes == 0);
}

#[test]
fn a_complete_request_is_served_while_somebody_holds_any_number_of_sockets_without_one() {
    // Symptom: /health failed while a stranger held sockets. Cause: newcomers were dropped until the old ones timed out.
    let mut rig = Rig::start(Options { max_connections: 10, hands_http_over: true, ..Options::default() });
    let hold = |count: usize| -> Vec<TcpStream> {
        (0..count).map(|_| TcpStream::connect(rig.address).expect("connects")).collect()
    };
    let mut held = hold(500);
    held.iter_mut().take(250).for_each(|socket| drop(socket.write_all(b"GET / HTTP/1.1\r\n")));
    let address = rig.address;
    for _ in 0..10 {
        let mut probe = TcpStream::connect(address).expect("connects");
        probe.write_all(b"GET /health HTTP/1.1\r\n\r\n").expect("sends");
        let Told::Http(token, _) = rig.next() else { panic!("not a request") };
        assert!(rig.engine.take_socket(token).is_some());
        let (client, id) = rig.connect();
        drop(client);
        assert_eq!(rig.next(), Told::Closed(id, 1006, String::new()));
    }
}

#[test]
fn requests_that_nobody_takes_give_way_too() {
    let mut rig = Rig::start(Options { max_connections: 10, hands_http_over: true, ..Options::default() });
    let _ignored: Vec<TcpStream> = (0..600)
        .map(|_| {
            let mut socket = TcpStream::connect(rig.address).expect("connects");
            socket.write_all(b"GET /ignored HTTP/1.1\r\n\r\n").expect("sends");
            socket
        })
        .collect();
    let mut tokens = Vec::new();
    while tokens.len() < 600 {
        let Told::Http(token, _) = rig.next() else { panic!("not a request") };
        tokens.push(token);
    }
    let mut probe = TcpStream::connect(rig.address).expect("connects");
    probe.write_all(b"GET /health HTTP/1.1\r\n\r\n").expect("sends");
    let Told::Http(token, _) = rig.next() else { panic!("not a request") };
    assert!(rig.engine.take_socket(token).is_some());
    let waiting = tokens.into_iter().filter(|token| rig.engine.take_socket(*token).is_some()).count();
    assert!((60..=266).contains(&waiting), "{waiting} sockets wait");
}

#[test]
fn a_plain_request_leaves_the_engine_with_everything_that_was_read() {
    let mut rig = Rig::start(Options { hands_http_over: true, ..Options::default() });
    let mut client = TcpStream::connect(rig.address).expect("connects");
    client.write_all(b"POST /x HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody").expect("sends");
    let Told::Http(token, read) = rig.next() else { panic!("not a request") };
    assert_eq!(read, b"POST /x HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody");
    let mut socket = TcpStream::from(rig.engine.take_socket(token).expect("a socket"));
    assert!(rig.engine.take_socket(token).is_none(), "a socket is taken once");
    rig.engine.close();
    socket.write_all(b"answer").expect("sends");
    drop(socket);
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    assert_eq!(answer, "answer");
}

#[test]
fn a_connection_of_somebody_else_is_taken_over() {
    let mut rig = Rig::start(Options::default());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut client = Client::begin(listener.local_addr().expect("an address"));
    let (mut socket, _) = listener.accept().expect("a connection");
    let mut head = vec![0; Client::HANDSHAKE.len()];
    socket.read_exact(&mut head).expect("a head");
    rig.engine.attach(socket.as_fd(), head).expect("taken over");
    drop(socket);
    let id = rig.accept_next();
    client.finish();
    rig.submit(|packer| {
        packer.send(id, b"taken over");
    });
    assert_eq!(client.message(), b"taken over");
}

#[test]
fn a_connection_of_somebody_else_is_told_when_there_is_no_room() {
    let mut rig = Rig::start(Options { max_connections: 1, ..Options::default() });
    let (_open, _) = rig.connect();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    // Refused ones stay for a while, as their peers do not close.
    let mut clients: Vec<Client> = (0..MAX_NEWCOMERS + 10)
        .map(|_| {
            let client = Client::begin(address);
            let (socket, _) = listener.accept().expect("a connection");
            rig.engine.attach(socket.as_fd(), Client::HANDSHAKE.as_bytes().to_vec()).expect("taken over");
            client
        })
        .collect();
    for client in &mut clients {
        let mut answer = [0; 12];
        client.socket.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 503");
    }
}

#[test]
fn a_peer_is_pinged_and_dropped_if_it_does_not_answer() {
    let (ping_interval, ping_timeout) = (Duration::from_millis(50), Duration::from_millis(100));
    let mut rig = Rig::start(Options { ping_interval, ping_timeout, ..Options::default() });
    let (mut client, id) = rig.connect();
    for _ in 0..3 {
        assert_eq!(client.receive(), Received::Ping);
        client.send(Opcode::Pong, b"");
    }
    assert_eq!(client.receive(), Received::Ping);
    assert_eq!(rig.next(), Told::Closed(id, 4003, "E_HEARTBEAT_TIMEOUT".to_owned()));
    assert_eq!(client.receive(), Received::Close(Some(4003), "E_HEARTBEAT_TIMEOUT".to_owned()));
    assert_eq!(client.receive(), Received::End);
}
