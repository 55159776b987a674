//! The output of a shard against a model that keeps one byte vector per connection.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use webmq_websocket::{Deflater, Opcode, encode_frame};

use super::member::State;
use super::{Fanout, OutboxLevel, Wire, Written};
use crate::bridge::batch::{Batch, Frame};
use crate::bridge::command::{Command, Multicast};
use crate::id::{GroupId, Slot};
use crate::tests::packer::Packer;

const MAX_OUTBOX_BYTES: usize = 40_000;
const SLOTS: u32 = 6;
const GROUPS: u32 = 4;
const DEFLATE_FROM_BYTES: usize = 100;
const MAX_HELD_BYTES: usize = 3_000;

#[derive(Debug, Clone)]
enum Step {
    /// Whether it takes compressed messages.
    Insert(u32, bool),
    Remove(u32),
    Join(u32, u32),
    Leave(u32, u32),
    Multicast {
        groups: Vec<u32>,
        bytes: usize,
        except: Option<u32>,
        is_urgent: bool,
    },
    Send(u32, usize),
    /// Bytes that each socket takes from now on.
    Room(u32, usize),
    Flush,
    /// Most writes to caught-up members.
    FlushUrgent(usize),
    /// Most writes to caught-up members.
    FlushSome(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let slot = || 0..SLOTS;
    let bytes = || prop_oneof![8 => 0_usize..200, 2 => 200_usize..5_000, 1 => 16_000_usize..30_000];
    let step = prop_oneof![
        2 => (slot(), any::<bool>()).prop_map(|(slot, has_deflate)| Step::Insert(slot, has_deflate)),
        1 => slot().prop_map(Step::Remove),
        8 => (slot(), 0..GROUPS).prop_map(|(slot, group)| Step::Join(slot, group)),
        4 => (slot(), 0..GROUPS).prop_map(|(slot, group)| Step::Leave(slot, group)),
        12 => (prop::collection::vec(0..GROUPS, 0..3), bytes(), prop::option::of(slot()), any::<bool>())
            .prop_map(|(groups, bytes, except, is_urgent)| Step::Multicast { groups, bytes, except, is_urgent }),
        6 => (slot(), bytes()).prop_map(|(slot, bytes)| Step::Send(slot, bytes)),
        4 => (slot(), prop_oneof![Just(usize::MAX), 0_usize..20_000]).prop_map(|(slot, room)| Step::Room(slot, room)),
        6 => Just(Step::Flush),
        4 => prop_oneof![Just(usize::MAX), 0_usize..4].prop_map(Step::FlushUrgent),
        8 => (0_usize..4).prop_map(Step::FlushSome),
    ];
    prop::collection::vec(step, 0..200)
}

#[derive(Default)]
struct Peer {
    has_deflate: bool,
    groups: BTreeSet<u32>,
    frames: Vec<Vec<u8>>,
    /// Bytes up to the end of the last urgent frame.
    urgent_bytes: usize,
    received: Vec<u8>,
    room: usize,
    is_full: bool,
    /// Most bytes that the wire takes beyond the socket, and holds.
    max_held: usize,
    held: usize,
}

impl Peer {
    /// The socket takes `room` bytes from now on.
    fn give_room(&mut self, room: usize) {
        (self.room, self.is_full, self.held) = (room, false, 0);
    }

    /// Notes a message that was sent to it.
    fn expect(&mut self, opcode: Opcode, payload: &[u8]) {
        let is_deflatable = self.has_deflate && payload.len() >= DEFLATE_FROM_BYTES;
        let deflated = if is_deflatable { Deflater::default().encode_frame(opcode, payload) } else { None };
        let mut plain = Vec::new();
        encode_frame(opcode, payload, &mut plain);
        self.frames.push(deflated.map_or(plain, Vec::from));
    }

    fn expected(&self) -> Vec<u8> {
        self.frames.concat()
    }

    fn waiting_bytes(&self) -> usize {
        self.frames.iter().map(Vec::len).sum::<usize>() - self.received.len() + self.held
    }
}

#[derive(Default)]
struct Peers(HashMap<u32, Peer>);

impl Wire for Peers {
    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Written {
        let peer = self.0.get_mut(&slot.0).expect("written to a connection that is gone");
        assert!(!bytes.is_empty() && !peer.is_full, "a full socket is left alone");
        let sent = bytes.len().min(peer.room);
        peer.held = (bytes.len() - sent).min(peer.max_held);
        let taken = sent + peer.held;
        peer.received.extend_from_slice(&bytes[..taken]);
        peer.room -= sent;
        peer.is_full = sent < bytes.len();
        if peer.is_full { Written::Part { taken, held: peer.held } } else { Written::All }
    }
}

struct Run {
    fanout: Fanout,
    peers: Peers,
    serial: u8,
}

impl Run {
    fn payload(&mut self, bytes: usize) -> Vec<u8> {
        self.serial = self.serial.wrapping_add(1);
        if !self.serial.is_multiple_of(3) {
            return vec![self.serial; bytes];
        }
        // Bytes that do not compress.
        let mut state = u64::from(self.serial);
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Insert(slot, has_deflate) => {
                if !self.peers.0.contains_key(&slot) {
                    self.fanout.insert(Slot(slot));
                    if has_deflate {
                        self.fanout.enable_deflate(Slot(slot));
                    }
                    let max_held = if slot < SLOTS / 2 { 0 } else { MAX_HELD_BYTES };
                    self.peers.0.insert(slot, Peer { has_deflate, max_held, room: usize::MAX, ..Peer::default() });
                }
            }
            Step::Remove(slot) => {
                if self.peers.0.remove(&slot).is_some() {
                    self.fanout.remove(Slot(slot));
                }
            }
            Step::Join(slot, group) => {
                if let Some(peer) = self.peers.0.get_mut(&slot) {
                    peer.groups.insert(group);
                    self.fanout.join(Slot(slot), GroupId(group));
                }
            }
            Step::Leave(slot, group) => {
                if let Some(peer) = self.peers.0.get_mut(&slot) {
                    peer.groups.remove(&group);
                    self.fanout.leave(Slot(slot), GroupId(group));
                }
            }
            Step::Multicast { groups, bytes, except, is_urgent } => self.multicast(&groups, bytes, except, is_urgent),
            Step::Send(slot, bytes) => {
                let payload = self.payload(bytes);
                if let Some(peer) = self.peers.0.get_mut(&slot) {
                    let batch = batch(Packer::default().send(0.0, &payload));
                    let Some(Ok(Command::Send { frame, .. })) = batch.commands().next() else { panic!("not a send") };
                    peer.expect(Opcode::Binary, &payload);
                    self.fanout.send(Slot(slot), &frame);
                }
            }
            Step::Room(slot, room) => {
                if let Some(peer) = self.peers.0.get_mut(&slot) {
                    if peer.is_full {
                        self.fanout.unblock(Slot(slot));
                    }
                    peer.give_room(room);
                }
            }
            Step::Flush => self.flush(),
            Step::FlushUrgent(max_writes) => self.flush_urgent(max_writes),
            Step::FlushSome(max_writes) => self.flush_some(max_writes),
        }
        if self.fanout.is_flush_due() {
            self.flush();
        }
        self.peers.0.keys().for_each(|slot| self.check_state(Slot(*slot)));
    }

    /// The table of states in the module's documentation.
    fn check_state(&self, slot: Slot) {
        let fanout = &self.fanout;
        let member = &fanout.members[slot.index()];
        let index = member.list_index as usize;
        match (member.state, member.cohort.map(|id| fanout.index.cohort(id))) {
            (State::CaughtUp, Some(cohort)) => {
                assert_eq!(cohort.caught_up[index], slot);
                assert!(cohort.ahead_count == 0 || fanout.is_interrupted());
            }
            (_, Some(cohort)) => assert_eq!(cohort.behind[index].slot, slot),
            (state, None) => assert_ne!(state, State::Rejoining),
        }
        match member.state {
            State::CaughtUp => assert!(member.chain.is_empty()),
            State::CatchingUp => assert!(fanout.dirty.write_now.contains(&slot)),
            State::Rejoining => assert!(fanout.dirty.rejoining.contains(&slot) && member.chain.is_empty()),
            State::Blocked { .. } => assert!(self.peers.0[&slot.0].is_full),
        }
        let held = if member.is_blocked() { self.peers.0[&slot.0].held } else { 0 };
        assert_eq!(member.held_bytes as usize, held);
        let count = |has: fn(State) -> bool| fanout.members.iter().filter(|member| has(member.state)).count();
        assert_eq!(fanout.blocked_count, count(|state| matches!(state, State::Blocked { .. })));
        assert_eq!(fanout.dirty.rejoining_count, count(|state| state == State::Rejoining));
    }

    fn multicast(&mut self, groups: &[u32], bytes: usize, except: Option<u32>, is_urgent: bool) {
        let payload = self.payload(bytes);
        let except = except.filter(|slot| self.peers.0.contains_key(slot));
        let batch = batch(Packer::default().multicast(groups, &payload, None));
        let Some(Ok(Command::Multicast(Multicast { groups: packed, frame, .. }))) = batch.commands().next() else {
            panic!("not a multicast")
        };
        let mut count = 0;
        for (slot, peer) in &mut self.peers.0 {
            if Some(*slot) != except && groups.iter().any(|group| peer.groups.contains(group)) {
                peer.expect(Opcode::Text, &payload);
                if is_urgent {
                    peer.urgent_bytes = peer.expected().len();
                }
                count += 1;
            }
        }
        assert_eq!(self.fanout.multicast(packed, &frame, except.map(Slot), None, is_urgent), count);
    }

    fn flush(&mut self) {
        self.fanout.flush(&mut self.peers);
        let outcome = self.fanout.take_outcome();
        let slow: BTreeSet<u32> = outcome.slow.iter().map(|slot| slot.0).collect();
        for (slot, peer) in &self.peers.0 {
            let is_slow = peer.is_full && peer.waiting_bytes() > MAX_OUTBOX_BYTES;
            assert_eq!(slow.contains(slot), is_slow, "{} bytes wait", peer.waiting_bytes());
        }
        slow.into_iter().for_each(|slot| self.end_slow(slot));
    }

    /// Afterwards nobody waits for a direct or urgent frame whose socket would take it, and what was sent before it went first.
    fn flush_urgent(&mut self, max_writes: usize) {
        self.fanout.flush_urgent(&mut self.peers, max_writes);
        self.end_all_slow();
        if max_writes < usize::MAX {
            return;
        }
        // Once more, for those that waited for the others of their cohort.
        self.fanout.flush_urgent(&mut self.peers, max_writes);
        self.end_all_slow();
        assert!(!self.fanout.is_urgent());
        for peer in self.peers.0.values().filter(|peer| !peer.is_full) {
            assert!(peer.received.len() >= peer.urgent_bytes, "an urgent frame waits");
        }
    }

    /// A flush that is interrupted, or finishes an interrupted one.
    fn flush_some(&mut self, max_writes: usize) {
        let is_finished = self.fanout.flush_some(&mut self.peers, max_writes);
        assert_eq!(is_finished, !self.fanout.is_flushing());
        self.end_all_slow();
    }

    fn end_all_slow(&mut self) {
        let outcome = self.fanout.take_outcome();
        for slot in &outcome.slow {
            let peer = &self.peers.0[&slot.0];
            assert!(peer.is_full && peer.waiting_bytes() > MAX_OUTBOX_BYTES, "{} bytes wait", peer.waiting_bytes());
        }
        outcome.slow.into_iter().for_each(|slot| self.end_slow(slot.0));
    }

    /// A slow connection gets the rest of the frame it has begun, one more frame, and nothing else.
    fn end_slow(&mut self, slot: u32) {
        let mut peer = self.peers.0.remove(&slot).expect("reported while it is there");
        let mut whole = 0;
        peer.frames.retain(|frame| {
            let begun = whole < peer.received.len();
            whole += frame.len();
            begun
        });
        peer.frames.push(b"\x88\x00".to_vec());
        self.fanout.cut(Slot(slot));
        self.fanout.send(Slot(slot), &Frame::copied(b"\x88\x00"));
        peer.give_room(usize::MAX);
        self.peers.0.insert(slot, peer);
        self.fanout.unblock(Slot(slot));
        assert!(!self.fanout.report_at(Slot(slot), OutboxLevel::Empty));
        while self.fanout.is_dirty() {
            self.fanout.flush(&mut self.peers);
        }
        let outcome = self.fanout.take_outcome();
        assert!(outcome.drained.contains(&Slot(slot)));
        let peer = self.peers.0.remove(&slot).expect("put back above");
        assert!(peer.received == peer.expected(), "slow connection: wrong bytes");
        self.fanout.remove(Slot(slot));
        outcome.slow.into_iter().for_each(|slot| self.end_slow(slot.0));
    }

    /// Every socket takes everything: each peer has exactly what the model says, and no memory is left.
    fn finish(mut self) {
        for (slot, peer) in &mut self.peers.0 {
            peer.give_room(usize::MAX);
            self.fanout.unblock(Slot(*slot));
        }
        while self.fanout.is_dirty() {
            self.fanout.flush(&mut self.peers);
        }
        for peer in self.peers.0.values() {
            assert!(peer.received == peer.expected(), "wrong bytes");
        }
        assert_eq!(self.fanout.outbox_bytes(), 0);
        let members = self.peers.0.values().filter(|peer| !peer.groups.is_empty());
        let sets: BTreeSet<_> = members.map(|peer| (peer.has_deflate, &peer.groups)).collect();
        assert_eq!(self.fanout.index.live_count(), sets.len(), "one cohort per set of groups and encoding");
    }
}

fn batch(packer: &Packer) -> Arc<Batch> {
    Arc::new(Batch::new(&packer.0, Some(DEFLATE_FROM_BYTES)).expect("well packed"))
}

proptest! {
    #[test]
    fn every_connection_gets_exactly_the_bytes_of_the_model(steps in steps()) {
        let mut run = Run { fanout: Fanout::new(MAX_OUTBOX_BYTES), peers: Peers::default(), serial: 0 };
        (0..SLOTS).for_each(|slot| run.step(Step::Insert(slot, slot % 2 == 1)));
        steps.into_iter().for_each(|step| run.step(step));
        run.finish();
    }
}
