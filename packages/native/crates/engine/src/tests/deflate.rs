use std::io::Write;

use webmq_websocket::{Deflater, Opcode, encode_masked_frame};

use super::client::{Client, Received};
use super::rig::{Rig, Told};
use crate::Options;

fn options() -> Options {
    Options { deflate_from_bytes: Some(100), ..Options::default() }
}

/// A compressed message as a client sends it.
fn compressed(message: &[u8]) -> Vec<u8> {
    let frame = Deflater::default().encode_frame(Opcode::Binary, message).expect("it compresses");
    let header_bytes = match frame[1] {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    let mut masked = Vec::new();
    encode_masked_frame(Opcode::Binary, &frame[header_bytes..], [1, 2, 3, 4], &mut masked);
    masked[0] |= 0x40;
    masked
}

#[test]
fn it_is_negotiated_when_it_is_on_and_offered() {
    let mut rig = Rig::start(options());
    rig.connect_deflating();
    for (options, offer) in [(options(), None), (Options::default(), Some("permessage-deflate"))] {
        let mut rig = Rig::start(options);
        let mut client = Client::begin_with(rig.address, offer);
        rig.accept_next();
        assert!(!client.finish().to_lowercase().contains("sec-websocket-extensions"));
    }
}

#[test]
fn compressed_messages_go_both_ways_and_are_shared_by_all_shards() {
    let mut rig = Rig::start(Options { shards: 2, ..options() });
    let mut clients: Vec<_> =
        (0..8).map(|index| if index % 2 == 0 { rig.connect() } else { rig.connect_deflating() }).collect();
    let message = b"compressible ".repeat(1_000);
    let before = rig.engine.stats().sent_byte_count;
    rig.submit(|packer| {
        for (_, id) in &clients {
            packer.join(*id, 1);
        }
        packer.multicast(&[1], b"short", None).multicast(&[1], &message, None).multicast(&[1], b"last", None);
    });
    for (client, _) in &mut clients {
        assert_eq!(
            [client.message(), client.message(), client.message()],
            [b"short".to_vec(), message.clone(), b"last".to_vec()]
        );
    }
    let len = message.len() as u64;
    rig.until(|engine| engine.stats().sent_byte_count - before > 4 * len);
    let sent = rig.engine.stats().sent_byte_count - before;
    assert!(sent < 5 * len, "{sent} bytes for eight receivers");

    let (client, id) = &mut clients[1];
    client.socket.write_all(&compressed(&message)).expect("sends");
    client.send(Opcode::Binary, b"plain");
    assert_eq!(rig.next(), Told::Message(*id, message.clone()));
    assert_eq!(rig.next(), Told::Message(*id, b"plain".into()));
    rig.submit(|packer| {
        packer.send(*id, &message);
    });
    assert_eq!(client.message(), message);
}

#[test]
fn a_bomb_and_what_is_no_deflate_end_their_connections() {
    let mut rig = Rig::start(Options { max_message_bytes: 10_000, ..options() });
    let mut garbage = compressed(&[0; 1_000]);
    garbage[6] = 0xff ^ 1;
    for (bytes, code) in [(compressed(&vec![0; 9 << 20]), 1009), (garbage, 1002)] {
        let (mut client, id) = rig.connect_deflating();
        client.socket.write_all(&bytes).expect("sends");
        assert!(matches!(client.receive(), Received::Close(Some(closed), _) if closed == code));
        assert!(matches!(rig.next(), Told::Closed(closed, with, _) if (closed, with) == (id, code)));
    }
}

#[test]
fn many_messages_that_grow_a_thousandfold_wait_in_their_socket() {
    let message = vec![0; 256 << 10];
    let mut rig = Rig::start(options());
    let (client, id) = rig.connect_deflating();
    let bytes = compressed(&message).repeat(600);
    let sender = std::thread::spawn({
        let mut socket = client.socket.try_clone().expect("a second handle");
        move || socket.write_all(&bytes).expect("sends")
    });
    // Nothing is drained; what was received then stays what it is.
    rig.until(|engine| engine.stats().received_message_count > 0);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(rig.engine.stats().received_message_count, 1);
    for _ in 0..600 {
        assert_eq!(rig.next(), Told::Message(id, message.clone()));
    }
    sender.join().expect("sent");
}

#[test]
fn compressed_frames_that_come_with_the_handshake_are_not_lost() {
    let mut rig = Rig::start(options());
    let mut client = Client::begin_with(rig.address, Some("permessage-deflate"));
    client.socket.write_all(&compressed(&[7; 5_000])).expect("sends");
    let id = rig.accept_next();
    assert_eq!(rig.next(), Told::Message(id, vec![7; 5_000]));
}
