//! What a connection that lags gets of groups whose frames may be left out.

use std::collections::VecDeque;

use super::records::Policy;
use super::{Fanout, Wire, Written};
use crate::bridge::batch::Frame;
use crate::id::{GroupId, Slot, TopicId};

const READER: Slot = Slot(0);
const MAX_OUTBOX_BYTES: usize = 64 << 10;
const LATEST: GroupId = GroupId(1);
const TOLD: GroupId = GroupId(2);
const OLDEST: GroupId = GroupId(3);
const ALL: GroupId = GroupId(4);
/// Frames of 100 bytes that a socket takes before it is full.
const ROOM: usize = 10;
const TOPICS: u32 = 7;

/// A socket that takes `room` bytes more.
#[derive(Default)]
struct Socket {
    room: usize,
    received: Vec<u8>,
}

impl Wire for Socket {
    fn write(&mut self, _slot: Slot, bytes: &[u8]) -> Written {
        let taken = bytes.len().min(self.room);
        self.room -= taken;
        self.received.extend_from_slice(&bytes[..taken]);
        if taken == bytes.len() { Written::All } else { Written::Part { taken, held: 0 } }
    }
}

struct Bench {
    fanout: Fanout,
    socket: Socket,
    is_slow: bool,
}

impl Bench {
    fn new(groups: &[GroupId]) -> Self {
        let mut fanout = Fanout::new(MAX_OUTBOX_BYTES);
        fanout.set_overflow(LATEST, Some((Policy::Latest, None)));
        fanout.set_overflow(TOLD, Some((Policy::Latest, Some(Frame::copied(&frame("gap told"))))));
        fanout.set_overflow(OLDEST, Some((Policy::DropOldest, Some(Frame::copied(&frame("gap oldest"))))));
        fanout.insert(READER);
        groups.iter().for_each(|group| fanout.join(READER, *group));
        Self { fanout, socket: Socket { room: ROOM * 100, ..Socket::default() }, is_slow: false }
    }

    fn multicast(&mut self, groups: &[GroupId], text: &str, topic: Option<u32>) {
        let groups = groups.iter().copied();
        self.fanout.multicast(groups, &Frame::copied(&padded(text)), None, topic.map(TopicId), false);
        self.flush();
    }

    fn send(&mut self, text: &str) {
        self.fanout.send(READER, &Frame::copied(&padded(text)));
        self.flush();
    }

    fn flush(&mut self) {
        self.fanout.flush(&mut self.socket);
        self.is_slow |= !self.fanout.take_outcome().slow.is_empty();
    }

    /// The socket takes everything. Returns the texts of all frames.
    fn read(&mut self) -> Vec<String> {
        self.socket.room = usize::MAX;
        self.fanout.unblock(READER);
        while self.fanout.is_dirty() {
            self.flush();
        }
        assert_eq!(self.fanout.outbox_bytes(), 0);
        let mut bytes: VecDeque<u8> = std::mem::take(&mut self.socket.received).into();
        let mut texts = Vec::new();
        while let Some(opcode) = bytes.pop_front() {
            assert_eq!(opcode, 0x81);
            let len = usize::from(bytes.pop_front().expect("a length"));
            let text = String::from_utf8(bytes.drain(..len).collect()).expect("text");
            texts.push(text.trim_end_matches('.').to_owned());
        }
        texts
    }
}

fn frame(text: &str) -> Vec<u8> {
    [&[0x81, text.len() as u8], text.as_bytes()].concat()
}

/// A frame of 100 bytes.
fn padded(text: &str) -> Vec<u8> {
    frame(&format!("{text:.<98}"))
}

fn name(number: u32) -> String {
    format!("{}:{number}", number % TOPICS)
}

fn update(bench: &mut Bench, group: GroupId, numbers: std::ops::Range<u32>) {
    numbers.for_each(|number| bench.multicast(&[group], &name(number), Some(number % TOPICS)));
}

#[test]
fn latest_gets_the_newest_frame_of_each_topic_in_order_and_is_never_slow() {
    let mut bench = Bench::new(&[LATEST]);
    update(&mut bench, LATEST, 0..10_000);
    assert!(!bench.is_slow && bench.fanout.outbox_bytes() < MAX_OUTBOX_BYTES / 2);
    let expected = (0..10).chain(9_993..10_000).map(name).collect::<Vec<_>>();
    assert_eq!(bench.read(), expected);
    let left_out = bench.fanout.take_left_out();
    assert_eq!((left_out.conflated_count, left_out.dropped_count), (9_983, 0));
}

#[test]
fn a_topic_is_not_put_off_forever_by_its_own_updates() {
    let mut bench = Bench::new(&[LATEST]);
    update(&mut bench, LATEST, 0..7_000);
    // The socket takes a frame per round of updates: always the one whose topic comes next.
    for round in 1_000..1_100 {
        bench.socket.room = 100;
        bench.fanout.unblock(READER);
        bench.flush();
        update(&mut bench, LATEST, round * TOPICS..(round + 1) * TOPICS);
    }
    let texts = bench.read();
    let topics: std::collections::BTreeSet<_> = texts[20..60].iter().map(|text| &text[..1]).collect();
    assert_eq!(topics.len(), TOPICS as usize);
}

#[test]
fn latest_is_told_where_frames_are_missing_if_it_asks() {
    let mut bench = Bench::new(&[TOLD]);
    update(&mut bench, TOLD, 0..1_001);
    let mut expected: Vec<_> = (0..10).map(name).collect();
    expected.push("gap told".to_owned());
    expected.extend((994..1_001).map(name));
    assert_eq!(bench.read(), expected);
}

#[test]
fn drop_oldest_gets_the_newest_frames_behind_one_gap() {
    let mut bench = Bench::new(&[OLDEST]);
    update(&mut bench, OLDEST, 0..10_000);
    assert!(!bench.is_slow);
    let texts = bench.read();
    let begin: Vec<_> = (0..10).map(name).collect();
    assert_eq!(&texts[..10], &begin[..]);
    assert_eq!(texts[10], "gap oldest");
    let rest = (texts.len() - 11) as u32;
    // A quarter of an outbox, and what was not read of the log at the end.
    assert!((163..=164).contains(&rest), "{rest}");
    assert_eq!(texts[11..], (10_000 - rest..10_000).map(name).collect::<Vec<_>>()[..]);
    assert_eq!(bench.fanout.take_left_out().dropped_count, u64::from(10_000 - rest - 10));
}

#[test]
fn nothing_of_another_group_and_no_frame_of_its_own_is_left_out() {
    let mut bench = Bench::new(&[LATEST, ALL]);
    let mut kept = Vec::new();
    for round in 0..100 {
        update(&mut bench, LATEST, round * 70..(round + 1) * 70);
        // A frame for both groups, one of the other group, and one without a topic.
        bench.multicast(&[LATEST, ALL], &format!("both {round}"), Some(0));
        bench.multicast(&[ALL], &format!("all {round}"), Some(0));
        bench.multicast(&[LATEST], &format!("gap {round}"), None);
        bench.send(&format!("own {round}"));
        kept.extend(["both", "all", "gap", "own"].map(|name| format!("{name} {round}")));
    }
    assert!(!bench.is_slow);
    let texts = bench.read();
    let others: Vec<_> = texts.iter().filter(|text| text.contains(' ')).cloned().collect();
    assert_eq!(others, kept);
    assert_eq!(texts[texts.len() - 11..texts.len() - 4], (6_993..7_000).map(name).collect::<Vec<_>>()[..]);
}

#[test]
fn a_connection_with_too_many_topics_is_slow() {
    let mut bench = Bench::new(&[LATEST]);
    (0..2_000).for_each(|number| bench.multicast(&[LATEST], "x", Some(number)));
    assert!(bench.is_slow);
}

#[test]
fn a_reader_whose_socket_is_never_full_misses_nothing() {
    let mut bench = Bench::new(&[TOLD]);
    bench.socket.room = usize::MAX;
    for number in 0..1_000 {
        let groups = [TOLD].into_iter();
        bench.fanout.multicast(
            groups,
            &Frame::copied(&padded(&name(number))),
            None,
            Some(TopicId(number % TOPICS)),
            false,
        );
        bench.fanout.send(READER, &Frame::copied(&padded("own")));
    }
    assert_eq!(bench.read().len(), 2_000);
    assert_eq!(bench.fanout.take_left_out().conflated_count, 0);
}

#[test]
fn what_waits_when_a_group_is_left_is_sent_without_what_may_be_left_out() {
    let mut bench = Bench::new(&[LATEST, ALL]);
    update(&mut bench, LATEST, 0..1_000);
    bench.fanout.leave(READER, LATEST);
    bench.multicast(&[ALL], "after", None);
    let expected: Vec<_> = (0..10).chain(993..1_000).map(name).chain(["after".to_owned()]).collect();
    assert_eq!(bench.read(), expected);
}

/// Symptom: a debug build stopped at the end of a turn, because somebody still waited for its memory. Cause: the rest of a frame
/// that the socket took in part went into the chain without a note that the chain must be copied out of that memory.
#[test]
fn the_rest_of_a_begun_frame_does_not_keep_the_memory_of_its_turn() {
    let mut bench = Bench::new(&[LATEST]);
    bench.socket.room = 50;
    // More than an eighth of an outbox, in one chunk.
    for number in 0..100 {
        let frame = padded(&name(number));
        bench.fanout.multicast(
            [LATEST].into_iter(),
            &Frame::copied(&frame),
            None,
            Some(TopicId(number % TOPICS)),
            false,
        );
    }
    bench.flush();
    let expected = [0].into_iter().chain(93..100).map(name).collect::<Vec<_>>();
    assert_eq!(bench.read(), expected);
}

#[test]
fn an_event_stream_misses_nothing_and_is_slow_when_it_lags() {
    let mut bench = Bench::new(&[]);
    bench.fanout.enable_stream(READER);
    [TOLD, OLDEST, ALL].into_iter().for_each(|group| bench.fanout.join(READER, group));
    let count = MAX_OUTBOX_BYTES as u32 / 2 / 100;
    (0..count).for_each(|number| bench.multicast(&[TOLD, OLDEST], &name(number), Some(number % TOPICS)));
    // Its output leaves the cohort as well.
    bench.fanout.leave(READER, OLDEST);
    assert!(!bench.is_slow);
    assert_eq!(bench.read(), (0..count).map(name).collect::<Vec<_>>());
    bench.socket.room = 0;
    update(&mut bench, TOLD, 0..10_000);
    assert!(bench.is_slow);
    assert_eq!(bench.fanout.take_left_out(), Default::default());
}

/// Symptom: a member that lagged was told of no gap, or of the pattern of others. Cause: only the number of the group was kept,
/// and the notice was looked up when the socket had room again: the group was gone by then, and its number given anew.
#[test]
fn what_was_left_out_is_told_with_the_notice_of_its_time() {
    for others in [&[][..], &[ALL]] {
        let mut bench = Bench::new(&[&[OLDEST], others].concat());
        // The last ones stay in the log: no backlog has them when the group goes.
        update(&mut bench, OLDEST, 0..1_001);
        bench.fanout.leave(READER, OLDEST);
        bench.fanout.set_overflow(OLDEST, None);
        bench.fanout.set_overflow(OLDEST, Some((Policy::DropOldest, Some(Frame::copied(&frame("gap secret"))))));
        let texts = bench.read();
        assert_eq!(texts[10], "gap oldest", "{others:?}");
        assert_eq!(texts.last(), Some(&name(1_000)));
        assert!(!texts.iter().any(|text| text == "gap secret"));
    }
}

#[test]
fn a_group_that_gets_the_number_of_another_has_gaps_of_its_own() {
    for leaves in [true, false] {
        let mut bench = Bench::new(&[OLDEST]);
        update(&mut bench, OLDEST, 0..1_000);
        if leaves {
            bench.fanout.leave(READER, OLDEST);
        }
        bench.fanout.set_overflow(OLDEST, Some((Policy::DropOldest, Some(Frame::copied(&frame("gap next"))))));
        bench.fanout.join(READER, OLDEST);
        update(&mut bench, OLDEST, 1_000..2_000);
        let texts = bench.read();
        assert_eq!(texts[10..12], ["gap oldest", "gap next"], "leaves: {leaves}");
        assert_eq!(texts.iter().filter(|text| text.starts_with("gap")).count(), 2);
    }
}

#[test]
fn notices_count_as_what_waits() {
    let mut bench = Bench::new(&[]);
    let mut gap_count = 0;
    while !bench.is_slow && gap_count < 200 {
        gap_count += 1;
        let notice = padded(&format!("gap {gap_count}")).repeat(10);
        bench.fanout.set_overflow(OLDEST, Some((Policy::DropOldest, Some(Frame::copied(&notice)))));
        bench.fanout.join(READER, OLDEST);
        update(&mut bench, OLDEST, 0..200);
        bench.fanout.leave(READER, OLDEST);
    }
    // Three quarters of an outbox, as the oldest frames may have the other one.
    assert!((40..=70).contains(&gap_count), "{gap_count}");
}
