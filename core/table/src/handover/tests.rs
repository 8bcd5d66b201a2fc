use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use proptest::prelude::*;

use super::*;

#[test]
fn a_full_ring_returns_items_and_can_reserve_its_last_slots() {
    let (mut sender, mut receiver) = handover_ring(3);
    assert_eq!(sender.capacity(), 4);
    for number in 0..2 {
        assert_eq!(sender.push(number, 2), Ok(()));
    }
    assert_eq!(sender.push(2, 2), Err(2));
    assert_eq!(sender.push(2, 0), Ok(()));
    assert_eq!(sender.push(3, 0), Ok(()));
    assert_eq!(sender.push(4, 0), Err(4));
    assert!(!sender.push_with(0, || panic!("called for a full ring")));
    assert!(receiver.is_empty(), "items are invisible until they are published");
    assert!(sender.publish() && !sender.publish());
    assert_eq!(receiver.len(), 4);
    let mut received = Vec::new();
    assert_eq!(receiver.receive(3, |item| received.push(item)), 3);
    assert!(sender.push_with(2, || 4));
    assert_eq!(sender.push(5, 2), Err(5));
    sender.publish();
    assert_eq!(
        receiver.receive(9, |item| received.push(item)),
        1,
        "the receiver first takes the items that it knows of"
    );
    assert_eq!(receiver.receive(9, |item| received.push(item)), 1);
    assert_eq!(received, [0, 1, 2, 3, 4]);
}

#[test]
fn items_that_are_left_are_dropped_once() {
    struct Counted(Arc<()>);
    let counter = Arc::new(());
    let (mut sender, mut receiver) = handover_ring(8);
    for _ in 0..6 {
        assert!(sender.push(Counted(Arc::clone(&counter)), 0).is_ok());
    }
    sender.publish();
    let received = catch_unwind(AssertUnwindSafe(|| receiver.receive(4, |_: Counted| panic!("on purpose"))));
    assert!(received.is_err());
    assert_eq!((Arc::strong_count(&counter), receiver.len()), (6, 5));
    receiver.receive(2, |item| assert!(Arc::ptr_eq(&item.0, &counter)));
    drop(receiver);
    assert_eq!(Arc::strong_count(&counter), 4);
    drop(sender);
    assert_eq!(Arc::strong_count(&counter), 1);
}

#[test]
fn many_items_pass_between_two_threads_in_order() {
    const COUNT: u64 = 200_000;
    let (mut sender, mut receiver) = handover_ring(64);
    let sending = thread::spawn(move || {
        for number in 0..COUNT {
            let mut item = Box::new(number);
            while let Err(back) = sender.push(item, 0) {
                sender.publish();
                thread::yield_now();
                item = back;
            }
            if number % 17 == 0 {
                sender.publish();
            }
        }
    });
    let mut expected = 0;
    while expected < COUNT {
        let received = receiver.receive(32, |item| {
            assert_eq!(*item, expected);
            expected += 1;
        });
        if received == 0 {
            thread::yield_now();
        }
    }
    sending.join().expect("the sender ends without a panic");
    assert!(receiver.is_empty());
}

proptest! {
    #[test]
    fn the_ring_is_a_bounded_queue(steps in prop::collection::vec((0..3_u8, 0..6_usize), 1..200)) {
        let (mut sender, mut receiver) = handover_ring(4);
        let (mut written, mut published, mut next) = (VecDeque::new(), VecDeque::new(), 0_u32);
        for (what, number) in steps {
            match what {
                0 => {
                    let has_room = 4 - written.len() - published.len() > number;
                    prop_assert_eq!(sender.push(next, number).is_ok(), has_room);
                    if has_room {
                        written.push_back(next);
                    }
                    next += 1;
                }
                1 => {
                    prop_assert_eq!(sender.publish(), !written.is_empty());
                    published.append(&mut written);
                }
                _ => {
                    // The receiver reads the sender's counter again only when it has taken all items it knew of.
                    let mut left = number;
                    while left > 0 {
                        let mut received = Vec::new();
                        let count = receiver.receive(left, |item| received.push(item));
                        prop_assert_eq!(count, received.len());
                        prop_assert!(received.iter().copied().eq(published.drain(..count)));
                        left -= count;
                        if count == 0 {
                            prop_assert!(published.is_empty());
                            break;
                        }
                    }
                }
            }
            prop_assert_eq!(receiver.len(), published.len());
        }
    }
}
