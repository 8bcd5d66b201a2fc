//! Tests with readers on their own threads while the writer does all it can to disturb them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::*;

/// A strategy that detects its use after it was freed.
struct Canary {
    alive: AtomicU64,
    number: u64,
}

const ALIVE: u64 = 0x00c0_ffee;

impl Canary {
    fn new(number: u64) -> Self {
        Canary { alive: AtomicU64::new(ALIVE), number }
    }

    fn number(&self) -> u64 {
        assert_eq!(self.alive.load(Ordering::Relaxed), ALIVE);
        self.number
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.alive.store(0, Ordering::Relaxed);
    }
}

const FIXED: u32 = 64;
const ROUNDS: u64 = 60;

/// Returns prefix number `n`; every fourth needs a second cache line, and every fourth a block on the heap.
fn prefix(number: u32) -> Name {
    let name = name("/stress/test").append_generic(number.to_be_bytes());
    match number % 4 {
        0 => name.append_generic([b'x'; 120]),
        1 => name.append_generic([b'x'; 30]),
        _ => name,
    }
}

/// Returns the next hops of prefix `n` in round `r`: few or many, all of which encode `n` and `r`.
fn hops(number: u32, round: u64) -> Vec<NextHop> {
    let count = 1 + (u64::from(number) + round) as u32 % 9;
    (0..count).map(|position| hop(number * 16 + position, round)).collect()
}

fn check_hops(number: u32, found: &[NextHop]) {
    let round = found[0].cost;
    assert_eq!(found, hops(number, round));
}

fn read(mut reader: FibReader<Canary>, number: usize, stop: &AtomicBool) -> u64 {
    let names: Vec<Name> =
        (0..2 * FIXED).map(|number| prefix(number).append_generic("data").append_segment(1)).collect();
    let hashes: Vec<PrefixHashes> = names.iter().map(hashes).collect();
    let mut lookups = 0;
    while !stop.load(Ordering::Relaxed) {
        for (number, (name, hashes)) in (0..).zip(names.iter().zip(&hashes)) {
            reader.prefetch_buckets(hashes);
            reader.prefetch_guessed(reader.guess(hashes));
            let found = reader.longest_prefix_match(hashes, name.as_ref());
            if number < FIXED {
                // These prefixes always have next hops.
                assert_eq!(found.nexthop_prefix_len(), prefix(number).len());
                check_hops(number, &found.nexthops().to_vec());
            } else if found.nexthop_prefix_len() > 0 {
                check_hops(number, &found.nexthops().to_vec());
            }
            // Strategies are numbered by the depth of their prefix.
            let strategy = found.strategy().number();
            assert!(strategy == 0 || strategy as usize <= found.prefix_len());
            lookups += 1;
            if lookups % 5 == 0 {
                reader.quiescent();
            }
        }
        if number == 0 {
            reader.offline();
        }
    }
    lookups
}

fn write(fib: &mut FibWriter<Canary>) -> Result<(), FibError> {
    for round in 1..=ROUNDS {
        for number in 0..FIXED {
            fib.set_nexthops(prefix(number).as_ref(), &hops(number, round))?;
        }
        for number in FIXED..FIXED + 400 {
            fib.set_nexthops(prefix(number).as_ref(), &hops(number, round))?;
        }
        let strategies = [name("/stress"), name("/stress/test"), prefix(1), prefix(FIXED + 4)];
        for prefix in &strategies {
            fib.set_strategy(prefix.as_ref(), Canary::new(prefix.len() as u64))?;
            fib.set_strategy(prefix.as_ref(), Canary::new(prefix.len() as u64))?;
        }
        for number in FIXED..FIXED + 400 {
            fib.set_nexthops(prefix(number).as_ref(), &[])?;
        }
        for prefix in &strategies {
            fib.unset_strategy(prefix.as_ref())?;
        }
        fib.reclaim();
        thread::yield_now();
    }
    Ok(())
}

#[test]
fn readers_see_whole_entries_and_never_miss_one() {
    let mut fib = FibWriter::new(KEY, Canary::new(0)).expect("memory");
    for number in 0..FIXED {
        fib.set_nexthops(prefix(number).as_ref(), &hops(number, 0)).expect("set");
    }
    let stop = AtomicBool::new(false);
    let readers: Vec<_> = (0..2).map(|_| fib.reader()).collect();
    let result = thread::scope(|scope| {
        let threads: Vec<_> = readers
            .into_iter()
            .enumerate()
            .map(|(number, reader)| {
                let stop = &stop;
                scope.spawn(move || read(reader, number, stop))
            })
            .collect();
        let result = write(&mut fib);
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            assert!(thread.join().expect("reader") > 0);
        }
        result
    });
    assert_eq!(result, Ok(()));
    assert_eq!(fib.len(), FIXED as usize);
    assert_eq!(fib.reclaim(), 0);
}

/// The table grows several times while readers look up prefixes from the start.
#[test]
fn growth_does_not_disturb_readers() {
    let mut fib = FibWriter::new(KEY, Canary::new(0)).expect("memory");
    for number in 0..FIXED {
        fib.set_nexthops(prefix(number).as_ref(), &hops(number, 0)).expect("set");
    }
    let stop = AtomicBool::new(false);
    let reader = fib.reader();
    thread::scope(|scope| {
        let thread = scope.spawn(|| read(reader, 1, &stop));
        let mut result = Ok(());
        for number in 2 * FIXED..20_000 {
            result = result.and(fib.set_nexthops(prefix(number).as_ref(), &hops(number, 1)));
        }
        stop.store(true, Ordering::Relaxed);
        assert!(thread.join().expect("reader") > 0);
        assert_eq!(result, Ok(()));
    });
    assert!(fib.statistics().buckets.capacity >= 20_000 - FIXED as usize);
    assert_eq!(fib.reclaim(), 0);
}
