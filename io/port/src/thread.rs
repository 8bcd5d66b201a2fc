//! Registers threads with DPDK.
//!
//! A registered thread has its own number, and under that number a cache in every mempool. The registration ends with
//! the thread.

use std::cell::{Cell, RefCell};

use crate::ffi::Functions;

/// Unregisters the current thread on drop.
struct Registration(&'static Functions);

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: this thread was registered when the value was made.
        unsafe { (self.0.thread_unregister)() };
    }
}

thread_local! {
    static TRIED: Cell<bool> = const { Cell::new(false) };
    static REGISTRATION: RefCell<Option<Registration>> = const { RefCell::new(None) };
}

/// Registers this thread, unless that was tried before. The environment must be running. DPDK has room for about 127
/// threads; further threads work without caches.
#[inline]
pub(crate) fn register(shim: &'static Functions) {
    // A thread that is ending needs no cache.
    if !TRIED.try_with(|tried| tried.replace(true)).unwrap_or(true) {
        register_first_time(shim);
    }
}

#[cold]
fn register_first_time(shim: &'static Functions) {
    // SAFETY: every thread may call the function while the environment runs.
    let is_new = unsafe { (shim.thread_register)() } == 1;
    if is_new {
        let _ = REGISTRATION.try_with(|registration| *registration.borrow_mut() = Some(Registration(shim)));
    }
}
