//! Hints that bring memory into the CPU caches ahead of its use.
//!
//! A hint affects performance only: any address may be given, mapped or not.

pub use crate::touched::CACHE_LINE_BYTES;
use crate::touched::note_prefetch;

/// Prefetches the cache line at `address` for reading.
#[inline(always)]
pub fn prefetch_read<T>(address: *const T) {
    note_prefetch(address.addr());
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: needs SSE, which every x86-64 CPU has; the instruction ignores bad addresses.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction is a hint that changes no register, memory or flag and ignores bad addresses.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Prefetches a cache line for reading that follows another one prefetched just before.
///
/// The line goes to the second-level cache. A line in flight to the first-level cache occupies one of its few fill
/// buffers until it arrives; if several lines of each object went there, all objects would wait for these buffers.
#[inline(always)]
pub fn prefetch_following<T>(address: *const T) {
    note_prefetch(address.addr());
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: as in `prefetch_read`.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as in `prefetch_read`.
    unsafe {
        std::arch::asm!("prfm pldl2keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Prefetches line number `line` of an object: the first into the first-level cache, others into the second.
#[inline(always)]
pub fn prefetch_line_of<T>(start: *const T, line: usize) {
    let address = start.cast::<u8>().wrapping_add(line * CACHE_LINE_BYTES);
    if line == 0 { prefetch_read(address) } else { prefetch_following(address) }
}

/// Prefetches every cache line of the `bytes` bytes from `start` on, as [`prefetch_line_of`] does. Any address may be
/// given.
#[inline(always)]
pub fn prefetch_lines<T>(start: *const T, bytes: usize) {
    let first = start.addr() & !(CACHE_LINE_BYTES - 1);
    let end = start.addr().saturating_add(bytes);
    prefetch_read(start.with_addr(first));
    for line in (first..end).step_by(CACHE_LINE_BYTES).skip(1) {
        prefetch_following(start.with_addr(line));
    }
}

/// Prefetches every cache line of the `bytes` bytes from `start` on for reading, all into the second-level cache: for
/// several long objects in flight at a time. Any address may be given.
#[inline(always)]
pub fn prefetch_lines_following<T>(start: *const T, bytes: usize) {
    for_each_line(start, bytes, |line| prefetch_following(line));
}

/// Prefetches every cache line of the `bytes` bytes from `start` on for writing: other cores' copies are invalidated.
/// Any address may be given.
#[inline(always)]
pub fn prefetch_lines_to_write<T>(start: *const T, bytes: usize) {
    for_each_line(start, bytes, |line| prefetch_write(line));
}

#[inline(always)]
fn for_each_line<T>(start: *const T, bytes: usize, mut prefetch_line: impl FnMut(*const T)) {
    let first = start.addr() & !(CACHE_LINE_BYTES - 1);
    let end = start.addr().saturating_add(bytes);
    for line in (first..end).step_by(CACHE_LINE_BYTES) {
        prefetch_line(start.with_addr(line));
    }
}

/// Prefetches the cache line at `address` for writing.
#[inline(always)]
pub fn prefetch_write<T>(address: *const T) {
    note_prefetch(address.addr());
    #[cfg(target_arch = "x86_64")]
    // The intrinsic would compile to a prefetch for reading unless the compiler may assume a CPU with this
    // instruction. CPUs without it ignore it.
    // SAFETY: the instruction is a hint that changes no register, memory or flag and ignores bad addresses.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_is_accepted() {
        prefetch_read(std::ptr::null::<u8>());
        prefetch_read(std::ptr::without_provenance::<u64>(0xdead_beef_dead_beef));
        prefetch_lines(std::ptr::without_provenance::<u64>(usize::MAX - 100), 1000);
        prefetch_lines_following(std::ptr::without_provenance::<u64>(usize::MAX - 100), 1000);
        prefetch_lines_to_write(std::ptr::without_provenance::<u64>(64), 1000);
    }
}
