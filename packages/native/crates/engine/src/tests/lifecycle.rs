use std::net::TcpStream;

use super::client::Received;
use super::rig::{Rig, Told};
use crate::{Engine, EngineError, Options};

#[test]
fn a_shut_down_closes_every_connection_and_ends_every_shard() {
    let mut rig = Rig::start(Options { shards: 2, ..Options::default() });
    let mut clients: Vec<_> = (0..4).map(|_| rig.connect()).collect();
    rig.submit(|packer| {
        for (_, id) in &clients {
            packer.send(*id, b"last");
        }
    });
    rig.engine.shut_down();
    for (client, _) in &mut clients {
        assert_eq!(client.message(), b"last");
        assert_eq!(client.receive(), Received::Close(Some(1001), "server stops".to_owned()));
        client.send(webmq_websocket::Opcode::Close, b"\x03\xe9");
        assert_eq!(client.receive(), Received::End);
    }
    let mut told: Vec<Told> = (0..8).map(|_| rig.next()).collect();
    assert_eq!(told.iter().filter(|told| **told == Told::Ended).count(), 2);
    told.retain(|told| matches!(told, Told::Closed(_, 1001, _)));
    assert_eq!(told.len(), 4);
    assert!(TcpStream::connect(rig.address).is_err(), "the port is free");
    rig.engine.close();
    rig.engine.close();
}

#[test]
fn a_close_ends_connections_at_once_and_tells_so() {
    let mut rig = Rig::start(Options::default());
    let (mut client, id) = rig.connect();
    rig.engine.close();
    assert_eq!(client.receive(), Received::End);
    assert_eq!(rig.next(), Told::Closed(id, 1006, String::new()));
    assert_eq!((rig.next(), rig.next()), (Told::Quiet, Told::Ended));
    rig.submit(|packer| {
        packer.send(id, b"too late");
    });
}

#[test]
fn a_port_that_is_taken_is_not_shared() {
    let rig = Rig::start(Options::default());
    let other = Engine::start(Options::default(), Box::new(|| {})).expect("starts");
    assert!(matches!(other.listen(rig.address), Err(EngineError::AddressInUse { .. })));
}

#[test]
fn who_stops_to_accept_goes_on_with_the_connections_it_has() {
    let mut rig = Rig::start(Options { shards: 2, ..Options::default() });
    let (mut client, id) = rig.connect();
    rig.engine.stop_accepting();
    assert_eq!((rig.next(), rig.next()), (Told::Quiet, Told::Quiet));
    assert!(TcpStream::connect(rig.address).is_err());
    rig.submit(|packer| {
        packer.send(id, b"still here");
    });
    assert_eq!(client.message(), b"still here");
}

#[test]
fn a_shard_that_panicked_starts_again_without_its_connections() {
    // Symptom: a panic cost the server a thread until it was restarted, and with one thread everything. Cause: the thread
    // ended, and nobody started another.
    let mut rig = Rig::start(Options { shards: 2, ..Options::default() });
    let (mut client, id) = rig.connect();
    let (mut other, other_id) = rig.connect();
    rig.submit(|packer| {
        packer.join(id, 1).join(other_id, 1);
    });
    rig.engine.panic_shard_of(id);
    let failure = "an I/O thread panicked: as the test wishes; it is started again";
    assert_eq!(rig.next(), Told::Failed(failure.to_owned()));
    assert_eq!(rig.next(), Told::Closed(id, 4011, "E_INTERNAL".to_owned()));
    assert_eq!(client.receive(), Received::End);
    rig.submit(|packer| {
        packer.send(id, b"lost").multicast(&[1], b"alive", None);
    });
    assert_eq!(other.message(), b"alive");
    // New connections go to both shards, and none has an id of before.
    let mut clients: Vec<_> = (0..5).map(|_| rig.connect()).collect();
    rig.until(|engine| engine.connections_per_shard().into_iter().all(|count| count == 3));
    assert!(clients.iter().all(|(_, new)| *new != id));
    for (client, id) in &mut clients {
        client.send(webmq_websocket::Opcode::Text, b"up");
        assert_eq!(rig.next(), Told::Message(*id, b"up".to_vec()));
        rig.submit(|packer| {
            packer.join(*id, 1);
        });
    }
    rig.submit(|packer| {
        packer.multicast(&[1], b"to all", None);
    });
    clients.iter_mut().for_each(|(client, _)| assert_eq!(client.message(), b"to all"));
    assert_eq!((rig.engine.stats().restart_count, rig.engine.stats().connections), (1, 6));
    // It still does what concerns the whole engine.
    rig.engine.stop_accepting();
    rig.until(|_| TcpStream::connect(rig.address).is_err());
    rig.engine.close();
}

#[test]
fn mail_behind_the_one_that_made_a_shard_panic_is_done() {
    let mut rig = Rig::start(Options::default());
    let (_client, id) = rig.connect();
    rig.engine.panic_shard_of(id);
    rig.engine.shut_down();
    let told: Vec<Told> = std::iter::repeat_with(|| rig.next()).take(4).collect();
    assert!(matches!(&told[..], [Told::Failed(_), Told::Closed(..), Told::Quiet, Told::Ended]), "{told:?}");
}

#[test]
fn a_shard_that_fails_again_and_again_stays_down() {
    let mut rig = Rig::start(Options { shards: 2, ..Options::default() });
    let mut clients: Vec<_> = (0..2).map(|_| rig.connect()).collect();
    let (_other, other_id) = clients.remove(1);
    let (_first, mut id) = clients.remove(0);
    for _ in 0..5 {
        rig.engine.panic_shard_of(id);
        let told = rig.next();
        assert!(matches!(&told, Told::Failed(failure) if failure.ends_with("it is started again")), "{told:?}");
        assert!(matches!(rig.next(), Told::Closed(closed, 4011, _) if closed == id));
        let (client, next) = rig.connect();
        clients.push((client, next));
        id = next;
    }
    rig.engine.panic_shard_of(id);
    assert!(matches!(rig.next(), Told::Failed(failure) if failure.ends_with("5 times within 60 s and stays down")));
    assert!(matches!(rig.next(), Told::Closed(closed, 4011, _) if closed == id));
    assert_eq!((rig.next(), rig.next()), (Told::Quiet, Told::Ended));
    // New connections go to the shard that is left.
    let connected: Vec<_> = (0..4).map(|_| rig.connect()).collect();
    let count = connected.len() as u64 + 1;
    rig.until(|engine| engine.connections_per_shard().into_iter().max() == Some(count));
    assert_ne!(other_id, id);
}
