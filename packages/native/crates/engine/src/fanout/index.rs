use rustc_hash::FxHashMap;

use super::cohort::{Cohort, CohortId, Encoding, GroupEntry, hash_of};
use crate::id::GroupId;

/// The cohorts of a shard, found by group and by set of groups and encoding.
///
/// Cost: to add or take a group is a constant number of hash look-ups, plus O(groups of the cohort) to create or remove a
/// cohort. It never depends on the number of cohorts.
#[derive(Default)]
pub(crate) struct CohortIndex {
    cohorts: Vec<Cohort>,
    free: Vec<CohortId>,
    by_group: FxHashMap<GroupId, Vec<CohortId>>,
    by_hash: FxHashMap<u64, CohortId>,
}

impl CohortIndex {
    pub(crate) fn cohort(&self, id: CohortId) -> &Cohort {
        &self.cohorts[id.0 as usize]
    }

    pub(crate) fn cohort_mut(&mut self, id: CohortId) -> &mut Cohort {
        &mut self.cohorts[id.0 as usize]
    }

    pub(crate) fn for_each_of_group(&mut self, group: GroupId, mut visit: impl FnMut(CohortId, &mut Cohort)) {
        for id in self.by_group.get(&group).into_iter().flatten() {
            visit(*id, &mut self.cohorts[id.0 as usize]);
        }
    }

    #[cfg(test)]
    pub(crate) fn live_count(&self) -> usize {
        self.cohorts.len() - self.free.len()
    }

    /// The cohort of exactly this group.
    pub(crate) fn find_single(&self, group: GroupId, encoding: Encoding) -> Option<CohortId> {
        self.find(encoding.hash().wrapping_add(hash_of(group)), |cohort| {
            cohort.encoding == encoding && cohort.groups.len() == 1 && cohort.has(group)
        })
    }

    /// The cohort with one group more than `id`.
    pub(crate) fn find_with(&self, id: CohortId, added: GroupId) -> Option<CohortId> {
        let base = self.cohort(id);
        self.find(base.hash.wrapping_add(hash_of(added)), |cohort| cohort.is_with(base, added))
    }

    /// The cohort with one group less than `id`.
    pub(crate) fn find_without(&self, id: CohortId, removed: GroupId) -> Option<CohortId> {
        let base = self.cohort(id);
        self.find(base.hash.wrapping_sub(hash_of(removed)), |cohort| cohort.is_without(base, removed))
    }

    fn find(&self, hash: u64, is_it: impl FnOnce(&Cohort) -> bool) -> Option<CohortId> {
        self.by_hash.get(&hash).copied().filter(|id| is_it(self.cohort(*id)))
    }

    /// A new cohort without members, of these groups.
    pub(crate) fn create(&mut self, groups: impl Iterator<Item = GroupId>, encoding: Encoding) -> CohortId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.cohorts.push(Cohort::default());
            CohortId(self.cohorts.len() as u32 - 1)
        });
        let cohort = self.cohort_mut(id);
        (cohort.encoding, cohort.hash) = (encoding, encoding.hash());
        groups.for_each(|group| self.insert_group(id, group));
        self.publish(id);
        id
    }

    pub(crate) fn remove(&mut self, id: CohortId) {
        self.unpublish(id);
        let cohort = std::mem::take(self.cohort_mut(id));
        cohort.groups.into_iter().for_each(|entry| self.unlist(id, entry));
        self.free.push(id);
    }

    /// Adds a group to a cohort in place, when its only member joins.
    pub(crate) fn add_group(&mut self, id: CohortId, group: GroupId) {
        self.unpublish(id);
        self.insert_group(id, group);
        self.publish(id);
    }

    /// Takes a group out of a cohort in place, when its only member leaves.
    pub(crate) fn take_group(&mut self, id: CohortId, group: GroupId) {
        let Ok(index) = self.cohort(id).group_index(group) else { return };
        self.unpublish(id);
        let cohort = self.cohort_mut(id);
        let entry = cohort.groups.remove(index);
        cohort.hash = cohort.hash.wrapping_sub(hash_of(group));
        self.unlist(id, entry);
        self.publish(id);
    }

    fn insert_group(&mut self, id: CohortId, group: GroupId) {
        let cohort = &mut self.cohorts[id.0 as usize];
        let Err(index) = cohort.group_index(group) else { return };
        let list = self.by_group.entry(group).or_default();
        cohort.groups.insert(index, GroupEntry { group, list_index: list.len() as u32 });
        cohort.hash = cohort.hash.wrapping_add(hash_of(group));
        list.push(id);
    }

    /// Takes a cohort off a group's list. The last one moves to its index.
    fn unlist(&mut self, id: CohortId, entry: GroupEntry) {
        let Some(list) = self.by_group.get_mut(&entry.group) else { return };
        debug_assert_eq!(list[entry.list_index as usize], id);
        list.swap_remove(entry.list_index as usize);
        if list.is_empty() {
            self.by_group.remove(&entry.group);
            return;
        }
        if list.capacity() > 4 * list.len() + 16 {
            list.shrink_to(2 * list.len());
        }
        if let Some(moved) = list.get(entry.list_index as usize).copied() {
            let moved = self.cohort_mut(moved);
            if let Ok(index) = moved.group_index(entry.group) {
                moved.groups[index].list_index = entry.list_index;
            }
        }
    }

    /// Makes the cohort findable by its set. If two sets have one hash, only the first is found. The cohorts of the other are
    /// correct, but not shared.
    fn publish(&mut self, id: CohortId) {
        self.by_hash.entry(self.cohort(id).hash).or_insert(id);
    }

    fn unpublish(&mut self, id: CohortId) {
        let hash = self.cohort(id).hash;
        if self.by_hash.get(&hash) == Some(&id) {
            self.by_hash.remove(&hash);
        }
    }
}
