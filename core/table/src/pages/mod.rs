//! Anonymous memory straight from the system, on the largest pages available.
//!
//! A table of gigabytes on 4 KiB pages costs a page-table walk for nearly every access, on top of the cache miss.
//! Memory here is zeroed, and takes no RAM before it is first touched, except that pages from the system's pool are
//! reserved at once. [`HugePages`] says when which pages are used.

mod ahead;
mod policy;
mod report;

#[cfg(test)]
mod tests;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Arc;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::TableError;

pub(crate) use ahead::{FillMark, MOST_LEAD_BYTES, ReadyAhead, touch_soon, wake_helper};
pub use ahead::{Readiness, is_memory_ready, make_memory_ready_ahead};
pub use policy::{HugePages, PageKind, PageRequest, UnknownHugePages};
pub use report::{TableMemory, table_memory, table_memory_by_pages, table_memory_in_use};

const MEBIBYTE: usize = 1 << 20;
/// Memory up to this length comes from the heap, from where a program that makes many small tables can reuse it.
const HEAP_BYTES: usize = 64 << 10;
const HUGE_2M_BYTES: usize = 2 * MEBIBYTE;
const HUGE_1G_BYTES: usize = 1024 * MEBIBYTE;
/// A table that is used from its start has this many bytes on ordinary pages before the pages of the pool begin.
const ORDINARY_START_BYTES: usize = 512 << 10;
/// Alignment of every mapping: the smallest page size of all supported systems.
pub(crate) const BASE_ALIGNMENT: usize = 4096;

/// Requested memory: how much, for which contents, and how it is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryNeed {
    /// See [`TableMemory::contents`].
    pub(crate) contents: &'static str,
    /// Bytes of address space.
    pub(crate) bytes: usize,
    /// Bytes, from the start, that the table is sized for and that may be reserved at once.
    pub(crate) expected_bytes: usize,
    /// Order in which the memory is used.
    pub(crate) order: Order,
}

/// Order in which memory is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// From its start on: if little is used, it is at the start.
    FromStart,
    /// In any order.
    Anywhere,
}

impl MemoryNeed {
    /// A need for memory that is expected to be used completely, in any order.
    pub(crate) fn all(contents: &'static str, bytes: usize) -> Self {
        MemoryNeed { contents, bytes, expected_bytes: bytes, order: Order::Anywhere }
    }

    /// The same need, used from its start on.
    pub(crate) fn used_from_start(self) -> Self {
        MemoryNeed { order: Order::FromStart, ..self }
    }

    /// Returns the report on memory for this need.
    fn on(&self, mapping: &Mapping, pool_bytes: usize) -> TableMemory {
        TableMemory { contents: self.contents, bytes: self.bytes, pool_bytes, pages: mapping.kind }
    }

    /// A need for entries of type `T`, named after the type and its module.
    pub(crate) fn entries<T>(bytes: usize) -> Self {
        let path = std::any::type_name::<T>();
        let arguments = path.find('<').unwrap_or(path.len());
        let start = path[..arguments].find("::").map_or(0, |end_of_crate| end_of_crate + 2);
        Self::all(&path[start..arguments], bytes)
    }
}

/// A zeroed memory area, returned to the system on drop.
pub(crate) struct Mapping {
    /// Start of the range; a copy that saves one indirection.
    base: NonNull<u8>,
    range: Arc<Range>,
    kind: PageKind,
    /// Huge pages of the pool, not touched yet, to which the contents move after a few uses.
    better: Option<Box<Mapping>>,
}

// SAFETY: a mapping is plain memory that this value owns; nothing about it is tied to a thread. It gives out raw
// pointers only, so sharing references to it allows no access by itself.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// The memory of a mapping, which the thread that makes it ready also holds for a moment; returned to the system on
/// drop.
pub(crate) struct Range {
    mapped: NonNull<c_void>,
    mapped_bytes: usize,
    base: NonNull<u8>,
    /// Bytes from `base` on: the requested size, rounded up to the end of a page of the pool.
    bytes: usize,
    /// Smallest unit in which the system provides memory behind the ordinary pages at the start, as far as is known.
    page_bytes: usize,
    /// Bytes from `base` on that lie on ordinary pages; other pages may follow.
    ordinary_bytes: usize,
    /// Layout of the heap allocation, if the memory is from the heap.
    heap: Option<Layout>,
}

// SAFETY: as for `Mapping`.
unsafe impl Send for Range {}
// SAFETY: as above.
unsafe impl Sync for Range {}

impl Mapping {
    /// Makes at least `need.bytes` of zeroed memory, aligned to at least [`BASE_ALIGNMENT`].
    pub(crate) fn new(need: MemoryNeed, request: PageRequest) -> Result<Self, TableError> {
        let pages = match request {
            PageRequest::Ordinary => HugePages::Off,
            PageRequest::Large => HugePages::in_use(),
        };
        Self::with_pages(need, pages)
    }

    /// Like [`new`](Self::new), with the given pages instead of the process's setting.
    fn with_pages(need: MemoryNeed, pages: HugePages) -> Result<Self, TableError> {
        let need = MemoryNeed { bytes: need.bytes.max(1), ..need };
        if need.bytes <= HEAP_BYTES {
            return Self::on_heap(need);
        }
        let from_pool = pages.pool_kinds().iter().find_map(|&kind| Self::from_pool(need, kind));
        let (mapping, pool_bytes) = match from_pool {
            Some((better, pool_bytes)) if need.order == Order::Anywhere && ahead::starts_small() => {
                report::add(better.range.mapped.addr().get(), need.on(&better, pool_bytes));
                let now = Self::without_pool(need.bytes, false)?;
                report::add(now.range.mapped.addr().get(), TableMemory { bytes: 0, ..need.on(&now, 0) });
                return Ok(Mapping { better: Some(Box::new(better)), ..now });
            }
            Some((mapping, pool_bytes)) => (mapping, pool_bytes),
            None => (Self::without_pool(need.bytes, pages != HugePages::Off)?, 0),
        };
        report::add(mapping.range.mapped.addr().get(), need.on(&mapping, pool_bytes));
        Ok(mapping)
    }

    /// Makes memory on whole ordinary pages of the heap.
    fn on_heap(need: MemoryNeed) -> Result<Self, TableError> {
        let out_of_memory = TableError::OutOfMemory { bytes: need.bytes };
        let bytes = need.bytes.next_multiple_of(BASE_ALIGNMENT);
        let layout = Layout::from_size_align(bytes, BASE_ALIGNMENT).map_err(|_| out_of_memory)?;
        // SAFETY: the layout is not empty.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(out_of_memory)?;
        let (mapped, kind) = (base.cast(), PageKind::Ordinary);
        let MemoryNeed { contents, bytes, .. } = need;
        report::add(mapped.addr().get(), TableMemory { contents, bytes, pool_bytes: 0, pages: kind });
        let bytes = layout.size();
        let range = Range {
            mapped,
            mapped_bytes: bytes,
            base,
            bytes,
            page_bytes: BASE_ALIGNMENT,
            ordinary_bytes: 0,
            heap: Some(layout),
        };
        Ok(Mapping { base, range: Arc::new(range), kind, better: None })
    }

    /// Makes memory on transparent huge pages if they are requested and offered, else on ordinary pages.
    fn without_pool(bytes: usize, transparent: bool) -> Result<Self, TableError> {
        let transparent = transparent && bytes >= HUGE_2M_BYTES && transparent_pages_offered();
        let reserved = Reserved::new(bytes, if transparent { HUGE_2M_BYTES } else { 1 })?;
        let kind = if transparent && advise_huge_pages(reserved.base, bytes) {
            PageKind::Transparent
        } else {
            PageKind::Ordinary
        };
        Ok(reserved.keep(kind))
    }

    /// Makes memory with its expected part on pages of this kind from the system's pool; returns it with the size of
    /// that part. Returns `None` if the pool has too few pages, or if a page would stay mostly empty. A table that is
    /// used from its start begins on ordinary pages, so a hardly used table takes no page of the pool, which nothing
    /// else could use.
    #[cfg(target_os = "linux")]
    fn from_pool(need: MemoryNeed, kind: PageKind) -> Option<(Self, usize)> {
        let (page_bytes, size) = match kind {
            PageKind::Huge1G => (HUGE_1G_BYTES, MapFlags::MAP_HUGE_1GB),
            PageKind::Huge2M => (HUGE_2M_BYTES, MapFlags::MAP_HUGE_2MB),
            PageKind::Transparent | PageKind::Ordinary => return None,
        };
        if need.expected_bytes < page_bytes / 2 {
            return None;
        }
        let ordinary_bytes = if need.order == Order::FromStart { ORDINARY_START_BYTES } else { 0 };
        let pool_bytes =
            (need.expected_bytes - ordinary_bytes.min(need.expected_bytes)).checked_next_multiple_of(page_bytes)?;
        // The ordinary pages are the last ones before the pages of the pool, in a range that is aligned as a whole.
        let before_bytes = ordinary_bytes.next_multiple_of(page_bytes);
        let all_bytes = need.bytes.saturating_sub(ordinary_bytes).max(pool_bytes).checked_add(before_bytes)?;
        let length = NonZeroUsize::new(pool_bytes)?;
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_FIXED_NOREPLACE | MapFlags::MAP_HUGETLB | size;
        let reserved = Reserved::new(all_bytes, page_bytes).ok()?.replace_part(before_bytes, pool_bytes, |start| {
            // SAFETY: takes unused addresses, or fails.
            unsafe { mmap_anonymous(Some(start), length, READ_AND_WRITE, flags) }.ok()
        })?;
        let rest_bytes = all_bytes - before_bytes - pool_bytes;
        if rest_bytes >= HUGE_2M_BYTES && transparent_pages_offered() {
            // SAFETY: the rest of the range begins behind the pages from the pool.
            advise_huge_pages(unsafe { reserved.base.add(before_bytes + pool_bytes) }, rest_bytes);
        }
        Some((reserved.skip(before_bytes - ordinary_bytes).keep_with_start(kind, ordinary_bytes), pool_bytes))
    }

    #[cfg(not(target_os = "linux"))]
    fn from_pool(_need: MemoryNeed, _kind: PageKind) -> Option<(Self, usize)> {
        None
    }

    /// Start of the memory.
    #[inline(always)]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Kind of pages that the memory is on, or moves to.
    pub(crate) fn kind(&self) -> PageKind {
        self.better.as_ref().map_or(self.kind, |better| better.kind)
    }

    /// Names the contents, for [`table_memory`] and its variants.
    pub(crate) fn name(&self, contents: &'static str) {
        for mapping in std::iter::once(self).chain(self.better.as_deref()) {
            report::rename(mapping.range.mapped.addr().get(), contents);
        }
    }
}

impl Range {
    /// Has the system allocate the pages of a part of the memory; keeps its contents. Returns `false` if it cannot.
    #[cfg(target_os = "linux")]
    pub(crate) fn touch(&self, start: usize, bytes: usize) -> bool {
        use nix::sys::mman::{MmapAdvise, madvise};
        let unaligned = start % BASE_ALIGNMENT;
        let Some(end) = start.checked_add(bytes).filter(|&end| end <= self.bytes) else {
            return false;
        };
        let start = start - unaligned;
        // SAFETY: the part is inside the memory, as was just checked.
        let first = unsafe { self.base.add(start) };
        // SAFETY: the part is mapped as long as this value lives; this advice does not change its contents.
        let made = unsafe { madvise(first.cast(), end - start, MmapAdvise::MADV_POPULATE_WRITE) };
        made.is_ok() || made == Err(nix::Error::EINVAL) && self.touch_each(start, end)
    }

    /// Does the same on systems without that advice: adds 0 to a byte of each page. Other threads may use the memory
    /// meanwhile.
    #[cfg(target_os = "linux")]
    fn touch_each(&self, start: usize, end: usize) -> bool {
        for offset in (start..end).step_by(BASE_ALIGNMENT) {
            // SAFETY: inside the memory, which is mapped as long as this value lives.
            let byte = unsafe { self.base.add(offset) };
            // SAFETY: the memory is writable and aligned for a byte. Its owner may change the same byte at the same
            // time with plain stores: the CPU performs this addition as one step, so it loses none of them, and its
            // result is not used.
            unsafe { std::sync::atomic::AtomicU8::from_ptr(byte.as_ptr()) }
                .fetch_add(0, std::sync::atomic::Ordering::Relaxed);
        }
        true
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn touch(&self, _start: usize, _bytes: usize) -> bool {
        false
    }

    /// Has the system move a part that was kept off huge pages to such pages; keeps its contents. Returns `false` if
    /// it cannot.
    #[cfg(target_os = "linux")]
    fn make_huge(&self, start: usize, bytes: usize) -> bool {
        use nix::libc::{MADV_COLLAPSE, MADV_HUGEPAGE, madvise};
        if start.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return false;
        }
        // SAFETY: the part is inside the memory, as was just checked.
        let first = unsafe { self.base.add(start) }.as_ptr().cast();
        // SAFETY: the part is mapped as long as this value lives. The first advice does not change the contents. With
        // the second one the system moves them to huge pages, as it may at any time; concurrent accesses wait for
        // that.
        unsafe { madvise(first, bytes, MADV_HUGEPAGE) == 0 && madvise(first, bytes, MADV_COLLAPSE) == 0 }
    }

    #[cfg(not(target_os = "linux"))]
    fn make_huge(&self, _start: usize, _bytes: usize) -> bool {
        false
    }

    /// Has the system keep the first bytes on ordinary pages although the rest is on transparent huge pages.
    #[cfg(target_os = "linux")]
    fn keep_off_huge_pages(&self, bytes: usize) {
        use nix::sys::mman::{MmapAdvise, madvise};
        // SAFETY: the part is inside the memory, and this advice does not change its contents. If the call fails,
        // more memory is used than needed.
        let _ = unsafe { madvise(self.base.cast(), bytes.min(self.bytes), MmapAdvise::MADV_NOHUGEPAGE) };
    }

    #[cfg(not(target_os = "linux"))]
    fn keep_off_huge_pages(&self, _bytes: usize) {}
}

impl Drop for Range {
    fn drop(&mut self) {
        report::remove(self.mapped.addr().get());
        match self.heap {
            // SAFETY: it was allocated from the heap with this layout, and owners let no pointer into it outlive
            // them.
            Some(layout) => unsafe { dealloc(self.mapped.as_ptr().cast(), layout) },
            None => unmap(self.mapped, self.mapped_bytes),
        }
    }
}

/// Reserved address space, before the kind of pages is decided; returned to the system on drop.
struct Reserved {
    mapped: NonNull<c_void>,
    mapped_bytes: usize,
    base: NonNull<u8>,
    /// Bytes from `base` on, without the surplus.
    bytes: usize,
}

impl Reserved {
    /// Reserves `bytes` of zeroed memory from `base` on, which is aligned.
    fn new(bytes: usize, alignment: usize) -> Result<Self, TableError> {
        // The surplus is address space only.
        let surplus = if alignment > BASE_ALIGNMENT { alignment } else { 0 };
        let mapped_bytes = bytes.checked_add(surplus).ok_or(TableError::CapacityTooLarge)?;
        let length = NonZeroUsize::new(mapped_bytes).ok_or(TableError::CapacityTooLarge)?;
        // SAFETY: a fresh anonymous mapping at an address that the system chooses affects no existing memory.
        let mapped = unsafe { mmap_anonymous(None, length, READ_AND_WRITE, MapFlags::MAP_PRIVATE | no_reserve()) }
            .map_err(|_| TableError::OutOfMemory { bytes: mapped_bytes })?;
        let misalignment = mapped.addr().get() % alignment;
        let offset = if misalignment == 0 { 0 } else { alignment - misalignment };
        // SAFETY: `offset` is 0, or at most the surplus by which the mapping is longer than `bytes`.
        let base = unsafe { mapped.cast::<u8>().add(offset) };
        Ok(Reserved { mapped, mapped_bytes, base, bytes })
    }

    /// Unmaps `part_bytes` from `offset` on, counted from `base`, and calls `map` to put other memory there. Returns
    /// `None` if that fails: then all is unmapped except these bytes, which may have another owner by then.
    #[cfg(target_os = "linux")]
    fn replace_part(
        self,
        offset: usize,
        part_bytes: usize,
        map: impl FnOnce(NonZeroUsize) -> Option<NonNull<c_void>>,
    ) -> Option<Self> {
        let Reserved { mapped, mapped_bytes, base, bytes } = self;
        std::mem::forget(self);
        // SAFETY: the caller names a part of the range.
        let start = unsafe { base.add(offset) }.cast::<c_void>();
        let before = start.addr().get() - mapped.addr().get();
        unmap(start, part_bytes);
        let replaced = map(start.addr());
        if replaced == Some(start) {
            return Some(Reserved { mapped, mapped_bytes, base, bytes });
        }
        if let Some(elsewhere) = replaced {
            // A system that does not know the flag takes the address as a hint only.
            unmap(elsewhere, part_bytes);
        }
        if before > 0 {
            unmap(mapped, before);
        }
        let behind = mapped_bytes - before - part_bytes;
        if behind > 0 {
            // SAFETY: the reserved range extends that far.
            unmap(unsafe { start.byte_add(part_bytes) }, behind);
        }
        None
    }

    /// Returns the same range without its first bytes, which are not used.
    #[cfg(target_os = "linux")]
    fn skip(self, bytes: usize) -> Self {
        let Reserved { mapped, mapped_bytes, base, bytes: all } = self;
        std::mem::forget(self);
        // SAFETY: the caller skips a part of the range.
        Reserved { mapped, mapped_bytes, base: unsafe { base.add(bytes) }, bytes: all - bytes }
    }

    fn keep(self, kind: PageKind) -> Mapping {
        self.keep_with_start(kind, 0)
    }

    /// Turns the range into a mapping with its first `ordinary_bytes` on ordinary pages.
    fn keep_with_start(self, kind: PageKind, ordinary_bytes: usize) -> Mapping {
        let Reserved { mapped, mapped_bytes, base, bytes } = self;
        std::mem::forget(self);
        let page_bytes = match kind {
            PageKind::Huge1G => HUGE_1G_BYTES,
            PageKind::Huge2M | PageKind::Transparent => HUGE_2M_BYTES,
            PageKind::Ordinary => BASE_ALIGNMENT,
        };
        let range = Range { mapped, mapped_bytes, base, bytes, page_bytes, ordinary_bytes, heap: None };
        Mapping { base, range: Arc::new(range), kind, better: None }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        unmap(self.mapped, self.mapped_bytes);
    }
}

const READ_AND_WRITE: ProtFlags = ProtFlags::PROT_READ.union(ProtFlags::PROT_WRITE);

/// Unmaps a range that `mmap` returned, or whole pages of one, on any kind of pages.
fn unmap(mapped: NonNull<c_void>, mapped_bytes: usize) {
    // SAFETY: only the owner of the range calls this, once; owners let no pointer into it outlive them. The call
    // cannot fail on such a range.
    let _ = unsafe { munmap(mapped, mapped_bytes) };
}

#[cfg(target_os = "linux")]
fn no_reserve() -> MapFlags {
    MapFlags::MAP_NORESERVE
}

#[cfg(not(target_os = "linux"))]
fn no_reserve() -> MapFlags {
    MapFlags::empty()
}

/// Returns true if the system would follow advice to use huge pages.
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
