use std::io::{Read, Write};

use webmq_websocket::{Opcode, encode_masked_frame};

use super::rig::{Rig, Told};
use crate::fanout::OutboxLevel;
use crate::{Engine, Options};

#[test]
fn a_peer_that_does_not_read_is_ended_and_its_memory_is_freed() {
    const MAX_OUTBOX_BYTES: usize = 300_000;
    let mut rig = Rig::start(Options { max_outbox_bytes: MAX_OUTBOX_BYTES, ..Options::default() });
    let (_slow, slow) = rig.connect();
    let (mut reader, reading) = rig.connect();
    rig.submit(|packer| {
        packer.join(slow, 1).join(reading, 1);
    });
    let mut peak_bytes = 0;
    let mut count = 0_u32;
    while rig.engine.stats().slow_consumer_count == 0 {
        rig.submit(|packer| {
            packer.multicast(&[1], &[b'x'; 20_000], None);
        });
        assert_eq!(reader.message(), [b'x'; 20_000]);
        peak_bytes = peak_bytes.max(rig.engine.stats().outbox_bytes as usize);
        count += 1;
        assert!(count < 5_000, "the slow consumer was not found");
    }
    assert!(peak_bytes < MAX_OUTBOX_BYTES * 3 / 2, "{peak_bytes} bytes waited");
    assert_eq!(rig.next(), Told::Closed(slow, 4008, "E_SLOW_CONSUMER".to_owned()));
    // What is left is the rest of one frame and the close frame.
    rig.until(|engine| engine.stats().outbox_bytes < 21_000);
}

#[test]
fn a_burst_beyond_the_outbox_is_written_if_the_peer_reads_it() {
    let mut rig = Rig::start(Options { max_outbox_bytes: 4 << 20, ..Options::default() });
    let (mut client, id) = rig.connect();
    rig.submit(|packer| {
        for _ in 0..2_000 {
            packer.send(id, &[1; 1_000]);
        }
    });
    (0..2_000).for_each(|_| assert_eq!(client.message(), [1; 1_000]));
}

#[test]
fn a_shard_stops_to_read_when_nobody_drains_and_loses_nothing() {
    const MAX_INBOUND_BYTES: usize = 256 << 10;
    const MESSAGES: usize = 2_000;
    /// On the wire and among the events.
    const FRAME_BYTES: usize = 8 + 500;
    const EVENT_BYTES: usize = 4 + 500;
    let mut rig = Rig::start(Options { max_inbound_bytes: MAX_INBOUND_BYTES, ..Options::default() });
    let clients: Vec<_> = (0..10).map(|_| rig.connect()).collect();
    let senders: Vec<_> = clients
        .iter()
        .map(|(client, _)| {
            let mut socket = client.socket.try_clone().expect("a second handle");
            std::thread::spawn(move || {
                let mut frame = Vec::new();
                for number in 0..MESSAGES {
                    let mut payload = vec![b'.'; 500];
                    payload[..5].copy_from_slice(format!("{number:05}").as_bytes());
                    frame.clear();
                    encode_masked_frame(Opcode::Binary, &payload, [9, 8, 7, 6], &mut frame);
                    socket.write_all(&frame).expect("sends");
                }
            })
        })
        .collect();
    // Nobody drains: the events stay within the bound and one read.
    let mut before = 0;
    rig.until(|engine| engine.stats().received_byte_count as usize > MAX_INBOUND_BYTES / 2);
    loop {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let received = rig.engine.stats().received_byte_count;
        if received == before {
            break;
        }
        before = received;
    }
    let stats = rig.engine.stats();
    let message_count = stats.received_message_count as usize;
    assert!(message_count * EVENT_BYTES <= MAX_INBOUND_BYTES + (64 << 10), "{message_count} messages were read");
    // Beside them, each connection has part of a frame, and the end of a read that had no room: of 64 KiB, what the room counts
    // a message more than its frame has.
    let kept_bytes = before as usize - message_count * FRAME_BYTES;
    assert!(kept_bytes <= clients.len() * (FRAME_BYTES + (64 << 10) * 8 / FRAME_BYTES), "{kept_bytes} bytes were kept");
    let mut next = vec![0; clients.len()];
    for _ in 0..MESSAGES * clients.len() {
        match rig.next() {
            Told::Message(from, payload) => {
                let index = clients.iter().position(|(_, id)| *id == from).expect("a known client");
                assert_eq!(&payload[..5], format!("{:05}", next[index]).as_bytes());
                next[index] += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    senders.into_iter().for_each(|sender| sender.join().expect("sent"));
}

#[test]
fn many_small_cohorts_do_not_hold_a_burst_many_times() {
    let mut rig = Rig::start(Options { max_outbox_bytes: 64 << 20, ..Options::default() });
    let mut clients: Vec<_> = (0..50).map(|_| rig.connect()).collect();
    rig.submit(|packer| {
        for (index, (_, id)) in (0_u32..).zip(&clients) {
            packer.join(*id, 0).join(*id, 1 + index);
        }
    });
    // 50 cohorts, 100 large frames: referred to, not copied.
    let frame = vec![b'x'; 100_000];
    for _ in 0..100 {
        rig.submit(|packer| {
            packer.multicast(&[0], &frame, None);
        });
    }
    rig.until(|engine| engine.stats().delivered_count == 5_000);
    rig.until(|engine| engine.stats().outbox_bytes > 0);
    for (client, _) in &mut clients {
        let mut rest = 100 * (frame.len() + 10);
        let mut buffer = vec![0; 1 << 16];
        while rest > 0 {
            rest -= client.socket.read(&mut buffer).expect("bytes");
        }
    }
    rig.until(|engine| engine.stats().outbox_bytes == 0);
}

#[test]
fn publishers_wait_while_most_connections_do_not_read_and_are_woken_when_they_do() {
    let mut rig = Rig::start(Options { max_outbox_bytes: 64 << 20, ..Options::default() });
    let (mut client, id) = rig.connect();
    rig.submit(|packer| {
        packer.join(id, 1);
    });
    let mut count = 0;
    rig.until(|engine| {
        let mut packer = crate::tests::packer::Packer::default();
        packer.multicast(&[1], &[b'x'; 100_000], None);
        count += 1;
        !engine.submit(&packer.0).expect("well packed") && engine.stats().outbox_bytes > 17 << 20
    });
    assert!(!rig.engine.is_writable());
    for _ in 0..count {
        assert_eq!(client.message(), [b'x'; 100_000]);
    }
    rig.until(Engine::is_writable);
    rig.wait_for_wake();
}

#[test]
fn publishers_wait_once_for_a_slow_reader_among_many_and_then_go_on() {
    let mut rig = Rig::start(Options { max_outbox_bytes: 8 << 20, ..Options::default() });
    let mut clients: Vec<_> = (0..4).map(|_| rig.connect()).collect();
    clients.iter().for_each(|(_, id)| {
        rig.submit(|packer| {
            packer.join(*id, 1);
        });
    });
    let mut wait_count = 0;
    while rig.engine.stats().slow_consumer_count == 0 {
        let mut packer = crate::tests::packer::Packer::default();
        packer.multicast(&[1], &[b'x'; 100_000], None);
        if !rig.engine.submit(&packer.0).expect("well packed") {
            assert!(rig.engine.stats().outbox_bytes > 1 << 20, "nobody is behind");
            // It comes to an end though the reader does not move.
            rig.until(Engine::is_writable);
            wait_count += 1;
        }
        for (client, _) in &mut clients[1..] {
            assert_eq!(client.message(), [b'x'; 100_000]);
        }
    }
    // More often than once only on a machine that takes seconds for the rest of the outbox.
    assert!((1..=3).contains(&wait_count), "{wait_count} waits");
}

#[test]
fn the_end_of_a_connection_is_seen_though_its_last_message_waits_to_be_read() {
    const MAX_INBOUND_BYTES: usize = 1_000;
    let mut rig = Rig::start(Options { max_inbound_bytes: MAX_INBOUND_BYTES, ..Options::default() });
    let (mut filler, filling) = rig.connect();
    let (mut client, id) = rig.connect();
    filler.send(Opcode::Binary, &[b'.'; MAX_INBOUND_BYTES]);
    rig.until(|engine| engine.stats().received_message_count == 1);
    // Nobody drains: from here on nothing is read, and the poller tells of the message and of the end together.
    client.send(Opcode::Binary, b"last");
    drop(client);
    assert_eq!(rig.next(), Told::Message(filling, vec![b'.'; MAX_INBOUND_BYTES]));
    assert_eq!(rig.next(), Told::Message(id, b"last".to_vec()));
    assert_eq!(rig.next(), Told::Closed(id, 1006, String::new()));
}

#[test]
fn an_outbox_is_reported_when_its_peer_has_read_enough() {
    const MAX_OUTBOX_BYTES: usize = 64 << 20;
    let mut rig = Rig::start(Options { max_outbox_bytes: MAX_OUTBOX_BYTES, ..Options::default() });
    let (mut client, id) = rig.connect();
    // Also a connection in a group, and one whose socket took everything.
    rig.submit(|packer| {
        packer.join(id, 1).multicast(&[1], &[b'm'; 1_000], None).notify(id, OutboxLevel::Empty);
    });
    assert_eq!(rig.next(), Told::Drained(id));
    let frame = vec![b'x'; 1 << 20];
    rig.submit(|packer| {
        for _ in 0..40 {
            packer.send(id, &frame);
        }
        packer.notify(id, OutboxLevel::Low).multicast(&[1], &[b'm'; 1_000], None);
    });
    assert_eq!(client.message(), [b'm'; 1_000]);
    rig.until(|engine| engine.stats().outbox_bytes as usize > MAX_OUTBOX_BYTES / 4);
    let mut read_count = 0;
    let reader = std::thread::spawn(move || {
        (0..40).for_each(|_| assert_eq!(client.message().len(), 1 << 20));
        assert_eq!(client.message(), [b'm'; 1_000]);
        read_count += 41;
        (client, read_count)
    });
    assert_eq!(rig.next(), Told::Drained(id));
    assert!(rig.engine.stats().outbox_bytes as usize <= MAX_OUTBOX_BYTES / 4 + (1 << 20));
    let (client, read_count) = reader.join().expect("reads all");
    assert_eq!(read_count, 41);
    // Each request is answered once; one for a connection that is gone by its end alone.
    rig.submit(|packer| {
        packer.notify(id, OutboxLevel::Low);
    });
    assert_eq!(rig.next(), Told::Drained(id));
    drop(client);
    assert!(matches!(rig.next(), Told::Closed(closed, 1006, _) if closed == id));
    rig.submit(|packer| {
        packer.notify(id, OutboxLevel::Low);
    });
    rig.drain();
}
