//! The Node addon: converts and delegates to `webmq-engine`, nothing else.
//!
//! Every export catches panics, for one that reached Node would abort it.

mod inline_runner;
mod js_call;
mod libuv;
mod options;

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use napi::bindgen_prelude::{Buffer, BufferSlice, Function, Result};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Error, Status};
use napi_derive::napi;
use webmq_engine::{Drained, Engine, EngineError};

use inline_runner::{CallBuffers, InlineRunner};
use js_call::CallContext;
use options::{NativeCertificate, NativeOptions, certificates_of, engine_options};

/// Where an engine listens.
#[napi(object)]
pub struct NativeAddress {
    /// IP address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// Code of WebMQ's error table, which becomes the `code` of the error in JavaScript.
type ErrorCode = &'static str;

/// Wakes the event loop; keeps it alive for as long as it is there.
type Wake = ThreadsafeFunction<(), (), (), Status, false>;

/// A running engine. Keeps the process alive until it is closed.
#[napi]
pub struct NativeEngine {
    engine: Arc<Engine>,
    /// `None`: the threads do everything.
    runner: RefCell<Option<Rc<InlineRunner>>>,
    /// Shared with the threads; taken by `close`, for the engine itself lives until JavaScript collects it.
    wake: Arc<Mutex<Option<Wake>>>,
}

#[napi]
impl NativeEngine {
    /// Starts the threads. `wake` is called on the event loop when events wait, once until the next `drain`.
    #[napi(constructor, catch_unwind)]
    pub fn new(options: NativeOptions, wake: Function<'_, (), ()>) -> Result<Self, ErrorCode> {
        let wake: Wake = wake
            .build_threadsafe_function()
            .build()
            .map_err(|error| Error::new("E_TRANSPORT_FAILED", error.reason.to_string()))?;
        let wake = Arc::new(Mutex::new(Some(wake)));
        let shared = Arc::clone(&wake);
        let call = move || {
            if let Some(wake) = &*shared.lock().unwrap_or_else(PoisonError::into_inner) {
                // Refused only while Node ends, when nobody listens any more.
                wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
            }
        };
        let engine = Engine::start(engine_options(&options)?, Box::new(call)).map_err(|error| to_js(&error))?;
        Ok(Self { engine: Arc::new(engine), runner: RefCell::default(), wake })
    }

    /// Lets the event loop run threads' work while there is little of it. `turn` is called with the length of the packed
    /// events at the start of `events`. It leaves packed commands at the start of `commands` and returns their length. Both
    /// buffers are kept. Returns whether the runtime can do that.
    #[napi(catch_unwind)]
    pub fn enable_inline(
        &self,
        env: Env,
        events: Buffer,
        commands: Buffer,
        turn: Function<'_, u32, u32>,
    ) -> Result<bool, ErrorCode> {
        let failed = |error: Error| Error::new("E_TRANSPORT_FAILED", error.reason.to_string());
        let (turn, context) = (turn.create_ref().map_err(failed)?, CallContext::new(&env).map_err(failed)?);
        if let Some(before) = self.runner.take() {
            before.close();
        }
        let runner =
            InlineRunner::start(env, &self.engine, CallBuffers { events, commands, turn, context }).map_err(failed)?;
        let is_inline = runner.is_some();
        self.runner.replace(runner);
        Ok(is_inline)
    }

    /// Binds an IP address and accepts connections on it. Port 0 takes a free one.
    #[napi(catch_unwind)]
    pub fn listen(&self, host: String, port: u16) -> Result<NativeAddress, ErrorCode> {
        let ip: IpAddr =
            host.parse().map_err(|_| Error::new("E_ADDRESS_UNAVAILABLE", format!("{host} is not an IP address")))?;
        let bound = self.engine.listen(SocketAddr::new(ip, port)).map_err(|error| to_js(&error))?;
        Ok(NativeAddress { host: bound.ip().to_string(), port: bound.port() })
    }

    /// Accepts connections on a Unix socket. The file must not exist, and stays when the engine ends.
    #[napi(catch_unwind)]
    pub fn listen_unix(&self, path: String) -> Result<(), ErrorCode> {
        self.engine.listen_unix(Path::new(&path)).map_err(|error| to_js(&error))
    }

    /// Serves these certificates to all handshakes that begin from now on. If one cannot be used, all old ones stay.
    #[napi(catch_unwind)]
    pub fn set_certificates(&self, certificates: Vec<NativeCertificate>) -> Result<(), ErrorCode> {
        self.engine.set_certificates(&certificates_of(&certificates)).map_err(|error| to_js(&error))
    }

    /// Takes a duplicate of a connected socket over, with the bytes that were read from it.
    #[napi(catch_unwind)]
    pub fn attach(&self, fd: i32, head: &[u8]) -> Result<(), ErrorCode> {
        if fd < 0 {
            return Err(Error::new("E_TRANSPORT_FAILED", "socket has no descriptor".to_owned()));
        }
        // SAFETY: the caller holds the socket's handle open during this call, and a descriptor that is not open makes
        // duplicating it fail. It is only borrowed.
        let socket = unsafe { BorrowedFd::borrow_raw(fd) };
        self.engine.attach(socket, head.to_vec()).map_err(|error| to_js(&error))
    }

    /// Hands over the packed commands in the first `length` bytes; they are copied. Returns whether more may be published.
    #[napi(catch_unwind)]
    pub fn submit(&self, packed: &[u8], length: u32) -> Result<bool, ErrorCode> {
        let packed = packed.get(..length as usize).unwrap_or(packed);
        self.engine.submit(packed).map_err(|error| to_js(&error))
    }

    /// Whether more may be published; if not, `wake` is called when it may.
    #[napi(catch_unwind)]
    pub fn is_writable(&self) -> bool {
        self.engine.is_writable()
    }

    /// Copies packed events into `target`. Returns their bytes, 0 when nothing waits, or, negative, the bytes that the
    /// next event needs.
    #[napi(catch_unwind)]
    pub fn drain(&self, mut target: BufferSlice<'_>) -> i64 {
        if let Some(runner) = &*self.runner.borrow() {
            runner.sync();
        }
        // JavaScript asks for more only when it has handled the last ones and submitted its commands.
        self.engine.note_handled(None);
        match self.engine.drain(&mut target) {
            Drained::Bytes(bytes) => bytes as i64,
            Drained::Needs(bytes) => -(bytes as i64),
        }
    }

    /// Copies packed events of connections that had nothing else to be handled into `target`, and returns their bytes. For
    /// while events of the last `drain` are still to be handled, but for the first `handled_bytes`, and none of an earlier
    /// `drainFront`.
    #[napi(catch_unwind)]
    pub fn drain_front(&self, mut target: BufferSlice<'_>, handled_bytes: u32) -> i64 {
        self.engine.drain_front(&mut target, handled_bytes as usize) as i64
    }

    /// Descriptor of a handed over HTTP connection, which the caller then owns; -1 if there is none for the token.
    #[napi(catch_unwind)]
    pub fn take_socket(&self, token: u32) -> i32 {
        self.engine.take_socket(token).map_or(-1, IntoRawFd::into_raw_fd)
    }

    /// `webmq_engine::Stats`; counts stay exact up to 2^53.
    #[napi(catch_unwind)]
    pub fn stats(&self) -> HashMap<String, f64> {
        self.engine.stats().named().map(|(name, number)| (camel_case(name), number as f64)).into()
    }

    /// Closes the listening socket.
    #[napi(catch_unwind)]
    pub fn stop_accepting(&self) {
        self.engine.stop_accepting();
    }

    /// Closes every connection and ends the threads when the last is gone.
    #[napi(catch_unwind)]
    pub fn shut_down(&self) {
        self.engine.shut_down();
    }

    /// Ends what is left, joins the threads and lets the process end. Idempotent.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        if let Some(runner) = self.runner.take() {
            runner.close();
        }
        self.engine.close();
        drop(self.wake.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for NativeEngine {
    fn drop(&mut self) {
        self.close();
    }
}

fn to_js(error: &EngineError) -> Error<&'static str> {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    Error::new(error.code(), format!("{error}{source}"))
}

/// `sent_byte_count` as `sentByteCount`.
fn camel_case(name: &str) -> String {
    let mut begins_word = false;
    let letter = |char: char| match char {
        '_' => {
            begins_word = true;
            None
        }
        char if std::mem::take(&mut begins_word) => Some(char.to_ascii_uppercase()),
        char => Some(char),
    };
    name.chars().filter_map(letter).collect()
}
