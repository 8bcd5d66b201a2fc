//! Which readers delay reclamation, and for how long.

use std::sync::atomic::{AtomicBool, AtomicPtr};
use std::thread;

use super::*;

fn reclaimed(qsbr: &mut Qsbr<u32>) -> Vec<u32> {
    let mut items = Vec::new();
    qsbr.reclaim(|item| items.push(item));
    items
}

#[test]
fn without_readers_nothing_waits() {
    let mut qsbr = Qsbr::new();
    assert_eq!(reclaimed(&mut qsbr), []);
    qsbr.retire(1);
    qsbr.retire(2);
    assert_eq!(qsbr.pending(), 2);
    assert_eq!(reclaimed(&mut qsbr), [1, 2]);
    assert_eq!(qsbr.pending(), 0);
}

#[test]
fn every_online_reader_is_waited_for() {
    let mut qsbr = Qsbr::new();
    let (mut one, mut other) = (qsbr.reader(), qsbr.reader());
    one.online();
    qsbr.retire(1);
    other.online();
    assert_eq!(reclaimed(&mut qsbr), []);
    one.quiescent();
    assert_eq!(reclaimed(&mut qsbr), []);
    qsbr.retire(2);
    other.quiescent();
    // Item 2 was retired in the epoch that both readers have seen, so it waits for one more round.
    assert_eq!(reclaimed(&mut qsbr), [1]);
    one.quiescent();
    other.offline();
    assert_eq!(reclaimed(&mut qsbr), [2]);
}

#[test]
fn offline_and_dropped_readers_hold_nothing_up() {
    let mut qsbr = Qsbr::new();
    let mut sleeping = qsbr.reader();
    let dropped = qsbr.reader();
    sleeping.online();
    dropped.online();
    qsbr.retire(1);
    assert_eq!(reclaimed(&mut qsbr), []);
    sleeping.offline();
    sleeping.quiescent();
    drop(dropped);
    assert_eq!(reclaimed(&mut qsbr), [1]);
    sleeping.online();
    qsbr.retire(2);
    assert_eq!(reclaimed(&mut qsbr), []);
    assert_eq!(qsbr.take_retired().collect::<Vec<_>>(), [2]);
}

/// Readers access a published value that the writer overwrites with garbage when it is reclaimed.
#[test]
fn threads_never_see_a_reclaimed_value() {
    const POISON: u64 = 0xdead;
    const ROUNDS: u64 = 30_000;
    let published = AtomicPtr::new(Box::into_raw(Box::new(AtomicU64::new(1))));
    let stop = AtomicBool::new(false);
    let mut qsbr = Qsbr::<*mut AtomicU64>::new();
    let mut graveyard = Vec::new();
    let readers: Vec<_> = (0..3).map(|_| qsbr.reader()).collect();
    thread::scope(|scope| {
        for (number, mut reader) in readers.into_iter().enumerate() {
            let (published, stop) = (&published, &stop);
            scope.spawn(move || {
                let mut last = 0;
                while !stop.load(Ordering::Relaxed) {
                    reader.online();
                    for _ in 0..8 {
                        // SAFETY: values are overwritten when reclaimed, and freed only after the threads end.
                        let value = unsafe { &*published.load(Ordering::Acquire) };
                        let seen = value.load(Ordering::Relaxed);
                        assert_ne!(seen, POISON);
                        assert!(seen >= last);
                        last = seen;
                        std::hint::spin_loop();
                        assert_eq!(value.load(Ordering::Relaxed), seen);
                    }
                    if number == 0 {
                        reader.offline();
                    } else {
                        reader.quiescent();
                    }
                }
            });
        }
        for value in 2..ROUNDS {
            let new = Box::into_raw(Box::new(AtomicU64::new(value)));
            qsbr.retire(published.swap(new, Ordering::AcqRel));
            qsbr.reclaim(|old| {
                // SAFETY: still allocated, see above.
                unsafe { &*old }.store(POISON, Ordering::Relaxed);
                graveyard.push(old);
            });
            if value % 64 == 0 {
                thread::yield_now();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    graveyard.extend(qsbr.take_retired());
    graveyard.push(published.into_inner());
    assert_eq!(graveyard.len() as u64, ROUNDS - 1);
    for pointer in graveyard {
        // SAFETY: each value was made by a box and is in the list once.
        drop(unsafe { Box::from_raw(pointer) });
    }
}
