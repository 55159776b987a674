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
fn a_panic_ends_one_shard_and_is_told() {
    let mut rig = Rig::start(Options { shards: 2, ..Options::default() });
    let (mut client, id) = rig.connect();
    let (mut other, other_id) = rig.connect();
    rig.engine.panic_shard_of(id);
    assert_eq!(rig.next(), Told::Failed("an I/O thread panicked: as the test wishes".to_owned()));
    assert_eq!(rig.next(), Told::Closed(id, 4011, "E_INTERNAL".to_owned()));
    assert_eq!((rig.next(), rig.next()), (Told::Quiet, Told::Ended));
    assert_eq!(client.receive(), Received::End);
    rig.submit(|packer| {
        packer.send(id, b"lost").send(other_id, b"alive");
    });
    assert_eq!(other.message(), b"alive");
    // New connections go to the shard that is left.
    let clients: Vec<_> = (0..4).map(|_| rig.connect()).collect();
    drop(clients);
}
