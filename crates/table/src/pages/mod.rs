//! Anonymous memory straight from the system, on the largest pages to be had.
//!
//! A table of gigabytes on 4 KiB pages costs a page-table walk for nearly every access, on top of the cache miss. Memory
//! here is zeroed, and costs nothing before it is first touched (except explicit huge pages, which the system sets aside
//! at once so that touching them cannot fail later).

use std::ffi::c_void;
use std::fmt;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::TableError;

const MEBIBYTE: usize = 1 << 20;
const HUGE_2M_BYTES: usize = 2 * MEBIBYTE;
const HUGE_1G_BYTES: usize = 1024 * MEBIBYTE;
/// Alignment of every mapping: a page, which is at least this on all systems.
pub(crate) const BASE_ALIGNMENT: usize = 4096;

/// Which pages to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PageRequest {
    /// Ordinary pages only.
    Ordinary,
    /// Transparent huge pages if the system offers them, else ordinary pages.
    #[default]
    Transparent,
    /// Pages of 1 GiB or 2 MiB from the system's reserved pool; if it has too few, as [`Transparent`](Self::Transparent).
    Explicit,
}

/// Which pages a table got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageKind {
    /// Reserved pages of 1 GiB.
    Huge1G,
    /// Reserved pages of 2 MiB.
    Huge2M,
    /// The system was told to use huge pages as it can.
    Transparent,
    /// The system's ordinary pages.
    Ordinary,
}

impl fmt::Display for PageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PageKind::Huge1G => "1 GiB pages",
            PageKind::Huge2M => "2 MiB pages",
            PageKind::Transparent => "transparent huge pages",
            PageKind::Ordinary => "ordinary pages",
        })
    }
}

/// A piece of zeroed memory, given back on drop.
pub(crate) struct Mapping {
    mapped: NonNull<c_void>,
    mapped_bytes: usize,
    base: NonNull<u8>,
    kind: PageKind,
}

// SAFETY: a mapping is plain memory that this value owns; nothing about it is tied to a thread. It hands out raw
// pointers only, so sharing references to it allows no access by itself.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// At least `bytes` of zeroed memory, aligned to at least [`BASE_ALIGNMENT`].
    pub(crate) fn new(bytes: usize, request: PageRequest) -> Result<Self, TableError> {
        let bytes = bytes.max(1);
        if request == PageRequest::Explicit
            && let Some(mapping) = Self::explicit(bytes)
        {
            return Ok(mapping);
        }
        let transparent = request != PageRequest::Ordinary && bytes >= HUGE_2M_BYTES && transparent_pages_offered();
        // Huge pages need aligned addresses; the surplus is address space only.
        let surplus = if transparent { HUGE_2M_BYTES } else { 0 };
        let mapped_bytes = bytes.checked_add(surplus).ok_or(TableError::CapacityTooLarge)?;
        let mapped = map(mapped_bytes, no_reserve())?;
        let misalignment = mapped.as_ptr().addr() % HUGE_2M_BYTES;
        let offset = if transparent && misalignment != 0 { HUGE_2M_BYTES - misalignment } else { 0 };
        // SAFETY: `offset` is below the surplus by which the mapping is longer than `bytes`.
        let base = unsafe { mapped.cast::<u8>().add(offset) };
        let kind =
            if transparent && advise_huge_pages(base, bytes) { PageKind::Transparent } else { PageKind::Ordinary };
        Ok(Mapping { mapped, mapped_bytes, base, kind })
    }

    #[cfg(target_os = "linux")]
    fn explicit(bytes: usize) -> Option<Self> {
        let sizes = [
            (HUGE_1G_BYTES, MapFlags::MAP_HUGE_1GB, PageKind::Huge1G),
            (HUGE_2M_BYTES, MapFlags::MAP_HUGE_2MB, PageKind::Huge2M),
        ];
        for (page_bytes, size_flag, kind) in sizes {
            // A mostly empty gigabyte page would be a waste of a scarce thing.
            if page_bytes == HUGE_1G_BYTES && bytes < page_bytes / 2 {
                continue;
            }
            let mapped_bytes = bytes.checked_next_multiple_of(page_bytes)?;
            if let Ok(mapped) = map(mapped_bytes, MapFlags::MAP_HUGETLB | size_flag) {
                let base = mapped.cast();
                return Some(Mapping { mapped, mapped_bytes, base, kind });
            }
        }
        None
    }

    #[cfg(not(target_os = "linux"))]
    fn explicit(_bytes: usize) -> Option<Self> {
        None
    }

    /// Start of the memory.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn kind(&self) -> PageKind {
        self.kind
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `map` returned, unmapped once; owners of a mapping let no pointer outlive it.
        // The call cannot fail on a range that is mapped.
        let _ = unsafe { munmap(self.mapped, self.mapped_bytes) };
    }
}

fn map(bytes: usize, flags: MapFlags) -> Result<NonNull<c_void>, TableError> {
    let length = NonZeroUsize::new(bytes).ok_or(TableError::CapacityTooLarge)?;
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a fresh anonymous mapping at an address of the system's choice touches no existing memory.
    unsafe { mmap_anonymous(None, length, protection, MapFlags::MAP_PRIVATE | flags) }
        .map_err(|_| TableError::OutOfMemory { bytes })
}

#[cfg(target_os = "linux")]
fn no_reserve() -> MapFlags {
    MapFlags::MAP_NORESERVE
}

#[cfg(not(target_os = "linux"))]
fn no_reserve() -> MapFlags {
    MapFlags::empty()
}

/// Would the system heed advice to use huge pages?
#[cfg(target_os = "linux")]
fn transparent_pages_offered() -> bool {
    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .is_ok_and(|setting| !setting.contains("[never]"))
}

#[cfg(not(target_os = "linux"))]
fn transparent_pages_offered() -> bool {
    false
}

#[cfg(target_os = "linux")]
fn advise_huge_pages(base: NonNull<u8>, bytes: usize) -> bool {
    use nix::sys::mman::{MmapAdvise, madvise};
    // SAFETY: the range lies in a mapping that the caller has just made; this advice does not change its contents.
    unsafe { madvise(base.cast(), bytes, MmapAdvise::MADV_HUGEPAGE) }.is_ok()
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages(_base: NonNull<u8>, _bytes: usize) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: usize, request: PageRequest) -> PageKind {
        let mapping = Mapping::new(bytes, request).expect("memory");
        let base = mapping.base();
        assert_eq!(base.as_ptr().addr() % BASE_ALIGNMENT, 0);
        for offset in 0..bytes {
            // SAFETY: below the length asked for; nobody else knows the mapping.
            unsafe {
                assert_eq!(base.add(offset).read(), 0);
                base.add(offset).write(0xa5);
            }
        }
        mapping.kind()
    }

    #[test]
    fn memory_is_zeroed_and_aligned_whatever_the_pages() {
        for bytes in [0, 1, 4096, 3 * MEBIBYTE, 8 * MEBIBYTE + 5] {
            assert_eq!(check(bytes, PageRequest::Ordinary), PageKind::Ordinary);
            check(bytes, PageRequest::Transparent);
            check(bytes, PageRequest::Explicit);
        }
    }

    #[test]
    fn huge_reservations_cost_nothing_until_touched() {
        let mapping = Mapping::new(1 << 36, PageRequest::Transparent).expect("address space");
        // SAFETY: inside the mapping.
        unsafe { mapping.base().add((1 << 36) - 1).write(1) };
    }

    #[test]
    fn impossible_requests_fail_without_harm() {
        assert!(Mapping::new(usize::MAX, PageRequest::Transparent).is_err());
        assert!(Mapping::new(usize::MAX - 1, PageRequest::Explicit).is_err());
        assert!(Mapping::new(1 << 60, PageRequest::Ordinary).is_err());
    }
}
