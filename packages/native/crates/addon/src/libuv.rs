//! The part of libuv that the addon uses, looked up in the process. Without it (the runtime is not Node) there is no inline
//! mode.
//!
//! libuv keeps its ABI throughout version 1, and Node exports it to addons (Node-API, `napi_get_uv_event_loop`). Handles are
//! allocated by the size that libuv reports. Nothing depends on their layout.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

/// `UV_POLL` of `uv_handle_type`.
const POLL_HANDLE: c_int = 8;
/// `UV_READABLE` of `uv_poll_event`.
pub(crate) const READABLE: c_int = 1;

/// `uv_loop_t`.
pub(crate) enum Loop {}
/// `uv_handle_t`, and `uv_poll_t`, which begins with one.
pub(crate) enum Handle {}

pub(crate) type OnReady = unsafe extern "C" fn(*mut Handle, c_int, c_int);
pub(crate) type OnClosed = unsafe extern "C" fn(*mut Handle);

/// Functions of libuv.
pub(crate) struct Uv {
    handle_size: unsafe extern "C" fn(c_int) -> usize,
    pub(crate) poll_init: unsafe extern "C" fn(*mut Loop, *mut Handle, c_int) -> c_int,
    pub(crate) poll_start: unsafe extern "C" fn(*mut Handle, c_int, OnReady) -> c_int,
    pub(crate) poll_stop: unsafe extern "C" fn(*mut Handle) -> c_int,
    pub(crate) unref: unsafe extern "C" fn(*mut Handle),
    pub(crate) close: unsafe extern "C" fn(*mut Handle, OnClosed),
    pub(crate) set_data: unsafe extern "C" fn(*mut Handle, *mut c_void),
    pub(crate) data: unsafe extern "C" fn(*const Handle) -> *mut c_void,
}

impl Uv {
    /// `None` where the process has no libuv.
    pub(crate) fn find() -> Option<&'static Self> {
        static UV: OnceLock<Option<Uv>> = OnceLock::new();
        UV.get_or_init(Self::look_up).as_ref()
    }

    fn look_up() -> Option<Self> {
        // SAFETY: every name is paired with the type that it has in uv.h, in all of version 1.
        unsafe {
            Some(Self {
                handle_size: symbol(c"uv_handle_size")?,
                poll_init: symbol(c"uv_poll_init")?,
                poll_start: symbol(c"uv_poll_start")?,
                poll_stop: symbol(c"uv_poll_stop")?,
                unref: symbol(c"uv_unref")?,
                close: symbol(c"uv_close")?,
                set_data: symbol(c"uv_handle_set_data")?,
                data: symbol(c"uv_handle_get_data")?,
            })
        }
    }

    pub(crate) fn poll_memory(&self) -> Box<[u128]> {
        // SAFETY: takes a number and returns a number.
        let bytes = unsafe { (self.handle_size)(POLL_HANDLE) };
        vec![0; bytes.div_ceil(size_of::<u128>())].into()
    }
}

/// A function of the process.
///
/// # Safety
/// `F` is the function pointer type that the name stands for.
unsafe fn symbol<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) }
    // SAFETY: the name is a C string; looking it up has no other effect.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: not null, and the caller says that it is an `F`, which is a pointer by its size.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
}
