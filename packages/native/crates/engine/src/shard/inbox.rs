//! Mail of other threads, and the commands in it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Shard;
use crate::bridge::batch::Batch;
use crate::bridge::command::MalformedBatch;
use crate::bridge::mailbox::Mail;

/// Bytes of commands that are applied before sockets get their turn again.
const MAX_APPLIED_BYTES: usize = 4 << 20;

/// What a shard has taken from its mailbox.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Still to be done.
    pub(super) mails: VecDeque<Mail>,
    /// Batches to apply, and where to go on in each.
    pub(crate) batches: VecDeque<(Arc<Batch>, usize)>,
}

impl Shard {
    /// Takes the mail of other threads.
    pub(super) fn take_mail(&mut self) {
        let Self { shared, inbox, id, .. } = self;
        shared.shards[id.index()].mailbox.take(&mut inbox.mails);
        // One by one: if one makes the shard panic, the others are not lost.
        while let Some(mail) = self.inbox.mails.pop_front() {
            match mail {
                Mail::Batch(batch) => {
                    if !batch.is_small() {
                        self.inline.policy.note_busy(self.now_ms);
                    }
                    self.inbox.batches.push_back((batch, 0));
                }
                Mail::Listen(socket) => self.listen(socket),
                Mail::Adopt(adopted) => self.adopt(adopted),
                Mail::StopAccepting => {
                    self.stop_accepting();
                    self.events.quiet(self.id);
                }
                Mail::ShutDown => {
                    // Commands that were submitted before go first.
                    self.apply_all();
                    self.shut_down();
                }
                Mail::Abort => self.is_aborted = true,
                #[cfg(test)]
                Mail::Panic => panic!("as the test wishes"),
            }
        }
    }

    /// Applies commands in order, until sockets should have their turn: after some megabytes of commands, or as much output
    /// as one write per connection carries.
    pub(crate) fn apply_batches(&mut self) {
        let mut applied_bytes = 0;
        while applied_bytes < MAX_APPLIED_BYTES
            && !self.awaits_end_of_flush()
            && let Some(bytes) = self.apply_front()
        {
            applied_bytes += bytes;
            if self.fanout.is_flush_due() {
                return self.flush();
            }
        }
    }

    /// Multicasts wait for the end of a flush that was interrupted: they then share the writes of the next one. Answers do not.
    fn awaits_end_of_flush(&self) -> bool {
        self.fanout.is_interrupted() && self.inbox.batches.front().is_some_and(|(batch, _)| batch.has_multicasts())
    }

    fn apply_all(&mut self) {
        while self.apply_front().is_some() {
            if self.fanout.is_flush_due() {
                self.flush();
            }
        }
    }

    /// Applies the oldest batch to its end, or until a flush is due. Returns the bytes applied.
    fn apply_front(&mut self) -> Option<usize> {
        let (batch, start) = self.inbox.batches.pop_front()?;
        let mut commands = batch.commands_from(start);
        for command in commands.by_ref() {
            match command {
                Ok(command) => self.apply(command),
                Err(MalformedBatch(at)) => self.events.failed(&format!("command at byte {at} of a batch is malformed")),
            }
            if self.fanout.is_flush_due() {
                break;
            }
        }
        let writes = self.fanout.end_batch();
        if writes > 0 {
            let now_us = self.now_us();
            self.pacer.arrived(writes, now_us);
        }
        let end = commands.position();
        if end < batch.bytes().len() {
            self.inbox.batches.push_front((batch, end));
        } else {
            self.handle().mailbox.applied(batch.bytes().len());
            if self.shared.backpressure.ends_pause(&self.shared.shards) {
                self.shared.waker.wake();
            }
        }
        Some(end - start)
    }
}
