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

#[cfg(test)]
mod tests {
    use namehop_engine::fib::FibReader;
    use namehop_table::touched::touched_lines;

    use super::*;

    /// Published number of lookups of a longest prefix match in So et al. (2013), and the number to which the average
    /// lengths of names and prefixes lead (Takemasa et al., 2017, 6.2).
    const PUBLISHED_LOOKUPS: (f64, f64) = (3.87, 4.0);
    /// Tolerance of an average over `SAMPLE` names: four standard deviations.
    const TOLERANCE: f64 = 0.06;

    /// Number of lines that a longest prefix match of a name touches, and components of the match.
    fn touched(prefixes: &Prefixes, reader: &FibReader<StrategyInstance>, value: &[u8]) -> (usize, usize) {
        let mut hashes = PrefixHashes::new();
        let name = NameRef::from_value(value).expect("a valid name");
        hash_prefixes(&prefixes.key, value, &mut hashes).expect("a name that is not too deep");
        let (lines, matched) = touched_lines(|| reader.longest_prefix_match(&hashes, name).prefix_len());
        (lines.len(), matched)
    }

    #[test]
    fn a_search_of_the_published_fib_reads_as_many_buckets_as_published() {
        let published = EngineParameters::published();
        let workload = WorkloadParameters { prefixes: 100_000, ..published.workload };
        let parameters = EngineParameters { workload, ..published };
        let prefixes = Prefixes::new(HashKey::new(1, 2), &parameters, &|_| ()).expect("a FIB");
        let (workload, reader) = (&prefixes.workload, prefixes.fib.reader());
        let (mut name, mut prefix) = (vec![0; workload.name_bytes()], vec![0; workload.prefix_bytes()]);
        let mut buckets = 0;
        for number in 0..SAMPLE {
            workload.write_name(number, &mut name);
            let prefix_number = workload.prefix_of(number);
            let bytes = workload.write_prefix(prefix_number, &mut prefix);
            let (of_name, matched) = touched(&prefixes, &reader, &name);
            assert_eq!(matched, workload.prefix_components_of(prefix_number), "name {number}");
            // A search for the prefix itself reads one bucket and the same entry.
            let (of_prefix, _) = touched(&prefixes, &reader, &prefix[..bytes]);
            buckets += of_name - of_prefix + 1;
        }
        let counted = buckets as f64 / SAMPLE as f64;
        let (least, most) = (PUBLISHED_LOOKUPS.0 - TOLERANCE, PUBLISHED_LOOKUPS.1 + TOLERANCE);
        assert!((least..=most).contains(&counted), "{counted} buckets were read");
        let computed = prefixes.lookups_per_match().expect("valid names");
        assert!((computed - counted).abs() <= TOLERANCE, "{computed} lookups, but {counted} buckets were read");
    }
}
