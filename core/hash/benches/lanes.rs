//! Measures the cost of hashing all prefixes of a burst of names, for every lane width that this CPU supports:
//! time-stamp counter cycles per name, as median and minimum of many rounds, and the ratio to the scalar cost.
//!
//! `cargo bench -p namehop-hash --bench lanes`
//!
//! The ratio of two costs in cycles under the same load of the machine is what matters. Benchmark frameworks compare
//! times of one function with an earlier run, and would add about thirty crates to each build of the tests.

use std::hint::black_box;

use namehop_hash::{HashKey, Lanes, PrefixHashes, hash_group};
use namehop_table::clock::{cycles, cycles_per_second};

/// Packets in a worker's burst.
const BURST: usize = 64;
/// Number of bursts of different names: few enough to stay in the first-level cache, like packets that were just
/// decoded.
const BURSTS: usize = 4;
const ROUNDS: usize = 2000;

fn main() {
    println!("time-stamp counter: {:.3} GHz", cycles_per_second() as f64 / 1e9);
    println!("{:32} {:8} {:>10} {:>10} {:>10}", "names", "lanes", "median", "minimum", "to scalar");
    compare("7 components of 9 bytes", |_| vec![9; 7]);
    compare("3 components of 9 bytes", |_| vec![9; 3]);
    compare("20 components of 6 bytes", |_| vec![6; 20]);
    compare("3 to 10 components of 4 to 13", |draw| {
        let components = 3 + draw() % 8;
        (0..components).map(|_| 4 + draw() % 10).collect()
    });
}

/// Measures names made from pseudo-random numbers, with the component lengths that `shape` returns.
fn compare(what: &str, shape: impl Fn(&mut dyn FnMut() -> usize) -> Vec<usize>) {
    let mut state = 1_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as usize
    };
    let names: Vec<Vec<u8>> = (0..BURST * BURSTS)
        .map(|_| {
            let lengths = shape(&mut draw);
            lengths.into_iter().flat_map(|length| component(length, &mut draw)).collect()
        })
        .collect();
    let bursts: Vec<Vec<&[u8]>> = names.chunks(BURST).map(|burst| burst.iter().map(Vec::as_slice).collect()).collect();
    let mut scalar = None;
    for lanes in Lanes::available() {
        let (median, minimum) = measure(lanes, &bursts);
        let ratio = median / *scalar.get_or_insert(median);
        println!("{what:32} {lanes:8} {median:10.1} {minimum:10.1} {ratio:10.2}");
    }
}

fn component(length: usize, draw: &mut impl FnMut() -> usize) -> Vec<u8> {
    let mut bytes = vec![8, length as u8];
    bytes.extend((0..length).map(|_| draw() as u8));
    bytes
}

/// Returns the median and minimum of the cycles per name.
fn measure(lanes: Lanes, bursts: &[Vec<&[u8]>]) -> (f64, f64) {
    let key = HashKey::random();
    let mut out = vec![PrefixHashes::new(); BURST];
    let mut rounds: Vec<u64> = (0..ROUNDS)
        .map(|_| {
            let start = cycles();
            for burst in bursts {
                hash_group(black_box(&key), lanes, black_box(burst), &mut out);
                black_box(&mut out);
            }
            cycles() - start
        })
        .collect();
    rounds.sort_unstable();
    let names: usize = bursts.iter().map(Vec::len).sum();
    (rounds[ROUNDS / 2] as f64 / names as f64, rounds[0] as f64 / names as f64)
}
