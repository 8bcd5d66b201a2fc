//! Checks the numbers of the table in `touched`, operation by operation.

use super::{count_lines, prefetched_lines, touched_lines};
use crate::tags::{LINK_SLOT, SLOTS};
use crate::{
    Arena, BucketTable, ByteArena, CacheLine, CacheLines, ConcurrentBucketTable, Growth, GrowthEntries, PageRequest,
    SharedArena,
};

const PAGES: PageRequest = PageRequest::Ordinary;
/// Hash of all entries here, which share a home bucket.
const HASH: u64 = 7 << 32 | 1;

fn lines<R>(operation: impl FnOnce() -> R) -> usize {
    count_lines(operation).0
}

/// An entry that begins on a cache line and is three lines long.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Entry {
    _lines: [CacheLine; 3],
}

#[test]
fn what_is_touched_twice_counts_once() {
    let mut memory = CacheLines::new(4, PAGES).expect("memory");
    let (touched, sum) = count_lines(|| {
        memory[1].0[3] = 5;
        memory[1].0[3] + memory[3].0[0]
    });
    assert_eq!((touched, sum), (2, 5));
    assert_eq!(lines(|| memory.prefetch(2)), 0);
    let (prefetched, touched) = prefetched_lines(|| {
        memory.prefetch(2);
        touched_lines(|| memory[2].0[0]).0
    });
    assert_eq!(prefetched, touched);
}

#[test]
#[should_panic(expected = "already active")]
fn only_one_counts() {
    count_lines(|| count_lines(|| ()));
}

#[test]
fn a_bucket_is_one_line() {
    let mut table = BucketTable::new(100, PAGES).expect("memory");
    assert_eq!(lines(|| table.prefetch(HASH)), 0);
    assert_eq!(lines(|| table.candidates(HASH).count()), 1, "miss in an empty bucket");
    for index in 0..SLOTS as u32 {
        assert_eq!(lines(|| table.insert(HASH, index)), 1);
        assert_eq!(lines(|| table.find(HASH, |found| found == index)), 1, "hit");
        assert_eq!(lines(|| table.find(HASH + (1 << 32), |_| true)), 1, "miss with another tag");
        assert_eq!(lines(|| table.guess(HASH)), 1);
    }
    assert_eq!(lines(|| table.replace(HASH, 3, 30)), 1);
    assert_eq!(lines(|| table.remove(HASH, 30)), 1);
    assert_eq!(table.insert(HASH, 3), Ok(()));

    // The ninth entry needs an overflow bucket.
    assert_eq!(lines(|| table.insert(HASH, 8)), 2);
    assert_eq!(lines(|| table.find(HASH, |found| found == 0)), 1, "hit in the home bucket");
    assert_eq!(lines(|| table.find(HASH, |found| found == 8)), 2, "hit in the overflow bucket");
    assert_eq!(lines(|| table.find(HASH + (1 << 32), |_| true)), 2, "miss");
    assert_eq!(lines(|| table.guess(HASH)), 1);
    assert_eq!(lines(|| table.replace(HASH, 8, 80)), 2);
    assert_eq!(lines(|| table.remove(HASH, 80)), 2);
    assert_eq!(lines(|| table.remove(HASH, 0)), 1, "the chain must be gone");
}

#[test]
fn a_concurrent_bucket_is_one_line() {
    let mut table = ConcurrentBucketTable::new(100, PAGES).expect("memory");
    let reader = table.reader();
    // SAFETY: the table does not grow.
    let find = |index| unsafe { lines(|| reader.candidates(HASH).find(|&found| found == index)) };
    // SAFETY: as above.
    let miss = || unsafe { lines(|| reader.candidates(HASH + (1 << 32)).count()) };
    // SAFETY: as above.
    assert_eq!(unsafe { lines(|| reader.prefetch(HASH)) }, 0);
    assert_eq!(miss(), 1);
    for index in 0..SLOTS as u32 {
        assert_eq!(lines(|| table.insert(HASH, index)), 1);
        assert_eq!(find(index), 1);
        assert_eq!(miss(), 1);
    }
    assert_eq!(lines(|| table.replace(HASH, 3, 30)), 1);
    assert_eq!(lines(|| table.remove(HASH, 30)), 1);
    assert_eq!(table.insert(HASH, 3), Ok(()));

    assert_eq!(lines(|| table.insert(HASH, 8)), 2);
    assert_eq!(find(0), 1);
    assert_eq!(find(LINK_SLOT as u32), 2, "the entry that was moved for the link");
    assert_eq!(find(8), 2);
    assert_eq!(miss(), 2);
    assert_eq!(lines(|| table.replace(HASH, 8, 80)), 2);
    assert_eq!(lines(|| table.remove(HASH, 80)), 2);
}

/// Entries that all have the low bits of `HASH`.
struct SameHash;

impl GrowthEntries for SameHash {
    fn prefetch(&self, _index: u32) {}

    fn low_bits(&self, _index: u32) -> u32 {
        HASH as u32
    }
}

#[test]
fn a_growing_table_is_changed_in_both_arrays_where_it_was_moved() {
    let mut table = ConcurrentBucketTable::new(100, PAGES).expect("memory");
    let reader = table.reader();
    table.start_growth(200).expect("memory");
    assert_eq!(lines(|| table.insert(HASH, 0)), 1, "the chain is not moved yet");
    // The home buckets of the low bits 0 and 1.
    assert_eq!(lines(|| table.grow_step(2, &SameHash).is_ok()), 2 + 1);
    assert_eq!(lines(|| table.prefetch(HASH)), 0);
    assert_eq!(lines(|| table.insert(HASH, 1)), 2);
    assert_eq!(lines(|| table.replace(HASH, 1, 10)), 2);
    assert_eq!(lines(|| table.remove(HASH, 10)), 2);
    assert_eq!(lines(|| table.remove(HASH, 10)), 1, "the newer array has no such entry");
    // SAFETY: the growth is not completed.
    assert_eq!(unsafe { lines(|| reader.candidates(HASH).count()) }, 1, "readers must use one array");
    assert_eq!(lines(|| table.insert(HASH + 1, 2)), 1, "the chain is not moved yet");
}

#[test]
fn an_arena_touches_entries_only() {
    let mut arena = Arena::<Entry>::new(100, PAGES).expect("memory");
    assert_eq!(lines(|| arena.allocate()), 3, "made");
    assert_eq!(arena.allocate(), Some(1));
    assert_eq!(lines(|| arena.prefetch(1)), 0);
    assert_eq!(lines(|| arena.get(1).copied()), 3);
    assert_eq!(lines(|| arena.get_mut(2).is_some()), 0, "a slot that was never allocated");
    assert_eq!(lines(|| arena.free(1)), 1);
    assert_eq!(lines(|| arena.allocate()), 1);
}

#[test]
fn a_shared_arena_touches_the_entry_and_the_list_of_segments() {
    let mut arena = SharedArena::<Entry>::new(PAGES);
    let reader = arena.reader();
    for _ in 0..10_000 {
        arena.allocate(Entry::default()).expect("memory");
    }
    for index in [0, 4095, 4096, 9_999] {
        // SAFETY: allocated above and never freed.
        assert_eq!(unsafe { lines(|| reader.get(index)) }, 1 + 3);
        assert_eq!(lines(|| reader.prefetch_line(index, 0)), 0);
    }
}

#[test]
fn a_byte_arena_touches_the_requested_bytes() {
    let mut arena = ByteArena::new(1 << 20, Growth::AtOnce, PAGES).expect("memory");
    let slot = arena.allocate(1000).expect("room");
    assert_eq!(lines(|| arena.get(slot, 1)), 1);
    assert_eq!(lines(|| arena.get(slot, 64)), 1);
    assert_eq!(lines(|| arena.get(slot, 65)), 2);
    assert_eq!(lines(|| arena.get_mut(slot, 1000).len()), 16);
    assert_eq!(lines(|| arena.get(slot, 0)), 0);
    assert_eq!(lines(|| arena.prefetch_line(slot, 0)), 0);
    assert!((1..=3).contains(&lines(|| arena.allocate(1000))));
    assert!((1..=3).contains(&lines(|| arena.free(slot))));
}
