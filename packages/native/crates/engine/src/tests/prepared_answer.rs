//! Answers that JavaScript has prepared.

use std::io::Write;

use webmq_websocket::{Opcode, encode_masked_frame};

use super::client::Client;
use super::rig::{Rig, Told};
use crate::Options;

/// JavaScript has answered the first request of a connection, and prepares that answer for all.
fn prepare(rig: &mut Rig, (client, id): &mut (Client, f64), answer: &[u8], valid_ms: u16) {
    client.send(Opcode::Text, b"time?");
    assert_eq!(rig.next(), Told::Message(*id, b"time?".to_vec()));
    rig.submit(|packer| {
        packer.answer(b"time?", answer, valid_ms).send(*id, answer);
    });
    // As JavaScript does when it has handled its events.
    rig.drain();
    rig.until(|engine| engine.stats().outbox_bytes == 0);
    assert_eq!(client.message(), answer);
}

fn ask(rig: &Rig, client: &mut Client) -> Vec<u8> {
    let before = rig.engine.stats().answered_message_count;
    client.send(Opcode::Text, b"time?");
    rig.until(|engine| engine.stats().answered_message_count == before + 1);
    client.message()
}

#[test]
fn the_same_request_of_any_connection_gets_the_answer_without_javascript() {
    let mut rig = Rig::start(Options::default());
    let (mut first, mut second) = (rig.connect(), rig.connect());
    prepare(&mut rig, &mut first, b"noon", u16::MAX);
    for _ in 0..3 {
        assert_eq!(ask(&rig, &mut first.0), b"noon");
        assert_eq!(ask(&rig, &mut second.0), b"noon");
    }
    assert_eq!(rig.engine.stats().received_message_count, 7);
}

#[test]
fn everything_else_goes_to_javascript() {
    let mut rig = Rig::start(Options::default());
    let mut asker = rig.connect();
    prepare(&mut rig, &mut asker, b"noon", u16::MAX);
    let (client, id) = &mut asker;
    client.send(Opcode::Binary, b"time?");
    assert_eq!(rig.next(), Told::Message(*id, b"time?".to_vec()));
    for other in [&b"time"[..], b"time?\n", b"", b"TIME?"] {
        client.send(Opcode::Text, other);
        assert_eq!(rig.next(), Told::Message(*id, other.to_vec()));
    }
    assert_eq!(rig.engine.stats().answered_message_count, 0);
}

#[test]
fn an_answer_ends_with_its_time_and_with_the_next_multicast() {
    let mut rig = Rig::start(Options::default());
    let mut asker = rig.connect();
    prepare(&mut rig, &mut asker, b"noon", 0);
    // Its time was over at once: JavaScript is asked again.
    prepare(&mut rig, &mut asker, b"one", u16::MAX);
    assert_eq!(ask(&rig, &mut asker.0), b"one");
    rig.submit(|packer| {
        packer.multicast(&[1], b"news", None);
    });
    prepare(&mut rig, &mut asker, b"two", u16::MAX);
    assert_eq!(ask(&rig, &mut asker.0), b"two");
    // A later answer replaces it.
    rig.submit(|packer| {
        packer.answer(b"time?", b"three", u16::MAX).send(asker.1, b"next");
    });
    rig.until(|engine| engine.stats().outbox_bytes == 0);
    assert_eq!(asker.0.message(), b"next");
    assert_eq!(ask(&rig, &mut asker.0), b"three");
}

#[test]
fn an_answer_comes_behind_what_was_sent_before() {
    let mut rig = Rig::start(Options::default());
    let mut asker = rig.connect();
    rig.submit(|packer| {
        packer.join(asker.1, 1).multicast(&[1], b"news", None).answer(b"time?", b"noon", u16::MAX);
    });
    rig.until(|engine| engine.stats().outbox_bytes == 0 && engine.stats().delivered_count == 1);
    asker.0.send(Opcode::Text, b"time?");
    rig.until(|engine| engine.stats().answered_message_count == 1);
    assert_eq!([asker.0.message(), asker.0.message()], [b"news".to_vec(), b"noon".to_vec()]);
}

#[test]
fn an_answer_does_not_overtake_that_to_an_earlier_request() {
    // Symptom: `pong` came before the error that an earlier message of the connection caused.
    let mut rig = Rig::start(Options::default());
    let (mut asker, mut other) = (rig.connect(), rig.connect());
    prepare(&mut rig, &mut asker, b"noon", u16::MAX);
    let (client, id) = &mut asker;
    // In one read, and in a read of its own before JavaScript has handled the first.
    let mut frames = Vec::new();
    [&b"hard"[..], b"time?"].iter().for_each(|text| encode_masked_frame(Opcode::Text, text, [1, 2, 3, 4], &mut frames));
    client.socket.write_all(&frames).expect("sends");
    assert_eq!(rig.next(), Told::Message(*id, b"hard".to_vec()));
    assert_eq!(rig.next(), Told::Message(*id, b"time?".to_vec()));
    client.send(Opcode::Text, b"time?");
    rig.until(|engine| engine.stats().received_message_count == 4);
    assert_eq!(rig.engine.stats().answered_message_count, 0);
    // Others do not wait.
    assert_eq!(ask(&rig, &mut other.0), b"noon");
    rig.submit(|packer| {
        packer.send(asker.1, b"solved").send(asker.1, b"noon");
    });
    assert_eq!(rig.next(), Told::Message(asker.1, b"time?".to_vec()));
    rig.submit(|packer| {
        packer.send(asker.1, b"noon");
    });
    rig.drain();
    let received = [asker.0.message(), asker.0.message(), asker.0.message()];
    assert_eq!(received, [b"solved".to_vec(), b"noon".to_vec(), b"noon".to_vec()]);
    assert_eq!(ask(&rig, &mut asker.0), b"noon");
    assert_eq!(rig.engine.stats().answered_message_count, 2);
}

#[test]
fn a_flood_of_requests_goes_to_javascript_but_for_the_first_of_each_read() {
    // Otherwise nobody would count the work of a connection that asks all the time.
    const COUNT: u64 = 1_000;
    let mut rig = Rig::start(Options::default());
    let mut asker = rig.connect();
    prepare(&mut rig, &mut asker, b"noon", u16::MAX);
    let mut frames = Vec::new();
    (0..COUNT).for_each(|_| encode_masked_frame(Opcode::Text, b"time?", [1, 2, 3, 4], &mut frames));
    asker.0.socket.write_all(&frames).expect("sends");
    rig.until(|engine| engine.stats().received_message_count == COUNT + 1);
    let answered = rig.engine.stats().answered_message_count;
    // One write may arrive in several reads.
    assert!((16..COUNT / 2).contains(&answered), "{answered}");
    for _ in answered..COUNT {
        assert_eq!(rig.next(), Told::Message(asker.1, b"time?".to_vec()));
    }
    for _ in 0..answered {
        assert_eq!(asker.0.message(), b"noon");
    }
}
