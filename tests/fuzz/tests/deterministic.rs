//! Runs every fuzz target on its stored corpus and on mutations of it, which are the same in every run.
//!
//! `NAMEHOP_FUZZ_ROUNDS` (default 10000) is the number of mutations for each target, divided by the target's cost. As
//! they are always the same, more of them find little in a second run: `make fuzz` looks for new inputs.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use namehop_fuzz_checks::{TARGETS, Target};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// SplitMix64 gives the same numbers on all platforms and in all versions.
struct Random(SplitMix64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Applies a few changes of kinds that break parsers.
fn mutate(input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(4) {
        let place = random.below(bytes.len());
        match random.below(7) {
            0 if !bytes.is_empty() => bytes[place] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[place] = [0, 1, 0x7F, 0xFC, 0xFD, 0xFE, 0xFF][random.below(7)],
            2 => bytes.truncate(place),
            3 => bytes.insert(place, random.next() as u8),
            4 if !bytes.is_empty() => drop(bytes.remove(place)),
            5 => bytes.splice(place..place, other.iter().copied().take(random.below(64))).for_each(drop),
            _ => {
                let end = (place + random.below(32)).min(bytes.len());
                let piece = bytes[place.min(end)..end].to_vec();
                bytes.extend(piece);
            }
        }
    }
    bytes
}

#[test]
fn every_target_holds_on_its_corpus_and_on_fixed_mutations() {
    let rounds: usize = std::env::var("NAMEHOP_FUZZ_ROUNDS").map_or(10_000, |text| text.parse().expect("a number"));
    let (next, threads) = (AtomicUsize::new(0), thread::available_parallelism().map_or(1, usize::from));
    let take_targets = || {
        while let Some(target) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
            holds(target, rounds / target.cost);
        }
    };
    // A failed check ends the test with its message when all threads are joined.
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(take_targets))));
}

fn holds(&Target { name, check, replay, .. }: &Target, mutations: usize) {
    let start = Instant::now();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("entry").path())
        .collect();
    files.sort();
    let inputs: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("corpus file")).collect();
    assert!(!inputs.is_empty(), "{name} has no corpus");
    for input in &inputs {
        check(input);
        replay(input);
    }
    let mut random = Random(SplitMix64::seed_from_u64(name.bytes().map(u64::from).sum()));
    for _ in 0..mutations {
        let input = mutate(&inputs[random.below(inputs.len())], &inputs[random.below(inputs.len())], &mut random);
        replay(&input);
    }
    println!("{name}: {:?}", start.elapsed());
}
