//! Tests a small measurement: packets arrive where they should, and the figures are plausible.

use std::time::Duration;

use super::{CostSpread, DivisionCase};
use crate::engine::tests::bench;
use crate::schedule::EngineParameters;
use crate::workload::WorkloadParameters;

#[test]
fn what_is_misplaced_is_handed_over_and_nothing_else_is() {
    let parameters = EngineParameters {
        workload: WorkloadParameters { prefixes: 1_000, ..EngineParameters::published().workload },
        in_flight: 2_000,
        cs_capacity: 2_000,
        time: Duration::from_millis(300),
        ..EngineParameters::published()
    };
    let cases = [(1, 0.0), (2, 0.0), (2, 0.5)].map(|(workers, misplaced)| DivisionCase { workers, misplaced });
    let figures = bench(&parameters).run_divided(&parameters, &cases, &|_| ()).expect("figures");
    assert_eq!(figures.iter().map(|figures| figures.case).collect::<Vec<_>>(), cases);
    for (figures, expected) in figures.iter().zip([0.0, 0.0, 0.5]) {
        assert!((figures.handed_over - expected).abs() < 0.1, "{figures:?}");
        assert!(figures.packet_ns > 50.0 && figures.mpps > 0.0, "{figures:?}");
        // On a busy host a ring overflows while the thread of its worker does not run.
        let packets = figures.mpps * 1e6 * parameters.time.as_secs_f64();
        assert!((figures.lost as f64) < packets / 100.0, "{figures:?}");
        let spreads = [figures.handover, figures.moved, figures.beyond_moved, figures.floor];
        for spread in spreads {
            assert_eq!(spread.is_some(), expected > 0.0, "{figures:?}");
            let is_in_order = |CostSpread { ns, quartiles_ns: (lower, upper) }| lower <= ns && ns <= upper;
            assert!(spread.is_none_or(is_in_order), "{figures:?}");
        }
    }
}
