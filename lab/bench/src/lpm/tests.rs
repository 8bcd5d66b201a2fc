//! Tests that all three structures find the same prefixes.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use namehop_hash::{HashKey, PrefixHashes, hash_prefixes};
use namehop_wire::{ComponentRef, Name};
use proptest::prelude::*;

use super::*;
use crate::workload::{Workload, WorkloadParameters};

static KEY: LazyLock<HashKey> = LazyLock::new(HashKey::random);
const CAPACITY: u32 = 1000;

fn structures(start: usize) -> [Box<dyn LongestPrefixMatch>; 3] {
    [
        Box::new(LongestFirst::new(*KEY).expect("memory")),
        Box::new(TwoStage::new(*KEY, start, CAPACITY).expect("memory")),
        Box::new(Patricia::new(CAPACITY).expect("memory")),
    ]
}

fn name(components: &[Vec<u8>]) -> Name {
    components.iter().fold(Name::new(), |name, component| name.append(ComponentRef::generic(component)))
}

fn hashes(name: &Name) -> PrefixHashes {
    let mut hashes = PrefixHashes::new();
    hash_prefixes(&KEY, name.value(), &mut hashes).expect("the prefix is within the maximum depth");
    hashes
}

/// Names of few different components, so that they share prefixes, and a few other components.
fn names(count: std::ops::Range<usize>, depth: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Name>> {
    let component = prop_oneof![
        4 => prop::sample::select(vec![b"a".to_vec(), b"b".to_vec(), vec![0x61, 0x80]]),
        1 => prop::collection::vec(any::<u8>(), 0..3),
    ];
    let components = prop::collection::vec(component, depth);
    prop::collection::vec(components.prop_map(|components| name(&components)), count)
}

proptest! {
    #[test]
    fn all_find_the_same(prefixes in names(0..40, 1..7), queries in names(1..40, 0..9), start in 1usize..6) {
        let mut structures = structures(start);
        let mut model = BTreeMap::new();
        for (number, prefix) in prefixes.iter().enumerate() {
            for structure in &mut structures {
                structure.insert(prefix.as_ref(), number as u32 + 300).expect("room");
            }
            model.insert(prefix.value().to_vec(), number as u32 + 300);
        }
        let hashes: Vec<PrefixHashes> = queries.iter().map(hashes).collect();
        let expected: Vec<Option<u32>> = queries
            .iter()
            .map(|query| (1..=query.len()).rev().find_map(|depth| model.get(query.prefix(depth).value()).copied()))
            .collect();
        let queries: Vec<Query> =
            queries.iter().zip(&hashes).map(|(name, hashes)| Query { name: name.as_ref(), hashes }).collect();
        for (kind, structure) in structures.iter().enumerate() {
            let mut found = [None; MAX_GROUP];
            structure.find_group(&queries, &mut found);
            for (position, query) in queries.iter().enumerate() {
                prop_assert_eq!(structure.find(query), expected[position], "structure {}, {}", kind, query.name);
                prop_assert_eq!(found[position], expected[position], "structure {} in a group, {}", kind, query.name);
            }
        }
    }
}

#[test]
fn workloads_are_found_in_all() {
    let parameters = WorkloadParameters { prefixes: 500, ..WorkloadParameters::default() };
    let workload = Workload::new(parameters).expect("workload");
    let mut buffer = vec![0; workload.prefix_bytes()];
    for mut structure in structures(4) {
        for number in 0..500 {
            workload.write_prefix(number, &mut buffer);
            let prefix = namehop_wire::NameRef::from_value(&buffer).expect("valid");
            structure.insert(prefix, number as u32).expect("room");
        }
        let mut value = vec![0; workload.name_bytes()];
        for number in 0..2000 {
            workload.write_name(number, &mut value);
            let mut hashes = PrefixHashes::new();
            hash_prefixes(&KEY, &value, &mut hashes).expect("the prefix is within the maximum depth");
            let name = namehop_wire::NameRef::from_value(&value).expect("valid");
            let found = structure.find(&Query { name, hashes: &hashes });
            assert_eq!(found, Some(workload.prefix_of(number) as u32));
        }
        assert!(structure.bytes() > 500 * 64);
    }
}

#[test]
fn measurements_measure() {
    let parameters = WorkloadParameters { prefixes: 500, ..WorkloadParameters::default() };
    let workload = Workload::new(parameters).expect("workload");
    let mut trie = Patricia::new(500).expect("memory");
    let mut buffer = vec![0; workload.prefix_bytes()];
    for number in 0..500 {
        workload.write_prefix(number, &mut buffer);
        trie.insert(namehop_wire::NameRef::from_value(&buffer).expect("valid"), number as u32).expect("room");
    }
    let options = LookupOptions { group: 16, first_name: 0, time: Duration::from_millis(5) };
    let figures = measure_lookups(&trie, &[workload], &KEY, &options);
    assert_eq!(figures.found, 1.0);
    assert!(figures.plain_ns > 0.0 && figures.prefetched_ns > 0.0, "{figures:?}");
    assert!(figures.plain_cycles > 0.0 && figures.prefetched_cycles > 0.0);
}

/// Prefixes of 4 and of 6 components; the longer ones are not inline.
#[test]
fn lines_are_counted_on_the_way() {
    let prefixes = 500;
    let workload = |prefix_components, seed| {
        let parameters = WorkloadParameters { prefixes, prefix_components, seed, ..WorkloadParameters::default() };
        Workload::new(parameters).expect("workload")
    };
    let workloads = [workload(4, 1), workload(6, 2)];
    let mut fib = LongestFirst::new(*KEY).expect("memory");
    let mut table = TwoStage::new(*KEY, 4, 3 * prefixes as u32).expect("memory");
    let mut trie = Patricia::new(2 * prefixes as u32).expect("memory");
    let mut buffer = vec![0; workloads[1].prefix_bytes()];
    for workload in &workloads {
        for number in 0..prefixes {
            let length = workload.write_prefix(number, &mut buffer);
            let prefix = namehop_wire::NameRef::from_value(&buffer[..length]).expect("valid");
            for structure in [&mut fib as &mut dyn LongestPrefixMatch, &mut table, &mut trie] {
                structure.insert(prefix, number as u32).expect("room");
            }
        }
    }
    let of_four = &workloads[..1];
    let count = |lines: MeanLines| (lines.all, lines.dependent);
    // Buckets of lengths 6 and 4, fetched at once, then the record.
    assert_eq!(count(count_lines(&fib, of_four, &KEY, 0, 100)), (3.0, 2.0));
    // The bucket and the record of length 4, which has no longer prefixes.
    assert_eq!(count(count_lines(&table, of_four, &KEY, 0, 100)), (2.0, 2.0));
    let of_six = &workloads[1..];
    // One bucket, one record and its block of 66 bytes.
    assert_eq!(count(count_lines(&fib, of_six, &KEY, 0, 100)), (4.0, 3.0));
    // Bucket and virtual entry, bucket and record, and the block, which may start anywhere in a line.
    let lines = count_lines(&table, of_six, &KEY, 0, 100);
    assert!(lines.dependent == 5.0 && (6.0..7.0).contains(&lines.all), "{lines:?}");
    // Every vertex depends on its parent; some share a line with it.
    let lines = count_lines(&trie, of_four, &KEY, 0, 100);
    assert!(lines.all == lines.dependent && (5.0..14.0).contains(&lines.all), "{lines:?}");
}

#[test]
fn looking_in_vain_takes_time() {
    let cycles = vain_lookup_cycles(Duration::from_millis(5)).expect("memory");
    assert!(cycles > 0.5 && cycles < 10_000.0, "{cycles}");
}

#[test]
fn a_trie_of_random_names_is_as_deep_as_the_model_says() {
    let prefixes = 4000;
    let workload = Workload::new(WorkloadParameters { prefixes, ..WorkloadParameters::default() }).expect("workload");
    let mut trie = Patricia::new(prefixes as u32).expect("memory");
    let mut buffer = vec![0; workload.prefix_bytes()];
    for number in 0..prefixes {
        workload.write_prefix(number, &mut buffer);
        trie.insert(namehop_wire::NameRef::from_value(&buffer).expect("valid"), number as u32).expect("room");
    }
    let mut value = vec![0; workload.name_bytes()];
    let total: usize = (0..prefixes)
        .map(|number| {
            workload.write_name(number, &mut value);
            trie.path_vertices(namehop_wire::NameRef::from_value(&value).expect("valid"))
        })
        .sum();
    let model = namehop_model::patricia::PatriciaModel { prefixes, bytes_per_packet: 511.0, cache_bytes: 55e6 };
    let average = total as f64 / prefixes as f64;
    // The path has one vertex more than the leaf's depth.
    assert!((average - 1.0 - model.leaf_depth()).abs() < 1.0, "{average} against {}", model.leaf_depth());
}

#[test]
fn what_does_not_fit_is_refused() {
    let long = name(&[vec![b'x'; 120]]);
    let root = Name::new();
    for (kind, mut structure) in structures(3).into_iter().enumerate() {
        assert_eq!(structure.insert(root.as_ref(), 1), Err(LpmError::Empty));
        assert_eq!(structure.insert(long.as_ref(), 1).is_err(), kind > 0);
    }
    let mut trie = Patricia::new(1).expect("memory");
    trie.insert(name(&[b"a".to_vec()]).as_ref(), 1).expect("room");
    assert_eq!(trie.insert(name(&[b"b".to_vec()]).as_ref(), 1), Err(LpmError::Full));
    let mut table = TwoStage::new(*KEY, 1, 1).expect("memory");
    table.insert(name(&[b"a".to_vec()]).as_ref(), 1).expect("room");
    assert_eq!(table.insert(name(&[b"b".to_vec()]).as_ref(), 1), Err(LpmError::Full));
}
