//! Time of a lookup in any of the structures, and the cache lines that it reads.

use std::hint::black_box;
use std::time::{Duration, Instant};

use namehop_hash::{HashKey, PrefixHashes, hash_prefixes};
use namehop_table::clock::{cycles, cycles_per_second};
use namehop_table::{BucketTable, PageRequest};
use namehop_wire::NameRef;
use serde::Serialize;

use super::{LongestPrefixMatch, LpmError, MAX_GROUP, Query};
use crate::median::median;
use crate::permutation::mix;
use crate::workload::Workload;

/// Parameters of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupOptions {
    /// Number of names looked up as one group with prefetching, at most [`MAX_GROUP`].
    pub group: usize,
    /// Number of the first name. Another one for each measurement makes its names new.
    pub first_name: u64,
    /// Measuring time of each of the two figures.
    pub time: Duration,
}

/// Cost of one lookup without hashing the name: median over all groups.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LookupFigures {
    /// Nanoseconds, one lookup after the other.
    pub plain_ns: f64,
    /// Time-stamp counter ticks, one lookup after the other.
    pub plain_cycles: f64,
    /// Nanoseconds, in groups with prefetching.
    pub prefetched_ns: f64,
    /// Time-stamp counter ticks, in groups with prefetching.
    pub prefetched_cycles: f64,
    /// Share of names with a matching prefix, 0 to 1.
    pub found: f64,
}

/// Names of a group, and the hashes of their prefixes.
struct Names {
    values: Vec<u8>,
    hashes: Vec<PrefixHashes>,
}

impl Names {
    fn new(name_bytes: usize, group: usize) -> Self {
        Names { values: vec![0; group * name_bytes], hashes: vec![PrefixHashes::new(); group] }
    }

    /// Generates the next names, below the prefixes of each workload in turn.
    fn fill(&mut self, workloads: &[Workload], name_bytes: usize, key: &HashKey, next_name: &mut u64) {
        for (value, hashes) in self.values.chunks_exact_mut(name_bytes).zip(&mut self.hashes) {
            let kinds = workloads.len() as u64;
            workloads[(*next_name % kinds) as usize].write_name(*next_name / kinds, value);
            *next_name += 1;
            // Names of a workload are never too deep.
            let _ = hash_prefixes(key, value, hashes);
        }
    }

    fn queries(&self, name_bytes: usize) -> Vec<Query<'_>> {
        let values = self.values.chunks_exact(name_bytes);
        let queries = values.zip(&self.hashes).filter_map(|(value, hashes)| {
            let name = NameRef::from_value(value).ok()?;
            Some(Query { name, hashes })
        });
        queries.collect()
    }
}

/// Looks up names not looked up before. The structure holds the prefixes of all `workloads`, hashed with `key`.
///
/// # Panics
/// Panics if there is no workload, or if their names differ in length.
pub fn measure_lookups<L: LongestPrefixMatch>(
    structure: &L,
    workloads: &[Workload],
    key: &HashKey,
    options: &LookupOptions,
) -> LookupFigures {
    let group = options.group.clamp(1, MAX_GROUP);
    let name_bytes = workloads[0].name_bytes();
    assert!(
        workloads.iter().all(|workload| workload.name_bytes() == name_bytes),
        "all names must have the same length"
    );
    let mut names = Names::new(name_bytes, group);
    let mut next_name = options.first_name;
    let mut looked_up = 0u64;
    let mut hits = 0u64;
    let mut run = |prefetch: bool| {
        let start = Instant::now();
        let mut costs = Vec::new();
        while costs.is_empty() || start.elapsed() < options.time {
            names.fill(workloads, name_bytes, key, &mut next_name);
            let queries = names.queries(name_bytes);
            let mut found = [None; MAX_GROUP];
            let before = cycles();
            if prefetch {
                structure.find_group(&queries, &mut found);
            } else {
                for (query, found) in queries.iter().zip(&mut found) {
                    *found = structure.find(query);
                }
            }
            let ticks = cycles().wrapping_sub(before);
            looked_up += queries.len() as u64;
            hits += black_box(&found).iter().flatten().count() as u64;
            costs.push(ticks as f64 / queries.len().max(1) as f64);
        }
        median(&mut costs)
    };
    let plain_cycles = run(false);
    let prefetched_cycles = run(true);
    let ns = 1e9 / cycles_per_second() as f64;
    LookupFigures {
        plain_ns: plain_cycles * ns,
        plain_cycles,
        prefetched_ns: prefetched_cycles * ns,
        prefetched_cycles,
        found: hits as f64 / looked_up.max(1) as f64,
    }
}

/// Means of [`Lines`](super::Lines) over lookups.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanLines {
    /// Cache lines.
    pub all: f64,
    /// Lines on the chain of dependent reads.
    pub dependent: f64,
}

/// Counts the cache lines that lookups of `count` names read, starting with name number `first_name`; otherwise as
/// [`measure_lookups`].
///
/// # Panics
/// Panics if there is no workload, or if their names differ in length.
pub fn count_lines<L: LongestPrefixMatch>(
    structure: &L,
    workloads: &[Workload],
    key: &HashKey,
    first_name: u64,
    count: usize,
) -> MeanLines {
    let name_bytes = workloads[0].name_bytes();
    assert!(
        workloads.iter().all(|workload| workload.name_bytes() == name_bytes),
        "all names must have the same length"
    );
    let mut names = Names::new(name_bytes, 1);
    let mut next_name = first_name;
    let (mut all, mut dependent) = (0, 0);
    for _ in 0..count {
        names.fill(workloads, name_bytes, key, &mut next_name);
        for query in names.queries(name_bytes) {
            let lines = structure.lines(&query);
            all += lines.all;
            dependent += lines.dependent;
        }
    }
    let mean = |sum: usize| sum as f64 / count.max(1) as f64;
    MeanLines { all: mean(all), dependent: mean(dependent) }
}

/// Entries of the table used to measure searches without a match: few, so that its buckets stay in the first-level
/// cache.
const NEAR_ENTRIES: usize = 1_024;
/// Lookups between two clock readings.
const VAIN_LOOKUPS: u64 = 4_096;

/// Time-stamp counter ticks to search the bucket of one prefix without a match, with the bucket in the cache: median
/// over batches. The FIB does this for every length above the match.
pub fn vain_lookup_cycles(time: Duration) -> Result<f64, LpmError> {
    let mut table = BucketTable::new(NEAR_ENTRIES, PageRequest::Ordinary)?;
    for index in 0..NEAR_ENTRIES as u32 {
        table.insert(mix(u64::from(index)), index).map_err(|_| LpmError::Full)?;
    }
    let mut costs = Vec::new();
    let (mut number, start) = (NEAR_ENTRIES as u64, Instant::now());
    while costs.is_empty() || start.elapsed() < time {
        let hashes: Vec<u64> = (number..number + VAIN_LOOKUPS).map(mix).collect();
        number += VAIN_LOOKUPS;
        let before = cycles();
        for &hash in &hashes {
            // An equal tag, one in hundreds of millions, would be a candidate, which this closure rejects.
            black_box(table.find(black_box(hash), |_| false));
        }
        costs.push(cycles().wrapping_sub(before) as f64 / VAIN_LOOKUPS as f64);
    }
    Ok(median(&mut costs))
}
