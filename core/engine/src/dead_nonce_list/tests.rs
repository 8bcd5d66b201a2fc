//! Tests of the list against a map of times, of its bounds, and of its error rates.

use std::collections::HashMap;

use namehop_hash::hash_with_nonce;
use proptest::prelude::*;

use super::*;

/// The lifetime in NFD.
const LIFETIME: Duration = Duration::from_secs(6);
const LIFETIME_NS: u64 = LIFETIME.as_nanos() as u64;
const UNIT_NS: u64 = LIFETIME_NS / LIFETIME_UNITS;

fn list(capacity: usize) -> DeadNonceList {
    DeadNonceList::new(LIFETIME, capacity).expect("memory")
}

fn hash(number: u32) -> u64 {
    hash_with_nonce(0x1234_5678_9abc_def0, number)
}

#[test]
fn a_pair_is_remembered_for_its_lifetime() {
    let mut list = list(100);
    let start = 123_456_789_012;
    assert!(!list.contains(hash(1), Timestamp(start)));
    list.insert(hash(1), Timestamp(start));
    assert!(list.contains(hash(1), Timestamp(start)));
    assert!(!list.contains(hash(2), Timestamp(start)));
    assert!(list.contains(hash(1), Timestamp(start + LIFETIME_NS)));
    assert!(!list.contains(hash(1), Timestamp(start + LIFETIME_NS + UNIT_NS)));
    assert_eq!(list.len(Timestamp(start + LIFETIME_NS)), 1);
    assert_eq!(list.len(Timestamp(start + LIFETIME_NS + UNIT_NS)), 0);
    // A second insertion starts a new lifetime, and does not count twice.
    list.insert(hash(1), Timestamp(start + LIFETIME_NS));
    assert!(list.contains(hash(1), Timestamp(start + 2 * LIFETIME_NS)));
    assert_eq!(list.len(Timestamp(start + LIFETIME_NS)), 1);
    assert_eq!(list.forgotten_early(), 0);
}

#[test]
fn an_empty_slot_is_no_hash_at_any_time() {
    let list = list(1);
    for now in [0, 1, UNIT_NS, LIFETIME_NS, u64::MAX] {
        for hash in [0, 1, USED, u64::MAX, TIME_MASK] {
            assert!(!list.contains(hash, Timestamp(now)));
        }
        assert!(list.is_empty(Timestamp(now)));
    }
}

#[test]
fn memory_is_bounded_and_the_oldest_go_first() {
    let mut list = list(1);
    assert_eq!(list.memory_bytes(), 64);
    for number in 0..1000 {
        list.insert(hash(number), Timestamp(u64::from(number) * UNIT_NS / 4));
        for other in 0..=number {
            let is_new = number - other < 8 - 3;
            let is_old = number - other >= 8 + 3;
            let found = list.contains(hash(other), Timestamp(u64::from(number) * UNIT_NS / 4));
            // Among hashes of one unit the order is undefined: there are four.
            assert!(!is_new || found, "hash {other} must be found after {number}");
            assert!(!is_old || !found, "hash {other} must be forgotten after {number}");
        }
    }
    assert_eq!(list.len(Timestamp(1000 * UNIT_NS / 4)), 8);
    assert_eq!(list.forgotten_early(), 1000 - 8);
}

#[test]
fn a_full_list_forgets_few() {
    for (fill, most_lost) in [(1 << 16, 0.01), (1 << 15, 0.0003)] {
        let mut list = list(1 << 16);
        for number in 0..fill {
            list.insert(hash(number), Timestamp(u64::from(number) * 1000));
        }
        let now = Timestamp(u64::from(fill) * 1000);
        let lost = (0..fill).filter(|&number| !list.contains(hash(number), now)).count();
        assert!(lost as f64 <= f64::from(fill) * most_lost, "{lost} of {fill} hashes are lost");
        assert_eq!(list.forgotten_early(), lost as u64);
        assert_eq!(list.len(now), fill as usize - lost);
        assert!((fill..3 * fill).all(|number| !list.contains(hash(number), now)));
    }
}

#[test]
fn odd_sizes_and_lifetimes_work() {
    for lifetime in [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(50), Duration::MAX] {
        for capacity in [0, 1, 5, 1000] {
            let mut list = DeadNonceList::new(lifetime, capacity).expect("memory");
            list.prefetch(hash(1));
            list.insert(hash(1), Timestamp(1_000_000));
            assert!(list.contains(hash(1), Timestamp(1_000_000)));
            list.insert(hash(2), Timestamp::NEVER);
            list.insert(hash(3), Timestamp::NEVER);
            assert!(list.contains(hash(3), Timestamp::NEVER));
        }
    }
    assert!(DeadNonceList::new(LIFETIME, usize::MAX).is_err());
}

fn any_pause_ns() -> impl Strategy<Value = u64> {
    prop_oneof![0..UNIT_NS, 0..LIFETIME_NS / 4, Just(3 * LIFETIME_NS)]
}

proptest! {
    #[test]
    fn agrees_with_a_map_of_times(
        start in 0u64..1 << 50,
        steps in prop::collection::vec((0u32..40, any_pause_ns()), 1..200)
    ) {
        // The list is so large that no line gets more than eight of the forty hashes.
        let mut list = list(4096);
        let mut model: HashMap<u32, u64> = HashMap::new();
        let mut now = start;
        for (number, pause) in steps {
            now += pause;
            list.insert(hash(number), Timestamp(now));
            model.insert(number, now);
            let mut live = (0, 0);
            for number in 0..40 {
                let found = list.contains(hash(number), Timestamp(now));
                let age = model.get(&number).map(|&time| now - time);
                match age {
                    Some(age) if age <= LIFETIME_NS => {
                        prop_assert!(found, "hash {} is forgotten after {} ns", number, age);
                        live.0 += 1;
                    }
                    Some(age) if age < LIFETIME_NS + UNIT_NS => live.1 += 1,
                    _ => prop_assert!(!found, "hash {} is found after {:?} ns", number, age),
                }
            }
            let length = list.len(Timestamp(now));
            prop_assert!((live.0..=live.0 + live.1).contains(&length), "length {} is not in {:?}", length, live);
        }
    }
}
