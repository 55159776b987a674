use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

/// Sockets of plain HTTP requests on their way to Node. Owned here until they are taken, so none is ever leaked.
#[derive(Default)]
pub(crate) struct HttpSockets {
    sockets: Mutex<(u32, FxHashMap<u32, OwnedFd>)>,
}

impl HttpSockets {
    /// Keeps a socket and returns the token to take it with.
    pub(crate) fn put(&self, socket: OwnedFd) -> u32 {
        let mut guard = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let (last_token, sockets) = &mut *guard;
        while sockets.contains_key(last_token) {
            *last_token = last_token.wrapping_add(1);
        }
        sockets.insert(*last_token, socket);
        *last_token
    }

    pub(crate) fn take(&self, token: u32) -> Option<OwnedFd> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&token)
    }
}
