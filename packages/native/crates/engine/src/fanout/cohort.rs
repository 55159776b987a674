use super::log::Log;
use crate::id::{GroupId, Slot};

/// Place of a cohort in the table of its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CohortId(pub(crate) u32);

/// A group of a cohort, and where the group's list of cohorts names it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupEntry {
    pub(crate) group: GroupId,
    pub(crate) position: u32,
}

/// A member that is not where the others are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnCursor {
    pub(crate) slot: Slot,
    pub(crate) cursor: u64,
}

/// How messages are put on the wire for a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    #[default]
    Plain,
    /// Compressed where that makes them smaller (RFC 7692).
    Deflated,
}

/// Connections with the same set of groups and the same encoding, and the one log of what they were sent.
///
/// A member is either level (everything up to `level_end` was written to it, nothing else waits for it) and costs four
/// bytes here, or it has a cursor of its own: it is blocked, or its chain holds something that goes first.
/// Invariant: a member with its own cursor is blocked, dirty or trailing, so no output is forgotten.
#[derive(Default)]
pub(crate) struct Cohort {
    /// Sorted, never empty while the cohort has members.
    pub(crate) groups: Vec<GroupEntry>,
    pub(crate) encoding: Encoding,
    /// Sum of the hashes of the encoding and of the groups.
    pub(crate) hash: u64,
    pub(crate) log: Log,
    pub(crate) level_end: u64,
    pub(crate) level: Vec<Slot>,
    pub(crate) own: Vec<OwnCursor>,
    /// The last multicast that was appended: one that names several groups is appended once.
    pub(crate) stamp: u64,
    /// The last batch with a multicast for it.
    pub(crate) batch: u64,
    /// The log has something that the level members were not sent.
    pub(crate) is_dirty: bool,
    /// Waits to be settled.
    pub(crate) is_touched: bool,
    /// An own cursor moved or went: chunks may have become free.
    pub(crate) is_scan_due: bool,
    /// A member is far behind; see [`Fanout::is_lagging`](super::Fanout::is_lagging).
    pub(crate) is_lagging: bool,
    /// No member is slow before the log reaches this.
    pub(crate) slow_at: u64,
}

impl Cohort {
    pub(crate) fn len(&self) -> usize {
        self.level.len() + self.own.len()
    }

    pub(crate) fn has(&self, group: GroupId) -> bool {
        self.position_of(group).is_ok()
    }

    pub(crate) fn position_of(&self, group: GroupId) -> Result<usize, usize> {
        self.groups.binary_search_by_key(&group, |entry| entry.group)
    }

    /// Whether the groups are those of `other` and `added`, which `other` has not.
    pub(crate) fn is_with(&self, other: &Self, added: GroupId) -> bool {
        self.encoding == other.encoding
            && self.groups.len() == other.groups.len() + 1
            && self.has(added)
            && self.groups.iter().filter(|entry| entry.group != added).map(|entry| entry.group).eq(other.group_ids())
    }

    /// Whether the groups are those of `other` but `removed`, which `other` has.
    pub(crate) fn is_without(&self, other: &Self, removed: GroupId) -> bool {
        self.encoding == other.encoding
            && self.groups.len() + 1 == other.groups.len()
            && self.group_ids().eq(other.group_ids().filter(|group| *group != removed))
    }

    pub(crate) fn group_ids(&self) -> impl Iterator<Item = GroupId> {
        self.groups.iter().map(|entry| entry.group)
    }
}

impl Encoding {
    /// What the hash of a cohort begins with.
    pub(crate) fn hash(self) -> u64 {
        match self {
            Self::Plain => 0,
            Self::Deflated => 0x6a09_e667_f3bc_c908,
        }
    }
}

/// Spreads the numbers of groups over 64 bits (the finalizer of SplitMix64); sums of it identify sets well enough to
/// look one up, and equality is checked.
pub(crate) fn hash_of(group: GroupId) -> u64 {
    let mut hash = u64::from(group.0).wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
