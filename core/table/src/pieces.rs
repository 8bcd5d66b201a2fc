//! Memory pieces of equal size that any thread may take, in order, and that are never returned.
//!
//! For pools that keep every object they make: the memory is reserved at once and made ready ahead of the threads
//! that take pieces.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::TableError;
use crate::pages::{FillMark, MOST_LEAD_BYTES, Mapping, MemoryNeed, PageRequest, ReadyAhead, wake_helper};

/// Bytes of pieces that are made ready before the first is taken.
const FIRST_READY_BYTES: usize = 256 << 10;
/// Bytes of pieces taken between two wake-ups of the thread that makes memory ready.
const WAKE_EVERY_BYTES: usize = 64 << 10;
/// Alignment of every piece: a pair of adjacent cache lines, which CPUs fetch together.
pub const PIECE_ALIGNMENT: usize = 128;

/// A supply of pieces; see the module's description.
pub struct Pieces {
    memory: Mapping,
    piece_bytes: usize,
    count: usize,
    /// Number of pieces taken; the thread that makes memory ready reads it, too.
    taken: Arc<AtomicUsize>,
}

impl Pieces {
    /// Reserves memory for `count` pieces of `piece_bytes`, rounded up to [`PIECE_ALIGNMENT`]. `contents` says what
    /// they are for.
    ///
    /// # Errors
    /// If the address space is not available.
    pub fn new(contents: &'static str, count: usize, piece_bytes: usize) -> Result<Self, TableError> {
        let piece_bytes =
            piece_bytes.max(1).checked_next_multiple_of(PIECE_ALIGNMENT).ok_or(TableError::CapacityTooLarge)?;
        let bytes = count.checked_mul(piece_bytes).ok_or(TableError::CapacityTooLarge)?;
        let memory = Mapping::new(MemoryNeed::all(contents, bytes), PageRequest::Ordinary)?;
        let mut mark = FillMark::new(piece_bytes);
        memory.make_ready_ahead(
            &mut mark,
            ReadyAhead {
                unit_bytes: piece_bytes,
                first_bytes: FIRST_READY_BYTES,
                most_lead_bytes: MOST_LEAD_BYTES,
                can_wait: false,
            },
        );
        Ok(Pieces { memory, piece_bytes, count, taken: mark.into_published() })
    }

    /// Takes the next piece: zeroed memory that belongs to the caller alone, as long as `self` lives. Returns `None`
    /// when all are taken.
    pub fn take(&self) -> Option<NonNull<u8>> {
        let next = |taken: usize| (taken < self.count).then_some(taken + 1);
        let number = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        if number.is_multiple_of((WAKE_EVERY_BYTES / self.piece_bytes).max(1)) {
            wake_helper();
        }
        // SAFETY: `number` is below the number of pieces that the mapping has room for.
        Some(unsafe { self.memory.base().add(number * self.piece_bytes) })
    }

    /// Number of pieces taken.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").field("taken", &self.taken()).field("count", &self.count).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_zeroed_aligned_and_disjoint() {
        let pieces = Pieces::new("test", 1_000, 200).expect("memory");
        std::thread::scope(|scope| {
            for number in 1..=4u8 {
                let pieces = &pieces;
                scope.spawn(move || {
                    for _ in 0..250 {
                        let piece = pieces.take().expect("a piece for each thread");
                        assert_eq!(piece.addr().get() % PIECE_ALIGNMENT, 0);
                        // SAFETY: the piece has at least 200 bytes and belongs to this thread.
                        let bytes = unsafe { std::slice::from_raw_parts_mut(piece.as_ptr(), 200) };
                        assert!(bytes.iter().all(|&byte| byte == 0));
                        bytes.fill(number);
                    }
                });
            }
        });
        assert_eq!((pieces.take(), pieces.taken()), (None, 1_000));
        assert_eq!(Pieces::new("test", 0, 0).expect("no memory is needed").take(), None);
        assert!(Pieces::new("test", usize::MAX, 200).is_err());
    }
}
