//! Memory that decisions touch, in a store too large for the CPU caches, and how many of these accesses depend on one
//! another (thesis 4.2). Heads of lists and counters in the policy itself do not count.

use std::collections::HashMap;

use namehop_table::permutation::mix;
use namehop_table::touched::{count_lines, prefetched_lines, touched_lines};

use crate::*;

const CAPACITY: u32 = 100_000;

/// Returns a full store, in which names that were requested often are also used more often, and the number of the
/// next name.
fn full(kind: PolicyKind) -> (Policy, u64) {
    let capacity = CAPACITY as usize;
    let mut policy = Policy::of(kind, &Parameters::new(capacity, capacity)).expect("memory");
    for id in 0..CAPACITY {
        let arrival = Arrival::fresh(mix(id.into()));
        policy.requested(arrival.name_hash);
        policy.requested(arrival.name_hash);
        assert!(policy.admits(&arrival, false), "{kind}");
        policy.admitted(id, &arrival);
        if mix(u64::from(id) ^ 7).is_multiple_of(4) {
            policy.hit(id);
        }
    }
    (policy, u64::from(CAPACITY))
}

/// Returns the average number of lines that an operation touches, over many packets.
fn count(kind: PolicyKind, mut operation: impl FnMut(&mut Policy, u64)) -> f64 {
    let (mut policy, first) = full(kind);
    let count = 2_000;
    let touched: usize = (0..count).map(|number| count_lines(|| operation(&mut policy, mix(first + number))).0).sum();
    touched as f64 / count as f64
}

fn hit(kind: PolicyKind) -> f64 {
    count(kind, |policy, draw| policy.hit((draw % u64::from(CAPACITY)) as u32))
}

fn decision(kind: PolicyKind) -> f64 {
    count(kind, |policy, name| {
        policy.admits(&Arrival::fresh(name), true);
    })
}

fn eviction(kind: PolicyKind) -> f64 {
    count(kind, |policy, name| {
        let arrival = Arrival::fresh(name);
        if let Some(victim) = policy.victim() {
            policy.evicted(victim);
            policy.admitted(victim, &arrival);
        }
    })
}

#[test]
fn a_hit_moves_nothing_or_touches_neighbours() {
    for kind in [PolicyKind::Fifo, PolicyKind::Random, PolicyKind::Filter, PolicyKind::TinyLfu] {
        assert_eq!(hit(kind), 0.0, "{kind}");
    }
    // One bit or mark: no dependent accesses.
    for kind in
        [PolicyKind::Clock, PolicyKind::TinyLfuClock, PolicyKind::Sieve, PolicyKind::S3Fifo, PolicyKind::ClockPro]
    {
        assert_eq!(hit(kind), 1.0, "{kind}");
    }
    // LRU: the block at the front, which may be the packet's; the packet's note, then the block that it refers to;
    // and the block at the end, sometimes a new one. ARC: the packet's links, then its neighbours, and the end.
    // Published for lists by last use: 4, with bucket and entry of the table before them.
    for (kind, lines) in [(PolicyKind::Lru, 4.0..4.5), (PolicyKind::Arc, 2.5..4.1)] {
        assert!(lines.contains(&hit(kind)), "{kind}: {}", hit(kind));
    }
}

#[test]
fn decisions_wait_for_few_lines() {
    assert_eq!(decision(PolicyKind::Fifo), 0.0);
    // One counter, which depends on the name only: no dependent accesses.
    assert_eq!(decision(PolicyKind::Filter), 1.0);
    // The counters of the name and, independently, the number at the front of the order; then the name of that
    // packet; then its counters. The published two dependent accesses are for an order that holds the names.
    // A packet that wins moves to the end of the order, as with a use in LRU.
    let tinylfu = decision(PolicyKind::TinyLfu);
    assert!((6.0..7.0).contains(&tinylfu), "{tinylfu}");
    assert_eq!(decision(PolicyKind::TinyLfuRandom), 4.0);
    // The counters of the name; the victim's value is known. One rejection in 32 examines the next packet.
    let patient = decision(PolicyKind::TinyLfuClock);
    assert!((1.0..1.5).contains(&patient), "{patient}");
}

#[test]
fn hands_go_far() {
    let fifo = eviction(PolicyKind::Fifo);
    assert!((2.0..4.0).contains(&fifo), "{fifo}");
    let clock_pro = eviction(PolicyKind::ClockPro);
    let clock = eviction(PolicyKind::Clock);
    println!("cache lines touched by an eviction: CLOCK {clock}, CLOCK-Pro {clock_pro} (published 16.6)");
    assert!(clock > 2.0 && clock_pro > clock, "CLOCK {clock}, CLOCK-Pro {clock_pro}");
}

/// Requests in a burst, all of which the prefetch plane sees before the first one is reported.
const BURST: u64 = 64;
/// Entries of a history in a cache line, for policies that remember requests in order: the CPU itself fetches such
/// lines ahead.
const HISTORY_LINE: u64 = 16;

/// Returns the number of different lines of `touched` that are not in `prefetched`.
fn missed(mut touched: Vec<usize>, prefetched: &[usize]) -> usize {
    touched.sort_unstable();
    touched.dedup();
    touched.iter().filter(|line| !prefetched.contains(line)).count()
}

#[test]
fn lines_of_requests_are_prefetched_for_a_whole_burst() {
    let counts = |kind: &PolicyKind| Policy::of(*kind, &Parameters::new(1, 1)).expect("memory").counts();
    let counting: Vec<PolicyKind> = PolicyKind::ALL.iter().copied().filter(counts).collect();
    assert!(counting.len() > 3, "{counting:?}");
    for kind in counting {
        let (mut policy, first) = full(kind);
        for burst in 0..20 {
            let names: Vec<u64> = (0..BURST).map(|number| mix(first + burst * BURST + number)).collect();
            let prefetched = prefetched_lines(|| names.iter().for_each(|&name| policy.prefetch_request(name))).0;
            let touched = touched_lines(|| names.iter().for_each(|&name| policy.requested(name))).0;
            let missed = missed(touched, &prefetched);
            assert!(missed as u64 <= BURST / HISTORY_LINE + 1, "{kind}: {missed} lines in burst {burst}");
        }
    }
}

#[test]
fn lines_of_requests_that_leave_the_history_are_prefetched_once() {
    let (mut policy, first) = full(PolicyKind::Filter);
    let mut prefetched = Vec::new();
    let bursts = 40;
    for burst in 0..bursts {
        let names: Vec<u64> = (0..BURST).map(|number| mix(first + burst * BURST + number)).collect();
        // Half of a burst is seen while the other half is not yet handled.
        for half in names.chunks(BURST as usize / 2) {
            prefetched.extend(prefetched_lines(|| half.iter().for_each(|&name| policy.prefetch_request(name))).0);
        }
        names.iter().for_each(|&name| policy.requested(name));
    }
    // For each request: its own counter and a leaving one. Each leaving name was requested twice. The counters have
    // hundreds of thousands of lines, so two names rarely share one.
    let requests = bursts * BURST;
    assert_eq!(prefetched.len() as u64, 2 * requests);
    prefetched.sort_unstable();
    prefetched.dedup();
    let different = prefetched.len() as u64;
    assert!(different > (requests + requests / 2) * 19 / 20, "{different} lines for {requests} requests");
}

#[test]
fn lines_of_decisions_are_prefetched_for_a_whole_burst() {
    let limits = [
        (PolicyKind::TinyLfu, BURST / 8),
        (PolicyKind::TinyLfuRandom, BURST / 8),
        (PolicyKind::Filter, BURST / 8),
        // A packet of the window that stays evicts one of the rest, which is not predicted.
        (PolicyKind::WTinyLfuClock, BURST / 4),
    ];
    for (kind, limit) in limits {
        let (mut policy, first) = full(kind);
        let mut name_of: Vec<u64> = (0..CAPACITY).map(|id| mix(id.into())).collect();
        for burst in 0..20 {
            let names: Vec<u64> = (0..BURST).map(|number| mix(first + burst * BURST + number)).collect();
            let mut ahead = Ahead::default();
            let mut look_ahead = || {
                for &name in &names {
                    if let Some(victim) = policy.compares_each().then(|| policy.upcoming(&mut ahead)).flatten() {
                        policy.prefetch_victim(victim, name_of[victim as usize]);
                        // If the Data enters, it takes the victim's slot here.
                        if policy.admits_most() {
                            policy.prefetch(victim);
                        }
                    }
                    policy.prefetch_name(name);
                }
            };
            // The prediction of victims reads lines, which are in the cache afterwards.
            let (mut cached, read) = prefetched_lines(|| touched_lines(&mut look_ahead).0);
            cached.extend(read);
            let decide = |policy: &mut Policy, name_of: &mut Vec<u64>, name| {
                let arrival = Arrival::fresh(name);
                if policy.admits(&arrival, true)
                    && let Some(victim) = policy.evict()
                {
                    policy.admitted(victim, &arrival);
                    name_of[victim as usize] = name;
                }
            };
            let touched = touched_lines(|| names.iter().for_each(|&name| decide(&mut policy, &mut name_of, name))).0;
            let missed = missed(touched, &cached);
            assert!(missed as u64 <= limit, "{kind}: {missed} lines in burst {burst}");
        }
    }
}

#[test]
fn lines_are_as_noted() {
    let mut differing = Vec::new();
    for &kind in PolicyKind::ALL {
        let noted = kind.lines();
        let counted = Lines { hit: hit(kind), decision: decision(kind), eviction: eviction(kind) };
        let pairs = [(noted.hit, counted.hit), (noted.decision, counted.decision), (noted.eviction, counted.eviction)];
        if pairs.iter().any(|(noted, counted)| (noted - counted).abs() > 0.06) {
            differing.push((kind, counted));
        }
    }
    assert!(differing.is_empty(), "the measured line counts differ: {differing:#?}");
}

/// Returns the bytes of all lines that a policy touches while its store fills and is used, per packet of the store.
fn bytes_per_packet(kind: PolicyKind) -> f64 {
    let capacity = 20_000;
    let mut policy = Policy::of(kind, &Parameters::new(capacity, capacity)).expect("memory");
    let mut slots: HashMap<u64, u32> = HashMap::new();
    let mut names = Vec::new();
    let run = || {
        for number in 0..10 * capacity as u64 {
            // Names with smaller numbers occur more often.
            let (draw, most) = (mix(number), 5 * capacity as u64);
            let name = mix((draw % most) * (mix(draw) % most) / most);
            policy.requested(name);
            if let Some(&slot) = slots.get(&name) {
                policy.hit(slot);
                continue;
            }
            let (arrival, is_full) = (Arrival::fresh(name), names.len() >= capacity);
            if !policy.admits(&arrival, is_full) {
                continue;
            }
            let slot = if is_full { policy.evict().expect("a victim") } else { names.len() as u32 };
            match names.get_mut(slot as usize) {
                Some(place) => {
                    slots.remove(&std::mem::replace(place, name));
                }
                None => names.push(name),
            }
            slots.insert(name, slot);
            policy.admitted(slot, &arrival);
        }
    };
    let (lines, ()) = count_lines(run);
    (lines * 64) as f64 / capacity as f64
}

#[test]
fn memory_is_as_documented() {
    let documentation = include_str!("../../../../docs/caching.md");
    for &kind in PolicyKind::ALL {
        let row = documentation
            .lines()
            .find(|line| line.starts_with(&format!("| `{kind}`")))
            .expect("docs/caching.md has a row for each policy");
        let text = row.rsplit('|').nth(1).and_then(|memory| memory.split(" bytes").next()).expect("bytes");
        let numbers: Vec<f64> = text.split(" to ").map(|number| number.trim().parse().expect("a number")).collect();
        let (least, most) = (numbers[0], numbers[numbers.len() - 1]);
        let bytes = bytes_per_packet(kind);
        println!("{kind}: {bytes:.1} bytes per packet, documented {text}");
        // Which counters Filter touches depends on the names.
        let least = if kind == PolicyKind::Filter { 0.0 } else { least };
        // Numbers of buckets are powers of two.
        assert!((0.9 * least..1.1 * most).contains(&bytes), "{kind}: {bytes} bytes per packet, documented{text} bytes");
    }
}
