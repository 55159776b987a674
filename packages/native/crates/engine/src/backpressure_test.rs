use super::*;

const LOAD: OutputLoad =
    OutputLoad { connections: 100, blocked_count: 0, outbox_bytes: 300, max_outbox_bytes: 1_000, is_lagging: false };

#[test]
fn publishers_wait_for_many_full_sockets_if_much_waits_for_one() {
    let waits = |load: OutputLoad| ReaderGrace::default().is_congested(load, 0);
    assert!(!waits(OutputLoad { blocked_count: 3, ..LOAD }));
    assert!(waits(OutputLoad { blocked_count: 4, ..LOAD }));
    assert!(!waits(OutputLoad { blocked_count: 4, connections: 128, ..LOAD }));
    assert!(waits(OutputLoad { blocked_count: 2, connections: 3, ..LOAD }));
    assert!(!waits(OutputLoad { blocked_count: 100, outbox_bytes: 250, ..LOAD }));
}

#[test]
fn publishers_wait_every_time_for_connections_that_catch_up() {
    let mut grace = ReaderGrace::default();
    for round in 0..100 {
        let began_us = round * GRACE_US;
        assert!(grace.is_granted(true, began_us));
        assert!(grace.is_granted(true, began_us + GRACE_US - 1));
        assert_eq!(grace.ends_at_us(), Some(began_us + GRACE_US));
        assert!(!grace.is_granted(false, began_us + GRACE_US - 1));
        assert_eq!(grace.ends_at_us(), None);
    }
}

#[test]
fn publishers_wait_a_tenth_of_the_time_for_a_connection_that_stays_slow() {
    let mut grace = ReaderGrace::default();
    let waited = (0..10_000_u64).filter(|millisecond| grace.is_granted(true, millisecond * 1_000)).count();
    assert!((800..=1_000).contains(&waited), "{waited} ms of 10 s");
}

#[test]
fn publishers_wait_for_a_second_and_no_more_in_one_saturation() {
    let taken = Taken { connections: 1, sent_bytes: 0 };
    let wait = Wait::None.go_on(5_000, taken).go_on(5_000 + MAX_WAIT_MS - 1, taken);
    assert_eq!(wait, Wait::Since { ms: 5_000, sent_bytes: 0 });
    assert_eq!(wait.go_on(6_000, taken), Wait::GivenUp);
    assert_eq!(wait.go_on(6_000, taken).go_on(60_000, taken), Wait::GivenUp);
}

#[test]
fn publishers_wait_on_while_the_connections_take_a_lot() {
    let taken = |sent_bytes| Taken { connections: 100, sent_bytes };
    let mut wait = Wait::None.go_on(0, taken(1_000_000));
    let mut sent_bytes = 1_000_000;
    for second in 1..=3 {
        sent_bytes += 100 * MIN_TAKEN_BYTES;
        wait = wait.go_on(second * 1_000, taken(sent_bytes));
        assert_eq!(wait, Wait::Since { ms: second * 1_000, sent_bytes });
    }
    assert_eq!(wait.go_on(4_000, taken(sent_bytes + 100 * MIN_TAKEN_BYTES - 1)), Wait::GivenUp);
}
