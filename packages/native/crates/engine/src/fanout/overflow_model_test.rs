//! Frames that may be left out, against a model: whatever the order of calls and of reads, only they are missing, the newest
//! of each topic comes, the order stays, and every gap is told in its place.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use webmq_websocket::{Deflater, Opcode, encode_frame};

use super::records::Policy;
use super::{Fanout, Wire, Written};
use crate::bridge::batch::{Batch, Frame};
use crate::bridge::command::{Command, Multicast};
use crate::id::{GroupId, Slot};
use crate::tests::packer::Packer;

const MAX_OUTBOX_BYTES: usize = 16_000;
const DEFLATE_FROM_BYTES: usize = 100;
const SLOTS: u32 = 4;
/// 0: all frames. 1: the newest. 2: the newest, told. 3 and 4: the oldest are left out, told.
const GROUPS: u32 = 5;

/// Of a group, in whichever of its lives: `GROUPS` is added for each time that its number was given anew.
fn overflow_of(group: u32) -> Option<(Policy, bool)> {
    match group % GROUPS {
        1 => Some((Policy::Latest, false)),
        2 => Some((Policy::Latest, true)),
        3 | 4 => Some((Policy::DropOldest, true)),
        _ => None,
    }
}

fn notice_of(group: u32) -> Vec<u8> {
    let mut frame = Vec::new();
    encode_frame(Opcode::Text, format!("gap {group}").as_bytes(), &mut frame);
    frame
}

#[derive(Debug, Clone)]
enum Step {
    Join(u32, u32),
    Leave(u32, u32),
    /// The group is another one from now on: its members have left it first, or are those of the new one.
    Renew(u32, bool),
    /// `count` frames, of one topic after another.
    Multicast {
        groups: BTreeSet<u32>,
        bytes: usize,
        count: u32,
        topics: u32,
        except: Option<u32>,
    },
    Send(u32, usize),
    /// Bytes that each socket takes from now on.
    Room(u32, usize),
    Flush,
    FlushUrgent,
    FlushSome(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let slot = || 0..SLOTS;
    let groups = || prop::collection::btree_set(0..GROUPS, 1..3);
    let bytes = || prop_oneof![8 => 4_usize..200, 1 => 200_usize..3_000];
    let step = prop_oneof![
        4 => (slot(), 0..GROUPS).prop_map(|(slot, group)| Step::Join(slot, group)),
        1 => (slot(), 0..GROUPS).prop_map(|(slot, group)| Step::Leave(slot, group)),
        1 => (0..GROUPS, any::<bool>()).prop_map(|(group, leaves)| Step::Renew(group, leaves)),
        12 => (groups(), bytes(), 1_u32..20, 1_u32..9, prop::option::weighted(0.2, slot()))
            .prop_map(|(groups, bytes, count, topics, except)| Step::Multicast { groups, bytes, count, topics, except }),
        3 => (slot(), bytes()).prop_map(|(slot, bytes)| Step::Send(slot, bytes)),
        5 => (slot(), prop_oneof![1 => Just(usize::MAX), 4 => 0_usize..6_000]).prop_map(|(slot, room)| Step::Room(slot, room)),
        6 => Just(Step::Flush),
        2 => Just(Step::FlushUrgent),
        3 => (0_usize..3).prop_map(Step::FlushSome),
    ];
    prop::collection::vec(step, 0..60)
}

/// A frame that a peer was sent.
struct Sent {
    bytes: Vec<u8>,
    /// May be left out, as its groups say, and which of them are told.
    droppable: Option<(Policy, u32)>,
    told: BTreeSet<u32>,
    groups: BTreeSet<u32>,
}

#[derive(Default)]
struct Peer {
    has_deflate: bool,
    groups: BTreeSet<u32>,
    sent: Vec<Sent>,
    received: Vec<u8>,
    room: usize,
    is_full: bool,
    was_full: bool,
}

#[derive(Default)]
struct Peers(BTreeMap<u32, Peer>);

impl Wire for Peers {
    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Written {
        let peer = self.0.get_mut(&slot.0).expect("written to a connection that is gone");
        assert!(!bytes.is_empty() && !peer.is_full, "a full socket is left alone");
        let taken = bytes.len().min(peer.room);
        peer.received.extend_from_slice(&bytes[..taken]);
        peer.room -= taken;
        peer.is_full = taken < bytes.len();
        peer.was_full |= peer.is_full;
        if peer.is_full { Written::Part { taken, held: 0 } } else { Written::All }
    }
}

impl Peer {
    fn expect(&mut self, frame: Vec<u8>, groups: BTreeSet<u32>, topic: Option<u32>) {
        let policies: Option<Vec<_>> = groups.iter().map(|group| overflow_of(*group)).collect();
        let droppable = policies
            .zip(topic)
            .and_then(|(policies, topic)| Some((policies.iter().map(|(policy, _)| *policy).max()?, topic)));
        let told = groups.iter().copied().filter(|group| overflow_of(*group).is_some_and(|(_, told)| told)).collect();
        self.sent.push(Sent { bytes: frame, droppable, told, groups });
    }

    /// Checks what was received so far. `is_all`: everything was, so that the newest of each topic must be there.
    fn check(&self, is_all: bool) {
        let index_of: HashMap<&[u8], usize> =
            self.sent.iter().enumerate().map(|(index, sent)| (&sent.bytes[..], index)).collect();
        // `Ok`: index of a frame. `Err`: a group that was told.
        let mut events = Vec::new();
        let mut rest = &self.received[..];
        while !rest.is_empty() {
            let len = frame_len(rest);
            if rest.len() < len {
                assert!(!is_all, "a frame is cut");
                break;
            }
            let (frame, after) = rest.split_at(len);
            rest = after;
            events.push(match index_of.get(frame) {
                Some(index) => Ok(*index),
                None => {
                    let mut groups = self.sent.iter().flat_map(|sent| &sent.told);
                    Err(*groups.find(|group| notice_of(**group) == frame).expect("a frame that nobody sent"))
                }
            });
        }
        let frames: Vec<usize> = events.iter().filter_map(|event| event.ok()).collect();
        assert!(frames.is_sorted_by(|a, b| a < b), "out of order");
        let end = if is_all { self.sent.len() } else { frames.last().map_or(0, |last| last + 1) };
        let came: BTreeSet<usize> = frames.iter().copied().collect();
        let missing: Vec<usize> = (0..end).filter(|index| !came.contains(index)).collect();
        assert!(missing.is_empty() || self.was_full, "a reader that never lagged misses a frame");
        for index in &missing {
            self.check_missing(*index, &events, &came, is_all);
        }
        self.check_notices(&events, &missing, is_all);
    }

    fn check_missing(&self, index: usize, events: &[Result<usize, u32>], came: &BTreeSet<usize>, is_all: bool) {
        let Sent { droppable, told, .. } = &self.sent[index];
        let (policy, topic) = droppable.expect("a frame that must not be left out is missing");
        if policy == Policy::Latest && is_all {
            let newer = |other: &usize| *other > index && self.sent[*other].droppable == Some((Policy::Latest, topic));
            assert!(came.iter().any(newer), "the newest frame of a topic is missing");
        }
        for group in told {
            let of_group = |event: &Result<usize, u32>| {
                event.is_ok_and(|other| other < index && self.sent[other].groups.contains(group))
            };
            let from = events.iter().rposition(of_group).map_or(0, |last| last + 1);
            let next = events.iter().position(|event| event.is_ok_and(|other| other > index));
            let to = next.unwrap_or(events.len());
            let is_told = events[from..to].contains(&Err(*group));
            assert!(is_told || !(next.is_some() || is_all), "a gap was not told in its place");
        }
    }

    /// Nobody is told of a gap that is none.
    fn check_notices(&self, events: &[Result<usize, u32>], missing: &[usize], is_all: bool) {
        for (at, event) in events.iter().enumerate() {
            let Err(group) = event else { continue };
            let of_group =
                |event: &Result<usize, u32>| event.ok().filter(|index| self.sent[*index].groups.contains(group));
            let from = events[..at].iter().rev().find_map(of_group).map_or(0, |index| index + 1);
            let next = events[at..].iter().find_map(of_group);
            let to = next.unwrap_or(self.sent.len());
            let is_missing =
                missing.iter().any(|index| (from..to).contains(index) && self.sent[*index].told.contains(group));
            assert!(is_missing || (next.is_none() && !is_all), "told of a gap that is none");
        }
    }
}

fn frame_len(bytes: &[u8]) -> usize {
    match bytes.get(1).map(|byte| byte & 0x7f) {
        Some(126) if bytes.len() >= 4 => 4 + usize::from(u16::from_be_bytes([bytes[2], bytes[3]])),
        Some(126) | None => usize::MAX,
        Some(len) => 2 + usize::from(len),
    }
}

struct Run {
    fanout: Fanout,
    peers: Peers,
    serial: u32,
    deflater: Deflater,
    /// What each group is now, see [`overflow_of`].
    lives: [u32; GROUPS as usize],
}

impl Run {
    fn new() -> Self {
        let mut fanout = Fanout::new(MAX_OUTBOX_BYTES);
        let mut peers = Peers::default();
        (0..GROUPS).for_each(|group| set_overflow(&mut fanout, group));
        for slot in 0..SLOTS {
            fanout.insert(Slot(slot));
            let has_deflate = slot % 2 == 1;
            if has_deflate {
                fanout.enable_deflate(Slot(slot));
            }
            peers.0.insert(slot, Peer { has_deflate, room: 4_000, ..Peer::default() });
        }
        Self {
            fanout,
            peers,
            serial: 0,
            deflater: Deflater::default(),
            lives: std::array::from_fn(|group| group as u32),
        }
    }

    /// Bytes that no other frame has.
    fn payload(&mut self, bytes: usize) -> Vec<u8> {
        self.serial += 1;
        let mut payload = vec![7; bytes];
        payload[..4].copy_from_slice(&self.serial.to_be_bytes());
        payload
    }

    fn step(&mut self, step: Step) {
        match step {
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
            Step::Renew(group, leaves) => {
                for (slot, peer) in self.peers.0.iter_mut().filter(|_| leaves) {
                    peer.groups.remove(&group);
                    self.fanout.leave(Slot(*slot), GroupId(group));
                }
                self.lives[group as usize] += GROUPS;
                set_overflow(&mut self.fanout, self.lives[group as usize]);
            }
            Step::Multicast { groups, bytes, count, topics, except } => {
                for number in 0..count {
                    let topic = if self.serial.is_multiple_of(50) { None } else { Some(number % topics) };
                    self.multicast(&groups, bytes, except, topic);
                }
            }
            Step::Send(slot, bytes) => {
                let payload = self.payload(bytes);
                if let Some(peer) = self.peers.0.get_mut(&slot) {
                    let batch = batch(Packer::default().send(0.0, &payload));
                    let Some(Ok(Command::Send { frame, .. })) = batch.commands().next() else { panic!("not a send") };
                    let bytes = if peer.has_deflate { frame.deflated(&mut self.deflater) } else { None };
                    peer.expect(bytes.unwrap_or(frame).bytes().to_vec(), BTreeSet::new(), None);
                    self.fanout.send(Slot(slot), &frame);
                }
            }
            Step::Room(slot, room) => {
                if let Some(peer) = self.peers.0.get_mut(&slot) {
                    if peer.is_full {
                        self.fanout.unblock(Slot(slot));
                    }
                    (peer.room, peer.is_full) = (room, false);
                }
            }
            Step::Flush => self.fanout.flush(&mut self.peers),
            Step::FlushUrgent => {
                self.fanout.flush_urgent(&mut self.peers, 3);
            }
            Step::FlushSome(max_writes) => {
                self.fanout.flush_some(&mut self.peers, max_writes);
            }
        }
        if self.fanout.is_flush_due() {
            self.fanout.flush(&mut self.peers);
        }
        for slot in self.fanout.take_outcome().slow {
            self.peers.0.remove(&slot.0).expect("reported while it is there").check(false);
            self.fanout.remove(slot);
        }
    }

    fn multicast(&mut self, groups: &BTreeSet<u32>, bytes: usize, except: Option<u32>, topic: Option<u32>) {
        let payload = self.payload(bytes);
        let packed: Vec<u32> = groups.iter().copied().collect();
        let mut packer = Packer::default();
        let batch = batch(match topic {
            Some(topic) => packer.topic(&packed, &payload, topic),
            None => packer.multicast(&packed, &payload, None),
        });
        let Some(Ok(Command::Multicast(Multicast { groups: packed, frame, topic: packed_topic, .. }))) =
            batch.commands().next()
        else {
            panic!("not a multicast")
        };
        let deflated = frame.deflated(&mut self.deflater).unwrap_or(frame);
        let except = except.filter(|slot| self.peers.0.contains_key(slot));
        for (slot, peer) in &mut self.peers.0 {
            let its: BTreeSet<u32> =
                peer.groups.intersection(groups).map(|group| self.lives[*group as usize]).collect();
            if Some(*slot) != except && !its.is_empty() {
                let frame = if peer.has_deflate { deflated } else { frame };
                peer.expect(frame.bytes().to_vec(), its, topic);
            }
        }
        self.fanout.multicast(packed, &frame, except.map(Slot), packed_topic, self.serial.is_multiple_of(4));
    }

    fn finish(mut self) {
        for (slot, peer) in &mut self.peers.0 {
            self.fanout.unblock(Slot(*slot));
            (peer.room, peer.is_full) = (usize::MAX, false);
        }
        while self.fanout.is_dirty() {
            self.fanout.flush(&mut self.peers);
        }
        self.peers.0.values().for_each(|peer| peer.check(true));
        assert_eq!(self.fanout.outbox_bytes(), 0);
    }
}

fn set_overflow(fanout: &mut Fanout, group: u32) {
    let notice = notice_of(group);
    let overflow = overflow_of(group).map(|(policy, told)| (policy, told.then(|| Frame::copied(&notice))));
    fanout.set_overflow(GroupId(group % GROUPS), overflow);
}

fn batch(packer: &Packer) -> Arc<Batch> {
    Arc::new(Batch::new(&packer.0, Some(DEFLATE_FROM_BYTES)).expect("well packed"))
}

proptest! {
    // Half as many as usual: 128 take 2.5 s in a debug build.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 2, ..ProptestConfig::default() })]

    #[test]
    fn only_what_may_be_left_out_is_missing_and_every_gap_is_told_in_its_place(steps in steps()) {
        let mut run = Run::new();
        steps.into_iter().for_each(|step| run.step(step));
        run.finish();
    }
}
