//! Packet buffers in ordinary memory, which is taken on demand and kept.
//!
//! All threads share the memory of a pool (module `shared`), but each caches some small buffers (module `magazine`).

mod magazine;
mod shared;

use std::ptr::NonNull;

pub(crate) use magazine::take_small;
use shared::{Cell, Shared, give_one, is_small};
pub(crate) use shared::{Handle, SizeClass, cell_bytes};

use crate::raw::Header;

/// Returns a buffer in ordinary memory to its pool.
///
/// # Safety
/// `header` is the header of a buffer in ordinary memory without other users.
#[inline]
pub(crate) unsafe fn give_back(header: NonNull<Header>) {
    // SAFETY: such a buffer refers to its pool and is counted there.
    unsafe {
        let Some(pool) = NonNull::new(header.as_ref().owner.cast::<Shared>().cast_mut()) else { return };
        if is_small(header) {
            magazine::give_small(pool, header);
        } else {
            give_one(pool, Cell(header));
        }
    }
}
