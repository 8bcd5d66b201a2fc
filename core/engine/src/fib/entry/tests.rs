//! Tests of entries of one line, of two, and with a block on the heap.

use std::mem::MaybeUninit;

use super::*;

fn nexthops(count: usize, first_cost: u64) -> Vec<NextHop> {
    (0..count as u32).map(|n| NextHop { face: FaceId(256 + n), cost: first_cost + u64::from(n) }).collect()
}

/// The largest cost among the numbers, the smallest that is not, and others.
const COSTS: [u64; 5] = [0, 10, u32::MAX as u64 - 2, u32::MAX as u64 - 1, u64::MAX - 100];

/// Two slots.
type Slots = [MaybeUninit<Entry>; 2];

/// Writes an entry into as many of the slots as it needs.
fn entry<'a>(slots: &'a mut Slots, value: &[u8], nexthops: &[NextHop]) -> &'a Entry {
    let hash = 0x1122_3344_5566_7788;
    let parts = EntryParts { value, depth: 3, hash, nexthops, choice: 5, nexthop_source: 6 };
    let first = NonNull::from(slots).cast::<Entry>();
    // SAFETY: both slots belong to the entry while it is borrowed.
    unsafe {
        if parts.needs_pair() {
            Entry::write_pair(first, &parts);
        } else {
            first.write(Entry::new(&parts));
        }
        first.as_ref()
    }
}

#[test]
fn names_and_next_hops_of_all_sizes_read_back() {
    for (name_bytes, first_cost) in
        (0..100usize).chain([8800, 65_535]).flat_map(|bytes| COSTS.map(|first_cost| (bytes, first_cost)))
    {
        let value: Vec<u8> = (0..name_bytes).map(|position| (position * 7 + 1) as u8).collect();
        for count in [0, 1, 2, 3, 4, 5, 6, 7, 8, MAX_NEXTHOPS] {
            let nexthops = nexthops(count, first_cost);
            let mut slots = [const { MaybeUninit::uninit() }; 2];
            let entry = entry(&mut slots, &value, &nexthops);
            assert_eq!(entry.value(), value);
            assert_eq!(entry.own_nexthops().iter().collect::<Vec<_>>(), nexthops);
            assert_eq!(entry.has_own_nexthops(), count > 0);
            assert_eq!((entry.depth(), entry.hash_low(), entry.choice()), (3, 0x5566_7788, 5));
            assert!(count > 0 || entry.nexthop_source() == 6);
            let listed = if count == 1 && first_cost < u64::from(u32::MAX) - 1 { 0 } else { count };
            let bytes = (name_bytes.next_multiple_of(4) + 4 * count).next_multiple_of(8) + 8 * listed;
            assert_eq!((entry.extension_bytes() == 0, entry.is_pair()), (bytes <= 104, (49..=104).contains(&bytes)));
            entry.prefetch_extension();
            assert!(!entry.is_vacant());
            // SAFETY: afterwards, only the mark of the entry is read.
            unsafe { entry.release() };
            assert!(entry.is_vacant());
        }
    }
}

#[test]
fn a_typical_entry_is_one_cache_line() {
    let mut slots = [const { MaybeUninit::uninit() }; 2];
    let entry = entry(&mut slots, &[8; 44], &nexthops(1, 10));
    assert_eq!((entry.extension_bytes(), entry.is_pair(), size_of_val(entry)), (0, false, 64));
    let face = &raw const entry.own_nexthops().faces[0];
    assert_eq!(face.addr() - std::ptr::from_ref(entry).addr(), 60);
}

#[test]
fn a_longer_one_is_in_two_lines_side_by_side() {
    let mut slots = [const { MaybeUninit::uninit() }; 2];
    let entry = entry(&mut slots, &[8; 100], &nexthops(1, 10));
    let face = &raw const entry.own_nexthops().faces[0];
    assert_eq!((entry.is_pair(), face.addr() - std::ptr::from_ref(entry).addr()), (true, 124));
    assert!(Entry::vacant().is_vacant());
}
