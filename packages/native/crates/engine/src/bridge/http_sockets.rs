use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sockets that may wait for Node. One more, and the oldest is closed: its client has waited the longest in vain. The
/// sockets that Node serves at the same time are bounded likewise.
pub(crate) const MAX_WAITING: usize = 1_024;

/// Sockets of plain HTTP requests on their way to Node, oldest first. Owned here until they are taken, so none is ever
/// leaked.
#[derive(Default)]
pub(crate) struct HttpSockets {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next_token: u32,
    sockets: VecDeque<(u32, OwnedFd)>,
}

impl HttpSockets {
    /// Keeps a socket and returns the token to take it with. `true`: the oldest one was closed for it.
    pub(crate) fn put(&self, socket: OwnedFd) -> (u32, bool) {
        let is_full = self.len() >= MAX_WAITING && self.drop_oldest();
        let mut waiting = self.lock();
        let token = waiting.next_token;
        waiting.next_token = token.wrapping_add(1);
        waiting.sockets.push_back((token, socket));
        (token, is_full)
    }

    /// Takes a socket, unless it was taken or closed. Cost: Node takes them in order, so it is among the first.
    pub(crate) fn take(&self, token: u32) -> Option<OwnedFd> {
        let mut waiting = self.lock();
        let index = waiting.sockets.iter().position(|(own, _)| *own == token)?;
        waiting.sockets.remove(index).map(|(_, socket)| socket)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().sockets.len()
    }

    /// Closes the socket that has waited longest; `false`: there is none.
    pub(crate) fn drop_oldest(&self) -> bool {
        let oldest = self.lock().sockets.pop_front();
        oldest.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn the_oldest_socket_gives_way_when_too_many_wait() {
        let sockets = HttpSockets::default();
        let socket = OwnedFd::from(UdpSocket::bind("127.0.0.1:0").expect("a free port"));
        let put = || sockets.put(socket.try_clone().expect("a descriptor"));
        assert!((0..MAX_WAITING).all(|index| put() == (index as u32, false)));
        assert_eq!(put(), (MAX_WAITING as u32, true));
        assert_eq!(sockets.len(), MAX_WAITING);
        assert!(sockets.take(0).is_none());
        assert!(sockets.take(1).is_some() && sockets.take(1).is_none());
    }
}
