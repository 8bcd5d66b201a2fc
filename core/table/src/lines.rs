//! An array of cache lines that starts zeroed and untouched.

use std::ops::{Index, IndexMut};

use crate::pages::{
    BASE_ALIGNMENT, FillMark, MOST_LEAD_BYTES, Mapping, MemoryNeed, Order, PageKind, PageRequest, ReadyAhead,
};
use crate::prefetch::prefetch_read;
use crate::{TableError, touched};

/// One cache line of plain words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C, align(64))]
pub struct CacheLine(pub [u64; 8]);

/// A fixed number of cache lines, for tables with entries of one line.
pub struct CacheLines {
    memory: Mapping,
    count: usize,
    /// Tracks how many lines are in use (if used in order) or how often lines were used (if used in any order).
    mark: FillMark,
    /// Number of uses, for lines that are used in any order.
    uses: usize,
}

impl CacheLines {
    /// Makes `count` zeroed lines.
    pub fn new(count: usize, pages: PageRequest) -> Result<Self, TableError> {
        Self::with_order(count, pages, Order::Anywhere)
    }

    fn with_order(count: usize, pages: PageRequest, order: Order) -> Result<Self, TableError> {
        let bytes = count.checked_mul(size_of::<CacheLine>()).ok_or(TableError::CapacityTooLarge)?;
        let memory = Mapping::new(MemoryNeed { order, ..MemoryNeed::all("cache lines", bytes) }, pages)?;
        Ok(CacheLines { memory, count, mark: FillMark::new(size_of::<CacheLine>()), uses: 0 })
    }

    /// Makes `count` zeroed lines that are used from the first on. The next ones are made ready as
    /// [`note_used`](Self::note_used) advances.
    pub fn used_in_order(count: usize, pages: PageRequest) -> Result<Self, TableError> {
        let mut lines = Self::with_order(count, pages, Order::FromStart)?;
        let ahead = ReadyAhead {
            unit_bytes: size_of::<CacheLine>(),
            first_bytes: BASE_ALIGNMENT,
            most_lead_bytes: MOST_LEAD_BYTES,
            can_wait: false,
        };
        lines.memory.make_ready_ahead(&mut lines.mark, ahead);
        Ok(lines)
    }

    /// Makes `count` zeroed lines that are used in any order. All are made ready when [`note_uses`](Self::note_uses)
    /// reports the first use, or a few hundred uses, depending on [`Readiness`](crate::Readiness).
    pub fn used_anywhere(count: usize, pages: PageRequest) -> Result<Self, TableError> {
        let mut lines = Self::new(count, pages)?;
        lines.memory.make_ready_as_a_whole(&mut lines.mark, 0);
        Ok(lines)
    }

    /// Names the contents of the lines, for [`table_memory`](crate::table_memory) and its variants.
    #[must_use]
    pub fn named(self, contents: &'static str) -> Self {
        self.memory.name(contents);
        self
    }

    /// Reports that the first `lines` lines are in use.
    #[inline(always)]
    pub fn note_used(&mut self, lines: usize) {
        self.mark.note(lines);
    }

    /// Reports `uses` more uses of lines, which are about to happen.
    #[inline(always)]
    pub fn note_uses(&mut self, uses: usize) {
        self.uses = self.uses.saturating_add(uses);
        if self.mark.note(self.uses) {
            self.memory.took_few_uses();
        }
    }

    /// Number of lines.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns true if there are no lines.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns all lines. [`touched`] does not count accesses through the slice.
    pub fn as_slice(&self) -> &[CacheLine] {
        // SAFETY: the mapping has `count` lines of initialised (at first zeroed) words, is aligned to a page, and is
        // only changed through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.memory.base().cast().as_ptr(), self.count) }
    }

    /// Returns all lines, mutably. [`touched`] does not count accesses through the slice.
    pub fn as_mut_slice(&mut self) -> &mut [CacheLine] {
        // SAFETY: as in `as_slice`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.memory.base().cast().as_ptr(), self.count) }
    }

    /// Prefetches a line. Any number may be given.
    #[inline(always)]
    pub fn prefetch(&self, number: usize) {
        prefetch_read(self.memory.base().cast::<CacheLine>().as_ptr().wrapping_add(number));
    }

    /// Kind of pages that the lines lie on.
    pub fn page_kind(&self) -> PageKind {
        self.memory.kind()
    }
}

impl Index<usize> for CacheLines {
    type Output = CacheLine;

    /// # Panics
    /// If `number` is out of range.
    #[inline(always)]
    fn index(&self, number: usize) -> &CacheLine {
        assert!(number < self.count, "no such line");
        // SAFETY: the mapping has `count` lines of initialised (at first zeroed) words, is aligned to a page, and is
        // only changed through `&mut self`.
        let line = unsafe { self.memory.base().cast::<CacheLine>().add(number).as_ref() };
        touched::note(line);
        line
    }
}

impl IndexMut<usize> for CacheLines {
    #[inline(always)]
    fn index_mut(&mut self, number: usize) -> &mut CacheLine {
        assert!(number < self.count, "no such line");
        // SAFETY: as in `index`, and `&mut self` is exclusive.
        let line = unsafe { self.memory.base().cast::<CacheLine>().add(number).as_mut() };
        touched::note(line);
        line
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
        for number in 0..1000 {
            let line = &mut lines[number];
            assert_eq!(*line, CacheLine::default());
            assert_eq!(std::ptr::from_mut(line).addr() % 64, 0);
            line.0 = [number as u64; 8];
        }
        assert!((0..1000).all(|number| lines[number].0 == [number as u64; 8]));
        lines.as_mut_slice()[7].0[0] = 70;
        assert_eq!((lines.as_slice().len(), lines[7].0[0]), (1000, 70));
        lines.prefetch(usize::MAX);
        assert!(CacheLines::new(0, PageRequest::Ordinary).expect("memory").is_empty());
        assert!(CacheLines::new(usize::MAX, PageRequest::Ordinary).is_err());
    }

    #[test]
    #[should_panic(expected = "no such line")]
    fn there_is_no_line_behind_the_last() {
        let lines = CacheLines::new(10, PageRequest::Ordinary).expect("memory");
        let _ = lines[10];
    }
}
