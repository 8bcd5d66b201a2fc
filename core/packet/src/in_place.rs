//! Values that are built and read in place, without a copy through the stack.
//!
//! A packet with its link fields is built from many small parts. Building it on the stack and then copying it at once
//! costs about a hundred instructions more: the copy reads wide words while their parts are still in the store
//! buffer.

/// Appends the value that `make` returns. Unlike [`Vec::push`], it reserves space before the value exists, so a
/// failure has no value to drop. It is inlined into the caller, so the compiler writes the parts of the value
/// directly to their destination.
#[inline(always)]
pub fn push_in_place<T>(list: &mut Vec<T>, make: impl FnOnce() -> T) {
    let length = list.len();
    if length == list.capacity() {
        list.reserve(1);
    }
    let value = make();
    // SAFETY: there is space for one more value after the last, and it is initialised before it is counted.
    unsafe {
        list.as_mut_ptr().add(length).write(value);
        list.set_len(length + 1);
    }
}

/// Removes the items at the given positions, in order, and passes each with its note to `take`; the other items stay,
/// in order. Selecting the items takes no branch, because an unpredictable branch would be mispredicted for every
/// second item. The function is inlined into the caller, so that an item is read in place.
///
/// # Panics
/// If positions are not in ascending order, or are beyond the end of the list.
#[inline(always)]
pub fn extract_in_place<T, N: Copy>(list: &mut Vec<T>, positions: &[(u32, N)], mut take: impl FnMut(T, N)) {
    let Some(&(first, _)) = positions.first() else { return };
    let (length, base) = (list.len(), list.as_mut_ptr());
    // SAFETY: no item has two owners, even if `take` panics: then the list's other items are leaked.
    unsafe { list.set_len(0) };
    let mut next = 0;
    for &(position, note) in positions {
        let position = position as usize;
        assert!((next..length).contains(&position), "positions must ascend and be inside the list");
        // SAFETY: `position` is in the list, and the item is read only once and not kept below.
        take(unsafe { base.add(position).read() }, note);
        next = position + 1;
    }
    let (mut end, mut passed) = (first as usize, 1);
    for position in end + 1..length {
        // SAFETY: both positions are in the list and differ, and the item at `end` was taken or has been moved
        // already.
        unsafe { base.add(position).copy_to_nonoverlapping(base.add(end), 1) };
        let is_taken = positions.get(passed).is_some_and(|&(taken, _)| taken as usize == position);
        passed += usize::from(is_taken);
        end += usize::from(!is_taken);
    }
    // SAFETY: the first `end` elements are the items that were kept and moved together.
    unsafe { list.set_len(end) };
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn it_is_like_push() {
        let mut list = Vec::new();
        let value = Rc::new(());
        for length in 1..100 {
            push_in_place(&mut list, || Rc::clone(&value));
            assert_eq!(list.len(), length);
        }
        assert_eq!(Rc::strong_count(&value), 100);
        drop(list);
        assert_eq!(Rc::strong_count(&value), 1);
    }

    #[test]
    fn what_is_taken_out_and_what_stays_keep_their_order() {
        for chosen in 0u32..1 << 7 {
            let of_chosen = |is_chosen: bool| move |number: &u32| (chosen >> number & 1 == 1) == is_chosen;
            let positions: Vec<(u32, u32)> =
                (0..7).filter(of_chosen(true)).map(|number| (number, 10 * number)).collect();
            let mut list: Vec<Rc<u32>> = (0..7).map(Rc::new).collect();
            let all = list.clone();
            let mut taken = Vec::new();
            extract_in_place(&mut list, &positions, |item, note| taken.push((*item, note)));
            assert_eq!(taken, positions);
            assert!(list.iter().map(|item| **item).eq((0..7).filter(of_chosen(false))));
            drop(list);
            assert!(all.iter().all(|item| Rc::strong_count(item) == 1), "each item must be dropped once");
        }
    }

    #[test]
    fn an_item_is_taken_once_only() {
        for wrong in [&[(1, ()), (1, ())][..], &[(2, ()), (1, ())], &[(3, ())]] {
            let all: Vec<Rc<u32>> = (0..3).map(Rc::new).collect();
            let mut list = all.clone();
            let extracted = std::panic::AssertUnwindSafe(|| extract_in_place(&mut list, wrong, |item, ()| drop(item)));
            assert!(std::panic::catch_unwind(extracted).is_err(), "{wrong:?}");
            drop(list);
            // The other items of the list are leaked.
            assert!(all.iter().all(|item| (1..=2).contains(&Rc::strong_count(item))));
        }
    }
}
