use crate::id::{ConnectionId, MAX_GENERATION, MAX_SLOTS, ShardId, Slot};
use crate::shard::connection::Connection;

const NEVER: u64 = u64::MAX;

/// The connections of a shard by slot, and the one deadline that each has.
///
/// Deadlines are a dense list that is scanned now and then (10,000 take some microseconds): no timer per connection, and
/// moving a deadline, which happens at every read, is one store and one comparison.
pub(crate) struct Table {
    shard: ShardId,
    entries: Vec<Entry>,
    /// Milliseconds since the engine began.
    deadlines: Vec<u64>,
    /// No deadline is before this. The earliest may be later: moving or removing one does not look for the next.
    earliest_ms: u64,
    free: Vec<Slot>,
    len: usize,
    /// Generation of the first holder of a slot.
    first_generation: u32,
}

struct Entry {
    generation: u32,
    connection: Option<Connection>,
}

impl Table {
    pub(crate) fn new(shard: ShardId) -> Self {
        let (entries, deadlines, free) = Default::default();
        Self { shard, entries, deadlines, earliest_ms: NEVER, free, len: 0, first_generation: 0 }
    }

    /// An empty table that gives no id that this one has given.
    pub(crate) fn successor(&self) -> Self {
        let last = self.entries.iter().map(|entry| entry.generation).max();
        Self { first_generation: last.map_or(self.first_generation, |last| last + 1), ..Self::new(self.shard) }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Takes a connection in; drops it when there are no ids left.
    pub(crate) fn insert(&mut self, connection: Connection) -> Option<Slot> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.entries.len() < MAX_SLOTS && self.first_generation <= MAX_GENERATION => {
                self.entries.push(Entry { generation: self.first_generation, connection: None });
                self.deadlines.push(NEVER);
                Slot(self.entries.len() as u32 - 1)
            }
            None => return None,
        };
        self.entries[slot.index()].connection = Some(connection);
        self.len += 1;
        Some(slot)
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<Connection> {
        let entry = &mut self.entries[slot.index()];
        let connection = entry.connection.take()?;
        self.len -= 1;
        self.deadlines[slot.index()] = NEVER;
        if entry.generation < MAX_GENERATION {
            entry.generation += 1;
            self.free.push(slot);
        }
        Some(connection)
    }

    pub(crate) fn id(&self, slot: Slot) -> ConnectionId {
        ConnectionId::new(self.shard, slot, self.entries[slot.index()].generation)
    }

    /// Slot of a connection of this shard that is still there.
    pub(crate) fn find(&self, id: ConnectionId) -> Option<Slot> {
        let entry = self.entries.get(id.slot().index())?;
        let is_it = id.shard() == self.shard && entry.generation == id.generation() && entry.connection.is_some();
        is_it.then(|| id.slot())
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Connection> {
        self.entries.get(slot.index())?.connection.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut Connection> {
        self.entries.get_mut(slot.index())?.connection.as_mut()
    }

    pub(crate) fn slots(&self) -> Vec<Slot> {
        let slots = (0..self.entries.len() as u32).map(Slot);
        slots.filter(|slot| self.get(*slot).is_some()).collect()
    }

    pub(crate) fn set_deadline(&mut self, slot: Slot, at_ms: Option<u64>) {
        let at_ms = at_ms.unwrap_or(NEVER);
        self.deadlines[slot.index()] = at_ms;
        self.earliest_ms = self.earliest_ms.min(at_ms);
    }

    /// No deadline comes before this; `None`: there is none.
    pub(crate) fn earliest_ms(&self) -> Option<u64> {
        (self.len > 0 && self.earliest_ms != NEVER).then_some(self.earliest_ms)
    }

    /// Looks for the earliest deadline. Cost: O(connections).
    pub(crate) fn look_for_earliest(&mut self) {
        self.earliest_ms = self.deadlines.iter().copied().min().unwrap_or(NEVER);
    }

    /// Connections whose deadline has come.
    pub(crate) fn due(&self, now_ms: u64, due: &mut Vec<Slot>) {
        for (slot, deadline) in self.deadlines.iter().enumerate() {
            if *deadline <= now_ms {
                due.push(Slot(slot as u32));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    fn connection() -> Connection {
        Connection::new(OwnedFd::from(std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port")), 100)
    }

    #[test]
    fn an_id_names_one_connection_only() {
        let mut table = Table::new(ShardId(3));
        let Some(slot) = table.insert(connection()) else { panic!("full") };
        let first = table.id(slot);
        assert_eq!(table.find(first), Some(slot));
        assert!(table.remove(slot).is_some());
        assert_eq!(table.find(first), None);
        let Some(again) = table.insert(connection()) else { panic!("full") };
        assert_eq!(again, slot, "slots are reused");
        assert_ne!(table.id(again), first, "ids are not");
        let mut successor = table.successor().successor();
        let Some(slot) = successor.insert(connection()) else { panic!("full") };
        assert_eq!(slot, again);
        assert!([first, table.id(again)].into_iter().all(|id| successor.find(id).is_none()));
    }

    #[test]
    fn deadlines_are_due_from_their_time_on_and_go_with_their_connection() {
        let mut table = Table::new(ShardId(0));
        let Some(slot) = table.insert(connection()) else { panic!("full") };
        let due_at = |table: &Table, now_ms| {
            let mut due = Vec::new();
            table.due(now_ms, &mut due);
            due
        };
        table.set_deadline(slot, Some(100));
        assert_eq!(due_at(&table, 99), []);
        assert_eq!(table.earliest_ms(), Some(100));
        assert_eq!(due_at(&table, 100), [slot]);
        assert!(table.remove(slot).is_some());
        assert_eq!(due_at(&table, 100), []);
        assert_eq!(table.earliest_ms(), None);
    }

    #[test]
    fn no_deadline_is_before_the_earliest() {
        let mut table = Table::new(ShardId(0));
        let slots: Vec<Slot> = (0..3).filter_map(|_| table.insert(connection())).collect();
        assert_eq!(table.earliest_ms(), None);
        for (slot, at_ms) in slots.iter().zip([300, 100, 200]) {
            table.set_deadline(*slot, Some(at_ms));
        }
        assert_eq!(table.earliest_ms(), Some(100));
        table.set_deadline(slots[1], Some(400));
        assert_eq!(table.earliest_ms(), Some(100), "a later deadline costs no look");
        table.look_for_earliest();
        assert_eq!(table.earliest_ms(), Some(200));
        table.set_deadline(slots[0], Some(50));
        assert_eq!(table.earliest_ms(), Some(50));
        slots.iter().for_each(|slot| table.set_deadline(*slot, None));
        table.look_for_earliest();
        assert_eq!(table.earliest_ms(), None);
    }
}
