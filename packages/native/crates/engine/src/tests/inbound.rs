//! What connections send: how much of one is read, when it is not read, and what may be late.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use webmq_websocket::{Opcode, encode_masked_frame};

use super::client::{Client, Received};
use super::rig::{Rig, Told};
use crate::tests::packer::Packer;
use crate::{Drained, Options};

const MAX_UNREAD_BYTES: usize = 64 << 10;

fn frames(opcode: Opcode, payloads: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut frames = Vec::new();
    for payload in payloads {
        encode_masked_frame(opcode, &payload, [9, 8, 7, 6], &mut frames);
    }
    frames
}

/// Sends bytes from a thread, however long that takes.
fn send_all(client: &Client, bytes: Vec<u8>) -> std::thread::JoinHandle<()> {
    let mut socket = client.socket.try_clone().expect("a second handle");
    std::thread::spawn(move || socket.write_all(&bytes).expect("sends"))
}

/// Waits until nothing more is read.
fn until_still(rig: &Rig) {
    let mut before = 0;
    rig.until(|engine| {
        std::thread::sleep(Duration::from_millis(50));
        let received = engine.stats().received_byte_count;
        std::mem::replace(&mut before, received) == received
    });
}

#[test]
fn the_events_of_others_wait_behind_64_kib_of_one_connection_at_most() {
    // Symptom: a ping waited behind 2 MiB of a connection that floods. Cause: a shard read whatever its sockets had, up to
    // 8 MiB.
    for message_bytes in [0, 1, 100, 5_000] {
        let count = (1 << 20) / (message_bytes + 16);
        let mut rig = Rig::start(Options::default());
        let (flooder, flooding) = rig.connect();
        let (mut other, id) = rig.connect();
        let sender = send_all(&flooder, frames(Opcode::Binary, (0..count).map(|_| vec![b'f'; message_bytes])));
        rig.until(|engine| engine.stats().received_byte_count > 0);
        until_still(&rig);
        let before = rig.engine.stats().received_byte_count;
        other.send(Opcode::Text, b"hello");
        rig.until(|engine| engine.stats().received_byte_count > before);
        let (mut before_bytes, mut told_count) = (0, 0);
        loop {
            match rig.next() {
                Told::Message(from, data) if from == flooding => {
                    (before_bytes, told_count) = (before_bytes + 16 + data.len(), told_count + 1);
                }
                told => {
                    assert_eq!(told, Told::Message(id, b"hello".to_vec()));
                    break;
                }
            }
        }
        assert!(before_bytes < MAX_UNREAD_BYTES + 16 + message_bytes, "{before_bytes} bytes came before");
        for _ in told_count..count {
            assert_eq!(rig.next(), Told::Message(flooding, vec![b'f'; message_bytes]));
        }
        sender.join().expect("sent");
        assert_eq!(rig.engine.stats().partial_bytes, 0);
    }
}

#[test]
fn who_sends_little_goes_in_front_of_what_others_have_sent_and_keeps_its_order() {
    // Symptom: a ping waited behind 2 MiB of the floods of many connections, read from a buffer of events bit by bit.
    let mut rig = Rig::start(Options { shards: 1, ..Options::default() });
    let (flooder, flooding) = rig.connect();
    let (mut other, id) = rig.connect();
    let sender = send_all(&flooder, frames(Opcode::Binary, (0..200_u8).map(|number| vec![number; 5_000])));
    rig.until(|engine| engine.stats().received_byte_count > 0);
    until_still(&rig);
    let mut until_read = |message: &[u8]| {
        let before = rig.engine.stats().received_message_count;
        other.send(Opcode::Text, message);
        rig.until(|engine| engine.stats().received_message_count > before);
    };
    until_read(b"zeroth");
    // JavaScript takes that and some of the flood, and has handled neither.
    let mut part = vec![0; 50_000];
    let Drained::Bytes(taken @ 1..) = rig.engine.drain(&mut part) else { panic!("no events") };
    let zeroth_bytes = 16 + 4 + 6;
    let mut front = vec![0; 1 << 16];
    assert_eq!(rig.engine.drain_front(&mut front, zeroth_bytes), 0);
    until_read(b"first");
    until_read(b"second");
    // Symptom: they were handled before the zeroth, which JavaScript had taken with the flood.
    assert_eq!(rig.engine.drain_front(&mut front, zeroth_bytes - 1), 0);
    let count = rig.engine.drain_front(&mut front, zeroth_bytes);
    // More than its share of the front waits with the rest, and so does all that follows.
    until_read(&[b'3'; 5_000]);
    until_read(b"fourth");
    assert_eq!(rig.engine.drain_front(&mut [0; 1 << 16], zeroth_bytes), 0);
    rig.read(&part[..zeroth_bytes]);
    assert_eq!(rig.next(), Told::Message(id, b"zeroth".to_vec()));
    rig.read(&front[..count]);
    assert_eq!(rig.next(), Told::Message(id, b"first".to_vec()));
    assert_eq!(rig.next(), Told::Message(id, b"second".to_vec()));
    rig.read(&part[zeroth_bytes..taken]);
    let mut from_flood = 0;
    let mut from_other = Vec::new();
    while from_flood < 200 || from_other.len() < 2 {
        match rig.next() {
            Told::Message(from, data) if from == flooding => {
                assert_eq!(data, vec![from_flood; 5_000]);
                from_flood += 1;
            }
            told => from_other.push(told),
        }
    }
    assert_eq!(from_other, [Told::Message(id, vec![b'3'; 5_000]), Told::Message(id, b"fourth".to_vec())]);
    sender.join().expect("sent");
}

#[test]
fn a_shard_is_not_run_inline_while_events_are_to_be_handled() {
    // Symptom: messages of a connection were handled before earlier ones, which the event loop had taken and not finished.
    let mut rig = Rig::start(Options { shards: 1, ..Options::default() });
    rig.engine.enable_inline();
    let (mut client, id) = rig.connect();
    rig.until_inline();
    client.send(Opcode::Text, b"first");
    rig.until(|engine| engine.inline_turn(0));
    let mut events = vec![0; 1 << 10];
    let Drained::Bytes(taken @ 1..) = rig.engine.drain(&mut events) else { panic!("no events") };
    client.send(Opcode::Text, b"second");
    std::thread::sleep(Duration::from_millis(20));
    assert!(!rig.engine.inline_turn(0));
    assert!(!rig.engine.is_inline(0));
    std::thread::sleep(Duration::from_millis(200));
    assert!(!rig.engine.is_inline(0));
    rig.read(&events[..taken]);
    assert_eq!(rig.next(), Told::Message(id, b"first".to_vec()));
    assert_eq!(rig.next(), Told::Message(id, b"second".to_vec()));
    rig.until_inline();
}

#[test]
fn a_message_that_is_larger_than_the_room_arrives() {
    let mut rig = Rig::start(Options::default());
    let (client, id) = rig.connect();
    let messages: Vec<_> = (0..20_u8).map(|number| vec![number; 200_000]).collect();
    let sender = send_all(&client, frames(Opcode::Binary, messages.clone()));
    for message in messages {
        assert_eq!(rig.next(), Told::Message(id, message));
    }
    sender.join().expect("sent");
}

#[test]
fn a_paused_connection_is_not_read_from_and_still_gets_frames() {
    let mut rig = Rig::start(Options::default());
    let (mut client, id) = rig.connect();
    let (mut other, other_id) = rig.connect();
    rig.submit(|packer| {
        packer.pause(id).pause(id);
    });
    client.send(Opcode::Text, b"first");
    client.send(Opcode::Ping, b"p");
    other.send(Opcode::Text, b"of another");
    assert_eq!(rig.next(), Told::Message(other_id, b"of another".to_vec()));
    rig.submit(|packer| {
        packer.send(id, b"down");
    });
    assert_eq!(client.message(), b"down", "and no pong");
    rig.submit(|packer| {
        packer.resume(id).resume(id);
    });
    assert_eq!(rig.next(), Told::Message(id, b"first".to_vec()));
    assert_eq!(client.pong(), b"p");
    client.send(Opcode::Text, b"second");
    assert_eq!(rig.next(), Told::Message(id, b"second".to_vec()));
}

#[test]
fn a_paused_connection_keeps_what_it_sends_in_its_socket() {
    let mut rig = Rig::start(Options::default());
    let (client, id) = rig.connect();
    rig.submit(|packer| {
        packer.pause(id);
    });
    let messages: Vec<_> = (0..2_000_u32).map(|number| number.to_le_bytes().repeat(500)).collect();
    let sender = send_all(&client, frames(Opcode::Binary, messages.clone()));
    until_still(&rig);
    assert_eq!(rig.engine.stats().received_byte_count, 0);
    // Paused again and again, it loses nothing.
    for message in messages {
        rig.submit(|packer| {
            packer.resume(id);
        });
        assert_eq!(rig.next(), Told::Message(id, message));
        rig.submit(|packer| {
            packer.pause(id);
        });
    }
    sender.join().expect("sent");
}

#[test]
fn a_paused_connection_is_pinged_and_not_dropped_though_its_pong_is_not_read() {
    let (ping_interval, ping_timeout) = (Duration::from_millis(50), Duration::from_millis(100));
    let mut rig = Rig::start(Options { ping_interval, ping_timeout, ..Options::default() });
    let (mut client, id) = rig.connect();
    assert_eq!(client.receive(), Received::Ping);
    rig.submit(|packer| {
        packer.pause(id);
    });
    for _ in 0..10 {
        client.send(Opcode::Pong, b"");
        assert_eq!(client.receive(), Received::Ping);
    }
    assert_eq!(rig.engine.stats().connections, 1);
    rig.submit(|packer| {
        packer.resume(id);
    });
    // From here on it is dropped as any other that does not answer.
    assert_eq!(rig.next(), Told::Closed(id, 4003, "E_HEARTBEAT_TIMEOUT".to_owned()));
}

#[test]
fn the_end_of_a_paused_connection_is_noticed() {
    let mut rig = Rig::start(Options::default());
    // A peer that ends its side is noticed when its messages were read.
    let (mut client, id) = rig.connect();
    rig.submit(|packer| {
        packer.pause(id);
    });
    client.send(Opcode::Text, b"last");
    client.socket.shutdown(std::net::Shutdown::Write).expect("a socket");
    until_still(&rig);
    assert_eq!(rig.engine.stats().connections, 1);
    rig.submit(|packer| {
        packer.resume(id);
    });
    assert_eq!(rig.next(), Told::Message(id, b"last".to_vec()));
    assert_eq!(rig.next(), Told::Closed(id, 1006, String::new()));
    // One that is gone is noticed by a write.
    let (client, id) = rig.connect();
    rig.submit(|packer| {
        packer.pause(id);
    });
    drop(client);
    rig.submit(|packer| {
        packer.send(id, b"anybody?");
    });
    assert_eq!(rig.next(), Told::Closed(id, 1006, String::new()));
}

#[test]
fn a_paused_connection_that_is_closed_by_us_is_read_on_for_the_close_frame() {
    let mut rig = Rig::start(Options::default());
    let (mut client, id) = rig.connect();
    rig.submit(|packer| {
        packer.pause(id);
    });
    client.send(Opcode::Text, b"not read");
    until_still(&rig);
    rig.submit(|packer| {
        packer.close(id, 4001, "enough");
    });
    assert_eq!(client.receive(), Received::Close(Some(4001), "enough".to_owned()));
    client.send(Opcode::Close, b"\x0f\xa1");
    assert_eq!(rig.next(), Told::Closed(id, 4001, String::new()));
}

#[test]
fn a_message_that_takes_too_long_ends_its_connection() {
    // Symptom: one byte every 35 s kept a partly sent message and its memory for ever. Cause: every byte counted as a sign of
    // life, and nothing measured the message.
    let message_timeout = Duration::from_millis(600);
    let mut rig = Rig::start(Options { message_timeout, ..Options::default() });
    let drips: [&[u8]; 3] = [&[0x82, 0xfe, 0xff, 0xff], &[0x02, 0x80, 0, 0, 0, 0], &[0x89]];
    for drip in drips {
        let (mut client, id) = rig.connect();
        let began = Instant::now();
        client.socket.write_all(drip).expect("sends");
        // Empty fragments, or bytes of the message: it does not end.
        let more: &[u8] = if drip.len() == 6 { &[0x00, 0x80, 0, 0, 0, 0] } else { &[0] };
        while began.elapsed() < Duration::from_millis(200) {
            let sent = client.socket.write_all(if drip.len() == 1 { &[] } else { more });
            sent.expect("sends");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(rig.next(), Told::Closed(id, 4004, "E_MESSAGE_TIMEOUT".to_owned()));
        // A shard reads its clock once a turn: what it times may have begun as much later as the turn was long.
        assert!(began.elapsed() >= message_timeout / 2);
        assert_eq!(client.receive(), Received::Close(Some(4004), "E_MESSAGE_TIMEOUT".to_owned()));
    }
    rig.until(|engine| engine.stats().partial_bytes == 0);
}

#[test]
fn a_large_message_of_a_slow_client_arrives_and_so_do_many_messages_without_a_break_between_them() {
    let mut rig = Rig::start(Options { message_timeout: Duration::from_millis(2_500), ..Options::default() });
    let (mut client, id) = rig.connect();
    let message = vec![7; 256 << 10];
    // 200 kB/s
    for piece in frames(Opcode::Binary, [message.clone()]).chunks(20_000) {
        client.socket.write_all(piece).expect("sends");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(rig.next(), Told::Message(id, message));

    let (mut client, id) = rig.connect();
    let began = Instant::now();
    let all = frames(Opcode::Binary, (0..100_u8).map(|number| vec![number; 100]));
    // Every piece ends inside a message.
    for piece in all.chunks(107) {
        client.socket.write_all(piece).expect("sends");
        std::thread::sleep(Duration::from_millis(30));
    }
    assert!(began.elapsed() > Duration::from_millis(2_500));
    (0..100_u8).for_each(|number| assert_eq!(rig.next(), Told::Message(id, vec![number; 100])));
}

#[test]
fn the_time_of_a_message_does_not_pass_while_nothing_is_read() {
    let mut rig = Rig::start(Options { message_timeout: Duration::from_secs(2), ..Options::default() });
    let (mut client, id) = rig.connect();
    let all = frames(Opcode::Text, [b"in two parts".to_vec()]);
    client.socket.write_all(&all[..8]).expect("sends");
    until_still(&rig);
    rig.submit(|packer| {
        packer.pause(id);
    });
    client.socket.write_all(&all[8..]).expect("sends");
    std::thread::sleep(Duration::from_secs(3));
    rig.submit(|packer| {
        packer.resume(id);
    });
    assert_eq!(rig.next(), Told::Message(id, b"in two parts".to_vec()));
}

#[test]
fn a_flood_of_pings_is_answered_by_few_pongs_the_last_of_them_to_the_last_ping() {
    const PINGS: u32 = 100_000;
    let mut rig = Rig::start(Options::default());
    let (mut client, _) = rig.connect();
    let all = frames(Opcode::Ping, (0..PINGS).map(|number| number.to_le_bytes().to_vec()));
    let sender = send_all(&client, all);
    let mut count = 0;
    loop {
        let pong = client.pong();
        count += 1;
        if pong == (PINGS - 1).to_le_bytes() {
            break;
        }
    }
    assert!(count < PINGS / 10, "{count} pongs");
    sender.join().expect("sent");
}

#[test]
fn who_pings_and_never_reads_ends_as_a_slow_consumer() {
    let mut rig = Rig::start(Options { max_outbox_bytes: 10_000, ..Options::default() });
    let (client, id) = rig.connect();
    let mut socket = client.socket.try_clone().expect("a second handle");
    let pings = frames(Opcode::Ping, (0..10_000).map(|_| vec![b'p'; 125]));
    let sender = std::thread::spawn(move || while socket.write_all(&pings).is_ok() {});
    assert_eq!(rig.next(), Told::Closed(id, 4008, "E_SLOW_CONSUMER".to_owned()));
    assert!(rig.engine.stats().outbox_bytes < 100_000);
    drop(client);
    sender.join().expect("ends");
}

#[test]
fn a_head_that_drips_is_refused_in_time_whatever_it_sends() {
    let handshake_timeout = Duration::from_millis(400);
    let rig = Rig::start(Options { handshake_timeout, ..Options::default() });
    let mut client = std::net::TcpStream::connect(rig.address).expect("connects");
    let began = Instant::now();
    let mut head = Client::HANDSHAKE.as_bytes().iter().cycle();
    let mut line = b"GET / HTTP/1.1\r\nX: ".iter();
    while began.elapsed() < Duration::from_millis(300) {
        let byte = line.next().unwrap_or_else(|| head.find(|byte| byte.is_ascii_alphabetic()).expect("endless"));
        client.write_all(&[*byte]).expect("sends");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(began.elapsed() < Duration::from_secs(2));
    rig.until(|engine| engine.stats().partial_bytes == 0);
}

#[test]
fn a_head_in_any_pieces_is_read_as_in_one() {
    let mut rig = Rig::start(Options::default());
    let mut sockets = Vec::new();
    for size in [1, 2, 7, 50] {
        let mut socket = std::net::TcpStream::connect(rig.address).expect("connects");
        socket.set_nodelay(true).expect("a socket");
        for piece in Client::HANDSHAKE.as_bytes().chunks(size) {
            socket.write_all(piece).expect("sends");
            std::thread::sleep(Duration::from_millis(1));
        }
        rig.accept_next();
        let mut answer = [0; 12];
        socket.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 101");
        sockets.push(socket);
        let mut socket = std::net::TcpStream::connect(rig.address).expect("connects");
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(8_180));
        for piece in long.as_bytes().chunks(size * 100) {
            socket.write_all(piece).expect("sends");
        }
        socket.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 431");
    }
}

#[test]
fn what_comes_before_the_decision_is_read_after_it_also_by_who_has_the_slot_of_another() {
    // Symptom: what a client had sent before the answer to its handshake was thrown away. Cause: the connection that had its
    // slot before was held when it went, and the entry, when its time came, stood for the new one.
    let mut rig = Rig::start(Options::default());
    let (flooder, flooding) = rig.connect();
    let sender = send_all(&flooder, frames(Opcode::Binary, vec![vec![1; 5_000]; 50]));
    rig.until(|engine| engine.stats().received_byte_count > 0);
    until_still(&rig);
    sender.join().expect("sent");
    drop(flooder);
    let mut packer = Packer::default();
    packer.send(flooding, b"nobody reads this");
    rig.until(|engine| {
        engine.submit(&packer.0).expect("well packed");
        engine.stats().connections == 0
    });

    let mut client = Client::begin(rig.address);
    std::thread::sleep(Duration::from_millis(100));
    client.send(Opcode::Text, b"early");
    std::thread::sleep(Duration::from_millis(100));
    // JavaScript takes the events of the flood, and those of the new connection.
    let id = loop {
        if let Told::Upgrade(id) = rig.next() {
            break id;
        }
    };
    std::thread::sleep(Duration::from_millis(100));
    rig.submit(|packer| {
        packer.accept(id, None);
    });
    assert_eq!(rig.next(), Told::Message(id, b"early".to_vec()));
}
