//! The log: bytes appended once and read by every cursor.

use std::ops::Range;

/// A place in the log; it only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position(pub(crate) u64);

impl Position {
    pub(crate) fn plus(self, bytes: usize) -> Self {
        Self(self.0 + bytes as u64)
    }

    /// Bytes from `earlier` to here.
    pub(crate) fn since(self, earlier: Self) -> u64 {
        self.0 - earlier.0
    }
}

/// A ring buffer. It overwrites the oldest bytes: the caller must not append past the slowest cursor.
pub(crate) struct Log {
    ring: Box<[u8]>,
    head: Position,
}

impl Log {
    /// A log that keeps at least the last `min_bytes`.
    pub(crate) fn new(min_bytes: usize) -> Self {
        Self { ring: vec![0; min_bytes.next_power_of_two()].into_boxed_slice(), head: Position(0) }
    }

    /// Where the next byte will be.
    pub(crate) fn head(&self) -> Position {
        self.head
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let at = self.index(self.head);
        let (first, second) = bytes.split_at(bytes.len().min(self.ring.len() - at));
        self.ring[at..at + first.len()].copy_from_slice(first);
        self.ring[..second.len()].copy_from_slice(second);
        self.head = self.head.plus(bytes.len());
    }

    /// The contiguous bytes from `from` on, at most `max_bytes`.
    pub(crate) fn pending(&self, from: Position, max_bytes: usize) -> &[u8] {
        let at = self.index(from);
        let len = (self.head.since(from) as usize).min(max_bytes).min(self.ring.len() - at);
        let range: Range<usize> = at..at + len;
        &self.ring[range]
    }

    fn index(&self, position: Position) -> usize {
        (position.0 % self.ring.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_appended_is_read_in_pieces_around_the_end_of_the_ring() {
        let mut log = Log::new(8);
        log.append(b"abcdef");
        assert_eq!(log.pending(Position(0), 4), b"abcd");
        assert_eq!(log.pending(Position(4), 100), b"ef");
        log.append(b"ghij");
        assert_eq!(log.pending(Position(4), 100), b"efgh");
        assert_eq!(log.pending(Position(8), 100), b"ij");
        assert_eq!(log.pending(log.head(), 100), b"");
        assert_eq!(log.head().since(Position(4)), 6);
    }
}
