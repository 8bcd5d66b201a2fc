//! Compares the concurrent table with a model, and checks readers against a writer that inserts, removes, replaces
//! and grows.

use std::sync::atomic::AtomicBool;
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::Qsbr;

#[derive(Debug, Clone, Copy)]
enum Step {
    Insert(u64, u32),
    Remove(u64, u32),
    Replace(u64, u32, u32),
    StartGrowth(usize),
    MoveChains(usize),
}

/// Computes the low bits of a hash with a function.
struct LowBits(fn(u32) -> u64);

impl GrowthEntries for LowBits {
    fn prefetch(&self, _index: u32) {}

    fn low_bits(&self, index: u32) -> u32 {
        (self.0)(index) as u32
    }
}

/// Grows the table in one step.
fn grow(table: &mut ConcurrentBucketTable, capacity: usize, hash_of: fn(u32) -> u64) -> RetiredBuckets {
    table.start_growth(capacity).expect("memory");
    let retired = table.grow_step(usize::MAX, &LowBits(hash_of)).expect("room");
    retired.expect("all chains are moved")
}

/// Returns one of few hashes, with few different low bits and tags. The index determines the hash that it was
/// inserted with.
fn hash_of(index: u32) -> u64 {
    u64::from(2 + index / 64) << 32 | u64::from(index % 3)
}

fn step() -> impl Strategy<Value = Step> {
    let index = 0u32..200;
    prop_oneof![
        6 => index.clone().prop_map(|index| Step::Insert(hash_of(index), index)),
        4 => index.clone().prop_map(|index| Step::Remove(hash_of(index), index)),
        1 => (index, 0u32..2).prop_map(|(old, up)| Step::Replace(hash_of(old), old, old + 192 * up)),
        1 => (0usize..200).prop_map(Step::StartGrowth),
        4 => (1usize..9).prop_map(Step::MoveChains),
    ]
}

proptest! {
    #[test]
    fn behaves_like_a_list_of_pairs(steps in prop::collection::vec(step(), 0..400)) {
        let mut table = ConcurrentBucketTable::new(10, PageRequest::Ordinary).expect("memory");
        let reader = table.reader();
        let mut model: Vec<(u64, u32)> = Vec::new();
        for step in steps {
            match step {
                Step::Insert(hash, index) => {
                    if table.insert(hash, index).is_err() {
                        let capacity = 2 * table.capacity().max(table.growing_to().unwrap_or(0)) + 10;
                        drop(grow(&mut table, capacity, hash_of));
                        prop_assert!(table.insert(hash, index).is_ok());
                    }
                    model.push((hash, index));
                }
                Step::Remove(hash, index) => {
                    let position = model.iter().position(|&pair| pair == (hash, index));
                    prop_assert_eq!(table.remove(hash, index), position.is_some());
                    if let Some(position) = position {
                        model.swap_remove(position);
                    }
                }
                // Growth needs the low bits, which adding 192 does not change; the tag stays that of the old index.
                Step::Replace(hash, old, new) => {
                    let position = model.iter().position(|&pair| pair == (hash, old));
                    prop_assert_eq!(table.replace(hash, old, new), position.is_some());
                    if let Some(position) = position {
                        model[position].1 = new;
                    }
                }
                Step::StartGrowth(capacity) => {
                    prop_assert_eq!(table.start_growth(capacity), Ok(()));
                    prop_assert!(table.growing_to() >= Some(capacity.max(table.len())));
                }
                Step::MoveChains(chains) => {
                    let target = table.growing_to();
                    match table.grow_step(chains, &LowBits(hash_of)) {
                        Ok(Some(_)) => prop_assert_eq!(Some(table.capacity()), target),
                        Ok(None) => prop_assert_eq!(table.growing_to(), target),
                        Err(TableFull) => prop_assert_eq!(table.growing_to(), None),
                    }
                }
            }
            prop_assert_eq!(table.len(), model.len());
        }
        for index in 0..200 {
            let hash = hash_of(index);
            // Hashes with the same tag may share a bucket, so candidates may include entries of other hashes.
            let is_expected = |&index: &u32| model.contains(&(hash, index));
            // SAFETY: no array is retired meanwhile.
            let candidates: Vec<u32> = unsafe { reader.candidates(hash) }.collect();
            prop_assert_eq!(&candidates, &table.candidates(hash).collect::<Vec<_>>());
            let mut found: Vec<u32> = candidates.into_iter().filter(is_expected).collect();
            let mut expected: Vec<u32> =
                model.iter().filter(|&&(other, _)| other == hash).map(|&(_, index)| index).collect();
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(&found, &expected);
        }
        let mut all: Vec<u32> = table.iter().collect();
        all.sort_unstable();
        let mut expected: Vec<u32> = model.iter().map(|&(_, index)| index).collect();
        expected.sort_unstable();
        prop_assert_eq!(&all, &expected);
        // When all entries are removed, no overflow bucket is in use.
        for (hash, index) in model {
            prop_assert!(table.remove(hash, index));
        }
        prop_assert_eq!(table.iter().count(), 0);
        prop_assert_eq!(table.statistics().overflow_buckets, 0);
    }
}

#[test]
fn overflow_buckets_come_and_go() {
    let mut table = ConcurrentBucketTable::new(40, PageRequest::Ordinary).expect("memory");
    for round in 0..100 {
        for index in 0..40 {
            assert_eq!(table.insert(1 << 40, index), Ok(()), "round {round}");
        }
        assert_eq!(table.statistics().overflow_buckets, 5);
        for index in 0..40 {
            assert!(table.remove(1 << 40, index));
        }
        assert_eq!(table.statistics().overflow_buckets, 0);
    }
}

/// Returns a well-mixed hash for each index; eight consecutive indexes share a bucket.
fn mixed(index: u32) -> u64 {
    let mut x = u64::from(index / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (u64::from(index) + 1) << 32 | (x >> 16) & 0xffff_ffff
}

/// Ends the readers' loops when the writer returns or panics.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Entries below `FIXED` stay in the table; readers must find them at every moment. The other entries are added and
/// removed.
#[test]
fn readers_never_miss_an_entry_that_stays() {
    const FIXED: u32 = 300;
    const MOVING: u32 = 3000;
    let mut table = ConcurrentBucketTable::new(16, PageRequest::Ordinary).expect("memory");
    let mut qsbr = Qsbr::new();
    let add = |table: &mut ConcurrentBucketTable, qsbr: &mut Qsbr<RetiredBuckets>, index: u32| {
        while table.insert(mixed(index % MOVING), index).is_err() {
            let capacity = table.capacity() * 2;
            qsbr.retire(grow(table, capacity, |index| mixed(index % MOVING)));
        }
    };
    for index in 0..FIXED {
        add(&mut table, &mut qsbr, index);
    }
    let stop = AtomicBool::new(false);
    let readers: Vec<_> = (0..2).map(|_| (table.reader(), qsbr.reader())).collect();
    thread::scope(|scope| {
        for (table, mut quiescence) in readers {
            let stop = &stop;
            scope.spawn(move || {
                let mut found = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    for index in 0..FIXED {
                        quiescence.online();
                        let hash = mixed(index);
                        // SAFETY: the reader is online; the writer drops arrays only through the reclamation.
                        let hit = unsafe {
                            table.prefetch(hash);
                            table.candidates(hash)
                        }
                        .any(|candidate| candidate % MOVING == index);
                        assert!(hit, "entry {index} was missed");
                        found += 1;
                        quiescence.quiescent();
                    }
                }
                assert!(found > 0);
            });
        }
        let _stopper = SetOnDrop(&stop);
        for round in 0..40 {
            for index in FIXED..MOVING {
                add(&mut table, &mut qsbr, index);
                if let Ok(Some(retired)) = table.grow_step(1, &LowBits(|index| mixed(index % MOVING))) {
                    qsbr.retire(retired);
                }
            }
            // A fixed entry changes its index; readers see the old or the new one.
            for index in 0..FIXED {
                let (old, new) = if round % 2 == 0 { (index, index + MOVING) } else { (index + MOVING, index) };
                assert!(table.replace(mixed(index), old, new));
            }
            for index in FIXED..MOVING {
                assert!(table.remove(mixed(index), index));
            }
            if round % 5 == 0 {
                table.start_growth(8).expect("memory");
            }
            qsbr.reclaim(drop);
            thread::yield_now();
        }
    });
    assert_eq!(table.len(), FIXED as usize);
    qsbr.reclaim(drop);
    assert_eq!(qsbr.pending(), 0);
}
