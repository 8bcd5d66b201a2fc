//! A reader never waits for the writer: measures its longest lookup, in CPU time of its own thread, while a million
//! routes come, change and go, the table grows, and strategies change.
//!
//! It is CPU time and not wall-clock time, because on a busy machine the system runs other threads for as long as it
//! likes. A reader that spun to wait for the writer would use its own CPU time. One that slept would show in its number
//! of voluntary context switches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};

use super::*;

const ROUTES: u32 = 1_000_000;
/// Entries updated with a strategy at a time.
const PORTION: usize = 16_384;
/// Lookups between two readings of the clock.
const BURST: usize = 64;

fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("the CPU time of this thread").into()
}

fn prefix(number: u32) -> Name {
    Name::default()
        .append_generic("stall")
        .append_generic((number % 512).to_be_bytes())
        .append_generic(number.to_be_bytes())
}

struct Pauses {
    longest: Duration,
    lookups: u64,
    gave_up: i64,
}

/// Looks up names until told to stop, half of them with routes that always stay.
fn read(mut reader: FibReader<u32>, stop: &AtomicBool) -> Pauses {
    let names: Vec<Name> = (0..1024).map(|number| prefix(number * 977).append_generic("data")).collect();
    let hashes: Vec<PrefixHashes> = names.iter().map(hashes).collect();
    let mut pauses = Pauses { longest: Duration::ZERO, lookups: 0, gave_up: 0 };
    let gave_up =
        || getrusage(UsageWho::RUSAGE_THREAD).expect("the resource usage of this thread").voluntary_context_switches();
    let before = gave_up();
    while !stop.load(Ordering::Relaxed) {
        for (names, hashes) in names.chunks(BURST).zip(hashes.chunks(BURST)) {
            let start = thread_time();
            for (name, hashes) in names.iter().zip(hashes) {
                let found = reader.longest_prefix_match(hashes, name.as_ref());
                assert!(found.nexthop_prefix_len() >= 1 && *found.strategy() < 100);
            }
            reader.quiescent();
            pauses.longest = pauses.longest.max(thread_time() - start);
            pauses.lookups += names.len() as u64;
        }
    }
    pauses.gave_up = gave_up() - before;
    pauses
}

fn add(fib: &mut FibWriter<u32>, hops: &[NextHop]) -> Result<(), FibError> {
    for start in (0..ROUTES).step_by(1000) {
        let names: Vec<Name> = (start..start + 1000).map(prefix).collect();
        let additions: Vec<FibAddition<'_>> =
            names.iter().map(|name| FibAddition { prefix: name.as_ref(), nexthops: hops }).collect();
        fib.add_many(&additions).map_err(|refused| refused.error)?;
    }
    Ok(())
}

/// Settles strategies, and checks that no portion takes the writer long.
fn settle(fib: &mut FibWriter<u32>) {
    let mut longest = Duration::ZERO;
    let mut is_settled = false;
    while !is_settled {
        let start = thread_time();
        is_settled = fib.settle_strategies(PORTION);
        longest = longest.max(thread_time() - start);
    }
    println!("longest update of {PORTION} entries with a strategy: {longest:?}");
    assert!(longest < Duration::from_millis(50), "{longest:?}");
}

fn write(fib: &mut FibWriter<u32>) -> Result<(), FibError> {
    add(fib, &[hop(2, 2)])?;
    fib.set_strategy(name("/stall").as_ref(), 1)?;
    settle(fib);
    add(fib, &[hop(3, 1), hop(2, 5)])?;
    for number in 0..16u32 {
        let prefix = name("/stall").append_generic(number.to_be_bytes());
        fib.set_strategy(prefix.as_ref(), 2 + number)?;
    }
    // While all entries are updated, some are removed.
    for number in 0..ROUTES / 2 {
        fib.remove_nexthop(prefix(number).as_ref(), FaceId(2))?;
        fib.set_nexthops(prefix(number).as_ref(), &[])?;
        if number % 8192 == 0 {
            fib.settle_strategies(PORTION);
        }
    }
    settle(fib);
    fib.unset_strategy(name("/stall").as_ref())?;
    settle(fib);
    fib.remove_face(FaceId(3))?;
    Ok(())
}

#[test]
fn the_reader_never_waits_for_the_writer() {
    let mut fib = FibWriter::new(KEY, 0).expect("memory");
    fib.add_nexthop(name("/stall").as_ref(), FaceId(1), 0).expect("add");
    let stop = AtomicBool::new(false);
    let reader = fib.reader();
    let (pauses, result) = thread::scope(|scope| {
        let thread = scope.spawn(|| read(reader, &stop));
        let result = write(&mut fib);
        stop.store(true, Ordering::Relaxed);
        (thread.join().expect("reader"), result)
    });
    assert_eq!(result, Ok(()));
    assert!(pauses.lookups > 10_000);
    println!("longest burst of {BURST} lookups: {:?}, {} lookups", pauses.longest, pauses.lookups);
    // Some hundred cache misses, and the interrupts that the system charges to a thread; growth of the table alone
    // takes many times longer.
    assert!(pauses.longest < Duration::from_millis(20), "{:?}", pauses.longest);
    assert_eq!(pauses.gave_up, 0);
    assert_eq!(fib.reclaim(), 0);
}
