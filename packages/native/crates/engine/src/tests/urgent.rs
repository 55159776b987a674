//! Multicasts that a shard does not hold back, while it holds back others. Nothing here depends on time: the hold never ends.

use std::io::ErrorKind;

use super::client::Client;
use super::rig::Rig;
use crate::Options;
use crate::shard::HOLD_OF_TESTS;

const HELD: u32 = 1;
const URGENT: u32 = 2;
const BOTH: u32 = 3;

/// Whether nothing has arrived.
fn is_silent(client: &Client) -> bool {
    client.socket.set_nonblocking(true).expect("a socket");
    let peeked = client.socket.peek(&mut [0]);
    client.socket.set_nonblocking(false).expect("a socket");
    peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn an_urgent_multicast_leaves_while_others_are_held_back() {
    for shards in [1, 2] {
        let mut rig = Rig::start(Options { shards, flush_interval: HOLD_OF_TESTS, ..Options::default() });
        let mut clients: Vec<(Client, f64)> = (0..12).map(|_| rig.connect()).collect();
        rig.submit(|packer| {
            for (index, (_, id)) in clients.iter().enumerate() {
                packer.join(*id, [HELD, URGENT, BOTH][index % 3]);
            }
        });
        // Each in a batch of its own: a shard that holds output back sleeps until the urgent one comes.
        rig.submit(|packer| {
            packer.multicast(&[HELD, BOTH], b"held", None);
        });
        for text in [b"first", b"other"] {
            rig.submit(|packer| {
                packer.urgent(&[URGENT, BOTH], text);
            });
            for (index, (client, _)) in clients.iter_mut().enumerate() {
                if index % 3 == 2 && text == b"first" {
                    assert_eq!(client.message(), b"held", "the order of the calls holds");
                }
                if index % 3 > 0 {
                    assert_eq!(client.message(), text);
                }
            }
        }
        // The turns that wrote the first urgent ones are over, since the others came.
        assert!(clients.iter().step_by(3).all(|(client, _)| is_silent(client)), "nothing else leaves with it");

        rig.submit(|packer| {
            packer.urgent(&[HELD], b"now");
        });
        for (client, _) in clients.iter_mut().step_by(3) {
            assert_eq!((client.message(), client.message()), (b"held".to_vec(), b"now".to_vec()));
        }
    }
}

#[test]
fn a_connection_that_just_got_an_answer_gets_an_urgent_multicast_too() {
    let mut rig = Rig::start(Options { flush_interval: HOLD_OF_TESTS, ..Options::default() });
    let (mut client, id) = rig.connect();
    let (mut other, other_id) = rig.connect();
    rig.submit(|packer| {
        packer.join(id, 1).join(other_id, 1);
    });
    rig.submit(|packer| {
        packer.multicast(&[1], b"held", None);
    });
    // Its answer takes along what was held for it, so it now waits for nothing but the rest of its cohort.
    rig.submit(|packer| {
        packer.send(id, b"answer");
    });
    assert_eq!((client.message(), client.message()), (b"held".to_vec(), b"answer".to_vec()));
    rig.submit(|packer| {
        packer.urgent(&[1], b"now");
    });
    assert_eq!(client.message(), b"now");
    assert_eq!((other.message(), other.message()), (b"held".to_vec(), b"now".to_vec()));
}

#[test]
fn a_shard_that_shuts_down_writes_what_it_holds_back() {
    let mut rig = Rig::start(Options { flush_interval: HOLD_OF_TESTS, ..Options::default() });
    let (mut client, id) = rig.connect();
    rig.submit(|packer| {
        packer.join(id, 1);
    });
    rig.submit(|packer| {
        packer.multicast(&[1], b"held", None);
    });
    rig.engine.shut_down();
    assert_eq!(client.message(), b"held");
}
