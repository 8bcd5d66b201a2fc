//! Compares the bucket table with a simple model, on few hash values so that buckets overflow.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    Insert(u64, u32),
    Remove(u64, u32),
    Replace(u64, u32, u32),
}

/// Hashes that often share a bucket, a tag, or both.
fn hash() -> impl Strategy<Value = u64> {
    (0u64..3, prop_oneof![0u64..3, Just(u64::from(u32::MAX))]).prop_map(|(low, high)| high << 32 | low)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (hash(), 0u32..20).prop_map(|(hash, index)| Step::Insert(hash, index)),
        2 => (hash(), 0u32..20).prop_map(|(hash, index)| Step::Remove(hash, index)),
        1 => (hash(), 0u32..20, 0u32..20).prop_map(|(hash, old, new)| Step::Replace(hash, old, new)),
    ]
}

/// Checks that every bucket of a chain but the last is full, and that occupied slots come first. Checks that no
/// overflow bucket holds a single entry, which the link's slot could hold instead.
fn check_shape(table: &BucketTable) {
    let mut overflow = 0;
    for home in 0..=table.home_mask {
        let mut number = home;
        loop {
            let bucket = table.buckets.get(number);
            let occupied = bucket.occupied();
            assert!(bucket.tags[..occupied].iter().all(|&tag| tag != EMPTY));
            assert!(bucket.tags[..LINK_SLOT].iter().all(|&tag| tag != LINK));
            assert!(number == home || occupied >= 2);
            match bucket.next() {
                Some(next) => number = next,
                None => break,
            }
            overflow += 1;
        }
    }
    assert_eq!(table.statistics().overflow_buckets, overflow);
}

proptest! {
    #[test]
    fn behaves_like_a_list_of_pairs(steps in prop::collection::vec(step(), 0..300)) {
        let mut table = BucketTable::new(150, PageRequest::Ordinary).expect("memory");
        let mut model: Vec<(u64, u32)> = Vec::new();
        for step in steps {
            match step {
                Step::Insert(hash, index) => {
                    if table.insert(hash, index).is_ok() {
                        model.push((hash, index));
                    } else {
                        prop_assert!(model.len() >= 150);
                    }
                }
                Step::Remove(hash, index) => {
                    let position = model.iter().position(|&pair| pair == (hash, index));
                    // Hashes 0 and 1 in the high half share a tag; the table cannot tell them apart.
                    let twin = model.iter().position(|&(other, i)| {
                        i == index && tag_of(other) == tag_of(hash) && other as u32 == hash as u32
                    });
                    prop_assert_eq!(table.remove(hash, index), twin.is_some());
                    if let Some(position) = position.or(twin) {
                        model.swap_remove(position);
                    }
                }
                Step::Replace(hash, old, new) => {
                    let twin = model.iter().position(|&(other, i)| {
                        i == old && tag_of(other) == tag_of(hash) && other as u32 == hash as u32
                    });
                    prop_assert_eq!(table.replace(hash, old, new), twin.is_some());
                    if let Some(twin) = twin {
                        model[twin].1 = new;
                    }
                }
            }
            check_shape(&table);
            prop_assert_eq!(table.len(), model.len());
        }
        for low in 0..3u64 {
            for high in [0, 1, 2, u64::from(u32::MAX)] {
                let hash = high << 32 | low;
                let mut found: Vec<u32> = table.candidates(hash).collect();
                let mut expected: Vec<u32> = model
                    .iter()
                    .filter(|(other, _)| tag_of(*other) == tag_of(hash) && *other as u32 == low as u32)
                    .map(|&(_, index)| index)
                    .collect();
                found.sort_unstable();
                expected.sort_unstable();
                if let Some(guess) = table.guess(hash) {
                    prop_assert!(found.contains(&guess));
                }
                prop_assert_eq!(&found, &expected);
                for index in 0..20 {
                    prop_assert_eq!(
                        table.find(hash, |candidate| candidate == index).is_some(),
                        expected.contains(&index)
                    );
                }
            }
        }
        let mut all: Vec<u32> = table.iter().collect();
        let mut expected: Vec<u32> = model.iter().map(|&(_, index)| index).collect();
        all.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(all, expected);
    }
}

/// Returns a well-mixed hash for each number.
fn mixed(number: u64) -> u64 {
    let x = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (x >> 31)
}

#[test]
fn capacity_is_kept_for_the_worst_hashes_and_then_it_is_full() {
    for capacity in [0usize, 1, 7, 8, 9, 100, 1000] {
        let mut table = BucketTable::new(capacity, PageRequest::Ordinary).expect("memory");
        for index in 0..capacity as u32 {
            assert_eq!(table.insert(42, index), Ok(()), "entry {index} of {capacity}");
        }
        let extra = (0..20).take_while(|_| table.insert(42, 0).is_ok()).count();
        assert!(extra <= SLOTS + 6, "{extra} entries above the capacity {capacity}");
        assert_eq!(table.insert(42, 0), Err(TableFull));
        assert_eq!(table.len(), capacity + extra);
        // Freed overflow buckets are used again.
        for index in 0..capacity as u32 {
            assert!(table.remove(42, index));
        }
        for _ in 0..extra {
            assert!(table.remove(42, 0));
        }
        assert!(table.is_empty());
        assert_eq!(table.statistics().overflow_buckets, 0);
        for index in 0..capacity as u32 {
            assert_eq!(table.insert(43, index), Ok(()));
        }
    }
}

#[test]
fn well_mixed_hashes_overflow_rarely() {
    let capacity = 40_000;
    let mut table = BucketTable::new(capacity, PageRequest::Large).expect("memory");
    for index in 0..capacity as u32 {
        table.insert(mixed(u64::from(index)), index).expect("room");
    }
    let statistics = table.statistics();
    assert!(statistics.overflow_buckets * 10 < statistics.home_buckets, "{statistics:?}");
    let mut useless = 0;
    for index in 0..capacity as u32 {
        let hash = mixed(u64::from(index));
        table.prefetch(hash);
        useless += table.candidates(hash).filter(|&found| found != index).count();
        assert_eq!(table.find(hash, |found| found == index), Some(index));
    }
    assert!(useless <= 2, "{useless} false candidates");
    assert_eq!(table.iter().count(), capacity);
}
