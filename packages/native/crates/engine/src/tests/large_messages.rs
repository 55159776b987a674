//! Messages that are received where their events are.

use std::io::Write;
use std::time::Duration;

use webmq_websocket::{Opcode, encode_masked_frame};

use super::rig::{Rig, Told};
use crate::Options;

fn frames(opcode: Opcode, payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut frames = Vec::new();
    for payload in payloads {
        encode_masked_frame(opcode, payload, [9, 8, 7, 6], &mut frames);
    }
    frames
}

#[test]
fn large_messages_arrive_whole_however_they_are_cut() {
    let sizes = [40_000, 33_000, 5, 65_536, 200_000, 1, 32_768, 100_000, 36_864, 0, 262_144];
    // Together, a piece of about a read, and pieces that end in a header, near its end or short of the message's.
    for piece_bytes in [usize::MAX, 65_536, 32_768, 1_024, 1_023] {
        let mut rig = Rig::start(Options { max_message_bytes: 300_000, ..Options::default() });
        let (client, id) = rig.connect();
        let texts: Vec<Vec<u8>> = sizes.iter().map(|size| "é".repeat(size / 2).into_bytes()).collect();
        let bytes = frames(Opcode::Text, &texts);
        let mut socket = client.socket.try_clone().expect("a second handle");
        let sender = std::thread::spawn(move || {
            for piece in bytes.chunks(piece_bytes) {
                socket.write_all(piece).expect("sends");
                if piece_bytes < 65_536 {
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
        });
        for text in texts {
            match rig.next() {
                Told::Message(from, data) => assert!(from == id && data == text, "{} bytes", text.len()),
                told => panic!("{told:?}"),
            }
        }
        sender.join().expect("sent");
        rig.until(|engine| engine.stats().partial_bytes == 0);
    }
}

#[test]
fn a_large_text_that_ends_in_no_character_ends_its_connection_alone() {
    let mut rig = Rig::start(Options::default());
    let ((client, id), (mut other, other_id)) = (rig.connect(), rig.connect());
    let good = vec![b'x'; 100_000];
    let bad = [&good[..], b"\xc3"].concat();
    let mut socket = client.socket.try_clone().expect("a second handle");
    let bytes = frames(Opcode::Text, &[good.clone(), bad]);
    let sender = std::thread::spawn(move || socket.write_all(&bytes).expect("sends"));
    assert!(matches!(rig.next(), Told::Message(from, data) if from == id && data == good));
    assert!(matches!(rig.next(), Told::Closed(closed, 1007, _) if closed == id));
    sender.join().expect("sent");
    other.send(Opcode::Text, b"hello");
    assert_eq!(rig.next(), Told::Message(other_id, b"hello".to_vec()));
}
