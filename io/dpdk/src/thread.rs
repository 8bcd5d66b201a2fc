//! Making threads known to DPDK.
//!
//! A registered thread has a number of its own, and under it a cache in every mempool. Registration ends with the thread.

use std::cell::{Cell, RefCell};

use crate::ffi;

/// Ends the registration of the thread that it belongs to.
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

/// Registers this thread unless that was tried before. The environment must be running. DPDK has room for some 127
/// threads; those beyond work without caches.
#[inline]
pub(crate) fn register() {
    // A thread that is ending has no use for a cache.
    if !TRIED.try_with(|tried| tried.replace(true)).unwrap_or(true) {
        register_first_time();
    }
}

#[cold]
fn register_first_time() {
    // SAFETY: the functions may be called from every thread while the environment runs; a thread that is registered
    // already, such as the one that started it, is left alone.
    let registered = unsafe { ffi::namehop_thread_is_registered() == 0 && ffi::namehop_thread_register() == 0 };
    if registered {
        let _ = REGISTRATION.try_with(|registration| *registration.borrow_mut() = Some(Registration));
    }
}
