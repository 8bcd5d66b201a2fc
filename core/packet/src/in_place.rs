//! Values that are put together where they are to lie, and taken from there.
//!
//! A packet with its link fields is built from many small parts. Built on the stack and then copied to its place at once, it
//! costs as much as a hundred instructions: the copy reads wide words of which the parts are still on their way to memory.

/// Appends what `make` makes. Unlike with [`Vec::push`], room is made before there is a value that would have to be dropped if
/// that failed, and this is part of its caller: so the compiler writes the parts of the value straight to their place.
#[inline(always)]
pub fn push_in_place<T>(list: &mut Vec<T>, make: impl FnOnce() -> T) {
    let length = list.len();
    if length == list.capacity() {
        list.reserve(1);
    }
    let value = make();
    // SAFETY: there is room for one more value behind the last, and it is initialised before it is counted.
    unsafe {
        list.as_mut_ptr().add(length).write(value);
        list.set_len(length + 1);
    }
}

/// Takes the items at these positions out of a list, in their order, and gives each to `take` with what is noted beside its position; the
/// others stay, in their order.
/// Which items that are is no branch: where it cannot be foretold, a processor would go astray at every second item. This is part of its
/// caller, so that an item is read where it lies.
///
/// # Panics
/// When positions are not in ascending order, or are behind the end of the list.
#[inline(always)]
pub fn extract_in_place<T, N: Copy>(list: &mut Vec<T>, positions: &[(u32, N)], mut take: impl FnMut(T, N)) {
    let Some(&(first, _)) = positions.first() else { return };
    let (length, base) = (list.len(), list.as_mut_ptr());
    // SAFETY: no item has two owners, also when `take` panics: then those that the list had are nobody's.
    unsafe { list.set_len(0) };
    let mut next = 0;
    for &(position, note) in positions {
        let position = position as usize;
        assert!((next..length).contains(&position), "positions ascend, and are in the list");
        // SAFETY: an item of the list, which is read this once and not kept below.
        take(unsafe { base.add(position).read() }, note);
        next = position + 1;
    }
    let (mut end, mut passed) = (first as usize, 1);
    for position in end + 1..length {
        // SAFETY: both are in the list, and the place is before the item: it is that of one that was taken out, or was moved already.
        unsafe { base.add(position).copy_to_nonoverlapping(base.add(end), 1) };
        let is_taken = positions.get(passed).is_some_and(|&(taken, _)| taken as usize == position);
        passed += usize::from(is_taken);
        end += usize::from(!is_taken);
    }
    // SAFETY: so many were kept and moved together.
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
            assert!(all.iter().all(|item| Rc::strong_count(item) == 1), "each item was dropped once");
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
            // Those that the list still had are nobody's.
            assert!(all.iter().all(|item| (1..=2).contains(&Rc::strong_count(item))));
        }
    }
}
