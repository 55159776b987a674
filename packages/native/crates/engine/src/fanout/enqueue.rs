use super::chain::Piece;
use super::cohort::Encoding;
use super::member::{OutboxLevel, State};
use super::overflow;
use super::{Fanout, MIN_FULL_COHORT_BYTES};
use crate::bridge::batch::Frame;
use crate::id::{GroupId, Slot, TopicId};

/// Bytes of frames that may wait for a flush that is held back, over all cohorts.
const MAX_UNFLUSHED_BYTES: usize = 4 << 20;
/// A flush puts about this much into the sockets of one cohort. With more, thousands of sockets have so much under way that
/// the system sends it in parts, as acknowledgements come: with 5,000 members, writes of 64 KiB carried 1.3 times what those of
/// 256 KiB did per CPU second.
const MAX_FLUSHED_COHORT_BYTES: u64 = 320 << 20;
/// Share of an outbox that [`OutboxLevel::Low`] allows.
const LOW_SHARE: u64 = 4;

impl Fanout {
    /// Puts a frame into the outbox of every member of any of the groups except `except`. Returns their number.
    ///
    /// A frame of a topic may be left out for members that lag, if all of their groups that it is for allow it; see
    /// [`set_overflow`](Self::set_overflow). Event streams miss nothing.
    ///
    /// An urgent frame is written by the next [`flush_urgent`](Self::flush_urgent), with what stands before it in its cohorts.
    ///
    /// Cost: one copy of the frame, one more of its compressed form if somebody takes that, and a constant per group and per
    /// matching cohort. Members are not touched.
    pub(crate) fn multicast(
        &mut self,
        groups: impl Iterator<Item = GroupId>,
        frame: &Frame<'_>,
        except: Option<Slot>,
        topic: Option<TopicId>,
        is_urgent: bool,
    ) -> usize {
        self.multicast += 1;
        let Self { multicast, overflows, index, arena, pool, members, deflater, dirty, .. } = self;
        let Self { batch, max_unflushed_cohort_bytes, stream_arena, .. } = self;
        let mut plain: Option<Piece> = None;
        let mut deflated: Option<Piece> = None;
        let mut stream: Option<Piece> = None;
        let excluded_cohort = except.and_then(|slot| members[slot.index()].cohort);
        let mut excluded_from = None;
        let mut delivered = 0;
        for group in groups {
            let droppable = overflow::droppable(&overflows.by_group, group, topic);
            index.for_each_of_group(group, |id, cohort| {
                let is_excluded_cohort = excluded_cohort == Some(id);
                let count = cohort.len() - usize::from(is_excluded_cohort);
                let is_repeated = std::mem::replace(&mut cohort.last_multicast, *multicast) == *multicast;
                if count == 0 {
                    return;
                }
                let droppable = droppable.filter(|_| cohort.encoding != Encoding::Stream);
                if is_repeated {
                    let piece = match cohort.encoding {
                        Encoding::Plain => &plain,
                        Encoding::Deflated => &deflated,
                        Encoding::Stream => &stream,
                    };
                    return cohort.log.note_other_group(piece.as_ref().map_or(0, Piece::len), droppable);
                }
                if is_excluded_cohort {
                    excluded_from = Some((id, cohort.log.end()));
                }
                let piece = match cohort.encoding {
                    Encoding::Plain => plain.get_or_insert_with(|| arena.put(frame, pool)),
                    Encoding::Deflated => deflated.get_or_insert_with(|| match frame.deflated(deflater) {
                        Some(frame) => arena.put(&frame, pool),
                        None => plain.get_or_insert_with(|| arena.put(frame, pool)).clone(),
                    }),
                    Encoding::Stream => stream.get_or_insert_with(|| stream_arena.put(&frame.payload(), pool)),
                };
                cohort.log.append(piece);
                cohort.log.note_first_group(piece.len(), droppable);
                delivered += count;
                // Before the next frame of that size begins another chunk: its few bytes would be a write of their own.
                let with_next = cohort.log.end() - cohort.caught_up_to + piece.len() as u64;
                let is_too_much = with_next * cohort.caught_up.len() as u64 > MAX_FLUSHED_COHORT_BYTES;
                dirty.is_flush_due |= with_next > *max_unflushed_cohort_bytes
                    || (is_too_much && with_next > MIN_FULL_COHORT_BYTES as u64);
                if !std::mem::replace(&mut cohort.is_dirty, true) {
                    dirty.cohorts.push_back(id);
                    dirty.caught_up_writes += cohort.caught_up.len();
                }
                if is_urgent && !std::mem::replace(&mut cohort.is_urgent, true) {
                    dirty.urgent_cohorts.push_back(id);
                }
                if std::mem::replace(&mut cohort.last_batch, *batch) != *batch {
                    dirty.batch_writes += cohort.caught_up.len();
                }
            });
        }
        self.dirty.is_flush_due |= self.arena.bytes() + self.stream_arena.bytes() > MAX_UNFLUSHED_BYTES;
        if let (Some(slot), Some((id, start))) = (except, excluded_from) {
            self.skip(slot, id, start);
        }
        delivered
    }

    /// Puts a frame into the outbox of one connection.
    pub(crate) fn send(&mut self, slot: Slot, frame: &Frame<'_>) {
        self.close_range(slot);
        let piece = match self.members[slot.index()].encoding {
            Encoding::Plain => self.arena.put(frame, &mut self.pool),
            Encoding::Deflated => {
                let deflated = frame.deflated(&mut self.deflater);
                self.arena.put(deflated.as_ref().unwrap_or(frame), &mut self.pool)
            }
            Encoding::Stream => self.stream_arena.put(&frame.payload(), &mut self.pool),
        };
        self.members[slot.index()].push_piece(piece);
        self.chain_grew(slot);
    }

    /// Puts bytes that are not frames into the outbox of one connection.
    pub(crate) fn send_raw(&mut self, slot: Slot, bytes: Box<[u8]>) {
        self.close_range(slot);
        self.members[slot.index()].chain.push_raw(bytes, &self.pool);
        self.chain_grew(slot);
    }

    /// Leaves all groups and drops what waits, except the rest of a frame that was sent in part. A frame may follow.
    pub(crate) fn cut(&mut self, slot: Slot) {
        self.take_from_cohort(slot);
        self.members[slot.index()].backlog = None;
        self.members[slot.index()].chain.cut_to_current_frame(&self.pool);
    }

    /// The socket takes bytes again, and the wire holds nothing. Returns whether it had refused some.
    pub(crate) fn unblock(&mut self, slot: Slot) -> bool {
        let State::Blocked { is_reported } = self.members[slot.index()].state else { return false };
        if is_reported {
            // The next flush decides anew.
            self.outcome.slow.retain(|other| *other != slot);
        }
        self.set_state(slot, State::CatchingUp);
        self.note_held(slot, 0);
        self.dirty.write_now.push(slot);
        true
    }

    /// Reports in [`Outcome::drained`](super::Outcome::drained) when no more than this waits for the connection: after the
    /// next flush, or whenever its socket has taken enough. Returns `true` instead if the socket is full and it is so now.
    pub(crate) fn report_at(&mut self, slot: Slot, level: OutboxLevel) -> bool {
        let member = &mut self.members[slot.index()];
        member.reports_at = Some(level);
        match member.state {
            // No flush visits it.
            State::Blocked { .. } => return self.take_level(slot),
            // What waits for its whole cohort counts too.
            State::CaughtUp if member.cohort.is_some() => self.close_range(slot),
            State::CaughtUp | State::CatchingUp | State::Rejoining => self.schedule(slot),
        }
        false
    }

    /// Reports a connection if no more waits for it than it was asked for.
    pub(super) fn report_level(&mut self, slot: Slot) {
        if self.take_level(slot) {
            self.outcome.drained.push(slot);
        }
    }

    fn take_level(&mut self, slot: Slot) -> bool {
        let max_bytes = match self.members[slot.index()].reports_at {
            None => return false,
            Some(OutboxLevel::Empty) => 0,
            Some(OutboxLevel::Low) => self.max_outbox_bytes / LOW_SHARE,
        };
        let is_reached = self.waiting_bytes(slot) <= max_bytes;
        if is_reached {
            self.members[slot.index()].reports_at = None;
        }
        is_reached
    }

    /// Something was put into a member's chain.
    pub(super) fn chain_grew(&mut self, slot: Slot) {
        if self.members[slot.index()].chain.note_turn_memory() {
            self.dirty.turn_chains.push(slot);
        }
        self.schedule(slot);
        if self.members[slot.index()].is_blocked() {
            self.check_limit(slot);
        }
    }
}
