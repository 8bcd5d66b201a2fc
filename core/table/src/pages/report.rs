//! How much memory the tables of this process have, and on which pages.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::PageKind;

/// The memory of one table, or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableMemory {
    /// Contents: the type of the entries, or a description.
    pub contents: &'static str,
    /// Bytes of address space. Pages that are not from the pool take memory only once they are touched.
    pub bytes: usize,
    /// Bytes that lie on pages from the system's pool, which nothing else can use, touched or not.
    pub pool_bytes: usize,
    /// Kind of pages; those from the pool if there are any.
    pub pages: PageKind,
}

impl fmt::Display for TableMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: usize| bytes.div_ceil(1 << 20);
        write!(f, "{}: {} MiB on {}", self.contents, mebibytes(self.bytes), self.pages)?;
        if self.pool_bytes > 0 && self.pool_bytes < self.bytes {
            write!(f, " for the first {} MiB", mebibytes(self.pool_bytes))?;
        }
        Ok(())
    }
}

/// Returns the memory of all existing tables, in no particular order.
pub fn table_memory() -> Vec<TableMemory> {
    mappings().iter().map(|&(_, memory)| memory).collect()
}

/// Returns (contents, bytes of address space, bytes in RAM) of all tables, added up by contents, most RAM first.
/// Bytes in RAM are 0 where the system does not report them.
pub fn table_memory_in_use() -> Vec<(&'static str, usize, usize)> {
    let mut sums: Vec<(&'static str, usize, usize)> = Vec::new();
    // No memory is unmapped while the list is locked.
    for &(address, memory) in mappings().iter() {
        let resident = resident_bytes(address, memory.bytes);
        match sums.iter_mut().find(|(contents, ..)| *contents == memory.contents) {
            Some((_, bytes, sum)) => {
                *bytes += memory.bytes;
                *sum += resident;
            }
            None => sums.push((memory.contents, memory.bytes, resident)),
        }
    }
    sums.sort_by_key(|&(_, bytes, resident)| std::cmp::Reverse((resident, bytes)));
    sums
}

/// Bytes of some memory that are in RAM.
#[cfg(target_os = "linux")]
fn resident_bytes(address: usize, bytes: usize) -> usize {
    use super::BASE_ALIGNMENT;
    // One byte for each page.
    let mut pages = [0_u8; 4096];
    let start = address.next_multiple_of(BASE_ALIGNMENT);
    let end = address.saturating_add(bytes);
    let mut resident = 0;
    for piece in (start..end).step_by(pages.len() * BASE_ALIGNMENT) {
        let length = (end - piece).min(pages.len() * BASE_ALIGNMENT);
        let memory = std::ptr::without_provenance_mut(piece);
        // SAFETY: the call reads no memory; it writes a byte for each page into `pages`, which has room for them.
        if unsafe { nix::libc::mincore(memory, length, pages.as_mut_ptr()) } != 0 {
            break;
        }
        resident += pages[..length.div_ceil(BASE_ALIGNMENT)].iter().filter(|&&page| page & 1 == 1).count();
    }
    (resident * BASE_ALIGNMENT).min(bytes)
}

#[cfg(not(target_os = "linux"))]
fn resident_bytes(_address: usize, _bytes: usize) -> usize {
    0
}

/// Returns (kind, number of mappings, bytes) for each kind of pages in use, largest pages first.
pub fn table_memory_by_pages() -> Vec<(PageKind, usize, usize)> {
    let all = table_memory();
    let of = |pages| all.iter().filter(move |memory| memory.pages == pages);
    let sums = PageKind::ALL.map(|pages| (pages, of(pages).count(), of(pages).map(|memory| memory.bytes).sum()));
    sums.into_iter().filter(|&(_, count, _)| count > 0).collect()
}

/// Mappings by address. Changed only when tables are made, grow, or are dropped.
static MAPPINGS: Mutex<Vec<(usize, TableMemory)>> = Mutex::new(Vec::new());

fn mappings() -> MutexGuard<'static, Vec<(usize, TableMemory)>> {
    // The list is consistent between any two statements that may panic.
    MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn add(address: usize, memory: TableMemory) {
    mappings().push((address, memory));
}

/// Changes the contents that are reported for the memory at an address.
pub(super) fn rename(address: usize, contents: &'static str) {
    if let Some((_, memory)) = mappings().iter_mut().find(|(other, _)| *other == address) {
        memory.contents = contents;
    }
}

pub(super) fn remove(address: usize) {
    mappings().retain(|&(other, _)| other != address);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CacheLine, CacheLines, PageRequest};

    #[test]
    #[cfg(target_os = "linux")]
    fn only_what_was_touched_is_in_use() {
        let lines =
            || CacheLines::new((64 << 20) / 64, PageRequest::Ordinary).expect("memory").named("lines of this test");
        let (mut first, _second) = (lines(), lines());
        let found = || {
            *table_memory_in_use()
                .iter()
                .find(|(contents, ..)| *contents == "lines of this test")
                .expect("the table is listed")
        };
        assert_eq!((found().1, found().2), (128 << 20, 0));
        first.as_mut_slice()[..(20 << 20) / 64].fill(CacheLine([1; 8]));
        assert_eq!(found().2, 20 << 20);
    }

    #[test]
    fn memory_is_described_for_people() {
        let mut memory = TableMemory { contents: "Entry", bytes: 3 << 20, pool_bytes: 0, pages: PageKind::Transparent };
        assert_eq!(memory.to_string(), "Entry: 3 MiB on transparent huge pages");
        (memory.pool_bytes, memory.pages) = (2 << 20, PageKind::Huge2M);
        assert_eq!(memory.to_string(), "Entry: 3 MiB on 2 MiB pages for the first 2 MiB");
        memory.pool_bytes = memory.bytes;
        assert_eq!(memory.to_string(), "Entry: 3 MiB on 2 MiB pages");
    }
}
