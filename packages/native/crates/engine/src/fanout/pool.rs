use std::rc::Rc;

use super::chunk::{Chunk, Gauge};

/// Capacities of chunks. A write takes at most the largest, so that a larger one would not make a write carry more.
const CLASS_BYTES: [usize; 6] = [1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18];
/// Memory that a shard keeps per class for the next frames.
const MAX_POOLED_BYTES_PER_CLASS: usize = 512 << 10;

/// Which capacity the next chunk of a log gets: it grows with what a log holds at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SizeClass(u8);

impl SizeClass {
    pub(crate) fn bytes(self) -> usize {
        CLASS_BYTES[usize::from(self.0)]
    }
}

/// Makes chunks, and keeps a bounded number of empty ones: idle logs own nothing, busy ones do not allocate.
pub(crate) struct ChunkPool {
    free: [Vec<Rc<Chunk>>; CLASS_BYTES.len()],
    gauge: Gauge,
    largest: SizeClass,
    transient: SizeClass,
}

impl ChunkPool {
    /// Makes no chunk, but for a larger frame, of more than an eighth of `max_outbox_bytes`: a chunk is freed as a whole, so
    /// its size is what a reader may hold in memory beyond its outbox.
    pub(crate) fn new(max_outbox_bytes: usize) -> Self {
        let up_to = |max: usize| SizeClass(CLASS_BYTES.iter().rposition(|bytes| *bytes <= max).unwrap_or(0) as u8);
        let (largest, transient) = (up_to(max_outbox_bytes / 8), up_to(max_outbox_bytes / 4));
        Self { free: Default::default(), gauge: Gauge::default(), largest, transient }
    }

    pub(crate) fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    /// What the memory of a turn is made of: what a write carries, by far the most of it contiguous. Nobody holds it for long, but
    /// so much may be under way to a reader whose socket is full.
    pub(crate) fn transient(&self) -> SizeClass {
        self.transient
    }

    /// The class above `class`, if there is one.
    pub(crate) fn larger(&self, class: SizeClass) -> SizeClass {
        SizeClass((class.0 + 1).min(self.largest.0))
    }

    /// An appendable chunk that has `frames` in it, with room for what `class` says.
    pub(crate) fn chunk_with(&mut self, frames: &[u8], class: SizeClass) -> Rc<Chunk> {
        let index = CLASS_BYTES.iter().position(|bytes| *bytes >= frames.len().max(class.bytes()));
        let pooled = index.and_then(|index| self.free[index].pop());
        let chunk = pooled.unwrap_or_else(|| {
            let capacity = index.map_or(frames.len(), |index| CLASS_BYTES[index]);
            Rc::new(Chunk::owned(capacity, &self.gauge))
        });
        let start = chunk.append(frames);
        debug_assert_eq!(start, Some(0), "the class was chosen for the frames");
        chunk
    }

    /// Takes back a chunk that its holder no longer needs; kept if nobody else does and the pool has room.
    pub(crate) fn give(&mut self, mut chunk: Rc<Chunk>) {
        let Some(unshared) = Rc::get_mut(&mut chunk) else { return };
        let Some(index) = CLASS_BYTES.iter().position(|bytes| *bytes == unshared.capacity()) else { return };
        if self.free[index].len() < MAX_POOLED_BYTES_PER_CLASS / CLASS_BYTES[index] {
            unshared.clear();
            unshared.set_transient(false);
            unshared.set_stream(false);
            self.free[index].push(chunk);
        }
    }
}
