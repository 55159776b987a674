use proptest::prelude::*;
use webmq_websocket::{CloseCode, Opcode, encode_close, encode_frame};

use super::super::connection::GroupId;
use super::super::protocol::{Clock, Count};
use super::super::window::Counts;
use super::*;

const PLAN: Count = Count {
    duration_ms: None,
    seq_field: true,
    latency: true,
    fanout: true,
    by_seq: false,
    clock: Clock::Monotonic,
    first_seq: None,
    timeline_ms: 100,
};

fn message(sequence: u64, padding_bytes: usize) -> Vec<u8> {
    let pad = "x".repeat(padding_bytes);
    format!(r#"{{"t":"fanout_tick","p":{{"seq":{sequence},"ts_us":1000,"pad":"{pad}"}}}}"#).into_bytes()
}

fn frames(sequences: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    sequences.into_iter().for_each(|sequence| encode_frame(Opcode::Text, &message(sequence, 20), &mut bytes));
    bytes
}

fn counting(plan: Count) -> Intake {
    Intake { window: Some(Window::new(plan, 1, 0)), ..Intake::default() }
}

/// Passes `bytes` to the intake in reads of the given sizes; the last size repeats.
fn feed(intake: &mut Intake, connection: &mut Connection, bytes: &[u8], sizes: &[usize]) {
    let mut sizes = sizes.iter().copied().chain(std::iter::repeat(*sizes.last().unwrap_or(&1)));
    let mut rest = bytes;
    let mut buffer = vec![0; MAX_STASHED_BYTES + bytes.len()];
    while !rest.is_empty() {
        let (read, after) = rest.split_at(sizes.next().unwrap_or(1).clamp(1, rest.len()));
        rest = after;
        let (head, room) = buffer.split_at_mut(MAX_STASHED_BYTES);
        room[..read.len()].copy_from_slice(read);
        let held = intake.unstash(connection, head);
        intake.take(connection, &buffer[MAX_STASHED_BYTES - held..MAX_STASHED_BYTES + read.len()], read.len(), 1_500);
    }
}

fn counts(intake: &Intake) -> Counts {
    intake.window.as_ref().expect("a window").counts
}

fn counted(sequences: impl IntoIterator<Item = u64>) -> Counts {
    let mut intake = counting(PLAN);
    feed(&mut intake, &mut Connection::vacant(), &frames(sequences), &[usize::MAX]);
    counts(&intake)
}

#[test]
fn frames_in_order_are_counted_without_complaint() {
    let Counts { frame_count, gap_count, duplicate_count, reordered_count } = counted(1..=1_000);
    assert_eq!((frame_count, gap_count, duplicate_count, reordered_count), (1_000, 0, 0, 0));
}

#[test]
fn injected_gaps_duplicates_and_reorderings_are_found() {
    let lost = counted((1..=100).filter(|sequence| sequence % 10 != 0));
    // The last one is missing too, but no later one has come.
    assert_eq!((lost.frame_count, lost.gap_count, lost.duplicate_count, lost.reordered_count), (90, 9, 0, 0));
    let doubled = counted((1..=100).flat_map(|sequence| [sequence; 2]));
    assert_eq!((doubled.frame_count, doubled.gap_count, doubled.duplicate_count), (200, 0, 100));
    let swapped = counted((0..50).flat_map(|pair| [2 * pair + 2, 2 * pair + 1]));
    // The very first precedes the start and fills no gap.
    assert_eq!((swapped.frame_count, swapped.gap_count, swapped.reordered_count), (100, 0, 50));
}

#[test]
fn what_a_slow_connection_gets_is_counted_apart_and_has_no_latency() {
    let mut intake = counting(PLAN);
    let mut slow = Connection::vacant();
    slow.reading = super::super::connection::Reading::Throttled;
    feed(&mut intake, &mut slow, &frames([1, 5]), &[usize::MAX]);
    let window = intake.window.as_ref().expect("a window");
    assert_eq!((window.counts.frame_count, window.slow_counts.frame_count, window.slow_counts.gap_count), (0, 2, 3));
    assert_eq!(window.latencies.count(), 0);
}

#[test]
fn a_new_window_begins_with_what_comes_first() {
    let mut intake = counting(PLAN);
    let mut connection = Connection::vacant();
    feed(&mut intake, &mut connection, &frames([1, 2]), &[usize::MAX]);
    intake.window = Some(Window::new(PLAN, 2, 0));
    feed(&mut intake, &mut connection, &frames([10, 11]), &[usize::MAX]);
    assert_eq!((counts(&intake).frame_count, counts(&intake).gap_count), (2, 0));
    intake.window = Some(Window::new(Count { first_seq: Some(10), ..PLAN }, 3, 0));
    feed(&mut intake, &mut connection, &frames([12]), &[usize::MAX]);
    assert_eq!((counts(&intake).frame_count, counts(&intake).gap_count), (1, 2));
}

#[test]
fn each_message_of_each_group_has_its_latencies() {
    let mut intake = counting(Count { by_seq: true, fanout: false, ..PLAN });
    for group in [0, 0, 7] {
        let mut connection = Connection::vacant();
        connection.group = GroupId(group);
        feed(&mut intake, &mut connection, &frames([1, 2, 2]), &[usize::MAX]);
    }
    let window = intake.window.as_mut().expect("a window");
    let summaries = window.receipts.take_summaries();
    let found = summaries.iter().map(|message| (message.group, message.seq, message.count, message.p99));
    // The second copies are no receipts of their own.
    assert_eq!(found.collect::<Vec<_>>(), [(0, 1, 2, 500), (0, 2, 2, 500), (7, 1, 1, 500), (7, 2, 1, 500)]);
    assert_eq!((window.counts.duplicate_count, window.latencies.count()), (3, 9));
}

#[test]
fn a_time_of_the_wall_clock_is_compared_with_the_wall_clock() {
    let mut intake = counting(Count { clock: Clock::Wall, by_seq: true, fanout: false, ..PLAN });
    let (now_us, wall_us) = (crate::clock::now_us(), crate::clock::wall_us());
    let mut connection = Connection::vacant();
    for (sequence, sent_us) in [(1, wall_us - 3_000_000), (2, wall_us + 9_000_000)] {
        let mut bytes = Vec::new();
        let text = format!("{{\"seq\":{sequence},\"ts_us\":{sent_us}}}");
        encode_frame(Opcode::Text, text.as_bytes(), &mut bytes);
        intake.take(&mut connection, &bytes, bytes.len(), now_us);
    }
    let receipts = &mut intake.window.as_mut().expect("a window").receipts;
    assert_eq!(receipts.early_count(), 1);
    let latencies: Vec<u64> = receipts.take_summaries().iter().map(|message| message.max).collect();
    assert!(latencies[0] >= 3_000_000 && latencies[0] < 4_000_000 && latencies[1] == 0, "{latencies:?}");
}

#[test]
fn awaited_messages_and_control_frames_are_noticed_in_order() {
    let mut intake = counting(PLAN);
    intake.prefixes = Prefixes { ready: (*b"welcome").into(), answer: (*b"ok 1").into(), pong: (*b"pong").into() };
    intake.replies = vec![Reply { to: (*b"2").into(), frame: Rc::from(&b"3"[..]) }];
    let mut connection = Connection::vacant();
    [Awaited::READY, Awaited::ANSWER, Awaited::APP_PONG, Awaited::PONG]
        .into_iter()
        .for_each(|awaited| connection.awaited.insert(awaited));
    let mut bytes = Vec::new();
    for text in ["welcome\n{}", "ok 1 position=a:1", "pong", "2", "other"] {
        encode_frame(Opcode::Text, text.as_bytes(), &mut bytes);
    }
    encode_frame(Opcode::Ping, b"abc", &mut bytes);
    encode_frame(Opcode::Pong, b"", &mut bytes);
    encode_close(CloseCode::new(4008), "slow", &mut bytes);
    encode_frame(Opcode::Text, b"after the end", &mut bytes);
    feed(&mut intake, &mut connection, &bytes, &[usize::MAX]);
    let expected = [
        Notice::Ready,
        Notice::Answered,
        Notice::Ponged,
        Notice::Reply(0),
        Notice::Pinged(b"abc".to_vec()),
        Notice::Ponged,
        Notice::Closed(4008),
    ];
    assert_eq!(intake.notices, expected);
    let window = intake.window.as_ref().expect("a window");
    assert_eq!((window.counts.frame_count, window.other_count), (0, 5));
}

#[test]
fn without_a_sequence_every_message_is_a_frame() {
    let mut intake = counting(Count { seq_field: false, ..PLAN });
    let mut bytes = Vec::new();
    encode_frame(Opcode::Text, b"welcome", &mut bytes);
    encode_frame(Opcode::Binary, &[0xc1; 300], &mut bytes);
    feed(&mut intake, &mut Connection::vacant(), &bytes, &[usize::MAX]);
    let window = intake.window.as_ref().expect("a window");
    assert_eq!((window.counts.frame_count, window.payload_bytes, window.wire_bytes), (2, 307, bytes.len() as u64));
}

proptest! {
    #[test]
    fn how_the_bytes_are_cut_changes_nothing(
        paddings in prop::collection::vec(prop_oneof![0_usize..60, 400_usize..700, 60_000_usize..70_000], 1..20),
        sizes in prop::collection::vec(prop_oneof![1_usize..20, 100_usize..600, 1_000_usize..100_000], 1..40),
    ) {
        let mut bytes = Vec::new();
        let mut payload_bytes = 0;
        for (index, padding_bytes) in paddings.iter().enumerate() {
            let payload = message(index as u64 * 2, *padding_bytes);
            payload_bytes += payload.len() as u64;
            encode_frame(Opcode::Text, &payload, &mut bytes);
            encode_frame(Opcode::Ping, b"?", &mut bytes);
        }
        let mut intake = counting(PLAN);
        feed(&mut intake, &mut Connection::vacant(), &bytes, &sizes);
        let window = intake.window.as_ref().expect("a window");
        prop_assert_eq!(window.counts.frame_count, paddings.len() as u64);
        prop_assert_eq!(window.counts.gap_count, paddings.len() as u64 - 1);
        prop_assert_eq!((window.payload_bytes, window.wire_bytes), (payload_bytes, bytes.len() as u64));
        prop_assert_eq!(window.latencies.count(), paddings.len() as u64);
        prop_assert_eq!(intake.notices.len(), paddings.len());
    }
}
