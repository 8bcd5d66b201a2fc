//! Tests of the whole measurement with few prefixes.

use super::*;

fn options(folder: &Path) -> FibOptions {
    FibOptions {
        workload: WorkloadParameters { prefixes: 50_000, ..WorkloadParameters::default() },
        text: Some(folder.join("fib.txt")),
        snapshot: Some(folder.join("fib.snapshot")),
        lookup_time: Duration::from_millis(20),
        grow: true,
    }
}

#[test]
fn both_files_are_made_and_loaded_and_everything_is_found() {
    let folder = tempfile::tempdir().expect("folder");
    let options = options(folder.path());
    let first = measure(&options, &|_| ()).expect("measured");
    assert!(first.text.is_some() && first.memory.is_some() && first.save.is_some() && first.snapshot.is_some());
    let second = measure(&options, &|_| ()).expect("an existing file can be measured again");
    assert!(second.memory.is_none() && second.save.is_none());
    for report in [first, second] {
        assert_eq!(report.lookup.found, 1.0);
        assert!((80.0..160.0).contains(&report.bytes_per_prefix), "{report:?}");
        let growth = report.growth.expect("grown");
        let strategy = report.strategy.expect("changed");
        assert!(strategy.longest_ms <= strategy.total_ms);
        assert!(growth.prefixes > 0 && growth.longest_ms <= growth.total_ms);
    }
    let other = FibOptions { workload: WorkloadParameters { prefixes: 49_000, ..options.workload }, ..options };
    assert!(matches!(
        measure(&other, &|_| ()),
        Err(FibBenchError::OtherPrefixes { found: 50_000, expected: 49_000, .. })
    ));
}

#[test]
fn without_files_prefixes_come_from_memory() {
    let folder = tempfile::tempdir().expect("folder");
    let report = measure(&FibOptions { text: None, snapshot: None, grow: false, ..options(folder.path()) }, &|_| ());
    let report = report.expect("measured");
    assert!(report.memory.is_some() && report.text.is_none() && report.snapshot.is_none());
    assert_eq!(report.lookup.found, 1.0);
}
