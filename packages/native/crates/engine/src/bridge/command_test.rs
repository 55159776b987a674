use proptest::prelude::*;

use super::*;
use crate::tests::packer::Packer;

fn packed() -> Vec<u8> {
    let mut packer = Packer::default();
    packer.accept(1.0, Some("webmq.v1")).reject(2.0, 403, "no").join(3.0, 4).leave(3.0, 4);
    packer.send(5.0, b"data").multicast(&[6, 7], b"more", Some(8.0)).close(9.0, 4001, "bye");
    packer.notify(10.0, OutboxLevel::Low).pause(11.0).resume(12.0);
    packer.topic(&[6], b"less", 13).overflow(6, 2, Some(b"gone")).overflow(6, 0, None);
    packer.answer(b"question", b"ready", 250).urgent(&[6], b"now");
    packer.0
}

#[test]
fn commands_are_read_as_they_were_packed() {
    let batch = Arc::new(Batch::new(&packed(), None).expect("well packed"));
    let commands: Vec<_> = batch.commands().map(|command| command.expect("well packed")).collect();
    let number = |id: ConnectionId| id.to_number();
    assert_eq!(commands.len(), 15);
    assert!(matches!(&commands[0], Command::Accept { id, subprotocol: Some("webmq.v1"), headers }
        if number(*id) == 1.0 && headers.clone().eq([("a", "bc")])));
    assert!(matches!(&commands[1], Command::Reject { status: 403, body: "no", .. }));
    assert!(matches!(&commands[2], Command::Join { group: GroupId(4), .. }));
    assert!(matches!(&commands[3], Command::Leave { group: GroupId(4), .. }));
    assert!(matches!(&commands[4], Command::Send { frame, .. } if frame.bytes() == b"\x82\x04data"));
    assert!(
        matches!(&commands[5], Command::Multicast(Multicast { groups, frame, except: Some(except), topic: None, is_urgent: false })
        if groups.clone().eq([GroupId(6), GroupId(7)]) && frame.bytes() == b"\x81\x04more" && number(*except) == 8.0)
    );
    assert!(matches!(&commands[6], Command::Close { code: 4001, reason: "bye", .. }));
    assert!(matches!(&commands[7], Command::Notify { level: OutboxLevel::Low, .. }));
    assert!(matches!(&commands[8], Command::Pause { id } if number(*id) == 11.0));
    assert!(matches!(&commands[9], Command::Resume { id } if number(*id) == 12.0));
    assert!(
        matches!(&commands[10], Command::Multicast(Multicast { groups, frame, except: None, topic: Some(TopicId(13)), is_urgent: false })
        if groups.clone().eq([GroupId(6)]) && frame.bytes() == b"\x82\x04less")
    );
    assert!(
        matches!(&commands[11], Command::Overflow { group: GroupId(6), overflow: Some((Policy::Latest, Some(frame))) }
        if frame.bytes() == b"\x81\x04gone")
    );
    assert!(matches!(&commands[12], Command::Overflow { group: GroupId(6), overflow: None }));
    assert!(matches!(&commands[13], Command::Answer { request: b"question", frame, valid_ms: 250 }
        if frame.bytes() == b"\x81\x05ready"));
    assert!(
        matches!(&commands[14], Command::Multicast(Multicast { groups, frame, except: None, topic: None, is_urgent: true })
        if groups.clone().eq([GroupId(6)]) && frame.bytes() == b"\x81\x03now")
    );
}

#[test]
fn a_batch_of_multicasts_may_be_held_back_unless_one_is_urgent() {
    let is_urgent = |packer: &Packer| Batch::new(&packer.0, None).expect("well packed").is_urgent();
    assert!(!is_urgent(Packer::default().multicast(&[1], b"a", None).topic(&[1], b"b", 2)));
    assert!(is_urgent(Packer::default().multicast(&[1], b"a", None).urgent(&[2], b"now")));
    assert!(is_urgent(Packer::default().multicast(&[1], b"a", None).send(3.0, b"own")));
}

#[test]
fn a_cut_batch_is_refused_as_a_whole() {
    let (packed, mut ends) = (packed(), vec![0]);
    while *ends.last().expect("never empty") < packed.len() {
        let start = *ends.last().expect("never empty");
        ends.push(Fields::read(&packed, start).expect("well packed").end());
    }
    for len in 0..packed.len() {
        assert_eq!(Batch::new(&packed[..len], None).is_ok(), ends.contains(&len), "{len} bytes");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20)) {
        let mut packed = packed();
        for (index, byte) in noise {
            let at = index.index(packed.len());
            packed[at] = byte;
        }
        if let Ok(batch) = Batch::new(&packed, Some(3)).map(Arc::new) {
            for command in batch.commands() {
                if let Ok(Command::Accept { headers, .. } | Command::Reject { headers, .. }) = command {
                    headers.for_each(drop);
                }
            }
        }
    }
}
