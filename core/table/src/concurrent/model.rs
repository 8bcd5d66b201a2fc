//! The concurrent table under the model checker: every interleaving of a writer and a reader, with every value that
//! the memory model lets each load return.
//!
//! `make model-test` runs these.

use loom::thread;

use super::*;
use crate::Qsbr;

const HASH: u64 = 7 << 32;
/// Another home bucket of a table with two.
const OTHER_HOME: u64 = 9 << 32 | 1;

/// Checks every interleaving in which a thread is interrupted at most `preemptions` times.
fn check(preemptions: usize, program: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(program);
}

/// Returns a table whose home bucket for `HASH` holds entries 0 to 7.
fn full_bucket() -> ConcurrentBucketTable {
    let mut table = ConcurrentBucketTable::new(10, PageRequest::Ordinary).expect("memory");
    for index in 0..8 {
        table.insert(HASH, index).expect("room");
    }
    table
}

/// Entries from 20 on have the other home bucket.
struct LowBits;

impl GrowthEntries for LowBits {
    fn prefetch(&self, _index: u32) {}

    fn low_bits(&self, index: u32) -> u32 {
        (if index < 20 { HASH } else { OTHER_HOME }) as u32
    }
}

/// Spawns a reader, which returns all candidates that it finds.
fn spawn_reader(reader: ConcurrentBucketReader) -> thread::JoinHandle<Vec<u32>> {
    // SAFETY: the model's main thread keeps retired arrays until this thread has ended.
    thread::spawn(move || unsafe { reader.candidates(HASH) }.collect())
}

#[test]
fn model_an_entry_that_makes_room_for_a_link_is_found() {
    check(3, || {
        let mut table = full_bucket();
        let reader = spawn_reader(table.reader());
        table.insert(HASH, 8).expect("room");
        let found = reader.join().expect("the reader ends without a panic");
        assert!((0..8).all(|index| found.contains(&index)), "{found:?}");
        assert_eq!(table.candidates(HASH).count(), 9);
    });
}

#[test]
fn model_entries_stay_while_an_overflow_bucket_is_unlinked_and_used_elsewhere() {
    check(2, || {
        let mut table = full_bucket();
        table.insert(HASH, 8).expect("room");
        for index in 20..28 {
            table.insert(OTHER_HOME, index).expect("room");
        }
        let reader = spawn_reader(table.reader());
        // The insertion of entry 8 moved entry 7 to the overflow bucket.
        assert!(table.remove(HASH, 8) && table.remove(HASH, 7));
        assert_eq!(table.statistics().overflow_buckets, 0);
        table.insert(OTHER_HOME, 28).expect("room");
        let found = reader.join().expect("the reader ends without a panic");
        assert!((0..7).all(|index| found.contains(&index)), "{found:?}");
    });
}

#[test]
fn model_a_replaced_entry_is_found_as_either() {
    check(3, || {
        let mut table = full_bucket();
        let reader = spawn_reader(table.reader());
        assert!(table.replace(HASH, 3, 30));
        let found = reader.join().expect("the reader ends without a panic");
        assert!(found.contains(&3) != found.contains(&30), "{found:?}");
    });
}

#[test]
fn model_entries_stay_while_the_table_grows() {
    check(2, || {
        let mut table = full_bucket();
        let mut qsbr = Qsbr::new();
        let reader = spawn_reader(table.reader());
        table.start_growth(40).expect("memory");
        qsbr.retire(table.grow_step(usize::MAX, &LowBits).expect("room").expect("all chains are moved"));
        let mut found = reader.join().expect("the reader ends without a panic");
        found.sort_unstable();
        assert_eq!(found, [0, 1, 2, 3, 4, 5, 6, 7]);
        qsbr.reclaim(drop);
        assert_eq!(qsbr.pending(), 0);
    });
}

#[test]
fn model_entries_stay_while_the_table_is_changed_between_the_steps_of_its_growth() {
    check(2, || {
        let mut table = full_bucket();
        table.insert(OTHER_HOME, 20).expect("room");
        table.start_growth(40).expect("memory");
        let reader = spawn_reader(table.reader());
        assert!(table.grow_step(1, &LowBits).expect("room").is_none(), "one of two chains is moved");
        // Changes in the chain that was moved, and in the chain that was not.
        table.insert(HASH, 8).expect("room");
        assert!(table.remove(HASH, 3) && table.replace(HASH, 5, 15));
        assert!(table.replace(OTHER_HOME, 20, 21));
        let retired = table.grow_step(1, &LowBits).expect("room").expect("all chains are moved");
        let found = reader.join().expect("the reader ends without a panic");
        assert!([0, 1, 2, 4, 6, 7].iter().all(|index| found.contains(index)), "{found:?}");
        assert!(found.contains(&5) || found.contains(&15), "{found:?}");
        drop(retired);
        let mut after: Vec<u32> = table.candidates(HASH).collect();
        after.sort_unstable();
        assert_eq!(after, [0, 1, 2, 4, 6, 7, 8, 15]);
        assert_eq!(table.candidates(OTHER_HOME).collect::<Vec<_>>(), [21]);
    });
}
