//! Reclamation under the model checker: it notices when something is reclaimed while a reader looks at it.
//!
//! `make model-test` runs these.

use std::sync::atomic::AtomicUsize as PlainCounter;

use loom::cell::UnsafeCell;
use loom::thread;

use super::*;

/// Two things of which the number of the current one is published.
struct World {
    things: [UnsafeCell<u32>; 2],
    current: AtomicU64,
}

// SAFETY: things are looked at and changed as the reclamation allows; whether it does is what the checker checks.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(World { things: [UnsafeCell::new(10), UnsafeCell::new(11)], current: AtomicU64::new(0) })
    }

    fn look(&self) {
        let current = self.current.load(Ordering::Acquire) as usize;
        // SAFETY: see above.
        self.things[current].with(|thing| assert_eq!(unsafe { *thing } as usize, 10 + current));
    }

    /// Publishes thing 1 and reclaims thing 0 if that is possible. Returns whether it was.
    fn replace(&self, qsbr: &mut Qsbr<usize>) -> bool {
        self.current.store(1, Ordering::Release);
        qsbr.retire(0);
        qsbr.reclaim(|thing| self.bury(thing));
        qsbr.pending() == 0
    }

    fn bury(&self, thing: usize) {
        // SAFETY: see above.
        self.things[thing].with_mut(|thing| unsafe { *thing = 0 });
    }
}

/// Runs `reading` on a thread of its own beside a writer that replaces what it looks at.
fn check(reading: fn(&World, &mut QsbrReader)) {
    /// Interleavings in which the writer could reclaim at once.
    static RECLAIMED: PlainCounter = PlainCounter::new(0);
    let before = RECLAIMED.load(Ordering::Relaxed);
    loom::model(move || {
        let (world, mut qsbr) = (World::new(), Qsbr::new());
        let mut reader = qsbr.reader();
        let thread = thread::spawn({
            let world = Arc::clone(&world);
            move || reading(&world, &mut reader)
        });
        if world.replace(&mut qsbr) {
            RECLAIMED.fetch_add(1, Ordering::Relaxed);
        }
        thread.join().expect("no panic");
        qsbr.reclaim(|thing| world.bury(thing));
        assert_eq!(qsbr.pending(), 0, "the reader is gone");
    });
    assert!(RECLAIMED.load(Ordering::Relaxed) > before, "it never was possible");
}

#[test]
fn model_a_reader_that_comes_and_goes() {
    check(|world, reader| {
        reader.online();
        world.look();
        reader.offline();
        reader.online();
        world.look();
        reader.offline();
    });
}

#[test]
fn model_a_reader_that_passes_quiescent_states() {
    check(|world, reader| {
        reader.online();
        world.look();
        reader.quiescent();
        world.look();
        reader.quiescent();
    });
}
