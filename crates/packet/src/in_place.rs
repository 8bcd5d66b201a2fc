//! Values that are put together where they are to lie.
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
}
