//! The ring under the model checker: every interleaving of a sender and a receiver.
//!
//! `make model-test` runs these.

use loom::sync::Arc;
use loom::thread;

use super::*;

/// Receives for a number of attempts; returns the items, and the receiver.
fn receive_all(mut receiver: HandoverReceiver<Arc<u32>>, attempts: usize) -> (Vec<u32>, HandoverReceiver<Arc<u32>>) {
    let mut received = Vec::new();
    for _ in 0..attempts {
        receiver.receive(2, |item| received.push(*item));
        thread::yield_now();
    }
    (received, receiver)
}

#[test]
fn model_items_arrive_once_and_in_order_through_a_ring_that_is_filled_again() {
    loom::model(|| {
        let (mut sender, receiver) = handover_ring(2);
        let receiving = thread::spawn(move || receive_all(receiver, 2));
        let mut sent = Vec::new();
        for number in 0..4 {
            if sender.push(Arc::new(number), 0).is_ok() {
                sent.push(number);
            }
            if number % 2 == 1 {
                sender.publish();
            }
        }
        sender.publish();
        let (mut received, mut receiver) = receiving.join().expect("the thread ends without a panic");
        receiver.receive(usize::MAX, |item| received.push(*item));
        assert_eq!(received, sent);
        assert!(receiver.is_empty());
    });
}

#[test]
fn model_remaining_items_are_dropped_in_both_orders_of_ending() {
    loom::model(|| {
        let item = Arc::new(7);
        let (mut sender, mut receiver) = handover_ring(2);
        let kept = Arc::clone(&item);
        let sending = thread::spawn(move || {
            assert!(sender.push(Arc::clone(&kept), 0).is_ok());
            sender.publish();
            // Published when the sender is dropped.
            assert!(sender.push(kept, 0).is_ok());
        });
        receiver.receive(1, |item| assert_eq!(*item, 7));
        drop(receiver);
        sending.join().expect("the thread ends without a panic");
        assert_eq!(Arc::strong_count(&item), 1);
    });
}
