//! What a flood comes to in writes: each costs as much as copying tens of kilobytes.

use super::{Fanout, Wire, Written};
use crate::bridge::batch::Frame;
use crate::id::{GroupId, Slot};

/// Takes everything, and remembers the sizes of what it took.
#[derive(Default)]
struct Taker(Vec<usize>);

impl Wire for Taker {
    fn write(&mut self, _slot: Slot, bytes: &[u8]) -> Written {
        self.0.push(bytes.len());
        Written::All
    }
}

#[test]
fn a_flood_leaves_in_large_writes_without_small_ones_between() {
    // Symptom: a third of the writes of a flood had a single frame. Cause: a flush that was due one frame after a chunk was full.
    for frame_bytes in [20, 127, 1_000, 10_000] {
        let mut fanout = Fanout::new(1 << 20);
        for slot in [Slot(0), Slot(1)] {
            fanout.insert(slot);
            fanout.join(slot, GroupId(1));
        }
        let frame = [&[0x82, 126][..], &(frame_bytes as u16 - 4).to_be_bytes(), &vec![7; frame_bytes - 4]].concat();
        let mut taker = Taker::default();
        for _ in 0..(4 << 20) / frame_bytes {
            fanout.multicast([GroupId(1)].into_iter(), &Frame::copied(&frame), None, None, false);
            if fanout.is_flush_due() {
                fanout.flush(&mut taker);
            }
        }
        assert!(taker.0.len() >= 32, "{} writes", taker.0.len());
        let smallest = taker.0.iter().min().copied().unwrap_or_default();
        assert!(smallest > (256 << 10) - frame_bytes, "{smallest} bytes");
    }
}

#[test]
fn a_flood_to_thousands_leaves_in_smaller_writes() {
    // Symptom: with 5,000 members a delivery cost 1.3 times as much as with 1,000. Cause: a gigabyte under way in the sockets.
    let mut fanout = Fanout::new(1 << 20);
    for slot in (0..5_200).map(Slot) {
        fanout.insert(slot);
        fanout.join(slot, GroupId(1));
    }
    let mut taker = Taker::default();
    for _ in 0..2_000 {
        fanout.multicast(
            [GroupId(1)].into_iter(),
            &Frame::copied(&[&[0x82, 98][..], &[7; 98]].concat()),
            None,
            None,
            false,
        );
        if fanout.is_flush_due() {
            fanout.flush(&mut taker);
        }
    }
    assert!(taker.0.len() >= 2 * 5_200, "{} writes", taker.0.len());
    assert!(taker.0.iter().all(|bytes| (60 << 10..=64 << 10).contains(bytes)));
}
