//! Reclamation under the model checker, which detects a reclamation of an object that a reader still accesses.
//!
//! `make model-test` runs these.

use std::sync::atomic::AtomicUsize as PlainCounter;

use loom::cell::UnsafeCell;
use loom::thread;

use super::*;

/// Two objects, and the published number of the current one.
struct World {
    things: [UnsafeCell<u32>; 2],
    current: AtomicU64,
}

// SAFETY: objects are read and changed as the reclamation allows; whether that is sound is what the model checker
// tests.
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

    /// Publishes object 1 and reclaims object 0 if that is possible. Returns whether it was.
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

/// Runs `reading` on its own thread beside a writer that replaces the object.
fn check(reading: fn(&World, &mut QsbrReader)) {
    /// Number of interleavings in which the writer could reclaim at once.
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
        thread.join().expect("the reader ends without a panic");
        qsbr.reclaim(|thing| world.bury(thing));
        assert_eq!(qsbr.pending(), 0, "no reader is left");
    });
    assert!(RECLAIMED.load(Ordering::Relaxed) > before, "no interleaving reclaimed the object at once");
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
