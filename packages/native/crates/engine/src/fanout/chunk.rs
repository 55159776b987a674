use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::bridge::batch::SharedFrame;

/// Bytes that wait in all chunks of a shard; what several connections wait for counts once.
#[derive(Clone, Default)]
pub(crate) struct Gauge(Rc<Cell<usize>>);

impl Gauge {
    pub(crate) fn bytes(&self) -> usize {
        self.0.get()
    }

    pub(super) fn add(&self, bytes: usize) {
        self.0.set(self.0.get() + bytes);
    }

    pub(super) fn subtract(&self, bytes: usize) {
        self.0.set(self.0.get() - bytes);
    }
}

/// Contiguous output, referred to by the logs and chains that still need it.
///
/// Invariant: a chunk that is not raw begins with a frame and holds only whole ones, so the boundaries inside it can be
/// found again by walking its headers.
pub(crate) struct Chunk {
    body: Body,
    /// Memory of this turn, see [`Arena`](super::arena::Arena): what still waits when it ends is copied out.
    is_transient: Cell<bool>,
    gauge: Gauge,
}

enum Body {
    /// Copied frames. Only ever appended to, and never beyond its capacity, so that ranges of it stay what they were.
    Owned(RefCell<Vec<u8>>),
    /// One frame, where JavaScript put it.
    Shared(SharedFrame),
    /// Bytes that are not whole frames: an HTTP response, the rest of a frame.
    Raw(Box<[u8]>),
}

impl Chunk {
    pub(crate) fn owned(capacity: usize, gauge: &Gauge) -> Self {
        Self::new(Body::Owned(RefCell::new(Vec::with_capacity(capacity))), gauge)
    }

    pub(crate) fn shared(frame: SharedFrame, gauge: &Gauge) -> Self {
        gauge.add(frame.bytes().len());
        Self::new(Body::Shared(frame), gauge)
    }

    pub(crate) fn raw(bytes: Box<[u8]>, gauge: &Gauge) -> Self {
        gauge.add(bytes.len());
        Self::new(Body::Raw(bytes), gauge)
    }

    fn new(body: Body, gauge: &Gauge) -> Self {
        Self { body, is_transient: Cell::new(false), gauge: gauge.clone() }
    }

    pub(crate) fn is_transient(&self) -> bool {
        self.is_transient.get()
    }

    pub(crate) fn set_transient(&self, is_transient: bool) {
        self.is_transient.set(is_transient);
    }

    pub(crate) fn len(&self) -> usize {
        match &self.body {
            Body::Owned(bytes) => bytes.borrow().len(),
            Body::Shared(frame) => frame.bytes().len(),
            Body::Raw(bytes) => bytes.len(),
        }
    }

    /// Room that an [`owned`](Self::owned) chunk was made with; 0 for the others, which are not reused.
    pub(crate) fn capacity(&self) -> usize {
        match &self.body {
            Body::Owned(bytes) => bytes.borrow().capacity(),
            Body::Shared(_) | Body::Raw(_) => 0,
        }
    }

    /// Appends whole frames if the chunk has room for all of them; returns where they begin.
    #[must_use = "frames that do not fit have to go into another chunk"]
    pub(crate) fn append(&self, frames: &[u8]) -> Option<u32> {
        let Body::Owned(bytes) = &self.body else { return None };
        let mut bytes = bytes.borrow_mut();
        if bytes.capacity() - bytes.len() < frames.len() {
            return None;
        }
        let start = bytes.len() as u32;
        bytes.extend_from_slice(frames);
        self.gauge.add(frames.len());
        Some(start)
    }

    /// Lends the bytes from `from` to `to`.
    pub(crate) fn with<R>(&self, from: usize, to: usize, read: impl FnOnce(&[u8]) -> R) -> R {
        match &self.body {
            Body::Owned(bytes) => read(&bytes.borrow()[from..to]),
            Body::Shared(frame) => read(&frame.bytes()[from..to]),
            Body::Raw(bytes) => read(&bytes[from..to]),
        }
    }

    /// Forgets the bytes and keeps the memory. Only for a chunk that nobody else refers to.
    pub(crate) fn clear(&mut self) {
        if let Body::Owned(bytes) = &mut self.body {
            let bytes = bytes.get_mut();
            self.gauge.subtract(bytes.len());
            bytes.clear();
        }
    }

    /// End of the frame that `position` lies in; `position` itself at a boundary. Raw bytes have no boundary but their end.
    ///
    /// Cost: O(frames of the chunk). Asked for connections whose socket is full, not on the way of every frame.
    pub(crate) fn frame_end(&self, position: usize) -> usize {
        if let Body::Raw(bytes) = &self.body {
            return bytes.len();
        }
        self.with(0, self.len(), |bytes| {
            let mut end = 0;
            while end < position {
                end += frame_len(&bytes[end..]);
            }
            end
        })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.gauge.subtract(self.len());
    }
}

/// Length of the unmasked frame at the start of `bytes` (RFC 6455 §5.2).
fn frame_len(bytes: &[u8]) -> usize {
    match bytes[1] & 0x7f {
        126 => 4 + usize::from(u16::from_be_bytes([bytes[2], bytes[3]])),
        127 => {
            let mut len = [0; 8];
            len.copy_from_slice(&bytes[2..10]);
            10 + u64::from_be_bytes(len) as usize
        }
        len => 2 + usize::from(len),
    }
}
