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
        fanout.multicast([GroupId(1)].into_iter(), &Frame::copied(BROADCAST), None, None);
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
    fanout.multicast([GroupId(1)].into_iter(), &Frame::copied(BROADCAST), None, None);
    fanout.flush(&mut taker);
    assert_eq!(taker.0.len(), 20);
    assert!(taker.0.iter().all(|(_, bytes)| bytes == BROADCAST));
}
