//! Tests of the items about P4 programs.

use super::*;

/// Programs with known costs: better ways cost fewer cycles.
struct KnownPrograms {
    asked: Vec<(String, u64)>,
    missing: Option<&'static str>,
}

impl ProgramMeasurements for KnownPrograms {
    fn measure(&mut self, program: &str, entries: u64) -> Result<ProgramOutcome, Box<dyn Error + Send + Sync>> {
        self.asked.push((program.to_owned(), entries));
        if self.missing == Some(program) {
            return Ok(ProgramOutcome::Missing("apt install it".to_owned()));
        }
        let way = |way: &str, burst, batch, cycles| WayFigures { way: way.to_owned(), burst, batch, cycles };
        let mut ways = vec![
            way("DPDK tables, per packet", 64, 1, 400.0),
            way("per packet", 64, 1, 200.0),
            way("batches", 64, 32, 160.0),
            way("batches, prefetch", 64, 32, 100.0),
        ];
        if program != "crypto" {
            ways.push(way("G-Opt's order, prefetch", 64, 16, 125.0));
        }
        if program == "ndn" {
            ways.push(way("G-Opt's order and tables", 64, 16, 250.0));
        } else {
            ways.push(way("by hand on DPDK tables", 64, 32, 150.0));
        }
        for burst in [1, 8, 16, 32, 64, 128, 256] {
            ways.push(way("burst and batch", burst, burst.min(64), 100.0 + 100.0 / f64::from(burst)));
        }
        let input_output = InputOutputTerms { each: 10.0, burst: 20.0 };
        let processing = ProcessingTerms { necessary: 50.0, shared: 1.0, fetch: 300.0, others: 8.0 };
        let program = ModelTerms { input_output, processing };
        let model = Some(ModelFigures { program, batch: 32, measured_batch: 64, loss_percent: 1.5 });
        let entries = if entries == 0 { 1000 } else { entries };
        Ok(ProgramOutcome::Measured(ProgramFigures { entries, tsc_hz: 2e9, ways, model }))
    }
}

#[test]
fn items_of_programs_show_what_was_measured() {
    let on_progress = |_: Progress| ();
    let mut programs = KnownPrograms { asked: Vec::new(), missing: None };
    let instruments = Instruments { programs: Some(&mut programs), ..Instruments::default() };
    let mut context = Context::new(settings(), instruments, &on_progress);
    let items: Vec<&Item> = context.items().filter(|item| item.needs == Needs::Programs).collect();
    assert_eq!(items.len(), 6);
    let mut reports = Vec::new();
    for item in items {
        let report = context.run(item.id).expect("report");
        check(&report, item);
        reports.push(report);
    }
    // Rounded to a millionth, because the values are quotients.
    let of = |report: usize, row: usize, cell: usize| {
        let reports: &[Report] = &reports;
        (1e6 * reports[report].rows[row].cells[cell].value().expect("a value")).round() / 1e6
    };
    // Batching 200 to 160 cycles, prefetching to 100, both from 400.
    assert_eq!([of(0, 0, 1), of(0, 0, 3), of(0, 0, 5)], [25.0, 60.0, 300.0]);
    assert_eq!([of(1, 1, 3), of(1, 1, 6), of(1, 3, 4)], [25.0, 50.0, 150.0]);
    assert!(matches!(reports[1].rows[3].cells[6], Cell::NotMeasured(_)));
    // The program that encrypts is measured, but has no published values, and no way in G-Opt's order.
    assert_eq!([of(0, 4, 1), of(0, 4, 5), of(1, 4, 6)], [25.0, 300.0, 50.0]);
    assert!(matches!(reports[0].rows[4].cells[4], Cell::Empty));
    assert!(matches!(reports[1].rows[4].cells[3], Cell::NotMeasured(_)));
    assert_eq!(of(2, 2, 1), 20.0);
    assert_eq!([of(3, 0, 1), of(3, 4, 8)], [10.0, 32.0]);
    assert_eq!([of(4, 0, 0), of(4, 0, 8)], [10.0, 1.5]);
    assert_eq!([of(5, 2, 1), of(5, 6, 1)], [100.0, 200.0]);
    // Nothing is measured twice: five programs, and five sizes of tables.
    assert_eq!(programs.asked.len(), (5 + 5) * RUNS);
}

#[test]
fn a_program_that_cannot_be_measured_here_leaves_the_others() {
    let on_progress = |_: Progress| ();
    let mut programs = KnownPrograms { asked: Vec::new(), missing: Some("crypto") };
    let instruments = Instruments { programs: Some(&mut programs), ..Instruments::default() };
    let mut context = Context::new(settings(), instruments, &on_progress);
    let report = context.run("p4-figure-1").expect("report");
    assert!(report.rows[0].cells[1].value().is_some());
    assert!(matches!(report.rows[4].cells[1], Cell::NotMeasured(_)));
    assert!(report.limits.iter().any(|limit| limit.contains("'crypto'") && limit.contains("apt install it")));
}

#[test]
fn without_programs_there_are_no_items_of_them() {
    let on_progress = |_: Progress| ();
    let mut context = Context::new(settings(), Instruments::default(), &on_progress);
    assert!(matches!(context.run("p4-trie"), Err(ReproduceError::Unknown(_))));
}
