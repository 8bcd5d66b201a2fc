//! Pieces of memory of one size, taken one after the other by any thread and never given back.
//!
//! For pools that keep what they once made: the memory is reserved at once and made ready ahead of whoever takes pieces.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::TableError;
use crate::pages::{FillMark, MOST_LEAD_BYTES, Mapping, MemoryNeed, PageRequest, ReadyAhead, wake_helper};

/// Pieces that are ready before the first is taken, in bytes.
const FIRST_READY_BYTES: usize = 256 << 10;
/// How often the thread that makes memory ready is woken, in bytes of pieces taken.
const WAKE_EVERY_BYTES: usize = 64 << 10;
/// Alignment of every piece: a cache line and the one beside it, which processors fetch together.
pub const PIECE_ALIGNMENT: usize = 128;

/// The memory; see the module's description.
pub struct Pieces {
    memory: Mapping,
    piece_bytes: usize,
    count: usize,
    /// Pieces that were taken; whoever makes memory ready looks at it, too.
    taken: Arc<AtomicUsize>,
}

impl Pieces {
    /// Memory for `count` pieces of `piece_bytes`, rounded up to [`PIECE_ALIGNMENT`]. `contents` says what they are for.
    ///
    /// # Errors
    /// When the address space cannot be had.
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
        Ok(Pieces { memory, piece_bytes, count, taken: mark.into_told() })
    }

    /// The next piece: zeroed memory that is the caller's alone, as long as `self` lives. `None` when all are taken.
    pub fn take(&self) -> Option<NonNull<u8>> {
        let next = |taken: usize| (taken < self.count).then_some(taken + 1);
        let number = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        if number.is_multiple_of((WAKE_EVERY_BYTES / self.piece_bytes).max(1)) {
            wake_helper();
        }
        // SAFETY: below the number of pieces that the mapping has room for.
        Some(unsafe { self.memory.base().add(number * self.piece_bytes) })
    }

    /// Pieces that were taken.
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
    fn pieces_are_zeroed_aligned_and_nobody_elses() {
        let pieces = Pieces::new("test", 1_000, 200).expect("memory");
        std::thread::scope(|scope| {
            for number in 1..=4u8 {
                let pieces = &pieces;
                scope.spawn(move || {
                    for _ in 0..250 {
                        let piece = pieces.take().expect("a piece for each");
                        assert_eq!(piece.addr().get() % PIECE_ALIGNMENT, 0);
                        // SAFETY: so many bytes are this thread's.
                        let bytes = unsafe { std::slice::from_raw_parts_mut(piece.as_ptr(), 200) };
                        assert!(bytes.iter().all(|&byte| byte == 0));
                        bytes.fill(number);
                    }
                });
            }
        });
        assert_eq!((pieces.take(), pieces.taken()), (None, 1_000));
        assert_eq!(Pieces::new("test", 0, 0).expect("nothing").take(), None);
        assert!(Pieces::new("test", usize::MAX, 200).is_err());
    }
}
