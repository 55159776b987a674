//! What crosses threads, with the threads in random orders:
//!
//! ```sh
//! RUSTFLAGS='--cfg shuttle' cargo test -p webmq-engine interleavings
//! ```
//!
//! Queues, wake-ups and flow control are the engine's. The loops around them repeat the rules of `shard/turn.rs`,
//! `shard/receive.rs`, `inline/shard_cell.rs` and `engine.rs`. A thread that sleeps for ever fails the schedule.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize as Count;
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::RandomScheduler;
use shuttle::thread::{JoinHandle, spawn, yield_now};
use shuttle::{Config, MaxSteps, Runner};

use super::packer::Packer;
use crate::backpressure::{Backpressure, Taken};
use crate::bridge::batch::Batch;
use crate::bridge::event::Events;
use crate::bridge::event_reader::EventReader;
use crate::bridge::mailbox::Mail;
use crate::bridge::waker::Waker;
use crate::id::{ConnectionId, ShardId, Slot};
use crate::shared::ShardHandle;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex};

const SCHEDULES: usize = 10_000;
/// A schedule without a fault takes some hundreds.
const MAX_STEPS: usize = 50_000;
/// Batches that a thread posts.
const COUNT: u8 = 3;
/// Less than a batch has.
const MAX_BYTES: usize = 20;

/// A shard without sockets, and JavaScript.
struct Rig {
    shard: [ShardHandle; 1],
    backpressure: Backpressure,
    waker: Waker,
    wake_up: Arc<(Mutex<bool>, Condvar)>,
    /// Threads that may still wake the shard.
    active_count: AtomicUsize,
}

fn play(active_count: usize, scenario: impl Fn(Arc<Rig>) + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = 256 << 10;
    config.max_steps = MaxSteps::FailAfter(MAX_STEPS);
    Runner::new(RandomScheduler::new(SCHEDULES), config).run(move || {
        let wake_up = Arc::new((Mutex::new(false), Condvar::new()));
        let of_waker = Arc::clone(&wake_up);
        let wake = move || {
            *of_waker.0.lock().expect("a lock") = true;
            of_waker.1.notify_one();
        };
        scenario(Arc::new(Rig {
            shard: [ShardHandle::new().expect("descriptors")],
            backpressure: Backpressure::new(4 * MAX_BYTES),
            waker: Waker::new(Box::new(wake)),
            wake_up,
            active_count: AtomicUsize::new(active_count),
        }));
    });
}

impl Rig {
    /// Runs a thread beside the shard.
    fn beside(self: &Arc<Self>, act: impl FnOnce(&Self) + Send + 'static) -> JoinHandle<()> {
        let rig = Arc::clone(self);
        spawn(move || {
            act(&rig);
            rig.active_count.fetch_sub(1, Ordering::SeqCst);
        })
    }

    /// The shard's thread sleeps until it is woken. `false`: nobody is left who could.
    fn sleep(&self) -> bool {
        let mut ready = Vec::new();
        loop {
            let is_last_look = self.active_count.load(Ordering::SeqCst) == 0;
            self.shard[0].poller.wait(&mut ready, Some(Duration::ZERO)).expect("a poller");
            if !ready.is_empty() || is_last_look {
                return !ready.is_empty();
            }
            yield_now();
        }
    }

    /// JavaScript sleeps until it is woken.
    fn await_wake_up(&self) {
        let (is_awake, condvar) = &*self.wake_up;
        let woken = condvar.wait_while(is_awake.lock().expect("a lock"), |is_awake| !*is_awake);
        *woken.expect("a lock") = false;
    }

    /// Takes mail, after a sleep if there is none, and says which; `holds`: the sleep ends by itself.
    fn take(&self, holds: bool) -> Vec<Arc<Batch>> {
        let mailbox = &self.shard[0].mailbox;
        let sleeps = if holds { mailbox.prepare_hold() } else { mailbox.prepare_sleep() };
        let is_woken = !sleeps || self.sleep();
        mailbox.woken();
        let mut mails = VecDeque::new();
        mailbox.take(&mut mails);
        let batches =
            mails.into_iter().filter_map(|mail| if let Mail::Batch(batch) = mail { Some(batch) } else { None });
        let batches: Vec<_> = batches.collect();
        assert!(is_woken || (holds && batches.iter().all(|batch| !batch.is_urgent())), "nobody wakes the shard");
        batches
    }

    /// Takes batches until there were `count`, and applies them as the shard does.
    fn apply(&self, count: u8, holds: impl Fn() -> bool) -> Vec<u8> {
        let mut applied = Vec::new();
        while applied.len() < usize::from(count) {
            for batch in self.take(holds()) {
                applied.push(number_of(&batch));
                self.shard[0].mailbox.applied(batch.bytes().len());
                if self.backpressure.ends_pause(&self.shard) {
                    self.waker.wake();
                }
            }
            if self.backpressure.ends_wait(&self.shard) {
                self.waker.wake();
            }
        }
        applied
    }
}

fn batch(number: u8, is_urgent: bool) -> Arc<Batch> {
    let mut packer = Packer::default();
    let packed = if is_urgent { packer.send(0.0, &[number]) } else { packer.multicast(&[0], &[number], None) };
    Arc::new(Batch::new(&packed.0, None).expect("a batch"))
}

fn number_of(batch: &Batch) -> u8 {
    batch.bytes()[batch.bytes().len() - 1]
}

#[test]
fn mail_wakes_a_shard_that_sleeps_and_urgent_mail_one_that_holds() {
    play(2, |rig| {
        let post = |first: u8| {
            rig.beside(move |rig| {
                for number in first..first + COUNT {
                    let mail = Mail::Batch(batch(number, thread_rng().gen_bool(0.5)));
                    assert!(rig.shard[0].mailbox.post(mail).is_ok());
                }
            })
        };
        let posting = [post(0), post(COUNT)];
        let mut applied = rig.apply(2 * COUNT, || thread_rng().gen_bool(0.5));
        // Stable: each thread's batches keep their order.
        applied.sort_by_key(|number| number / COUNT);
        assert_eq!(applied, (0..2 * COUNT).collect::<Vec<_>>());
        posting.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

#[test]
fn batches_keep_their_order_when_the_shard_changes_threads() {
    play(2, |rig| {
        let cell = Arc::new(Mutex::new(Vec::new()));
        let of_loop = Arc::clone(&cell);
        let submitting = rig.beside(move |rig| {
            let mailbox = &rig.shard[0].mailbox;
            for number in 0..2 * COUNT {
                let batch = batch(number, true);
                let step = || {
                    let mut cell = of_loop.try_lock().ok().filter(|_| mailbox.is_inline())?;
                    mailbox.bypass(&batch).then(|| cell.push(number_of(&batch)))
                };
                match mailbox.is_inline().then(step).flatten() {
                    Some(()) => mailbox.applied(batch.bytes().len()),
                    None => assert!(mailbox.post(Mail::Batch(Arc::clone(&batch))).is_ok()),
                }
            }
        });
        let taking_back = rig.beside(|rig| (0..COUNT).for_each(|_| rig.shard[0].mailbox.wake()));
        let mailbox = &rig.shard[0].mailbox;
        loop {
            let mut shard = cell.lock().expect("a lock");
            if shard.len() == usize::from(2 * COUNT) {
                break assert_eq!(*shard, (0..2 * COUNT).collect::<Vec<_>>());
            }
            if mailbox.hand_over() {
                drop(shard);
                while mailbox.is_inline() && rig.active_count.load(Ordering::SeqCst) > 0 {
                    yield_now();
                }
                if mailbox.is_inline() {
                    let mut mails = VecDeque::new();
                    mailbox.take(&mut mails);
                    assert!(mails.is_empty(), "nobody takes the shard back");
                }
                // As a deadline does.
                mailbox.wake();
                continue;
            }
            let mut mails = VecDeque::new();
            mailbox.take(&mut mails);
            for mail in mails {
                let Mail::Batch(batch) = mail else { continue };
                shard.push(number_of(&batch));
                mailbox.applied(batch.bytes().len());
            }
        }
        assert_eq!(mailbox.batch_bytes(), 0);
        [submitting, taking_back].into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

#[test]
fn events_wake_javascript_and_room_wakes_the_shard() {
    const MAX_INBOUND_BYTES: u64 = 60;
    play(1, |rig| {
        let draining = rig.beside(|rig| {
            let (mut reader, mut target, mut numbers) = (EventReader::default(), [0; 30], Vec::<u8>::new());
            while numbers.len() < usize::from(2 * COUNT) {
                rig.await_wake_up();
                rig.waker.acknowledge();
                let drained = reader.drain(&rig.shard[0].event_queue, &mut target);
                numbers.extend(target[..drained.bytes].last());
                if drained.wakes_shard {
                    rig.shard[0].mailbox.wake();
                }
                if drained.next_bytes.is_some() {
                    rig.waker.wake();
                }
            }
            assert_eq!(numbers, (0..2 * COUNT).collect::<Vec<_>>());
        });
        let ShardHandle { event_queue, mailbox, .. } = &rig.shard[0];
        let mut events = Events::default();
        for number in 0..2 * COUNT {
            let position = events.position();
            let has_room = || position - event_queue.rest.read_position() < MAX_INBOUND_BYTES;
            while !has_room() {
                assert!(mailbox.prepare_sleep());
                event_queue.await_position(position.saturating_sub(MAX_INBOUND_BYTES / 2));
                if !has_room() {
                    assert!(rig.sleep(), "nobody wakes the shard");
                }
                mailbox.woken();
                event_queue.await_nothing();
            }
            events.message(ConnectionId::new(ShardId(0), Slot(u32::from(number)), 0), &[number], false);
            event_queue.put(&mut Events::default(), &mut events);
            rig.waker.wake();
        }
        draining.join().expect("no panic");
    });
}

#[test]
fn publishers_and_the_drain_that_wait_for_a_shard_are_woken() {
    static PAUSES: Count = Count::new(0);
    static WAITS: Count = Count::new(0);
    play(1, |rig| {
        let publishing = rig.beside(|rig| {
            for number in 0..COUNT {
                assert!(rig.shard[0].mailbox.post(Mail::Batch(batch(number, true))).is_ok());
                // One batch is enough for both waits, so the end of one is the end of the other.
                if thread_rng().gen_bool(0.5) {
                    while rig.backpressure.pauses_drain(&rig.shard) {
                        PAUSES.fetch_add(1, Ordering::Relaxed);
                        rig.await_wake_up();
                        rig.waker.acknowledge();
                    }
                } else {
                    let taken = || Taken { connections: 1, sent_bytes: 0 };
                    while !rig.backpressure.is_writable(&rig.shard, 0, taken) {
                        WAITS.fetch_add(1, Ordering::Relaxed);
                        rig.await_wake_up();
                        rig.waker.acknowledge();
                    }
                }
            }
        });
        rig.apply(COUNT, || false);
        publishing.join().expect("no panic");
    });
    assert!(PAUSES.load(Ordering::Relaxed) > 0 && WAITS.load(Ordering::Relaxed) > 0, "nobody waited");
}

#[test]
fn a_caller_that_waits_for_room_is_woken_when_a_batch_is_applied_or_the_shard_ends() {
    play(1, |rig| {
        let posting = rig.beside(|rig| {
            for number in 0..=COUNT {
                rig.shard[0].mailbox.wait_for_room(MAX_BYTES);
                if rig.shard[0].mailbox.post(Mail::Batch(batch(number, true))).is_err() {
                    return;
                }
            }
        });
        rig.apply(COUNT - 1, || false);
        rig.shard[0].mailbox.close();
        posting.join().expect("no panic");
    });
}
