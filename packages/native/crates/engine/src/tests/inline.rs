use std::io::{Read, Write};
use std::time::{Duration, Instant};

use webmq_websocket::{Opcode, encode_masked_frame};

use super::client::{Client, Received};
use super::rig::{AnyRig, Told};
use crate::Options;

type Rig = AnyRig<true>;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[test]
fn an_idle_shard_is_lent_and_answers_without_its_thread() {
    let mut rig = Rig::start(Options { shards: 2, ..Options::default() });
    let (mut client, id) = rig.connect();
    rig.until_inline();
    for number in 0..100_u8 {
        client.send(Opcode::Binary, &[number]);
        assert_eq!(rig.next(), Told::Message(id, vec![number]));
        rig.submit(|packer| {
            packer.send(id, &[number]);
        });
        // Written before `submit` has returned.
        client.socket.set_nonblocking(true).expect("a socket");
        assert_eq!(client.message(), [number]);
        client.socket.set_nonblocking(false).expect("a socket");
    }
    assert!((0..2).all(|shard| rig.engine.is_inline(shard)));
}

#[test]
fn a_deadline_before_the_one_that_the_shards_thread_sleeps_for_is_kept() {
    let (close_timeout, long) = (Duration::from_millis(200), Duration::from_secs(600));
    let options = Options { close_timeout, handshake_timeout: long, ping_interval: long, ..Options::default() };
    let mut rig = Rig::start(options);
    let (mut client, id) = rig.connect();
    rig.until_inline();
    // Once it has looked after the last message, the thread sleeps for minutes.
    std::thread::sleep(Duration::from_millis(500));
    rig.submit(|packer| {
        packer.close(id, 4000, "");
    });
    // The event loop has nothing to do, and the client does not answer the close.
    client.socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a time");
    let mut rest = Vec::new();
    client.socket.read_to_end(&mut rest).expect("the end of the connection");
    assert_eq!(rest, [0x88, 2, 0x0f, 0xa0]);
}

#[test]
fn a_peer_that_hangs_up_right_behind_its_last_message_is_noticed() {
    // Symptom: such a connection stayed open until it was pinged. Cause: the poller says both at once, and only once, and one read
    // gets the message alone.
    let mut rig = Rig::start(Options::default());
    let (mut client, id) = rig.connect();
    rig.until_inline();
    client.send(Opcode::Text, b"bye");
    drop(client);
    assert_eq!(rig.next(), Told::Message(id, b"bye".to_vec()));
    assert_eq!(rig.next(), Told::Closed(id, 1006, String::new()));
}

#[test]
fn a_multicast_to_many_is_written_by_the_shards_thread() {
    let mut rig = Rig::start(Options::default());
    let mut clients: Vec<_> = (0..50).map(|_| rig.connect()).collect();
    rig.submit(|packer| {
        for (_, id) in &clients {
            packer.join(*id, 1);
        }
    });
    rig.until_inline();
    rig.submit(|packer| {
        packer.multicast(&[1], b"to all", None);
    });
    assert!(!rig.engine.is_inline(0));
    for (client, _) in &mut clients {
        assert_eq!(client.message(), b"to all");
    }
    // It comes back when it is quiet again.
    rig.until_inline();
}

#[test]
fn a_shard_that_needs_no_javascript_returns_to_its_thread() {
    let mut rig = Rig::start(Options::default());
    let (mut client, id) = rig.connect();
    client.send(Opcode::Text, b"time?");
    assert_eq!(rig.next(), Told::Message(id, b"time?".to_vec()));
    rig.submit(|packer| {
        packer.answer(b"time?", b"noon", u16::MAX).send(id, b"noon");
    });
    rig.drain();
    assert_eq!(client.message(), b"noon");
    rig.until_inline();
    for number in 1..=8 {
        client.send(Opcode::Text, b"time?");
        rig.until(|engine| engine.stats().answered_message_count == number);
        assert_eq!(client.message(), b"noon");
    }
    rig.until(|engine| !engine.is_inline(0));
    // One message for JavaScript lets it go inline again.
    client.send(Opcode::Text, b"else");
    assert_eq!(rig.next(), Told::Message(id, b"else".to_vec()));
    rig.until_inline();
}

#[test]
fn the_shards_thread_stands_in_for_a_blocked_event_loop() {
    let (ping_interval, ping_timeout) = (Duration::from_millis(500), Duration::from_secs(5));
    let mut rig = Rig::start(Options { ping_interval, ping_timeout, ..Options::default() });
    let (mut client, _) = rig.connect();
    let (mut silent, _) = rig.connect();
    rig.until_inline();
    // No inline turn from here on: pings are still answered and sent, and messages wait for a drain.
    for number in 0..20_u8 {
        let began = Instant::now();
        client.send(Opcode::Binary, b"up");
        client.send(Opcode::Ping, &[number]);
        assert_eq!(client.pong(), [number]);
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
    assert_eq!(silent.receive(), Received::Ping);
    let ups = (0..20).filter(|_| matches!(rig.next(), Told::Message(_, up) if up == b"up"));
    assert_eq!(ups.count(), 20);
}

#[test]
fn a_panic_in_an_inline_turn_is_reported_and_the_shard_starts_again() {
    let mut rig = Rig::start(Options::default());
    let (mut client, id) = rig.connect();
    rig.until_inline();
    rig.engine.panic_inline_turn();
    client.send(Opcode::Text, b"boom");
    let failure = "an I/O thread panicked: as the test wishes; it is started again";
    assert_eq!(rig.next(), Told::Failed(failure.to_owned()));
    assert_eq!(rig.next(), Told::Closed(id, 4011, "E_INTERNAL".to_owned()));
    assert_eq!(client.receive(), Received::End);
    let (mut client, id) = rig.connect();
    rig.until_inline();
    client.send(Opcode::Text, b"again");
    assert_eq!(rig.next(), Told::Message(id, b"again".to_vec()));
}

#[test]
fn a_shard_that_changes_hands_all_the_time_loses_doubles_and_reorders_nothing() {
    const CLIENTS: usize = 6;
    const MESSAGES: u32 = 8_000;
    let mut rig = Rig::start(Options { shards: 2, ..Options::default() });
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| rig.connect()).collect();
    rig.submit(|packer| {
        for (_, id) in &clients {
            packer.join(*id, 1);
        }
    });
    let ids: Vec<f64> = clients.iter().map(|(_, id)| *id).collect();
    // Each client sends numbers, in portions and with pauses, and checks what comes: its own numbers in order, and the
    // multicasts in order.
    let peers: Vec<_> = clients
        .drain(..)
        .zip(1_u64..)
        .map(|((client, _), seed)| std::thread::spawn(move || exchange(client, MESSAGES, seed)))
        .collect();
    let (mut dice, mut next, mut multicasts) = (Dice(99), [0; CLIENTS], 0_u32);
    let (mut inline_count, mut was_inline, began) = (0, false, Instant::now());
    while next.iter().any(|number| *number < MESSAGES) {
        // A fifth of a second in which it can be inline, a tenth with everything that takes it back.
        let is_calm = began.elapsed().as_millis() % 300 < 200;
        match dice.below(if is_calm { 2_000 } else { 200 }) {
            0 => std::thread::sleep(Duration::from_millis(dice.below(120))),
            1 => rig.engine.take_back(dice.below(2) as usize),
            2..5 => rig.submit(|packer| {
                for _ in 0..dice.below(40) {
                    packer.multicast(&[1], &multicast(multicasts), None);
                    multicasts += 1;
                }
            }),
            _ => {}
        }
        let is_inline = rig.engine.is_inline(0);
        inline_count += u32::from(is_inline && !was_inline);
        was_inline = is_inline;
        if let Told::Message(id, number) = rig.next() {
            let index = ids.iter().position(|known| *known == id).expect("a known client");
            assert_eq!(number, next[index].to_le_bytes());
            next[index] += 1;
            rig.submit(|packer| {
                packer.send(id, &number);
            });
        }
    }
    let last = multicast(u32::MAX);
    rig.submit(|packer| {
        packer.multicast(&[1], &last, None);
    });
    for peer in peers {
        assert_eq!(peer.join().expect("nothing is lost"), multicasts);
    }
    assert!(inline_count >= 3, "it was inline {inline_count} times");
}

fn multicast(number: u32) -> Vec<u8> {
    format!("multicast {number}").into_bytes()
}

/// Sends numbers and checks that they come back in order, among multicasts in order; returns how many of those there were.
fn exchange(mut client: Client, messages: u32, seed: u64) -> u32 {
    let mut dice = Dice(seed);
    let (mut sent, mut answered, mut multicasts) = (0_u32, 0_u32, 0_u32);
    loop {
        let portion = if dice.below(20) == 0 { 30 } else { 1 };
        let mut frames = Vec::new();
        while sent < messages && sent < answered + portion {
            encode_masked_frame(Opcode::Binary, &sent.to_le_bytes(), [5, 6, 7, 8], &mut frames);
            sent += 1;
        }
        client.socket.write_all(&frames).expect("sends");
        match client.message().as_slice() {
            number @ [_, _, _, _] => {
                assert_eq!(number, answered.to_le_bytes());
                answered += 1;
            }
            last if last == multicast(u32::MAX) => return multicasts,
            next => {
                assert_eq!(next, multicast(multicasts));
                multicasts += 1;
            }
        }
        if dice.below(300) == 0 {
            std::thread::sleep(Duration::from_millis(dice.below(40)));
        }
    }
}
