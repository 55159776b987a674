//! What epoll and kqueue both must do.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::net::sockopt::set_socket_linger;

use super::*;
use crate::id::{ShardId, Slot};

const PATIENCE: Duration = Duration::from_secs(10);
/// Time in which what must not come would come.
const SILENCE: Duration = Duration::from_millis(30);

fn id(slot: u32) -> ConnectionId {
    ConnectionId::new(ShardId(63), Slot(slot), crate::id::MAX_GENERATION)
}

/// A connection: our end, nonblocking, and the peer's.
fn connect() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
    let (ours, _) = listener.accept().expect("accepts");
    ours.set_nonblocking(true).expect("a socket");
    (ours.into(), peer)
}

/// All that is ready now.
fn ready_now(poller: &Poller) -> Vec<Ready> {
    let mut ready = Vec::new();
    poller.wait(&mut ready, Some(Duration::ZERO)).expect("waits");
    ready
}

/// Waits until the connection is ready for something that `is_it` accepts, and returns all that was said until then. One
/// happening may be told in several events.
fn await_flags(poller: &Poller, id: ConnectionId, is_it: impl Fn(Flags) -> bool) -> Flags {
    let (began, mut ready, mut sum) = (Instant::now(), Vec::new(), Flags::default());
    while !is_it(sum) {
        assert!(began.elapsed() < PATIENCE, "{sum:?}");
        poller.wait(&mut ready, Some(PATIENCE)).expect("waits");
        for entry in &ready {
            let Ready::Connection(found, flags) = *entry else { panic!("{entry:?}") };
            assert_eq!(found, id);
            sum.is_readable |= flags.is_readable;
            sum.is_writable |= flags.is_writable;
            sum.has_hung_up |= flags.has_hung_up;
            sum.is_broken |= flags.is_broken;
        }
    }
    sum
}

/// Takes what is ready until nothing new comes.
fn settle(poller: &Poller) {
    let mut ready = Vec::new();
    while {
        poller.wait(&mut ready, Some(SILENCE)).expect("waits");
        !ready.is_empty()
    } {}
}

fn is_descriptor_readable(poller: &Poller, timeout: Duration) -> bool {
    let mut watched = [PollFd::new(poller.descriptor(), PollFlags::IN)];
    poll(&mut watched, Some(&Timespec::try_from(timeout).expect("a time"))).expect("polls");
    !watched[0].revents().is_empty()
}

fn read(socket: &OwnedFd, buffer: &mut [u8]) -> usize {
    rustix::io::read(socket, buffer).expect("something to read")
}

#[test]
fn what_a_connection_is_ready_for_is_told_once() {
    let poller = Poller::new().expect("a poller");
    let (ours, mut peer) = connect();
    peer.write_all(b"before").expect("sends");
    std::thread::sleep(SILENCE);
    poller.add_connection(&ours, id(1)).expect("added");
    // It is ready for both when it is added.
    let flags = await_flags(&poller, id(1), |flags| flags.is_readable && flags.is_writable);
    assert_eq!(flags, Flags { is_readable: true, is_writable: true, ..Flags::default() });
    settle(&poller);
    // Nothing was read, and nothing is told again.
    assert_eq!(ready_now(&poller), []);
    peer.write_all(b"more").expect("sends");
    assert!(await_flags(&poller, id(1), |flags| flags.is_readable).is_readable);
    settle(&poller);
    assert_eq!(read(&ours, &mut [0; 100]), 10);
    peer.write_all(b"after").expect("sends");
    assert!(!await_flags(&poller, id(1), |flags| flags.is_readable).has_hung_up);
}

#[test]
fn a_full_socket_is_writable_again_when_the_peer_reads() {
    let poller = Poller::new().expect("a poller");
    let (ours, mut peer) = connect();
    poller.add_connection(&ours, id(2)).expect("added");
    await_flags(&poller, id(2), |flags| flags.is_writable);
    let mut written = 0;
    loop {
        match rustix::io::write(&ours, &[7; 1 << 16]) {
            Ok(count) => written += count,
            Err(errno) => {
                assert_eq!(errno, Errno::AGAIN);
                break;
            }
        }
    }
    settle(&poller);
    assert_eq!(ready_now(&poller), []);
    let reader = std::thread::spawn(move || peer.read_exact(&mut vec![0; written]).map(|()| peer));
    let flags = await_flags(&poller, id(2), |flags| flags.is_writable);
    assert!(!flags.has_hung_up);
    reader.join().expect("reads").expect("reads all");
}

#[test]
fn the_end_of_the_peers_output_is_told_with_what_it_has_sent() {
    let poller = Poller::new().expect("a poller");
    let (ours, mut peer) = connect();
    poller.add_connection(&ours, id(3)).expect("added");
    settle(&poller);
    peer.write_all(b"bye").expect("sends");
    peer.shutdown(std::net::Shutdown::Write).expect("ends");
    let flags = await_flags(&poller, id(3), |flags| flags.has_hung_up);
    assert!(flags.is_readable && !flags.is_broken, "{flags:?}");
    let mut buffer = [0; 100];
    assert_eq!(read(&ours, &mut buffer), 3);
    assert_eq!(read(&ours, &mut buffer), 0);
    // The other direction is open.
    assert_eq!(rustix::io::write(&ours, b"well").expect("sends"), 4);
    peer.read_exact(&mut buffer[..4]).expect("receives");
    assert_eq!(&buffer[..4], b"well");
}

#[test]
fn our_own_end_does_not_count_as_the_peers() {
    let poller = Poller::new().expect("a poller");
    let (ours, peer) = connect();
    poller.add_connection(&ours, id(4)).expect("added");
    settle(&poller);
    rustix::net::shutdown(&ours, rustix::net::Shutdown::Write).expect("ends");
    std::thread::sleep(SILENCE);
    for entry in ready_now(&poller) {
        let Ready::Connection(_, flags) = entry else { panic!("{entry:?}") };
        assert!(!flags.has_hung_up && !flags.is_broken, "{flags:?}");
    }
    drop(peer);
    await_flags(&poller, id(4), |flags| flags.has_hung_up);
}

#[test]
fn a_reset_breaks_the_connection() {
    let poller = Poller::new().expect("a poller");
    let (ours, mut peer) = connect();
    poller.add_connection(&ours, id(5)).expect("added");
    settle(&poller);
    peer.write_all(b"lost").expect("sends");
    set_socket_linger(&peer, Some(Duration::ZERO)).expect("a socket");
    drop(peer);
    assert!(await_flags(&poller, id(5), |flags| flags.is_broken).has_hung_up);
}

#[test]
fn the_descriptor_is_readable_while_something_is_untaken() {
    let poller = Poller::new().expect("a poller");
    assert!(!is_descriptor_readable(&poller, SILENCE));
    let (ours, mut peer) = connect();
    poller.add_connection(&ours, id(6)).expect("added");
    settle(&poller);
    assert!(!is_descriptor_readable(&poller, SILENCE), "all is taken");
    peer.write_all(b"new").expect("sends");
    assert!(is_descriptor_readable(&poller, PATIENCE));
    assert!(is_descriptor_readable(&poller, PATIENCE), "looking takes nothing");
    await_flags(&poller, id(6), |flags| flags.is_readable);
    settle(&poller);
    assert!(!is_descriptor_readable(&poller, SILENCE));
}

#[test]
fn a_removed_connection_is_silent_and_its_socket_works() {
    let poller = Poller::new().expect("a poller");
    let (ours, mut peer) = connect();
    poller.add_connection(&ours, id(7)).expect("added");
    settle(&poller);
    peer.write_all(b"untaken").expect("sends");
    poller.remove_connection(&ours).expect("removed");
    std::thread::sleep(SILENCE);
    assert_eq!(ready_now(&poller), []);
    // As Node does with a socket that it was given.
    let other = Poller::new().expect("a poller");
    let given = ours.as_fd().try_clone_to_owned().expect("a descriptor");
    other.add_connection(&given, id(8)).expect("added");
    drop(ours);
    await_flags(&other, id(8), |flags| flags.is_readable && flags.is_writable);
    assert_eq!(read(&given, &mut [0; 100]), 7);
}

#[test]
fn a_closed_socket_is_forgotten() {
    let poller = Poller::new().expect("a poller");
    let (ours, mut peer) = connect();
    poller.add_connection(&ours, id(9)).expect("added");
    peer.write_all(b"untaken").expect("sends");
    drop(ours);
    std::thread::sleep(SILENCE);
    assert_eq!(ready_now(&poller), []);
}

#[test]
fn the_listener_is_told_until_nobody_waits() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("bound");
    let socket = OwnedFd::from(listener.try_clone().expect("a descriptor"));
    let pollers = [Poller::new().expect("a poller"), Poller::new().expect("a poller")];
    for poller in &pollers {
        poller.add_listener(&socket).expect("added");
        assert_eq!(ready_now(poller), []);
    }
    let _peers = [TcpStream::connect(address), TcpStream::connect(address)].map(|peer| peer.expect("connects"));
    for _ in 0..2 {
        assert!(pollers.iter().any(|poller| is_descriptor_readable(poller, Duration::from_secs(1))));
        assert!(pollers.iter().any(|poller| ready_now(poller) == [Ready::Listener]));
        listener.accept().expect("accepts");
    }
    assert!(pollers.iter().all(|poller| ready_now(poller).is_empty()));
    let _late = TcpStream::connect(address).expect("connects");
    for poller in &pollers {
        poller.remove_listener(&socket).expect("removed");
        assert_eq!(ready_now(poller), []);
    }
    // A pause is over: whoever waits is told at once.
    pollers[0].add_listener(&socket).expect("added");
    let mut ready = Vec::new();
    pollers[0].wait(&mut ready, Some(PATIENCE)).expect("waits");
    assert_eq!(ready, [Ready::Listener]);
}

#[test]
fn wake_ups_end_a_wait_once() {
    let poller = Poller::new().expect("a poller");
    let wake_up = WakeUp::new(&poller).expect("a wake-up");
    assert_eq!(ready_now(&poller), []);
    // Before the wait; many are one.
    (0..1_000).for_each(|_| wake_up.wake());
    assert!(is_descriptor_readable(&poller, PATIENCE));
    assert_eq!(ready_now(&poller), [Ready::WakeUp]);
    assert_eq!(ready_now(&poller), []);
    // During the wait.
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(SILENCE);
            wake_up.wake();
        });
        let mut ready = Vec::new();
        poller.wait(&mut ready, None).expect("waits");
        assert_eq!(ready, [Ready::WakeUp]);
    });
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn a_wait_ends_with_its_time() {
    let poller = Poller::new().expect("a poller");
    let began = Instant::now();
    let mut ready = vec![Ready::Listener];
    poller.wait(&mut ready, Some(SILENCE)).expect("waits");
    assert_eq!(ready, [], "the list is used again");
    assert!(began.elapsed() >= SILENCE);
}

#[test]
fn the_thread_that_stands_by_wakes_for_a_nudge_a_socket_and_the_time() {
    let (poller, nudge) = (Poller::new().expect("a poller"), Nudge::new().expect("a nudge"));
    let (ours, mut peer) = connect();
    poller.add_connection(&ours, id(10)).expect("added");
    settle(&poller);
    let began = Instant::now();
    assert_eq!(stand_by(&nudge, Some(&poller), Some(SILENCE)), Woken::Due);
    assert!(began.elapsed() >= SILENCE);

    (0..3).for_each(|_| nudge.send());
    let began = Instant::now();
    assert_eq!(stand_by(&nudge, Some(&poller), Some(PATIENCE)), Woken::Due);
    assert!(began.elapsed() < PATIENCE, "nudged");
    assert_eq!(ready_now(&poller), [], "the poller does not see it");
    assert_eq!(stand_by(&nudge, None, Some(SILENCE)), Woken::Due);
    assert!(began.elapsed() >= SILENCE, "nudged once");

    peer.write_all(b"new").expect("sends");
    assert_eq!(stand_by(&nudge, Some(&poller), Some(PATIENCE)), Woken::SocketReady);
    let began = Instant::now();
    assert_eq!(stand_by(&nudge, None, Some(SILENCE)), Woken::Due);
    assert!(began.elapsed() >= SILENCE, "sockets are ignored");
    await_flags(&poller, id(10), |flags| flags.is_readable);

    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(SILENCE);
            nudge.send();
        });
        settle(&poller);
        assert_eq!(stand_by(&nudge, Some(&poller), None), Woken::Due);
    });
}

#[test]
fn every_ready_connection_is_told() {
    let poller = Poller::new().expect("a poller");
    let connections: Vec<_> = (0..100).map(|_| connect()).collect();
    for ((ours, _), slot) in connections.iter().zip(0..) {
        poller.add_connection(ours, id(slot)).expect("added");
    }
    settle(&poller);
    for (_, peer) in &connections {
        (&*peer).write_all(b"x").expect("sends");
    }
    let (began, mut told, mut ready) = (Instant::now(), std::collections::HashSet::new(), Vec::new());
    while told.len() < connections.len() {
        assert!(began.elapsed() < PATIENCE, "{}", told.len());
        poller.wait(&mut ready, Some(PATIENCE)).expect("waits");
        told.extend(ready.iter().filter_map(|entry| match entry {
            Ready::Connection(id, flags) if flags.is_readable => Some(id.slot()),
            _ => None,
        }));
    }
}
