//! `namehop cache model`: hit and insertion rate by equations, and their distance to a simulation.

use clap::Args;
use namehop_model::cache::{FilterModel, FilterRates};
use namehop_simulate::run::{Plan, Source, run};
use namehop_simulate::workload::{Workload, WorkloadKind, WorkloadShape};
use namehop_store::{PolicyChoice, PolicyKind, Tuning};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, properties};
use crate::progress::Progress;

/// Requests of the simulation unless told otherwise, of which half warm the cache up.
const REQUESTS: u64 = 20_000_000;
/// The bar of the simulation.
const BAR: &str = "{spinner} {elapsed} {msg} {wide_bar} {percent}%";

/// Compute how well a cache with the policy 'filter' does
///
/// For independent requests whose popularity follows Zipf's law. A threshold of 1 lets everything in: that is the policy 'fifo'.
/// The equations are 5.3 to 5.7 of Takemasa's thesis (2019).
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop cache model --capacity 100000
  namehop cache model --capacity 100000 --history 10000 --threshold 3 --compare --json")]
pub struct ModelArgs {
    /// Packets in the cache (C)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    capacity: u32,
    /// Requests that are remembered (q); as many as packets in the cache when absent
    #[arg(short = 'q', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..67_108_864))]
    history: Option<u32>,
    /// Requests among these that let a packet in (θ)
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    threshold: u16,
    /// Exponent of popularity (α), from 0 to 5
    #[arg(short, long, value_name = "ALPHA", default_value_t = 0.8)]
    alpha: f64,
    /// Packets that can be asked for (N)
    #[arg(short = 'N', long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    packets: u64,
    /// Also simulate it, and show the distance
    #[arg(long)]
    compare: bool,
    /// Requests of the simulation, half of which warm the cache up
    #[arg(long, value_name = "N", default_value_t = REQUESTS, requires = "compare")]
    requests: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    model: FilterModel,
    hit_rate: f64,
    insertion_rate: f64,
    /// Requests until a packet that has entered leaves; absent where the cache never fills up.
    eviction_time_requests: Option<f64>,
    simulated: Option<Simulated>,
}

#[derive(Serialize)]
struct Simulated {
    hit_rate: f64,
    insertion_rate: f64,
    hit_rate_distance: f64,
    insertion_rate_distance: f64,
}

impl ModelArgs {
    pub fn run(self) -> Result<(), Failure> {
        if !(0.0..=5.0).contains(&self.alpha) {
            return Err(Failure::usage("--alpha is from 0 to 5"));
        }
        let model = FilterModel {
            packets: self.packets,
            alpha: self.alpha,
            capacity: self.capacity.into(),
            history: self.history.unwrap_or(self.capacity).into(),
            threshold: self.threshold.into(),
        };
        let rates = model.rates();
        let simulated = if self.compare { Some(self.simulate(&rates)?) } else { None };
        let eviction_time_requests = Some(rates.eviction_time).filter(|time| time.is_finite());
        let FilterRates { hit: hit_rate, insertion: insertion_rate, .. } = rates;
        let report = Report { model, hit_rate, insertion_rate, eviction_time_requests, simulated };
        if self.json { output::json(&report) } else { output::print(&describe(&report)) }
    }

    fn simulate(&self, rates: &FilterRates) -> Result<Simulated, Failure> {
        let shape =
            WorkloadShape { objects: self.packets, alpha: self.alpha, ..WorkloadShape::published(WorkloadKind::Web) };
        let tuning = Tuning { history: self.history, threshold: self.threshold, ..Tuning::default() };
        let choice = PolicyChoice { kind: PolicyKind::Filter, tuning };
        let stores = vec![(choice, self.capacity as usize)];
        let plan = Plan { stores, requests: self.requests, warm_up: self.requests / 2, threads: 1 };
        let progress = Progress::new(BAR);
        progress.set_length(self.requests);
        progress.set_message("simulating");
        let mut source = Source::Workload(Workload::new(shape));
        let outcomes = run(&mut source, &plan, &|done| progress.set_position(done)).map_err(Failure::failed)?;
        let counts = outcomes.first().map(|outcome| outcome.counts).unwrap_or_default();
        let (hit_rate, insertion_rate) = (counts.hit_rate(), counts.insertion_rate());
        Ok(Simulated {
            hit_rate,
            insertion_rate,
            hit_rate_distance: rates.hit - hit_rate,
            insertion_rate_distance: rates.insertion - insertion_rate,
        })
    }
}

fn describe(report: &Report) -> String {
    let leaves = report.eviction_time_requests;
    let mut pairs = vec![
        ("Hit rate", format!("{:.4}", report.hit_rate)),
        ("Insertion rate", format!("{:.4}", report.insertion_rate)),
        ("Packets stay for", leaves.map_or_else(|| "ever".to_owned(), |requests| format!("{requests:.0} requests"))),
    ];
    if let Some(simulated) = &report.simulated {
        let show = |rate: f64, distance: f64| format!("{rate:.4} (the model says {distance:+.4})");
        pairs.push(("Simulated hit rate", show(simulated.hit_rate, simulated.hit_rate_distance)));
        pairs.push(("Simulated insertion rate", show(simulated.insertion_rate, simulated.insertion_rate_distance)));
    }
    properties(&pairs)
}
