//! Slots, pairs of slots, segments, and readers on other threads.

use std::sync::atomic::AtomicU32;

use super::*;

#[test]
fn indexes_map_to_slots_without_gaps() {
    let mut expected = (0, 0);
    for segment in 0..SEGMENTS {
        assert_eq!(locate(expected.1 as u32), expected, "start of segment {segment}");
        let end = expected.1 + segment_slots(segment);
        assert_eq!(locate((end - 1) as u32), expected, "end of segment {segment}");
        expected = (segment + 1, end);
    }
    assert_eq!(expected, (SEGMENTS, 1 << 32));
}

#[test]
fn entries_stay_in_place_while_it_grows() {
    let mut arena = SharedArena::<u64>::new(PageRequest::Ordinary);
    let reader = arena.reader();
    let mut addresses = Vec::new();
    for value in 0..50_000 {
        let index = arena.allocate(value).expect("memory");
        assert_eq!(u64::from(index), value);
        // SAFETY: allocated above.
        addresses.push(std::ptr::from_ref(unsafe { arena.get(index) }));
    }
    for (index, address) in addresses.into_iter().enumerate() {
        // SAFETY: allocated above, on this thread.
        let entry = unsafe { reader.clone().segments.slot(index as u32).as_ref() };
        assert_eq!(std::ptr::from_ref(entry), address);
        assert_eq!(*entry, index as u64);
    }
    // SAFETY: allocated, and not accessed any more.
    unsafe { arena.free(7) };
    assert_eq!(arena.len(), 49_999);
    assert_eq!(arena.allocate(1), Ok(7));
    reader.prefetch_line(u32::MAX, 1);
}

#[test]
fn what_is_expected_is_touched_ahead_and_reads_back() {
    let mut arena = SharedArena::<[u64; 16]>::new(PageRequest::Large);
    arena.expect(100);
    assert!(arena.announced.is_none(), "a few slots must not be touched ahead");
    const SLOTS: usize = 1_000_000;
    arena.expect(SLOTS);
    for number in 0..SLOTS + 10 {
        let index = arena.allocate([number as u64; 16]).expect("memory");
        assert_eq!(index as usize, number);
    }
    assert!(arena.announced.is_none(), "all expected slots are allocated");
    for index in 0..SLOTS as u32 + 10 {
        // SAFETY: allocated above.
        assert_eq!(unsafe { arena.get(index) }, &[u64::from(index); 16]);
    }
    // Again, where there is room already.
    arena.expect(SLOTS);
    arena.expect(3 * SLOTS);
    drop(arena);
}

#[test]
fn pairs_lie_side_by_side_and_are_used_again() {
    let mut arena = SharedArena::<u64>::new(PageRequest::Ordinary);
    let pair = |arena: &mut SharedArena<u64>, value: u64| {
        let write = |first: NonNull<u64>| {
            // SAFETY: the two slots are one piece of memory.
            unsafe { first.cast::<[u64; 2]>().write([value, value + 1]) }
        };
        // SAFETY: the first slot is filled.
        unsafe { arena.allocate_pair(|| u64::MAX, write) }.expect("memory")
    };
    assert_eq!((arena.allocate(7), pair(&mut arena, 10), arena.len()), (Ok(0), 2, 3));
    // SAFETY: the slot was made and holds the vacant value.
    assert_eq!(unsafe { *arena.get(1) }, u64::MAX);
    // The slot that stayed free is used, then new ones.
    assert_eq!([arena.allocate(8), arena.allocate(9), arena.allocate(9)], [Ok(1), Ok(4), Ok(5)]);
    // SAFETY: allocated together, and not accessed any more.
    unsafe { arena.free_pair(2, 99) };
    // SAFETY: the slot was made and holds the vacant value.
    assert_eq!((unsafe { *arena.get(3) }, arena.len()), (99, 4));
    assert_eq!((pair(&mut arena, 20), arena.len()), (2, 6));
    // SAFETY: as above.
    unsafe { arena.free_pair(2, 99) };
    // If there are no other free slots, a pair is split.
    assert_eq!([arena.allocate(1), arena.allocate(2), arena.allocate(3)], [Ok(2), Ok(3), Ok(6)]);
    // Across the ends of segments.
    for value in 0..10_000 {
        let first = pair(&mut arena, 3 * value);
        // SAFETY: allocated above.
        assert_eq!(unsafe { (*arena.get(first), first % 2, *arena.get(first + 1)) }, (3 * value, 0, 3 * value + 1));
    }
}

#[test]
fn a_reader_outlives_the_writer() {
    let mut arena = SharedArena::<u64>::new(PageRequest::Large);
    assert!(arena.is_empty());
    let index = arena.allocate(99).expect("memory");
    let reader = arena.reader();
    drop(arena);
    // SAFETY: published on this thread and never freed.
    assert_eq!(unsafe { *reader.get(index) }, 99);
}

#[test]
fn threads_read_what_was_published() {
    let mut arena = SharedArena::<u64>::new(PageRequest::Ordinary);
    let reader = arena.reader();
    let published = AtomicU32::new(u32::MAX);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                let index = published.load(Ordering::Acquire);
                if index != u32::MAX {
                    // SAFETY: read with acquire ordering, and never freed.
                    assert_eq!(unsafe { *reader.get(index) }, u64::from(index) + 5);
                }
                if index == 99_999 {
                    return;
                }
            }
        });
        for value in 0..100_000 {
            let index = arena.allocate(value + 5).expect("memory");
            published.store(index, Ordering::Release);
        }
    });
}
