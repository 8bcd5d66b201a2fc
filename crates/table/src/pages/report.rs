//! What memory the tables of this process have, and on which pages.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::PageKind;

/// The memory of one table, or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableMemory {
    /// What is in it: the type of its entries, or what they are.
    pub contents: &'static str,
    /// Address space. Of pages that are not from the pool, only what was touched takes memory.
    pub bytes: usize,
    /// Bytes of it that are on pages from the system's pool, which nobody else can have, touched or not.
    pub pool_bytes: usize,
    /// The pages: those from the pool if there are any.
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

/// The memory of all tables that there are, in no particular order.
pub fn table_memory() -> Vec<TableMemory> {
    mappings().iter().map(|&(_, memory)| memory).collect()
}

/// Number of pieces of memory and their bytes, for each kind of pages that is used, largest pages first.
pub fn table_memory_by_pages() -> Vec<(PageKind, usize, usize)> {
    let all = table_memory();
    let of = |pages| all.iter().filter(move |memory| memory.pages == pages);
    let sums = PageKind::ALL.map(|pages| (pages, of(pages).count(), of(pages).map(|memory| memory.bytes).sum()));
    sums.into_iter().filter(|&(_, count, _)| count > 0).collect()
}

/// By address. Changed only when tables are made, grow, or go.
static MAPPINGS: Mutex<Vec<(usize, TableMemory)>> = Mutex::new(Vec::new());

fn mappings() -> MutexGuard<'static, Vec<(usize, TableMemory)>> {
    // The list is whole between any two statements that may panic.
    MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn add(address: usize, memory: TableMemory) {
    mappings().push((address, memory));
}

pub(super) fn remove(address: usize) {
    mappings().retain(|&(other, _)| other != address);
}

#[cfg(test)]
mod tests {
    use super::*;

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
