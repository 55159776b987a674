//! Locks and atomics of what crosses threads: those of `std`. Tests with `--cfg shuttle` take shuttle's instead, which run the
//! threads in random orders.

#[cfg(all(test, shuttle))]
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
#[cfg(not(all(test, shuttle)))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
