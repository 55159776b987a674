use std::collections::VecDeque;

use super::Shard;
use crate::id::{ConnectionId, Slot};
use crate::shard::connection::Phase;
use crate::shard::table::Table;

/// Sockets whose request is not complete or was refused, oldest first, and some that have moved on since.
#[derive(Default)]
pub(crate) struct Newcomers(VecDeque<ConnectionId>);

impl Newcomers {
    pub(super) fn push(&mut self, id: ConnectionId, table: &Table) {
        // Those that stay are at most what is accepted within the handshake timeout.
        while self.0.front().is_some_and(|oldest| find(*oldest, table).is_none()) {
            self.0.pop_front();
        }
        self.0.push_back(id);
    }

    fn pop(&mut self, table: &Table) -> Option<Slot> {
        std::iter::from_fn(|| self.0.pop_front()).find_map(|id| find(id, table))
    }
}

impl Shard {
    /// Closes the oldest socket that may give way to a newcomer; `false`: there is none. A complete request that comes right
    /// after its connection is served even while somebody holds any number of sockets without one.
    pub(super) fn make_room(&mut self) -> bool {
        // Sockets on their way to Node give way first while they hold many places: more sockets than are accepted per turn
        // must find one, or they are closed before their requests can be read.
        let http_sockets = &self.shared.http_sockets;
        if http_sockets.len() > self.shared.max_newcomers / 4 && http_sockets.drop_oldest() {
            return true;
        }
        if let Some(slot) = self.newcomers.pop(&self.table) {
            self.drop_connection(slot);
            return true;
        }
        self.drop_oldest_relay() || self.shared.http_sockets.drop_oldest()
    }
}

/// Slot of a connection that is not admitted: it sends its request, or reads why it was refused.
fn find(id: ConnectionId, table: &Table) -> Option<Slot> {
    let slot = table.find(id)?;
    let connection = table.get(slot)?;
    (!connection.is_admitted && matches!(connection.phase, Phase::Head | Phase::Lingering)).then_some(slot)
}
