use super::Member;
use super::log::Log;
use crate::id::{GroupId, Slot};

/// Index of a cohort in its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CohortId(pub(crate) u32);

/// A group of a cohort, and where the group's list of cohorts names the cohort.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupEntry {
    pub(crate) group: GroupId,
    pub(crate) list_index: u32,
}

/// A member that is not caught up, and how far it is in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behind {
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
    /// Without headers, in the body of an HTTP response.
    Stream,
}

/// Connections with the same set of groups and the same encoding, and the one log of what they were sent.
///
/// Members that are caught up share one position, `caught_up_to`, and cost four bytes each. All others have a cursor each.
#[derive(Default)]
pub(crate) struct Cohort {
    /// Sorted, never empty while the cohort has members.
    pub(crate) groups: Vec<GroupEntry>,
    pub(crate) encoding: Encoding,
    /// Sum of the hashes of the encoding and of the groups.
    pub(crate) hash: u64,
    pub(crate) log: Log,
    /// The caught-up members were sent the log up to here.
    pub(crate) caught_up_to: u64,
    pub(crate) caught_up: Vec<Slot>,
    /// Caught-up members, the first of the list, that have been sent the log up to `ahead_to`: a flush was
    /// interrupted behind them.
    pub(crate) ahead_count: u32,
    /// Beyond `caught_up_to`, unless `ahead_count` is 0.
    pub(crate) ahead_to: u64,
    pub(crate) behind: Vec<Behind>,
    /// Number of the last multicast that was appended: one that names several groups is appended once.
    pub(crate) last_multicast: u64,
    /// Number of the last batch with a multicast for this cohort.
    pub(crate) last_batch: u64,
    /// The caught-up members may have output. In [`Dirty::cohorts`](super::dirty::Dirty).
    pub(crate) is_dirty: bool,
    /// Some of that must not be held back. In [`Dirty::urgent_cohorts`](super::dirty::Dirty).
    pub(crate) is_urgent: bool,
    /// Memory may be free, or a member too slow. In [`Dirty::reclaim_cohorts`](super::dirty::Dirty).
    pub(crate) needs_reclaim: bool,
    /// A cursor moved or went, so chunks may be free.
    pub(crate) needs_scan: bool,
    /// A member lags; see [`Backpressure`](crate::backpressure).
    pub(crate) is_lagging: bool,
    /// No member has more output than it may before the log reaches this position.
    pub(crate) check_at: u64,
    /// No member that may miss frames has to get a backlog before the log reaches this position.
    pub(crate) absorb_at: u64,
}

impl Cohort {
    pub(crate) fn len(&self) -> usize {
        self.caught_up.len() + self.behind.len()
    }

    /// Adds a member to the caught-up ones.
    pub(crate) fn list_caught_up(&mut self, slot: Slot, member: &mut Member) {
        member.list_index = self.caught_up.len() as u32;
        self.caught_up.push(slot);
    }

    /// Adds a member that is not caught up.
    pub(crate) fn list_behind(&mut self, slot: Slot, member: &mut Member, cursor: u64) {
        member.list_index = self.behind.len() as u32;
        self.absorb_at = self.absorb_at.min(cursor);
        self.behind.push(Behind { slot, cursor });
    }

    /// Where in the log a caught-up member is.
    pub(crate) fn position_of(&self, index: u32) -> u64 {
        if index < self.ahead_count { self.ahead_to } else { self.caught_up_to }
    }

    /// Takes a caught-up member off its list. The last one moves to its index, or the last of those that are ahead.
    pub(crate) fn unlist_caught_up(&mut self, index: u32, members: &mut [Member]) {
        let mut free = index;
        if index < self.ahead_count {
            self.ahead_count -= 1;
            free = self.ahead_count;
            if free != index {
                let moved = self.caught_up[free as usize];
                self.caught_up[index as usize] = moved;
                members[moved.index()].list_index = index;
            }
        }
        self.caught_up.swap_remove(free as usize);
        if let Some(moved) = self.caught_up.get(free as usize) {
            members[moved.index()].list_index = free;
        }
    }

    /// Takes a member that is not caught up off its list. The last one moves to its index.
    pub(crate) fn unlist_behind(&mut self, index: u32, members: &mut [Member]) {
        self.behind.swap_remove(index as usize);
        if let Some(moved) = self.behind.get(index as usize) {
            members[moved.slot.index()].list_index = index;
        }
    }

    pub(crate) fn has(&self, group: GroupId) -> bool {
        self.group_index(group).is_ok()
    }

    /// Index of a group in `groups`, or where it would be.
    pub(crate) fn group_index(&self, group: GroupId) -> Result<usize, usize> {
        self.groups.binary_search_by_key(&group, |entry| entry.group)
    }

    /// Whether the groups are those of `other` plus `added`, which `other` does not have.
    pub(crate) fn is_with(&self, other: &Self, added: GroupId) -> bool {
        self.encoding == other.encoding
            && self.groups.len() == other.groups.len() + 1
            && self.has(added)
            && self.groups.iter().filter(|entry| entry.group != added).map(|entry| entry.group).eq(other.group_ids())
    }

    /// Whether the groups are those of `other` without `removed`, which `other` has.
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
    /// First summand of the hash of a cohort.
    pub(crate) fn hash(self) -> u64 {
        match self {
            Self::Plain => 0,
            Self::Deflated => 0x6a09_e667_f3bc_c908,
            Self::Stream => 0xbb67_ae85_84ca_a73b,
        }
    }
}

/// Spreads the numbers of groups over 64 bits (the finalizer of SplitMix64). A set is looked up by the sum of its hashes, and
/// then compared.
pub(crate) fn hash_of(group: GroupId) -> u64 {
    let mut hash = u64::from(group.0).wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
