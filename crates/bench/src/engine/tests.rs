//! A small measurement: every schedule forwards everything, and the figures make sense.

use std::time::Duration;

use super::*;
use crate::workload::WorkloadParameters;

fn small() -> EngineParameters {
    EngineParameters {
        workload: WorkloadParameters { prefixes: 1_000, ..WorkloadParameters::default() },
        in_flight: 256,
        cs_capacity: 512,
        time: Duration::from_millis(30),
        ..EngineParameters::default()
    }
}

#[test]
fn every_schedule_forwards_what_it_is_given() {
    let parameters = small();
    let mut prefixes = 0;
    let bench = EngineBench::new(&parameters, &mut |number| prefixes = number.max(prefixes)).expect("a small FIB");
    assert_eq!(bench.fib_statistics().nexthop_entries, 1_000);
    let figures = bench.run(&parameters, &mut |_, _| ()).expect("figures");
    assert_eq!(figures.len(), ScheduleKind::ALL.len());
    for figure in figures {
        assert!(figure.imiss_cycles > 100.0 && figure.data_cycles > 100.0 && figure.ihit_cycles > 100.0, "{figure:?}");
        assert!(figure.pair_ns_spread.least <= figure.pair_ns && figure.pair_ns <= figure.pair_ns_spread.most);
        assert!(figure.mpps > 0.0);
    }
}

#[test]
fn too_many_workers_are_refused() {
    let parameters = EngineParameters { workers: 10_000, ..small() };
    let refused = EngineBench::new(&parameters, &mut |_| ()).err();
    assert!(matches!(refused, Some(EngineBenchError::TooFewCores { .. })), "{refused:?}");
}

#[test]
fn lines_follow_from_names_and_cache() {
    let published = EngineParameters { cs_capacity: 0, in_flight: 4_096, ..EngineParameters::default() };
    let counted = lines(&published);
    assert_eq!((counted.interest_miss, counted.data), (4.0, 1.0));
    let with_cache = lines(&EngineParameters { cs_capacity: 1 << 20, in_flight: 1 << 20, ..published });
    assert!(with_cache.interest_miss == 8.0 && with_cache.data > 8.0, "{with_cache:?}");
}
