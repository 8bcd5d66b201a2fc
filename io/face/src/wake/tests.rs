//! Tests that wake-ups of tasks and threads are never lost.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::*;

/// Two threads pass a number back and forth; a lost wake-up would hang the test.
#[test]
fn threads_never_miss_a_wake_up() {
    const ROUNDS: u64 = 20_000;
    let number = Arc::new(AtomicU64::new(0));
    let wakers = [Arc::new(Waker::new()), Arc::new(Waker::new())];
    let side = |me: u64| {
        let number = Arc::clone(&number);
        let (mine, other) = (Arc::clone(&wakers[me as usize]), Arc::clone(&wakers[1 - me as usize]));
        thread::spawn(move || {
            for turn in (me..ROUNDS).step_by(2) {
                assert!(mine.park(Some(Duration::from_secs(60)), || { number.load(Ordering::Relaxed) == turn }));
                number.store(turn + 1, Ordering::Relaxed);
                other.wake();
            }
        })
    };
    for handle in [side(0), side(1)] {
        handle.join().expect("every wake-up must arrive");
    }
    assert_eq!(number.load(Ordering::Relaxed), ROUNDS);
}

#[test]
fn a_task_never_misses_a_wake_up_from_threads() {
    const EACH: u64 = 20_000;
    let waker = Arc::new(Waker::new());
    let produced = Arc::new(AtomicU64::new(0));
    let consumed = Arc::new(AtomicU64::new(0));
    let producers: Vec<_> = (0..2)
        .map(|_| {
            let (waker, produced, consumed) = (Arc::clone(&waker), Arc::clone(&produced), Arc::clone(&consumed));
            thread::spawn(move || {
                for round in 0..EACH {
                    produced.fetch_add(1, Ordering::Relaxed);
                    waker.wake();
                    // Let the consumer fall asleep often, so that both paths are taken.
                    if round % 8 == 0 {
                        while consumed.load(Ordering::Relaxed) + 2 < produced.load(Ordering::Relaxed) {
                            thread::yield_now();
                        }
                    }
                }
            })
        })
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("runtime");
    runtime.block_on(async {
        let mut seen = 0;
        while seen < 2 * EACH {
            let ready = || produced.load(Ordering::Relaxed) != seen;
            tokio::time::timeout(Duration::from_secs(60), waker.wait(ready)).await.expect("every wake-up must arrive");
            seen = produced.load(Ordering::Relaxed);
            consumed.store(seen, Ordering::Relaxed);
        }
    });
    for producer in producers {
        producer.join().expect("producer");
    }
}

#[test]
fn a_polling_thread_never_misses_a_wake_up_and_hears_descriptors_and_the_clock() {
    const EACH: u64 = 20_000;
    let waker = Arc::new(Waker::new());
    let produced = Arc::new(AtomicU64::new(0));
    let producer = {
        let (waker, produced) = (Arc::clone(&waker), Arc::clone(&produced));
        thread::spawn(move || {
            for round in 0..EACH {
                produced.fetch_add(1, Ordering::Relaxed);
                waker.wake();
                if round % 3 == 0 {
                    thread::yield_now();
                }
            }
        })
    };
    let mut seen = 0;
    while seen < EACH {
        let before = Instant::now();
        let limit = Duration::from_secs(60);
        waker.poll(&[], Some(limit), || produced.load(Ordering::Relaxed) != seen).expect("polled");
        assert!(before.elapsed() < limit, "a wake-up was lost");
        seen = produced.load(Ordering::Relaxed);
    }
    producer.join().expect("producer");
    // Consumes a permit left over from the last wake-up.
    waker.poll(&[], Some(Duration::ZERO), || false).expect("polled");

    let bell = EventFd::new().expect("descriptor");
    bell.write(1).expect("rung");
    waker.poll(&[bell.as_fd()], None, || false).expect("the descriptor must end the sleep");
    let before = Instant::now();
    waker.poll(&[], Some(Duration::from_micros(1500)), || false).expect("polled");
    assert!(before.elapsed() >= Duration::from_micros(1500));
    assert_eq!(waker.state.load(Ordering::Relaxed), AWAKE);
}

#[test]
fn an_abandoned_wait_leaves_the_consumer_awake() {
    let waker = Waker::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("runtime");
    runtime.block_on(async {
        let wait = waker.wait(|| false);
        assert!(tokio::time::timeout(Duration::from_millis(5), wait).await.is_err());
    });
    assert_eq!(waker.state.load(Ordering::Relaxed), AWAKE);
    assert!(!waker.park(Some(Duration::from_millis(5)), || false));
    assert_eq!(waker.state.load(Ordering::Relaxed), AWAKE);
}
