//! A workload, and a FIB with its prefixes.

use std::collections::BTreeSet;

use namehop_engine::fib::{FibAddition, FibWriter, NextHop};
use namehop_engine::strategy::StrategyInstance;
use namehop_hash::{HashKey, PrefixHashes, hash_prefixes};
use namehop_wire::NameRef;

use super::EngineBenchError;
use super::peers::Peers;
use crate::permutation::mix;
use crate::progress::{OnProgress, Progress};
use crate::schedule::EngineParameters;
use crate::workload::{Workload, WorkloadParameters};

/// Prefixes per call when filling the FIB.
const PORTION: usize = 1 << 12;
/// Names looked up to measure the buckets per lookup.
const SAMPLE: u64 = 10_000;

pub(super) struct Prefixes {
    pub(super) workload: Workload,
    pub(super) peers: Peers,
    pub(super) fib: FibWriter<StrategyInstance>,
    key: HashKey,
    /// Numbers of components that the prefixes have.
    lengths: BTreeSet<usize>,
}

impl Prefixes {
    /// Fills a FIB with the workload's prefixes.
    pub(super) fn new(
        key: HashKey,
        parameters: &EngineParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Self, EngineBenchError> {
        let shape = parameters.workload;
        let workload = Workload::new(shape)?;
        let peers = Peers::of(parameters);
        let faces = peers.faces();
        let mut fib = FibWriter::new(key, StrategyInstance::default())?;
        fib.reserve(usize::try_from(shape.prefixes).unwrap_or(usize::MAX))?;
        let mut values = vec![0; PORTION * workload.prefix_bytes()];
        for start in (0..shape.prefixes).step_by(PORTION) {
            on_progress(Progress { what: "filling the FIB".to_owned(), done: start, total: shape.prefixes });
            let numbers = start..shape.prefixes.min(start + PORTION as u64);
            let mut places = Vec::with_capacity(PORTION);
            let mut end = 0;
            for number in numbers {
                let bytes = workload.write_prefix(number, &mut values[end..]);
                let upstream = peers.upstream(number);
                places.push((end..end + bytes, [NextHop { face: faces[upstream.link][upstream.number], cost: 1 }]));
                end += bytes;
            }
            let additions = places
                .iter()
                .map(|(place, nexthops)| {
                    Ok(FibAddition { prefix: NameRef::from_value(&values[place.clone()])?, nexthops })
                })
                .collect::<Result<Vec<_>, EngineBenchError>>()?;
            fib.add_many(&additions).map_err(|refused| refused.error)?;
        }
        let shortest = shape.prefix_components - shape.prefix_spread;
        let mut lengths: BTreeSet<usize> = (shortest..=shape.prefix_components + shape.prefix_spread).collect();
        if shape.prefix_spread > 0 {
            // One prefix is as long as names, so that searches start at the whole name, as in the publications.
            let others = Workload::new(WorkloadParameters { seed: mix(shape.seed), ..shape })?;
            let mut value = vec![0; others.name_bytes()];
            others.write_name(0, &mut value);
            fib.set_nexthops(NameRef::from_value(&value)?, &[NextHop { face: faces[0][0], cost: 1 }])?;
            lengths.insert(shape.components);
        }
        Ok(Prefixes { workload, peers, fib, key, lengths })
    }

    /// Average number of buckets that a longest-first search reads for one name.
    pub(super) fn lookups_per_match(&self) -> Result<f64, EngineBenchError> {
        let reader = self.fib.reader();
        let mut hashes = PrefixHashes::new();
        let mut value = vec![0; self.workload.name_bytes()];
        let mut lookups = 0;
        for number in 0..SAMPLE {
            self.workload.write_name(number, &mut value);
            let name = NameRef::from_value(&value)?;
            // The result is stored with the hashes, and these names are not too deep.
            let _ = hash_prefixes(&self.key, name.value(), &mut hashes);
            let matched = reader.longest_prefix_match(&hashes, name).prefix_len();
            lookups += self.lengths.range(matched..=name.len()).count();
        }
        Ok(lookups as f64 / SAMPLE as f64)
    }
}
