//! Filling tables causes almost no page faults, because another thread touches the memory ahead.
//!
//! A separate process, because the setting applies to all tables of a process.
#![cfg(target_os = "linux")]

use std::thread;
use std::time::{Duration, Instant};

use namehop_table::{
    Arena, BucketTable, ByteArena, CacheLines, Growth, PageRequest, Pieces, Readiness, is_memory_ready,
    make_memory_ready_ahead,
};
use nix::sys::resource::{UsageWho, getrusage};

fn page_faults() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).expect("usage").minor_page_faults()
}

/// Waits until the other thread has nothing to do.
fn wait_until_ready() {
    let start = Instant::now();
    while !is_memory_ready() {
        assert!(start.elapsed() < Duration::from_secs(60), "memory must become ready within 60 s");
        thread::sleep(Duration::from_micros(100));
    }
}

/// Counts the page faults of `work`, called with numbers from 0 on. Waits for memory to get ready before every
/// `at_a_time` calls.
fn faults_of(count: usize, at_a_time: usize, mut work: impl FnMut(usize)) -> i64 {
    let mut faults = 0;
    for start in (0..count).step_by(at_a_time) {
        wait_until_ready();
        let before = page_faults();
        (start..count.min(start + at_a_time)).for_each(&mut work);
        faults += page_faults() - before;
    }
    faults
}

#[test]
fn memory_is_touched_before_it_is_needed() {
    for pages in [PageRequest::Ordinary, PageRequest::Large] {
        // Made before readiness was enabled: as many faults as pages.
        let mut arena = Arena::<[u64; 32]>::new(10_000, pages).expect("memory");
        let faults = faults_of(8_000, 100, |_| assert!(arena.allocate().is_some()));
        assert!(
            faults >= if pages == PageRequest::Ordinary { 400 } else { 1 },
            "only {faults} page faults without readiness"
        );
    }
    make_memory_ready_ahead(Readiness::BeforeUse);
    for pages in [PageRequest::Ordinary, PageRequest::Large] {
        // Slots of 256 bytes: 500 pages of 4 KiB, then some of 2 MiB.
        let mut arena = Arena::<[u64; 32]>::new(1 << 20, pages).expect("memory");
        let faults = faults_of(40_000, 100, |_| assert!(arena.allocate().is_some()));
        assert!(faults <= 20, "{faults} page faults of an arena on {pages:?} pages");
        // The list of freed slots.
        let faults = faults_of(40_000, 1_000, |number| arena.free(number as u32));
        assert!(faults <= 20, "{faults} page faults of freed slots on {pages:?} pages");

        let mut bytes = ByteArena::new(64 << 20, Growth::AtOnce, pages).expect("memory");
        let faults = faults_of(2_000, 20, |_| {
            let slot = bytes.allocate(8_000).expect("room");
            bytes.get_mut(slot, 8_000).fill(1);
        });
        assert!(faults <= 20, "{faults} page faults of byte strings on {pages:?} pages");

        // As fast as possible, but never faster than memory gets ready.
        let mut bytes = ByteArena::new(64 << 20, Growth::WhenReady, pages).expect("memory");
        let (mut stored, mut refused, before, start) = (0, 0, page_faults(), Instant::now());
        while stored < 5_000 {
            assert!(start.elapsed() < Duration::from_secs(60), "the arena must grow within 60 s");
            match bytes.allocate(8_000) {
                Some(slot) => {
                    bytes.get_mut(slot, 8_000).fill(1);
                    stored += 1;
                }
                None => refused += 1,
            }
        }
        let faults = page_faults() - before;
        // The memory that is ready at first is used in any case: 512 KiB, with the bookkeeping of its chunks and of
        // the first thread.
        assert!(
            faults <= 160,
            "{faults} page faults of byte strings on {pages:?} pages, {refused} allocations refused"
        );

        let mut lines = CacheLines::used_in_order(1 << 20, pages).expect("memory");
        let faults = faults_of(100_000, 30, |number| {
            lines.note_used(number + 1);
            lines[number].0 = [1; 8];
        });
        assert!(faults <= 20, "{faults} page faults of lines in order on {pages:?} pages");

        // Large enough that faults on huge pages would be noticed, too.
        let mut lines = CacheLines::used_anywhere(1 << 20, pages).expect("memory");
        lines.note_uses(1);
        let faults = faults_of(100_000, 100_000, |number| lines[number * 7_919 % (1 << 20)].0 = [1; 8]);
        assert!(faults <= 2, "{faults} page faults of lines in any order on {pages:?} pages");

        let mut table = BucketTable::new(1_000_000, pages).expect("memory");
        let faults = faults_of(50_000, 50_000, |number| {
            let hash = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            table.insert(hash ^ hash >> 31, number as u32).expect("room");
        });
        assert!(faults <= 20, "{faults} page faults of buckets on {pages:?} pages");
    }
    let pieces = Pieces::new("pieces", 10_000, 2_400).expect("memory");
    let faults = faults_of(10_000, 10, |_| {
        let piece = pieces.take().expect("a piece");
        // SAFETY: the piece belongs to this test alone.
        unsafe { piece.write_bytes(1, 2_400) };
    });
    assert!(faults <= 60, "{faults} page faults of pieces");

    // Memory that is dropped while it is made ready.
    for number in 0..200 {
        let mut arena = Arena::<[u64; 32]>::new(1 << 16, PageRequest::Large).expect("memory");
        (0..number * 10).for_each(|_| assert!(arena.allocate().is_some()));
    }
    wait_until_ready();
}
