//! Who is written to first.

use super::{Fanout, Wire, Written};
use crate::bridge::batch::Frame;
use crate::id::{GroupId, Slot};

const BROADCAST: &[u8] = &[0x82, 1, b'b'];
const ANSWER: &[u8] = &[0x81, 1, b'a'];

/// Takes everything, and remembers who got what.
#[derive(Default)]
struct Taker(Vec<(Slot, Vec<u8>)>);

impl Wire for Taker {
    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Written {
        self.0.push((slot, bytes.to_vec()));
        Written::All
    }
}

#[test]
fn an_answer_does_not_wait_for_a_broadcast_to_everybody_else() {
    // Symptom: the answer to a publish came after the message itself had come to hundreds. Cause: who has something of its own was
    // written to last.
    let publisher = Slot(7);
    let mut fanout = Fanout::new(1 << 20);
    for slot in (0..20).map(Slot) {
        fanout.insert(slot);
        fanout.join(slot, GroupId(1));
    }
    for _ in 0..3 {
        let mut taker = Taker::default();
        fanout.multicast([GroupId(1)].into_iter(), &Frame::copied(BROADCAST), None, None, false);
        fanout.send(publisher, &Frame::copied(ANSWER));
        fanout.flush(&mut taker);
        assert_eq!(taker.0.first(), Some(&(publisher, [BROADCAST, ANSWER].concat())));
        let others: Vec<Slot> = taker.0[1..].iter().map(|(slot, _)| *slot).collect();
        assert_eq!(others.len(), 19, "one write each: {others:?}");
        assert!(!others.contains(&publisher));
    }
    // Afterwards it is one of all again.
    assert!(!fanout.is_dirty());
    let mut taker = Taker::default();
    fanout.multicast([GroupId(1)].into_iter(), &Frame::copied(BROADCAST), None, None, false);
    fanout.flush(&mut taker);
    assert_eq!(taker.0.len(), 20);
    assert!(taker.0.iter().all(|(_, bytes)| bytes == BROADCAST));
}

#[test]
fn an_answer_that_comes_during_a_broadcast_does_not_wait_for_the_rest_of_it() {
    // Symptom: the answer to a `history` waited for a broadcast to hundreds that had begun before. Cause: a flush was one piece.
    for asker in [Slot(1), Slot(15)] {
        let mut fanout = Fanout::new(1 << 20);
        for slot in (0..20).map(Slot) {
            fanout.insert(slot);
            fanout.join(slot, GroupId(1));
        }
        let mut taker = Taker::default();
        fanout.multicast([GroupId(1)].into_iter(), &Frame::copied(BROADCAST), None, None, false);
        assert!(!fanout.flush_some(&mut taker, 8));
        assert!(fanout.is_flushing() && fanout.is_dirty());
        assert_eq!(taker.0.len(), 8);
        fanout.send(asker, &Frame::copied(ANSWER));
        assert!(!fanout.flush_some(&mut taker, 8));
        let has_broadcast = asker == Slot(1);
        let expected = if has_broadcast { ANSWER.to_vec() } else { [BROADCAST, ANSWER].concat() };
        assert_eq!(taker.0.get(8), Some(&(asker, expected)));
        assert!(fanout.flush_some(&mut taker, 8));
        assert!(!fanout.is_flushing() && !fanout.is_dirty());
        for slot in (0..20).map(Slot) {
            let bytes: Vec<u8> =
                taker.0.iter().filter(|(to, _)| *to == slot).flat_map(|(_, bytes)| bytes.clone()).collect();
            let expected = if slot == asker { [BROADCAST, ANSWER].concat() } else { BROADCAST.to_vec() };
            assert_eq!(bytes, expected, "{slot:?}");
        }
    }
}

#[test]
fn connections_may_go_while_a_broadcast_is_interrupted() {
    for gone in [0..4, 4..20, 0..20, 7..9] {
        let mut fanout = Fanout::new(1 << 20);
        for slot in (0..20).map(Slot) {
            fanout.insert(slot);
            fanout.join(slot, GroupId(1));
        }
        let mut taker = Taker::default();
        fanout.multicast([GroupId(1)].into_iter(), &Frame::copied(BROADCAST), None, None, false);
        assert!(!fanout.flush_some(&mut taker, 8));
        gone.clone().map(Slot).for_each(|slot| fanout.remove(slot));
        assert!(fanout.flush_some(&mut taker, 20));
        for slot in (0..20).filter(|slot| *slot < 8 || !gone.contains(slot)).map(Slot) {
            assert_eq!(taker.0.iter().filter(|(to, _)| *to == slot).count(), 1, "{slot:?}");
        }
        assert_eq!(fanout.outbox_bytes(), 0);
    }
}

#[test]
fn an_urgent_multicast_takes_along_what_is_held_for_its_receivers_and_nothing_else() {
    let (all, some) = (GroupId(1), GroupId(2));
    let mut fanout = Fanout::new(1 << 20);
    for slot in (0..20).map(Slot) {
        fanout.insert(slot);
        fanout.join(slot, all);
    }
    (0..5).map(Slot).for_each(|slot| fanout.join(slot, some));
    for _ in 0..3 {
        let mut taker = Taker::default();
        fanout.multicast([all].into_iter(), &Frame::copied(BROADCAST), None, None, false);
        assert!(!fanout.is_urgent());
        fanout.multicast([some].into_iter(), &Frame::copied(ANSWER), None, None, true);
        // In parts, as a flush is.
        assert_eq!(fanout.flush_urgent(&mut taker, 3), 3);
        assert!(fanout.is_urgent() && fanout.is_interrupted() && !fanout.is_flushing());
        assert_eq!(fanout.flush_urgent(&mut taker, 3), 2);
        assert!(!fanout.is_urgent() && !fanout.is_interrupted());
        assert_eq!(taker.0, (0..5).map(|slot| (Slot(slot), [BROADCAST, ANSWER].concat())).collect::<Vec<_>>());
        taker.0.clear();
        fanout.flush(&mut taker);
        taker.0.sort_by_key(|(slot, _)| slot.0);
        assert_eq!(taker.0, (5..20).map(|slot| (Slot(slot), BROADCAST.to_vec())).collect::<Vec<_>>());
        assert!(!fanout.is_dirty());
        assert_eq!(fanout.outbox_bytes(), 0);
    }
}
