//! An array of cache lines, zeroed and untouched at first.

use std::ops::{Deref, DerefMut};

use crate::TableError;
use crate::pages::{Mapping, MemoryNeed, PageKind, PageRequest};

/// One cache line of plain words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C, align(64))]
pub struct CacheLine(pub [u64; 8]);

/// A fixed number of cache lines, for tables that live in single lines. Behaves like a slice.
pub struct CacheLines {
    memory: Mapping,
    count: usize,
}

impl CacheLines {
    /// `count` lines of zeros.
    pub fn new(count: usize, pages: PageRequest) -> Result<Self, TableError> {
        let bytes = count.checked_mul(size_of::<CacheLine>()).ok_or(TableError::CapacityTooLarge)?;
        Ok(CacheLines { memory: Mapping::new(MemoryNeed::all("cache lines", bytes), pages)?, count })
    }

    /// Pages it lies on.
    pub fn page_kind(&self) -> PageKind {
        self.memory.kind()
    }
}

impl Deref for CacheLines {
    type Target = [CacheLine];

    #[inline(always)]
    fn deref(&self) -> &[CacheLine] {
        // SAFETY: the mapping has `count` lines of initialised (zeroed at first) words, is aligned to a page, and is
        // only changed through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.memory.base().as_ptr().cast(), self.count) }
    }
}

impl DerefMut for CacheLines {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [CacheLine] {
        // SAFETY: as in `deref`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.memory.base().as_ptr().cast(), self.count) }
    }
}

impl std::fmt::Debug for CacheLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CacheLines").field("count", &self.count).field("pages", &self.page_kind()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_zero_separate_and_aligned() {
        let mut lines = CacheLines::new(1000, PageRequest::Large).expect("memory");
        assert_eq!(lines.len(), 1000);
        assert!(lines.iter().all(|line| *line == CacheLine::default()));
        for (number, line) in lines.iter_mut().enumerate() {
            assert_eq!(std::ptr::from_mut(line).addr() % 64, 0);
            line.0 = [number as u64; 8];
        }
        assert!(lines.iter().enumerate().all(|(number, line)| line.0 == [number as u64; 8]));
        assert!(CacheLines::new(0, PageRequest::Ordinary).expect("memory").is_empty());
        assert!(CacheLines::new(usize::MAX, PageRequest::Ordinary).is_err());
    }
}
