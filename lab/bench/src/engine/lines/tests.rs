//! Counts lines: sends packets through a worker with every access to its tables recorded.

use std::collections::{HashMap, VecDeque};

use namehop_orders::{Order, PathKind, ScheduleKind};
use namehop_table::touched::touched_lines;

use super::*;
use crate::engine::watch::Watch;
use crate::engine::{EngineBench, load, rig};
use crate::schedule::PacketKind;
use crate::workload::WorkloadParameters;

/// An LRU cache.
pub(crate) struct Lru {
    capacity: usize,
    time: u64,
    used_at: HashMap<usize, u64>,
    /// All uses in their order. A line may occur several times; only its last use counts.
    uses: VecDeque<(usize, u64)>,
}

impl Lru {
    fn new(capacity: usize) -> Self {
        Lru { capacity, time: 0, used_at: HashMap::new(), uses: VecDeque::new() }
    }

    /// Accesses a line; returns true if it missed.
    fn touch(&mut self, line: usize) -> bool {
        self.time += 1;
        let before = self.used_at.insert(line, self.time);
        self.uses.push_back((line, self.time));
        while let Some(&(line, time)) = self.uses.front() {
            let is_last_use = self.used_at.get(&line) == Some(&time);
            if is_last_use && self.used_at.len() <= self.capacity {
                break;
            }
            if is_last_use {
                self.used_at.remove(&line);
            }
            self.uses.pop_front();
        }
        before.is_none()
    }
}

/// Counts cache lines in poll iterations of a worker.
pub(crate) struct LineWatch {
    cache: Lru,
    /// Number of lines fetched from memory, and of packets.
    counts: ByPacket<(usize, usize)>,
}

impl LineWatch {
    /// Counts in a poll iteration that handles `packets` packets of one kind. Mixed iterations (`None`) only fill the
    /// cache.
    pub(crate) fn turn(&mut self, kind: Option<PacketKind>, packets: usize, turn: impl FnOnce() -> u64) -> u64 {
        let (touched, result) = touched_lines(turn);
        let from_memory = touched.into_iter().filter(|&line| self.cache.touch(line)).count();
        if let Some(kind) = kind {
            let (lines, number) = self.counts.get_mut(kind);
            *lines += from_memory;
            *number += packets;
        }
        result
    }
}

/// Lines that packets fetch from memory in a worker; NaN for kinds that do not occur.
fn count(bench: &EngineBench, parameters: &EngineParameters) -> ByPacket<f64> {
    let order = Order::new(ScheduleKind::Naive, PathKind::Whole);
    let pool = bench.pools[0].clone();
    let rig = rig::Rig::new(&bench.prefixes.fib, bench.key, pool, parameters, order).expect("a rig");
    let mut load = load::Load::new(rig, &bench.prefixes, parameters, 0).expect("a load");
    load.warm_up(&|_, _| ()).expect("all packets are forwarded");
    let cache = Lru::new(parameters.private_cache_bytes / LINE_BYTES);
    load.watch = Some(Watch::Lines(Box::new(LineWatch { cache, counts: ByPacket::default() })));
    // The first rounds fill the cache, the later ones are counted.
    let rounds = 2 * parameters.in_flight / parameters.burst + ROUNDS;
    let mut hits_due = 0.0;
    let mut exchange = |load: &mut load::Load<'_>, rounds| {
        for _ in 0..rounds {
            load.exchange_once(&mut hits_due, &mut |_| ()).expect("all packets are forwarded");
        }
    };
    exchange(&mut load, rounds);
    if let Some(Watch::Lines(lines)) = &mut load.watch {
        lines.counts = ByPacket::default();
    }
    exchange(&mut load, ROUNDS);
    let Some(Watch::Lines(lines)) = load.watch.take() else { panic!("the watch must be installed") };
    load.finish().expect("no packet may be lost");
    lines.counts.map(|&(lines, packets)| lines as f64 / packets as f64)
}

/// Number of counted bursts of each kind.
const ROUNDS: usize = 100;
/// Tolerance of counts, for bucket chains and lines that are cached by chance.
const TOLERANCE: f64 = 0.2;

/// A small FIB that is still much larger than the core's small cache.
fn small() -> EngineParameters {
    EngineParameters {
        workload: WorkloadParameters { prefixes: 100_000, ..EngineParameters::published().workload },
        cs_capacity: 65_536,
        private_cache_bytes: 256 << 10,
        ..EngineParameters::published()
    }
}

/// The same with those parameters of the realistic load that tables depend on.
fn small_and_mixed() -> EngineParameters {
    let realistic = EngineParameters::realistic();
    EngineParameters {
        traffic: realistic.traffic,
        peers: realistic.peers,
        in_flight: 16_384,
        // Large enough that few of the packets requested again are cached by chance.
        cs_capacity: 1 << 18,
        // Large enough for what one burst of each kind frees and uses, with the mixed bursts in between.
        private_cache_bytes: 1 << 20,
        ..small()
    }
}

fn compare(bench: &EngineBench, cases: impl IntoIterator<Item = (&'static str, EngineParameters)>) {
    for (what, parameters) in cases {
        let (written, is_clear) = lines(&parameters, bench.lookups_per_match);
        assert!(is_clear, "{what}");
        let counted = count(bench, &parameters);
        for kind in PacketKind::ALL {
            let (written, counted) = (*written.get(kind), *counted.get(kind));
            let occurs = kind != PacketKind::InterestHit || parameters.cs_capacity > 0;
            assert!(
                !occurs || (written - counted).abs() <= TOLERANCE,
                "{what}, {kind:?}: the table of this module has {written} lines, but {counted:.2} were counted"
            );
        }
    }
}

#[test]
#[ignore = "slow"]
fn what_is_written_down_is_what_packets_need() {
    let without_cache = EngineParameters { cs_capacity: 0, ..small() };
    let cases = [
        ("near, no cache", EngineParameters { in_flight: 128, ..without_cache.clone() }),
        ("far, no cache", EngineParameters { in_flight: 4_096, ..without_cache }),
        ("near", EngineParameters { in_flight: 64, ..small() }),
        ("far", EngineParameters { in_flight: 4_096, ..small() }),
        ("far, large packets", EngineParameters { in_flight: 4_096, payload_bytes: 1_024, ..small() }),
    ];
    let mut bench = crate::engine::tests::bench(&small());
    compare(&bench, cases);

    // Packet buffers last as long as the process, so they are reused.
    bench.refill(&small_and_mixed()).expect("a FIB");
    assert!((3.9..4.1).contains(&bench.lookups_per_match), "{} lookups", bench.lookups_per_match);
    compare(&bench, [("mixed", small_and_mixed())]);
}

#[test]
fn a_trifle_decides_nothing() {
    let of = |in_flight| lines(&EngineParameters { in_flight, ..small() }, 1.0);
    let ((near, near_is_clear), (far, far_is_clear)) = (of(64), of(4_096));
    assert!(near.data < far.data && near_is_clear && far_is_clear);
    assert!(!of(180).1);
}

#[test]
fn a_cache_forgets_what_was_not_used_for_longest() {
    let mut cache = Lru::new(2);
    let from_memory = [1, 2, 1, 3, 1, 2, 2].map(|line| cache.touch(line));
    assert_eq!(from_memory, [true, true, false, true, false, true, false]);
}
