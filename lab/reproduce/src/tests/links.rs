//! Tests of the items about links.

use namehop_bench::sweep::{CaseFigures, Sweep, SweepFigures, SweepMeasurements};
use namehop_client::nfd::{LatencyCounts, LatencyStatus};

use super::*;

/// Routers with known rates: a thousand Data per second for each run so far, and slightly less with each case.
struct KnownLinks {
    factor: f64,
}

impl SweepMeasurements for KnownLinks {
    fn measure(
        &mut self,
        sweep: Sweep,
        runs: usize,
        _: &OnProgress<'_>,
    ) -> Result<SweepFigures, Box<dyn Error + Send + Sync>> {
        let cases = sweep.settings(8).into_iter().enumerate().map(|(place, setting)| {
            let rate = self.factor * 1e6 / (1.0 + place as f64 / 10.0);
            let times = LatencyCounts(vec![(1_000, 90), (2_000, 9), (50_000, 1)]);
            let latency = LatencyStatus { cache_miss: times.clone(), data: times, ..LatencyStatus::default() };
            CaseFigures {
                setting,
                shares_processor: setting.workers == 8,
                data_per_s: (0..runs).map(|run| rate * (1.0 + 0.01 * run as f64)).collect(),
                busy_ns: vec![900.0; runs],
                hit_share: Some(setting.cached_share),
                lost: 0,
                generator_busy_share: 0.5,
                latency,
            }
        });
        Ok(SweepFigures { sweep, cs_policy: sweep.cs_policy().to_string(), cases: cases.collect() })
    }
}

#[test]
fn figures_of_links_are_those_of_the_routers() {
    let on_progress = |_: Progress| ();
    let rates = |factor| -> Vec<f64> {
        let mut links = KnownLinks { factor };
        let instruments = Instruments { links: Some(&mut links), ..Instruments::default() };
        let mut context = Context::new(settings(), instruments, &on_progress);
        let items: Vec<&Item> = context.items().filter(|item| item.needs == Needs::Links).collect();
        assert_eq!(items.len(), 6);
        let mut rates = Vec::new();
        for item in items {
            let report = context.run(item.id).expect("report");
            check(&report, item);
            assert!(!report.charts.is_empty(), "{}", item.id);
            let column = report
                .columns
                .iter()
                .position(|column| column.show().starts_with("thousand Data per second, measured"));
            rates.extend(
                column
                    .into_iter()
                    .flat_map(|column| report.rows.iter().filter_map(move |row| row.cells[column].value())),
            );
        }
        rates
    };
    let (once, twice) = (rates(1.0), rates(2.0));
    assert_eq!(once.len(), 4 * 3 + 6, "workers by components, and payloads");
    assert_eq!(once[0], 1005.0, "the median of two runs, in thousands");
    assert!(once.iter().zip(&twice).all(|(once, twice)| (twice / once - 2.0).abs() < 1e-9));
}
