//! Compares slots with a model and checks their limits.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Allocate(usize),
    Free(usize),
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..200, 0usize..2000, 0usize..=MAX_SLOT_BYTES]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => length().prop_map(Step::Allocate),
        2 => any::<prop::sample::Index>().prop_map(|index| Step::Free(index.index(1000))),
    ]
}

fn fill(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|position| (number * 31 + position) as u8).collect()
}

proptest! {
    #[test]
    fn strings_keep_their_contents(steps in prop::collection::vec(step(), 0..200)) {
        let mut arena = ByteArena::new(4 * CHUNK_BYTES, Growth::AtOnce, PageRequest::Ordinary).expect("memory");
        let mut model: Vec<(u32, Vec<u8>)> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Allocate(length) => {
                    if let Some(slot) = arena.allocate(length) {
                        let bytes = fill(number, length);
                        arena.get_mut(slot, length).copy_from_slice(&bytes);
                        model.push((slot, bytes));
                    }
                }
                Step::Free(pick) if !model.is_empty() => {
                    let (slot, _) = model.swap_remove(pick % model.len());
                    arena.free(slot);
                }
                Step::Free(_) => {}
            }
            let used: usize = model.iter().filter_map(|(_, bytes)| ByteArena::slot_bytes(bytes.len())).sum();
            prop_assert_eq!(arena.bytes_in_use(), used);
        }
        let given_out = (0..arena.chunks_used()).flat_map(|chunk| arena.slots_of_chunk(chunk));
        let expected: BTreeSet<u32> = model.iter().map(|(slot, _)| *slot).collect();
        prop_assert!(given_out.eq(expected));
        for (slot, bytes) in &model {
            prop_assert_eq!(arena.get(*slot, bytes.len()), &bytes[..]);
        }
        // When all slots are free, every chunk can serve every size again.
        for (slot, _) in model {
            arena.free(slot);
        }
        prop_assert_eq!(arena.bytes_in_use(), 0);
        for _ in 0..4 * 7 {
            prop_assert!(arena.allocate(MAX_SLOT_BYTES).is_some());
        }
        prop_assert_eq!(arena.allocate(MAX_SLOT_BYTES), None);
    }
}

#[test]
fn every_length_gets_a_slot_that_fits_and_wastes_little() {
    for length in 0..=MAX_SLOT_BYTES {
        let slot_bytes = ByteArena::slot_bytes(length).expect("fits");
        assert!(slot_bytes >= length);
        if length > 2048 {
            assert!(slot_bytes * 4 <= (length + UNIT_BYTES) * 5, "{length} bytes in a slot of {slot_bytes} bytes");
        } else {
            assert!(slot_bytes < length.max(1) + UNIT_BYTES);
        }
    }
    assert_eq!(ByteArena::slot_bytes(MAX_SLOT_BYTES + 1), None);
    const { assert!(MAX_SLOT_BYTES >= 8800) };
}

#[test]
fn small_slots_fill_a_chunk_completely() {
    let mut arena = ByteArena::new(1, Growth::AtOnce, PageRequest::Large).expect("memory");
    let slots: Vec<u32> = std::iter::from_fn(|| arena.allocate(64)).collect();
    assert_eq!(slots.len(), UNITS_PER_CHUNK);
    assert_eq!(arena.bytes_in_use(), arena.capacity_bytes());
    arena.free(slots[500]);
    assert_eq!(arena.allocate(1), Some(slots[500]));
    assert_eq!(arena.allocate(1), None);
    assert_eq!(arena.allocate(MAX_SLOT_BYTES + 1), None);
    arena.prefetch_line(u32::MAX, 3);
}

#[test]
#[should_panic(expected = "not allocated")]
fn double_free_is_caught() {
    let mut arena = ByteArena::new(1, Growth::AtOnce, PageRequest::Ordinary).expect("memory");
    let (slot, _other) = (arena.allocate(100).expect("room"), arena.allocate(100));
    arena.free(slot);
    arena.free(slot);
}

#[test]
#[should_panic(expected = "outside")]
fn reads_stay_inside() {
    let arena = ByteArena::new(1, Growth::AtOnce, PageRequest::Ordinary).expect("memory");
    arena.get(1023, 65);
}
