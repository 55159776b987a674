use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::bridge::event::{Block, CUT_BYTES, Events};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// A block of this size leaves before the end of its turn: JavaScript begins with it, and its memory is filled again soon.
pub(crate) const FULL_BLOCK_BYTES: usize = 256 << 10;
/// Memory of blocks that are kept to be filled again: as much as may wait, and as much as has been read.
const MAX_KEPT_BYTES: usize = 4 << 20;
/// A larger block is not kept.
const MAX_KEPT_BLOCK_BYTES: usize = 512 << 10;

/// Nobody waits.
const NO_POSITION: u64 = u64::MAX;

#[derive(Default)]
struct Blocks {
    /// The front lane.
    front: VecDeque<Block>,
    waiting: VecDeque<Block>,
    /// Empty ones.
    kept: Vec<Block>,
    kept_bytes: usize,
}

impl Blocks {
    fn keep(&mut self, mut block: Block) {
        let bytes = block.bytes.capacity();
        if bytes <= MAX_KEPT_BLOCK_BYTES && self.kept_bytes + bytes <= MAX_KEPT_BYTES {
            block.bytes.clear();
            block.cuts.clear();
            self.kept_bytes += bytes;
            self.kept.push(block);
        }
    }

    fn append(&mut self, mut block: Block, lane: impl Fn(&mut Self) -> &mut VecDeque<Block>) {
        match lane(self).back_mut() {
            // Turns of a few events make one block: it needs no cut.
            Some(last) if last.bytes.len() + block.bytes.len() <= CUT_BYTES => {
                last.bytes.append(&mut block.bytes);
                self.keep(block);
            }
            _ => lane(self).push_back(block),
        }
    }

    fn empty(&mut self) -> Block {
        let block = self.kept.pop().unwrap_or_default();
        self.kept_bytes -= block.bytes.capacity();
        block
    }
}

/// How far JavaScript is in the events of a lane, in bytes since the engine began.
#[derive(Default)]
pub(crate) struct Progress {
    read: AtomicU64,
    handled: AtomicU64,
}

impl Progress {
    /// Position up to which JavaScript has read.
    pub(crate) fn read_position(&self) -> u64 {
        self.read.load(Ordering::SeqCst)
    }

    /// Position up to which JavaScript has handled the events: what it answered at once has been submitted.
    pub(crate) fn handled_position(&self) -> u64 {
        self.handled.load(Ordering::SeqCst)
    }

    /// JavaScript has handled what it has read, and has submitted its commands.
    pub(super) fn note_handled(&self) {
        self.handled.store(self.read_position(), Ordering::SeqCst);
    }

    /// Notes that `bytes` were read; returns the position.
    pub(super) fn note_read(&self, bytes: usize) -> u64 {
        self.read.fetch_add(bytes as u64, Ordering::SeqCst) + bytes as u64
    }
}

/// Events on their way from one shard to JavaScript, in two lanes. In the front lane are those of connections that had
/// nothing else to be handled: JavaScript takes them before those of connections that send much. The messages of a connection
/// keep their order: none is put in front while JavaScript has an earlier one in the other lane to handle, and a reader of the
/// other lane has taken all earlier events of the front lane.
pub(crate) struct EventQueue {
    blocks: Mutex<Blocks>,
    pub(crate) front: Progress,
    pub(crate) rest: Progress,
    /// The shard waits until JavaScript has read the rest up to here.
    awaited_position: AtomicU64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            blocks: Mutex::default(),
            front: Progress::default(),
            rest: Progress::default(),
            awaited_position: AtomicU64::new(NO_POSITION),
        }
    }
}

impl EventQueue {
    /// JavaScript has handled what it has read of both lanes, and has submitted its commands.
    pub(crate) fn note_handled(&self) {
        self.front.note_handled();
        self.rest.note_handled();
    }

    /// Requests a wake-up of the shard when JavaScript has read up to here. Holds until the shard takes it back.
    pub(crate) fn await_position(&self, position: u64) {
        self.awaited_position.store(position, Ordering::SeqCst);
    }

    /// Takes the request back. Only the shard does: JavaScript could take back one that has just replaced the one it saw.
    pub(crate) fn await_nothing(&self) {
        if self.awaited_position.load(Ordering::Relaxed) != NO_POSITION {
            self.await_position(NO_POSITION);
        }
    }

    /// Appends events of a turn to both lanes, at once.
    pub(crate) fn put(&self, front: &mut Events, rest: &mut Events) {
        if front.len() + rest.len() == 0 {
            return;
        }
        let mut blocks = self.lock();
        if front.len() > 0 {
            let block = front.take(blocks.empty());
            blocks.append(block, |blocks| &mut blocks.front);
        }
        if rest.len() > 0 {
            let block = rest.take(blocks.empty());
            blocks.append(block, |blocks| &mut blocks.waiting);
        }
    }

    /// Exchanges the blocks that wait in front for `front`, and those of the rest for `rest`; both are empty. Keeps blocks that
    /// were read whole.
    pub(super) fn swap(&self, done: &mut Vec<Block>, front: &mut VecDeque<Block>, rest: Option<&mut VecDeque<Block>>) {
        let mut blocks = self.lock();
        done.drain(..).for_each(|block| blocks.keep(block));
        std::mem::swap(&mut blocks.front, front);
        if let Some(rest) = rest {
            std::mem::swap(&mut blocks.waiting, rest);
        }
    }

    /// Notes that `bytes` of the rest were read; `true` when the shard waits for that.
    pub(super) fn note_read(&self, bytes: usize) -> bool {
        let position = self.rest.note_read(bytes);
        self.awaited_position.load(Ordering::SeqCst) <= position
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
