//! `namehop cache model`: hit and insertion rates by equations, compared with a simulation.

use clap::Args;
use namehop_model::cache::{FilterModel, FilterRates};
use namehop_simulate::run::{Plan, Source, run};
use namehop_store::{PolicyChoice, PolicyKind, Tuning};
use namehop_traffic::workload::{Workload, WorkloadKind, WorkloadShape};
use serde::Serialize;

use namehop_cli::failure::Failure;
use namehop_cli::output::{self, properties};
use namehop_cli::progress::Progress;

/// Default number of requests of the simulation; half of them warm the cache up.
const REQUESTS: u64 = 20_000_000;
/// Progress bar of the simulation.
const BAR: &str = "{spinner} {elapsed} {msg} {wide_bar} {percent}%";

/// Compute the hit and insertion rates of a cache with the policy 'filter'
///
/// Assumes independent requests with popularity by Zipf's law. A threshold of 1 admits everything: that is the policy
/// 'fifo'. The equations are 5.3 to 5.7 of Takemasa's thesis (2019). They are solved as published, and with two effects
/// that they omit: a packet that was rejected finds nearly the same history the next time, and names share counters.
/// Both results are printed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop cache model --capacity 100000
  namehop cache model --capacity 100000 --history 10000 --threshold 3 --compare --json")]
pub struct ModelArgs {
    /// Capacity of the cache in packets (C)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    capacity: u32,
    /// Number of requests remembered (q) [default: the capacity of the cache]
    #[arg(short = 'q', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..67_108_864))]
    history: Option<u32>,
    /// Number of requests for a packet within this history from which it is admitted (θ)
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    threshold: u16,
    /// Exponent of popularity (α), from 0 to 5
    #[arg(short, long, value_name = "ALPHA", default_value_t = 0.8)]
    alpha: f64,
    /// Number of packets that can be requested (N)
    #[arg(
        short = 'N',
        long,
        value_name = "N",
        default_value_t = 10_000_000,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    packets: u64,
    /// Counters of the filter (h), a power of two [default: 256 per remembered request, at most 16777216]
    #[arg(long, value_name = "N", value_parser = parse_counters)]
    counters: Option<u32>,
    /// Also simulate the cache, and show the differences
    #[arg(long)]
    compare: bool,
    /// Requests of the simulation; half of them warm the cache up
    #[arg(long, value_name = "N", default_value_t = REQUESTS, requires = "compare")]
    requests: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn parse_counters(text: &str) -> Result<u32, String> {
    let most = 1 << 30;
    let counters = text.parse().ok().filter(|&counters: &u32| counters.is_power_of_two() && counters <= most);
    counters.ok_or_else(|| format!("must be a power of two, at most {most}"))
}

#[derive(Serialize)]
struct Report {
    model: FilterModel,
    #[serde(flatten)]
    rates: Rates,
    /// Requests until an empty cache is full; absent if it never is.
    full_after_requests: Option<f64>,
    /// Rates by the equations as published.
    published: Rates,
    simulated: Option<Simulated>,
}

#[derive(Serialize)]
struct Rates {
    hit_rate: f64,
    insertion_rate: f64,
    /// Requests between the insertion and eviction of a packet; absent if the cache never fills up.
    eviction_time_requests: Option<f64>,
}

impl From<FilterRates> for Rates {
    fn from(rates: FilterRates) -> Self {
        let eviction_time_requests = Some(rates.eviction_time).filter(|time| time.is_finite());
        Rates { hit_rate: rates.hit, insertion_rate: rates.insertion, eviction_time_requests }
    }
}

/// Rates of a simulation with this many requests, and the differences of the model from them.
#[derive(Serialize)]
struct Simulated {
    requests: u64,
    hit_rate: f64,
    insertion_rate: f64,
    hit_rate_distance: f64,
    insertion_rate_distance: f64,
    published_hit_rate_distance: f64,
    published_insertion_rate_distance: f64,
}

impl ModelArgs {
    pub fn run(self) -> Result<(), Failure> {
        if !(0.0..=5.0).contains(&self.alpha) {
            return Err(Failure::usage("--alpha must be from 0 to 5"));
        }
        let tuning = self.tuning();
        let history = self.history.unwrap_or(self.capacity);
        let model = FilterModel {
            packets: self.packets,
            alpha: self.alpha,
            capacity: self.capacity.into(),
            history: history.into(),
            threshold: self.threshold.into(),
            counters: Some(tuning.filter_counters(history.into())),
        };
        let published = model.published();
        let simulated = if self.compare { Some(self.simulate(&model, &published)?) } else { None };
        let full_after_requests = Some(model.full_at()).filter(|time| time.is_finite());
        let (rates, published) = (model.rates().into(), published.into());
        let report = Report { model, rates, full_after_requests, published, simulated };
        if self.json { output::json(&report) } else { output::print(&describe(&report)) }
    }

    fn tuning(&self) -> Tuning {
        Tuning { history: self.history, threshold: self.threshold, counters: self.counters, ..Tuning::default() }
    }

    fn simulate(&self, model: &FilterModel, published: &FilterRates) -> Result<Simulated, Failure> {
        let shape =
            WorkloadShape { objects: self.packets, alpha: self.alpha, ..WorkloadShape::published(WorkloadKind::Web) };
        let choice = PolicyChoice { kind: PolicyKind::Filter, tuning: self.tuning() };
        let stores = vec![(choice.into(), self.capacity as usize)];
        let warm_up = self.requests / 2;
        let plan = Plan { stores, requests: self.requests, warm_up, threads: 1 };
        let progress = Progress::new(BAR);
        progress.set_length(self.requests);
        progress.set_message("simulating");
        let mut source = Source::Workload(Workload::new(shape));
        let outcomes = run(&mut source, &plan, &|done| progress.set_position(done)).map_err(Failure::failed)?;
        let counts = outcomes.first().map(|outcome| outcome.counts).unwrap_or_default();
        let (hit_rate, insertion_rate) = (counts.hit_rate(), counts.insertion_rate());
        let rates = model.rates_between(warm_up as f64, self.requests as f64);
        Ok(Simulated {
            requests: self.requests,
            hit_rate,
            insertion_rate,
            hit_rate_distance: rates.hit - hit_rate,
            insertion_rate_distance: rates.insertion - insertion_rate,
            published_hit_rate_distance: published.hit - hit_rate,
            published_insertion_rate_distance: published.insertion - insertion_rate,
        })
    }
}

fn describe(report: &Report) -> String {
    let requests =
        |number: Option<f64>| number.map_or_else(|| "never".to_owned(), |number| format!("{number:.0} requests"));
    let rates = &report.rates;
    let stays =
        rates.eviction_time_requests.map_or_else(|| "never".to_owned(), |number| format!("{number:.0} requests"));
    let mut pairs = vec![
        ("Hit rate", format!("{:.4}", rates.hit_rate)),
        ("Insertion rate", format!("{:.4}", rates.insertion_rate)),
        ("Eviction after", stays),
        ("Full after", requests(report.full_after_requests)),
        ("Published hit rate", format!("{:.4}", report.published.hit_rate)),
        ("Published insertion rate", format!("{:.4}", report.published.insertion_rate)),
    ];
    if let Some(simulated) = &report.simulated {
        let show = |rate: f64, distance: f64, published: f64| {
            format!("{rate:.4} (model {distance:+.4}, published model {published:+.4})")
        };
        let of_hits = (simulated.hit_rate, simulated.hit_rate_distance, simulated.published_hit_rate_distance);
        let of_insertions =
            (simulated.insertion_rate, simulated.insertion_rate_distance, simulated.published_insertion_rate_distance);
        pairs.push(("Simulated hit rate", show(of_hits.0, of_hits.1, of_hits.2)));
        pairs.push(("Simulated insertion rate", show(of_insertions.0, of_insertions.1, of_insertions.2)));
        if report.full_after_requests.is_none_or(|full| full > simulated.requests as f64 / 2.0) {
            let note = "the cache was not full when counting began; the model accounts for this, the published model \
                        does not";
            pairs.push(("Note", note.to_owned()));
        }
    }
    properties(&pairs)
}
