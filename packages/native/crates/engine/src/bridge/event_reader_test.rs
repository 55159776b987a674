use super::*;
use crate::bridge::event::Events;
use crate::id::{ConnectionId, ShardId, Slot};

fn events(count: u32, data: &[u8]) -> Events {
    let mut events = Events::default();
    for slot in 0..count {
        events.message(ConnectionId::new(ShardId(0), Slot(slot), 0), data, true);
    }
    events
}

fn put(queue: &EventQueue, mut rest: Events) {
    queue.put(&mut Events::default(), &mut rest);
}

/// The connections whose events are there, in order.
fn slots(mut packed: &[u8]) -> Vec<u32> {
    let mut slots = Vec::new();
    while !packed.is_empty() {
        let id = f64::from_le_bytes(*packed[8..].first_chunk().expect("an id"));
        slots.push(ConnectionId::from_number(id).expect("an id").slot().0);
        packed = &packed[event_len(packed)..];
    }
    slots
}

fn event_of(slot: u32) -> Events {
    let mut events = Events::default();
    events.message(ConnectionId::new(ShardId(0), Slot(slot), 0), b"abc", false);
    events
}

#[test]
fn the_front_lane_leaves_first_and_the_rest_never_before_what_was_put_in_front_of_it() {
    let (queue, mut reader, mut target) = (EventQueue::default(), EventReader::default(), [0; 1_000]);
    put(&queue, events(2, &[0; 500]));
    assert_eq!(reader.drain(&queue, &mut target).bytes, 520);
    queue.put(&mut event_of(7), &mut Events::default());
    queue.put(&mut event_of(8), &mut event_of(9));
    assert_eq!(queue.front.handled_position(), 0);
    let bytes = reader.drain_front(&queue, &mut target);
    assert_eq!(slots(&target[..bytes]), [7, 8]);
    assert_eq!((queue.front.handled_position(), queue.rest.handled_position()), (0, 0));
    queue.put(&mut event_of(10), &mut event_of(7));
    let bytes = reader.drain_front(&queue, &mut target[..30]);
    assert_eq!((slots(&target[..bytes]), queue.front.handled_position()), (vec![10], 46));
    queue.put(&mut event_of(11), &mut event_of(10));
    // The rest of the first block was taken before anything was put in front.
    let before = reader.drain(&queue, &mut target);
    assert_eq!((slots(&target[..before.bytes]), before.next_bytes), (vec![1], None));
    let bytes = reader.drain(&queue, &mut target).bytes;
    assert_eq!(slots(&target[..bytes]), [11, 9, 7, 10]);
    queue.note_handled();
    assert_eq!(queue.front.handled_position(), queue.front.read_position());
    assert_eq!(queue.rest.handled_position(), queue.rest.read_position());
}

#[test]
fn events_leave_whole_and_in_order() {
    let queue = EventQueue::default();
    put(&queue, events(3, b"abc"));
    put(&queue, events(2, b"defg"));
    let (mut reader, mut target, mut all) = (EventReader::default(), [0; 50], Vec::new());
    loop {
        let drained = reader.drain(&queue, &mut target);
        all.extend_from_slice(&target[..drained.bytes]);
        if drained.bytes == 0 {
            break;
        }
    }
    assert_eq!(all, [events(3, b"abc").block.bytes, events(2, b"defg").block.bytes].concat());
    assert_eq!(queue.rest.read_position(), all.len() as u64);
}

#[test]
fn messages_of_one_connection_share_events_that_stay_small() {
    let id = |slot| ConnectionId::new(ShardId(0), Slot(slot), 0);
    let (mut events, queue) = (Events::default(), EventQueue::default());
    for (slot, count) in [(0, 3), (1, 2), (0, 1_000), (1, 1)] {
        (0..count).for_each(|_| events.message(id(slot), &[7; 96], false));
    }
    let mut ends = vec![0];
    while ends[ends.len() - 1] < events.len() {
        let start = ends[ends.len() - 1];
        ends.push(start + event_len(&events.block.bytes[start..]));
    }
    let sizes: Vec<usize> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(sizes, [316, 216, 32_816, 32_816, 32_816, 1_616, 116]);
    assert!(events.block.cuts.iter().all(|cut| ends.contains(cut)), "{:?}", events.block.cuts);
    events.drop_unfinished();
    assert_eq!(events.len(), *ends.last().expect("an end"));
    queue.put(&mut Events::default(), &mut events);
    // A new block begins with an event of its own.
    events.message(id(1), &[7; 96], true);
    assert_eq!(event_len(&events.block.bytes), 116);
}

#[test]
fn an_event_that_does_not_fit_says_how_much_it_needs() {
    let queue = EventQueue::default();
    put(&queue, events(1, &[0; 100]));
    let drained = EventReader::default().drain(&queue, &mut [0; 50]);
    assert_eq!((drained.bytes, drained.next_bytes), (0, Some(120)));
}

#[test]
fn a_shard_that_waits_for_a_position_is_woken_when_it_is_read_and_until_it_waits_no_more() {
    let queue = EventQueue::default();
    put(&queue, events(4, &[0; 5]));
    queue.await_position(50);
    let (mut reader, mut target) = (EventReader::default(), [0; 25]);
    let woken: Vec<bool> = (0..3).map(|_| reader.drain(&queue, &mut target).wakes_shard).collect();
    assert_eq!(woken, [false, true, true]);
    queue.await_nothing();
    assert!(!reader.drain(&queue, &mut target).wakes_shard);
}

#[test]
fn large_blocks_leave_by_their_cuts_and_nothing_is_lost() {
    let queue = EventQueue::default();
    let (mut reader, mut target, mut all, mut sent) =
        (EventReader::default(), vec![0; 128 << 10], Vec::new(), Vec::new());
    for turn in 0..50_u8 {
        for size in [1, 300, 40_000, 200_000_usize] {
            let mut turn_events = events(3, &vec![turn; size / (1 + usize::from(turn % 7))]);
            sent.extend_from_slice(&turn_events.block.bytes);
            queue.put(&mut Events::default(), &mut turn_events);
        }
        for _ in 0..turn % 5 {
            let drained = reader.drain(&queue, &mut target);
            all.extend_from_slice(&target[..drained.bytes]);
            target.resize(drained.next_bytes.unwrap_or(0).max(128 << 10), 0);
        }
    }
    loop {
        let drained = reader.drain(&queue, &mut target);
        all.extend_from_slice(&target[..drained.bytes]);
        target.resize(drained.next_bytes.unwrap_or(0).max(128 << 10), 0);
        if drained.bytes == 0 && drained.next_bytes.is_none() {
            break;
        }
    }
    assert!(all == sent);
    assert_eq!(queue.rest.read_position(), sent.len() as u64);
}
