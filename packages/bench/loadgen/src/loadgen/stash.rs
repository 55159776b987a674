//! Starts of incomplete frames.

use std::num::NonZeroU32;

use super::fields::MAX_LOOKED_AT_BYTES;
use crate::header::MAX_HEADER_BYTES;

/// Only the inspected part of a frame is kept.
pub(crate) const MAX_STASHED_BYTES: usize = MAX_HEADER_BYTES + MAX_LOOKED_AT_BYTES;

/// The stash slot of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StashId(NonZeroU32);

/// Slots for frame starts, in use only while a connection has one.
#[derive(Default)]
pub(crate) struct Stashes {
    places: Vec<Place>,
    free: Vec<StashId>,
}

struct Place {
    len: u16,
    bytes: [u8; MAX_STASHED_BYTES],
}

impl Stashes {
    /// Stores `bytes`, at most [`MAX_STASHED_BYTES`].
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> StashId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { len: 0, bytes: [0; MAX_STASHED_BYTES] });
            // At most as many as connections, which are far fewer than 2^32.
            StashId(NonZeroU32::new(self.places.len() as u32).unwrap_or(NonZeroU32::MAX))
        });
        let place = &mut self.places[id.index()];
        place.len = bytes.len() as u16;
        place.bytes[..bytes.len()].copy_from_slice(bytes);
        id
    }

    pub(crate) fn bytes(&self, id: StashId) -> &[u8] {
        let place = &self.places[id.index()];
        &place.bytes[..usize::from(place.len)]
    }

    pub(crate) fn release(&mut self, id: StashId) {
        self.free.push(id);
    }
}

impl StashId {
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_reused() {
        let mut stashes = Stashes::default();
        let first = stashes.keep(b"one");
        let second = stashes.keep(&[7; MAX_STASHED_BYTES]);
        assert_eq!((stashes.bytes(first), stashes.bytes(second).len()), (&b"one"[..], MAX_STASHED_BYTES));
        stashes.release(second);
        assert_eq!(stashes.keep(b"three"), second);
        assert_eq!(stashes.bytes(second), b"three");
    }
}
