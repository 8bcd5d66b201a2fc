//! `namehop reproduce`: regenerates published tables and figures, and compares them with the published values.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use namehop_bench::links::sweep::{LinkSweeps, SweepParameters};
use namehop_reproduce::{Chart, Column, Context, Instruments, Item, Report, ReproduceError, Row, Settings, published};
use namehop_table::HugePages;

use super::bench_memory::{self, MeasuredMemoryArgs};
use crate::steps::show;
use namehop_cli::failure::Failure;
use namehop_cli::output::{self, Align, Table};
use namehop_cli::programs;
use namehop_cli::progress::Progress;
use namehop_cli::units::parse_seconds;

/// Regenerate published tables and figures on this host
///
/// Prints each one with its published values, and explains differences, the method of measurement and omissions. Each
/// value is marked as published, computed or measured; measured values are the median of several runs, with minimum and
/// maximum. Without an ID, lists the items; 'all' runs all of them. If one of several fails, the others still run, and
/// the failed ones are named at the end. The published number of prefixes takes 4 GB of memory and some minutes.
/// Reserved huge pages are used. Items about P4 programs run 'namehop p4 bench', which needs a C compiler, the headers
/// of DPDK, and 8 GiB of memory.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop reproduce
  namehop reproduce throughput-bound patricia
  namehop reproduce all --svg figures
  namehop reproduce two-stage --prefixes 1000000 --json")]
pub struct ReproduceArgs {
    /// Tables and figures to regenerate, or 'all'
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// List what can be regenerated
    #[arg(long, conflicts_with = "ids")]
    list: bool,
    /// Write the charts to this directory, as SVG
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Prefixes in the FIB
    #[arg(long, value_name = "N", default_value_t = published::PREFIXES)]
    prefixes: u64,
    /// Number of measurement runs
    #[arg(long, value_name = "N", default_value_t = Settings::default().runs)]
    runs: usize,
    /// Time per schedule of the forwarding engine in each run
    #[arg(long, value_name = "S", default_value = "2s", value_parser = parse_seconds)]
    seconds: Duration,
    /// Requests per simulation of caches; half of them warm the caches up
    #[arg(long, value_name = "N", default_value_t = Settings::default().cache_requests)]
    cache_requests: u64,
    #[command(flatten)]
    memory: MeasuredMemoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn failure(error: ReproduceError) -> Failure {
    match error {
        ReproduceError::Unknown(_) | ReproduceError::Workload(_) => Failure::usage(error),
        ReproduceError::Memory(error) => bench_memory::failure(error),
        _ => Failure::failed(error),
    }
}

impl ReproduceArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.runs == 0 {
            return Err(Failure::usage("--runs must be at least 1"));
        }
        let memory = self.memory.options()?;
        let settings = Settings {
            prefixes: self.prefixes,
            memory,
            engine_time: self.seconds,
            runs: self.runs,
            cache_requests: self.cache_requests,
        };
        HugePages::Auto.use_from_now_on();
        let progress = Progress::of_steps();
        let on_progress = |step| show(&progress, step);
        let mut engine = namehop_bench::engine::EngineOnDemand::default();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let mut links =
            LinkSweeps { parameters: SweepParameters::usual(programs::beside(programs::ROUTER)), stop: &stop };
        let mut programs = super::p4_programs::CompiledPrograms;
        let instruments =
            Instruments { engine: Some(&mut engine), links: Some(&mut links), programs: Some(&mut programs) };
        let mut context = Context::new(settings, instruments, &on_progress);
        if self.list || self.ids.is_empty() {
            return list(context.items(), self.json);
        }
        let mut ids: Vec<String> = Vec::new();
        for id in self.ids {
            if id == "all" {
                ids.extend(context.items().map(|item| item.id.to_owned()));
            } else {
                ids.push(id);
            }
        }
        // Reject an unknown name before spending minutes on measuring.
        if let Some(unknown) = ids.iter().find(|id| !context.items().any(|item| item.id == id.as_str())) {
            return Err(failure(ReproduceError::Unknown(unknown.clone())));
        }
        let mut reports = Vec::new();
        let result = regenerate(&mut context, &ids, |id, report| {
            let text = match report {
                Ok(report) => {
                    if let Some(directory) = &self.svg {
                        write_charts(directory, &report.charts)?;
                    }
                    if self.json {
                        reports.push(report);
                        return Ok(());
                    }
                    describe(&report)
                }
                Err(error) => {
                    let text = format!("{id}: could not be regenerated: {error}\n\n");
                    if self.json {
                        progress.suspend(|| eprint!("{text}"));
                        return Ok(());
                    }
                    text
                }
            };
            progress.suspend(|| output::print(&text))
        });
        if self.json {
            output::json(&reports)?;
        }
        result
    }
}

/// Regenerates the items in order and passes each to `take`. A failed item does not end the run, because earlier ones
/// may have taken an hour.
///
/// # Errors
/// Returns an error of `take` at once, the error of a single item, or at the end the names of the failed items.
fn regenerate(
    context: &mut Context<'_>,
    ids: &[String],
    mut take: impl FnMut(&str, Result<Report, &ReproduceError>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failed: Vec<&str> = Vec::new();
    for id in ids {
        match context.run(id) {
            Ok(report) => take(id, Ok(report))?,
            Err(error) if ids.len() == 1 => return Err(failure(error)),
            Err(error) => {
                take(id, Err(&error))?;
                failed.push(id);
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let (count, names) = (failed.len(), failed.join(", "));
    Err(Failure::failed(format!("{count} of {} could not be regenerated: {names}", ids.len())))
}

fn list(items: impl Iterator<Item = &'static Item>, json: bool) -> Result<(), Failure> {
    #[derive(serde::Serialize)]
    struct Listed {
        id: &'static str,
        title: &'static str,
        source: &'static str,
    }
    let items: Vec<Listed> = items.map(|item| Listed { id: item.id, title: item.title, source: item.source }).collect();
    if json {
        return output::json(&items);
    }
    let mut table = Table::new(&[("ID", Align::Left), ("SHOWS", Align::Left), ("SOURCE", Align::Left)]);
    for item in items {
        table.row([item.id.to_owned(), item.title.to_owned(), item.source.to_owned()]);
    }
    table.print()
}

/// Writes each chart to a file in a directory, which is created if necessary.
pub(super) fn write_charts(directory: &Path, charts: &[Chart]) -> Result<(), Failure> {
    let context = |error: std::io::Error| Failure::from(error).context(directory.display());
    fs::create_dir_all(directory).map_err(context)?;
    for chart in charts {
        fs::write(directory.join(format!("{}.svg", chart.name)), chart.to_svg()).map_err(context)?;
    }
    Ok(())
}

fn describe_table(columns: &[Column], rows: &[Row]) -> String {
    let heads: Vec<String> = columns.iter().map(Column::show).collect();
    let mut aligned = vec![("", Align::Left)];
    aligned.extend(heads.iter().map(|head| (head.as_str(), Align::Right)));
    let mut table = Table::new(&aligned);
    for row in rows {
        let cells = row.cells.iter().zip(columns).map(|(cell, column)| column.show_cell(cell));
        table.row(std::iter::once(row.label.clone()).chain(cells).collect::<Vec<_>>());
    }
    table.render()
}

fn describe(report: &Report) -> String {
    let first = describe_table(&report.columns, &report.rows);
    let mut text = format!("{}: {}\n{}\n\n{first}", report.id, report.title, report.source);
    for table in &report.tables {
        text.push_str(&format!("\n{}\n\n{}", table.title, describe_table(&table.columns, &table.rows)));
    }
    for why in report.not_measured() {
        text.push_str(&format!("Not measured: {why}.\n"));
    }
    text.push_str(&format!("Difference: {}\n", report.difference));
    for condition in &report.conditions {
        text.push_str(&format!("Measured: {condition}\n"));
    }
    for limit in &report.limits {
        text.push_str(&format!("Limit: {limit}\n"));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::time::Duration;

    use namehop_bench::memory::MemoryOptions;
    use namehop_bench::progress::OnProgress;
    use namehop_bench::sweep::{Sweep, SweepFigures, SweepMeasurements};

    use super::*;

    /// Links that carry no Data.
    struct NoLinks;

    impl SweepMeasurements for NoLinks {
        fn measure(
            &mut self,
            _: Sweep,
            _: usize,
            _: &OnProgress<'_>,
        ) -> Result<SweepFigures, Box<dyn Error + Send + Sync>> {
            Err("no links".into())
        }
    }

    #[test]
    fn what_cannot_be_regenerated_does_not_end_the_rest() {
        let (quiet, mut links) = (|_| (), NoLinks);
        let instruments = Instruments { links: Some(&mut links), ..Instruments::default() };
        let mut context = Context::new(Settings { runs: 1, ..Settings::default() }, instruments, &quiet);
        let mut run = |ids: &[&str]| {
            let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
            let mut taken = Vec::new();
            let result = regenerate(&mut context, &ids, |id, report| {
                taken.push((id.to_owned(), report.is_ok()));
                Ok(())
            });
            (taken, result.map_err(|failure| failure.to_string()))
        };
        let (taken, result) = run(&["table-6.1", "shi-figure-7", "table-6.2"]);
        let expected = [("table-6.1", true), ("shi-figure-7", false), ("table-6.2", true)];
        assert_eq!(taken, expected.map(|(id, is_ok)| (id.to_owned(), is_ok)));
        assert_eq!(result, Err("1 of 3 could not be regenerated: shi-figure-7".to_owned()));
        assert_eq!(run(&["table-6.1", "table-6.2"]).1, Ok(()));
        // For a single item, the error is its reason.
        let (taken, result) = run(&["shi-figure-7"]);
        assert!(taken.is_empty() && result.is_err_and(|why| why.ends_with("no links")));
    }

    #[test]
    fn a_report_is_described_and_its_charts_are_written() {
        let memory = MemoryOptions { area_bytes: 2 << 20, time: Duration::from_millis(1) };
        let quiet = |_| ();
        let mut context = Context::new(
            Settings { prefixes: 1000, memory, runs: 1, ..Settings::default() },
            Instruments::default(),
            &quiet,
        );
        let mut report = context.run("patricia").expect("report");
        let (columns, rows) = (report.columns.clone(), report.rows[..1].to_vec());
        report.tables.push(namehop_reproduce::Table { title: "Choices".to_owned(), columns, rows });
        let text = describe(&report);
        assert!(text.starts_with("patricia: DRAM accesses") && text.contains("as published"), "{text}");
        assert!(text.contains(&report.difference) && text.contains("DRAM accesses, published"), "{text}");
        assert!(text.contains("\nMeasured: ") && text.contains("\nLimit: "), "{text}");
        let (_, further) = text.split_once("\n\nChoices\n\n").expect("the title of the further table");
        let label = &report.rows[0].label;
        assert!(further.contains(&**label) && further.contains("DRAM accesses, published"), "{text}");
        let directory = tempfile::tempdir().expect("directory");
        let figures = directory.path().join("figures");
        write_charts(&figures, &report.charts).expect("written");
        assert!(fs::read_to_string(figures.join("patricia.svg")).expect("chart").contains("<polyline"));
    }
}
