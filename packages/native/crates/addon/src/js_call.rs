//! Calls JavaScript from a callback of libuv, as Node does.

use std::ffi::CStr;
use std::ptr;

use napi::bindgen_prelude::JsValue;
use napi::{Env, Result, check_status, sys};

/// Who calls, for Node's `async_hooks`.
pub(crate) struct CallContext {
    env: sys::napi_env,
    raw: sys::napi_async_context,
}

impl CallContext {
    pub(crate) fn new(env: &Env) -> Result<Self> {
        let name = env.create_string("webmq-native")?;
        let mut raw = ptr::null_mut();
        // SAFETY: on the thread of `env`, in a scope of it.
        check_status!(unsafe { sys::napi_async_init(env.raw(), ptr::null_mut(), name.raw(), &raw mut raw) })?;
        Ok(Self { env: env.raw(), raw })
    }

    pub(crate) fn raw(&self) -> sys::napi_async_context {
        self.raw
    }
}

impl Drop for CallContext {
    fn drop(&mut self) {
        // SAFETY: made by `new`; its owner lives on the thread of `env`, and goes before it.
        unsafe { sys::napi_async_destroy(self.env, self.raw) };
    }
}

/// Calls a function of numbers, then `then` with its result. Microtasks and ticks run after that. An exception of the function
/// is an uncaught exception of the process. So is an error of `then`, as `E_TRANSPORT_FAILED`.
pub(crate) fn call(
    env: &Env,
    context: sys::napi_async_context,
    function: impl FnOnce() -> Option<sys::napi_value>,
    argument: u32,
    then: impl FnOnce(u32) -> std::result::Result<(), &'static CStr>,
) {
    let env = env.raw();
    let (mut values, mut calls) = (ptr::null_mut(), ptr::null_mut());
    let (mut this, mut number, mut result, mut error) =
        (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: on the thread of `env`, outside of any scope of it. Scopes are closed in reverse; values are of the scope.
    unsafe {
        if sys::napi_open_handle_scope(env, &raw mut values) != sys::Status::napi_ok {
            return;
        }
        sys::napi_get_undefined(env, &raw mut this);
        if let Some(function) = function()
            && sys::napi_open_callback_scope(env, this, context, &raw mut calls) == sys::Status::napi_ok
        {
            sys::napi_create_uint32(env, argument, &raw mut number);
            let mut returned = 0;
            match sys::napi_call_function(env, this, function, 1, &raw const number, &raw mut result) {
                sys::Status::napi_ok
                    if sys::napi_get_value_uint32(env, result, &raw mut returned) == sys::Status::napi_ok =>
                {
                    if let Err(objection) = then(returned) {
                        sys::napi_throw_error(env, c"E_TRANSPORT_FAILED".as_ptr(), objection.as_ptr());
                        sys::napi_get_and_clear_last_exception(env, &raw mut error);
                        sys::napi_fatal_exception(env, error);
                    }
                }
                sys::Status::napi_pending_exception => {
                    sys::napi_get_and_clear_last_exception(env, &raw mut error);
                    sys::napi_fatal_exception(env, error);
                }
                // It has returned no number, or may not be called any more because the environment ends.
                _ => {}
            }
            sys::napi_close_callback_scope(env, calls);
        }
        sys::napi_close_handle_scope(env, values);
    }
}
