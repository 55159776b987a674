//! Runs inline shards in the event loop: libuv watches their descriptors. Messages are read, answered by JavaScript and
//! written without another thread.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use napi::bindgen_prelude::{Buffer, FunctionRef, JsValue};
use napi::{Env, Error, Result, check_status, sys};
use webmq_engine::{Drained, Engine};

use crate::js_call::{CallContext, call};
use crate::libuv::{self, Handle, Uv};

/// The shards of an engine that libuv watches. Belongs to the thread of the event loop.
pub(crate) struct InlineRunner {
    engine: Arc<Engine>,
    uv: &'static Uv,
    env: Env,
    /// `None` once closed.
    buffers: RefCell<Option<CallBuffers>>,
    watches: RefCell<Vec<Watch>>,
    /// Handles that libuv has not closed yet.
    open_count: Cell<usize>,
    /// Delays the end of the environment until libuv has closed all handles.
    cleanup: Cell<sys::napi_async_cleanup_hook_handle>,
}

/// Buffers and function of an inline turn in JavaScript.
pub(crate) struct CallBuffers {
    /// Filled with packed events before `turn` is called with their length.
    pub(crate) events: Buffer,
    /// Where `turn` leaves packed commands; it returns their length.
    pub(crate) commands: Buffer,
    pub(crate) turn: FunctionRef<u32, u32>,
    pub(crate) context: CallContext,
}

/// A shard and its handle, which is open.
struct Watch {
    handle: *mut Handle,
    is_started: bool,
}

/// What the handle of a shard refers to: lives until libuv has closed it.
struct Watched {
    runner: Rc<InlineRunner>,
    shard: usize,
    memory: *mut [u128],
    /// Kept open for as long as libuv knows its number.
    _descriptor: Arc<OwnedFd>,
}

impl InlineRunner {
    /// Enables inline mode in the event loop of `env`. `None`: the runtime is not Node and has no libuv.
    ///
    /// # Errors
    /// Node or libuv refuses a call.
    pub(crate) fn start(env: Env, engine: &Arc<Engine>, buffers: CallBuffers) -> Result<Option<Rc<Self>>> {
        let Some(uv) = Uv::find() else { return Ok(None) };
        let event_loop = env.get_uv_event_loop()?.cast::<libuv::Loop>();
        let runner = Rc::new(Self {
            engine: Arc::clone(engine),
            uv,
            env,
            buffers: RefCell::new(Some(buffers)),
            watches: RefCell::default(),
            open_count: Cell::new(0),
            cleanup: Cell::new(ptr::null_mut()),
        });
        let watched = (0..engine.shard_count()).try_for_each(|shard| runner.watch(shard, event_loop));
        watched.and_then(|()| runner.hook()).inspect_err(|_| runner.close())?;
        engine.enable_inline();
        Ok(Some(runner))
    }

    /// Makes a shard's handle, which is not started yet.
    fn watch(self: &Rc<Self>, shard: usize, event_loop: *mut libuv::Loop) -> Result<()> {
        let descriptor = self.engine.descriptor(shard);
        let memory = Box::into_raw(self.uv.poll_memory());
        let handle = memory.cast::<Handle>();
        // SAFETY: the loop is that of the calling thread, and the memory is of the size that libuv wants.
        if unsafe { (self.uv.poll_init)(event_loop, handle, descriptor.as_raw_fd()) } != 0 {
            // SAFETY: made above, and libuv does not know it.
            drop(unsafe { Box::from_raw(memory) });
            return Err(Error::from_reason("libuv does not watch a shard"));
        }
        let watched = Watched { runner: Rc::clone(self), shard, memory, _descriptor: descriptor };
        // SAFETY: the handle is initialised, and lives until `on_closed`. It does not keep the process alive: that is the
        // wake function's job.
        unsafe {
            (self.uv.set_data)(handle, Box::into_raw(Box::new(watched)).cast());
            (self.uv.unref)(handle);
        }
        self.open_count.set(self.open_count.get() + 1);
        self.watches.borrow_mut().push(Watch { handle, is_started: false });
        Ok(())
    }

    /// Makes Node end the environment only after the handles are closed.
    fn hook(self: &Rc<Self>) -> Result<()> {
        let mut cleanup = ptr::null_mut();
        let data = Rc::as_ptr(self).cast_mut().cast();
        // SAFETY: what the hook refers to lives until the last handle is closed, when the hook is taken away.
        check_status!(unsafe {
            sys::napi_add_async_cleanup_hook(self.env.raw(), Some(on_cleanup), data, &raw mut cleanup)
        })?;
        self.cleanup.set(cleanup);
        Ok(())
    }

    /// Watches the inline shards, and no others.
    pub(crate) fn sync(&self) {
        for (shard, watch) in self.watches.borrow_mut().iter_mut().enumerate() {
            let is_inline = self.engine.is_inline(shard);
            if is_inline == watch.is_started {
                continue;
            }
            // SAFETY: the handle is open.
            let status = unsafe {
                if is_inline {
                    (self.uv.poll_start)(watch.handle, libuv::READABLE, on_ready)
                } else {
                    (self.uv.poll_stop)(watch.handle)
                }
            };
            watch.is_started = is_inline && status == 0;
            if status != 0 {
                self.engine.take_back(shard);
            }
        }
    }

    /// Ends inline mode and closes the handles. Idempotent.
    pub(crate) fn close(&self) {
        if self.buffers.take().is_some() {
            self.engine.disable_inline();
        }
        for Watch { handle, .. } in self.watches.take() {
            // SAFETY: the handle is open, and closed only here; its memory lives until `on_closed`.
            unsafe { (self.uv.close)(handle, on_closed) };
        }
    }

    fn turn(&self, shard: usize) {
        if self.engine.inline_turn(shard) {
            self.tell(shard);
        }
        if self.engine.finish_inline_turn(shard) {
            self.tell(shard);
        }
        self.sync();
    }

    /// Calls JavaScript with the events that wait, and submits the commands that it returns. Events that do not fit wake
    /// JavaScript later.
    fn tell(&self, shard: usize) {
        let (length, context) = {
            let mut buffers = self.buffers.borrow_mut();
            let Some(CallBuffers { events, context, .. }) = &mut *buffers else { return };
            let Drained::Bytes(length @ 1..) = self.engine.drain(events) else { return };
            (length, context.raw())
        };
        let function = || Some(self.buffers.borrow().as_ref()?.turn.borrow_back(&self.env).ok()?.raw());
        call(&self.env, context, function, length as u32, |length| {
            let buffers = self.buffers.borrow();
            // Closed during the call: the shards have ended, and commands mean nothing.
            let Some(CallBuffers { commands, .. }) = &*buffers else { return Ok(()) };
            let packed = commands.get(..length as usize).ok_or(c"more commands than there is room for")?;
            // JavaScript asks by itself whether it may go on.
            self.engine.submit(packed).map(drop).map_err(|_| c"malformed commands")
        });
        self.engine.note_handled(Some(shard));
    }
}

impl Drop for Watched {
    /// libuv has closed the handle. With the last one, the environment may end.
    fn drop(&mut self) {
        let runner = &self.runner;
        runner.open_count.set(runner.open_count.get() - 1);
        if runner.open_count.get() == 0 {
            let cleanup = runner.cleanup.replace(ptr::null_mut());
            if !cleanup.is_null() {
                // SAFETY: the hook was added, and is taken away only here.
                unsafe { sys::napi_remove_async_cleanup_hook(cleanup) };
            }
        }
        // SAFETY: made by `watch`, and nobody refers to it any more.
        drop(unsafe { Box::from_raw(self.memory) });
    }
}

unsafe extern "C" fn on_ready(handle: *mut Handle, status: c_int, _events: c_int) {
    let Some(uv) = Uv::find() else { return };
    // SAFETY: libuv calls only for open handles, and what they refer to lives until they are closed; the runner, until this
    // returns.
    let (runner, shard) = unsafe {
        let watched = &*(uv.data)(handle).cast::<Watched>();
        (Rc::clone(&watched.runner), watched.shard)
    };
    if status < 0 {
        runner.engine.take_back(shard);
    }
    // Unwinding into C would abort the process. The engine catches what panics in a shard; nothing else here should. If it
    // does, Rust has said so on standard error, and the threads do everything from here on.
    if catch_unwind(AssertUnwindSafe(|| runner.turn(shard))).is_err() {
        runner.close();
    }
}

unsafe extern "C" fn on_closed(handle: *mut Handle) {
    let Some(uv) = Uv::find() else { return };
    // SAFETY: made by `watch`, and libuv, which calls this once, has let go of the handle.
    drop(unsafe { Box::from_raw((uv.data)(handle).cast::<Watched>()) });
}

/// The environment ends: that of a worker that was terminated, for one.
unsafe extern "C" fn on_cleanup(_hook: sys::napi_async_cleanup_hook_handle, data: *mut c_void) {
    // SAFETY: the runner lives for as long as a handle is open, and the hook is taken away with the last.
    let runner = unsafe { &*data.cast::<InlineRunner>() };
    runner.close();
}
