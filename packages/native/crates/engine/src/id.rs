//! Names of the things that cross a function or a thread.

/// Bits of a [`ConnectionId`] that name the shard.
const SHARD_BITS: u32 = 6;
/// Bits of a [`ConnectionId`] that name the slot in the shard's table.
const SLOT_BITS: u32 = 20;
/// Bits that tell the successive holders of a slot apart. All bits together fit a JavaScript number (53).
const GENERATION_BITS: u32 = 27;

/// I/O threads that the ids have room for.
pub const MAX_SHARDS: usize = 1 << SHARD_BITS;
/// Connections that one shard's ids have room for.
pub(crate) const MAX_SLOTS: usize = 1 << SLOT_BITS;
/// A slot that has been through this many holders is retired, so that an id is never reused.
pub(crate) const MAX_GENERATION: u32 = (1 << GENERATION_BITS) - 1;

/// Index of an I/O thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ShardId(pub(crate) u8);

impl ShardId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Place of a connection in its shard's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Slot(pub(crate) u32);

impl Slot {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names a connection, from its upgrade request on, for the life of the engine; never reused. Fits 53 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionId(u64);

impl ConnectionId {
    pub(crate) fn new(shard: ShardId, slot: Slot, generation: u32) -> Self {
        let high = (u64::from(generation) << SLOT_BITS) | u64::from(slot.0);
        Self((high << SHARD_BITS) | u64::from(shard.0))
    }

    pub(crate) fn shard(self) -> ShardId {
        ShardId((self.0 & (MAX_SHARDS as u64 - 1)) as u8)
    }

    pub(crate) fn slot(self) -> Slot {
        Slot((self.0 >> SHARD_BITS) as u32 & (MAX_SLOTS as u32 - 1))
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> (SHARD_BITS + SLOT_BITS)) as u32
    }

    /// The number that JavaScript sees.
    #[must_use]
    pub fn to_number(self) -> f64 {
        self.0 as f64
    }

    /// The id behind a number that [`to_number`](Self::to_number) gave; `None` for anything that it cannot have given.
    #[must_use]
    pub fn from_number(number: f64) -> Option<Self> {
        let id = number as u64;
        (id as f64 == number && id < 1 << (SHARD_BITS + SLOT_BITS + GENERATION_BITS)).then_some(Self(id))
    }
}

/// Names a group; chosen by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

/// Stands for what a frame is about, as the caller numbers it: a newer frame of a topic replaces an older one for members of
/// a group that want no more than the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TopicId(pub(crate) u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_the_trip_through_a_javascript_number() {
        let id = ConnectionId::new(ShardId(63), Slot(MAX_SLOTS as u32 - 1), MAX_GENERATION);
        let back = ConnectionId::from_number(id.to_number()).expect("in range");
        assert_eq!((back.shard(), back.slot(), back.generation()), (id.shard(), id.slot(), id.generation()));
        assert_eq!(id.to_number(), 2_f64.powi(53) - 1.0);
    }

    #[test]
    fn numbers_that_are_no_id_are_refused() {
        for number in [-1.0, 0.5, f64::NAN, f64::INFINITY, 2_f64.powi(53)] {
            assert_eq!(ConnectionId::from_number(number), None, "{number}");
        }
    }
}
