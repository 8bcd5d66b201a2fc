//! Registers threads with DPDK.
//!
//! A registered thread has its own number, and under that number a cache in every mempool. The registration ends with
//! the thread.

use std::cell::{Cell, RefCell};

use crate::ffi;

/// Unregisters the current thread on drop.
struct Registration;

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: this thread was registered when the value was made.
        unsafe { ffi::namehop_thread_unregister() };
    }
}

thread_local! {
    static TRIED: Cell<bool> = const { Cell::new(false) };
    static REGISTRATION: RefCell<Option<Registration>> = const { RefCell::new(None) };
}

/// Registers this thread, unless that was tried before. The environment must be running. DPDK has room for about 127
/// threads; further threads work without caches.
#[inline]
pub(crate) fn register() {
    // A thread that is ending needs no cache.
    if !TRIED.try_with(|tried| tried.replace(true)).unwrap_or(true) {
        register_first_time();
    }
}

#[cold]
fn register_first_time() {
    // SAFETY: the functions may be called from every thread while the environment runs. A thread that is already
    // registered, such as the one that started the environment, is not registered again.
    let registered = unsafe { ffi::namehop_thread_is_registered() == 0 && ffi::namehop_thread_register() == 0 };
    if registered {
        let _ = REGISTRATION.try_with(|registration| *registration.borrow_mut() = Some(Registration));
    }
}
