//! `namehop latency`: time that packets spend in the router.

use std::time::Duration;

use clap::Args;
use namehop_client::nfd::{ControlParameters, LatencyStatus, names::module};
use namehop_manage::views::{LatencyView, LatencyWayView};
use tokio::time::{Instant, sleep_until};

use crate::connection::{ConnectionArgs, block_on, interrupted};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::output::{self, Align, Table};
use crate::signing::CommandSigningArgs;
use crate::units::{parse_duration, show_duration};

/// The dataset is fresh for one second: an earlier query would return the same values.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1100);

/// Show how long packets stay in the router, from reception to transmission: Interests that miss the cache, Interests
/// that hit it, and Data. The router measures a sample of packets while this is enabled
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop latency --sample 1024
  namehop latency
  namehop latency --watch --interval 5s
  namehop latency --json
  namehop latency --sample 0")]
pub struct LatencyArgs {
    /// Measure one in N packets from now on, on average, and discard earlier measurements; 0 stops measuring
    #[arg(long, value_name = "N")]
    sample: Option<u32>,
    /// Show what was measured in each interval, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Length of an interval, at least 1.1 s
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2s", requires = "watch")]
    interval: Duration,
    /// Print JSON with the whole distribution; with --watch, one line per interval
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    signing: CommandSigningArgs,
}

impl LatencyArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        if self.watch && self.interval < SHORTEST_INTERVAL {
            return Err(Failure::usage("--interval must be at least 1.1s"));
        }
        block_on(async {
            let manager = match self.sample {
                Some(_) => Manager::connect_with_signer(connection, self.signing.signer()?).await?,
                None => Manager::connect(connection).await?,
            };
            manager.only_namehop("measured latencies").await?;
            if let Some(one_in) = self.sample {
                self.switch(&manager, one_in).await?;
                if !self.watch {
                    return Ok(());
                }
            }
            if self.watch {
                // Signal handlers are installed before the user is told about Ctrl-C.
                return tokio::select! {
                    biased;
                    () = interrupted() => Ok(()),
                    ended = self.watch(&manager) => ended,
                };
            }
            let status = manager.datasets().latency().await?;
            match self.json {
                true => output::json(&LatencyView::from(&status)),
                false => show(&measured(status)?),
            }
        })
    }

    async fn switch(&self, manager: &Manager, one_in: u32) -> Result<(), Failure> {
        let parameters = ControlParameters { count: Some(one_in.into()), ..ControlParameters::default() };
        manager.command(module::LATENCY, "sample", &parameters).await?;
        match one_in {
            // On standard error: standard output may be parsed as JSON.
            0 => eprintln!("latency measurement is off"),
            1 => eprintln!("measuring the latency of every packet"),
            _ => eprintln!("measuring the latency of one in {one_in} packets"),
        }
        Ok(())
    }

    async fn watch(&self, manager: &Manager) -> Result<(), Failure> {
        eprintln!("updating every {}: stop with Ctrl-C", show_duration(self.interval));
        let mut next = Instant::now();
        let mut before = measured(manager.datasets().latency().await?)?;
        loop {
            next += self.interval;
            sleep_until(next).await;
            let status = measured(manager.datasets().latency().await?)?;
            let interval = status.since(&before);
            match self.json {
                true => output::json_line(&LatencyView::from(&interval))?,
                false => show(&interval)?,
            }
            before = status;
        }
    }
}

/// Fails if the router does not measure latency.
fn measured(status: LatencyStatus) -> Result<LatencyStatus, Failure> {
    match status.one_in {
        Some(_) => Ok(status),
        None => Err(Failure::failed(
            "latency is not measured: enable it for one in 1024 packets with 'namehop latency --sample 1024' or with \
             latency_sample in section [metrics] of the configuration",
        )),
    }
}

fn show(status: &LatencyStatus) -> Result<(), Failure> {
    let view = LatencyView::from(status);
    let mut table = Table::new(&[
        ("MICROSECONDS", Align::Left),
        ("PACKETS", Align::Right),
        ("MEAN", Align::Right),
        ("50%", Align::Right),
        ("90%", Align::Right),
        ("99%", Align::Right),
        ("99.9%", Align::Right),
        ("MAX", Align::Right),
    ]);
    for way in &view.ways {
        let LatencyWayView { mean_us, p50_us, p90_us, p99_us, p999_us, max_us, .. } = way;
        let times = [mean_us, p50_us, p90_us, p99_us, p999_us, max_us];
        let times = times.map(|time_us| time_us.map_or_else(|| "-".to_owned(), |time_us| format!("{time_us:.1}")));
        let name = match way.way.as_str() {
            "cs_miss" => "Interest, forwarded",
            "cs_hit" => "Interest, cache hit",
            _ => "Data",
        };
        table.row([name.to_owned(), way.packets.to_string()].into_iter().chain(times).collect::<Vec<_>>());
    }
    let time = show_duration(Duration::try_from_secs_f64(view.seconds).unwrap_or_default());
    output::line(format!("{time}, one in {} packets", view.one_in))?;
    table.print()
}
