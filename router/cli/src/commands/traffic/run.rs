//! `namehop traffic run`: runs the consumers and producers of a plan. Also runs plans built from options.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::Args;
use namehop_traffic::loadgen::{Session, SessionConfig};

use super::plan::{ConsumerEntry, Plan, ProducerEntry};
use super::report::TrafficReport;
use crate::connection::{ConnectionArgs, stop_when_interrupted};
use crate::failure::{Failure, FailureKind};
use crate::output;
use crate::progress::Progress;
use crate::signing::CommandSigningArgs;
use crate::units::parse_duration;

/// Interval of progress updates.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Run the consumers and producers of a plan, and account for every Interest
///
/// The plan is a TOML file; docs/traffic.md describes it. Each consumer and producer has its own connection, by default
/// to the forwarder of this host. Ends when the time is over, when all consumers have sent their Interests, or on
/// SIGINT, and then prints a report.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop traffic run plan.toml
  namehop traffic run plan.toml --duration 30s --json")]
pub struct RunArgs {
    /// File with the plan
    plan: PathBuf,
    #[command(flatten)]
    how: HowArgs,
}

/// Options of a run: its duration and output.
#[derive(Args, Debug)]
pub struct HowArgs {
    /// Send for this time
    #[arg(short = 'd', long, value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Duration>,
    #[command(flatten)]
    signing: CommandSigningArgs,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

impl RunArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let text =
            std::fs::read_to_string(&self.plan).map_err(|error| Failure::failed(error).context(self.plan.display()))?;
        let plan: Plan = toml::from_str(&text).map_err(|error| {
            let error = format!("{}\ndocs/traffic.md describes plans", error.to_string().trim_end());
            Failure::usage(error).context(self.plan.display())
        })?;
        self.how.run(plan, connection)
    }
}

impl HowArgs {
    /// Runs the plan and prints the report.
    pub fn run(self, plan: Plan, connection: &ConnectionArgs) -> Result<(), Failure> {
        let link = connection.first_candidate()?;
        let consumers = plan.consumer.iter().enumerate();
        let consumers = consumers
            .map(|(index, entry): (_, &ConsumerEntry)| entry.config(format!("consumer {}", index + 1), &link))
            .collect::<Result<Vec<_>, _>>()
            .map_err(Failure::usage)?;
        let producers = plan.producer.iter().enumerate();
        let producers = producers
            .map(|(index, entry): (_, &ProducerEntry)| entry.config(format!("producer {}", index + 1), &link))
            .collect::<Result<Vec<_>, _>>()
            .map_err(Failure::usage)?;
        let duration = self.duration.or(plan.duration);
        let config = SessionConfig { consumers, producers, signer: self.signing.signer()?, duration };
        let stop = Arc::new(AtomicBool::new(false));
        stop_when_interrupted(&stop)?;
        let session = Session::start(&config, &stop)?;
        let shown = Progress::of_steps();
        let mut last = (Instant::now(), session.progress());
        let done = session.wait(&stop, |session| {
            let passed = last.0.elapsed();
            if passed >= PROGRESS_INTERVAL {
                let now = session.progress();
                let per_second = |now: u64, before: u64| (now - before) as f64 / passed.as_secs_f64();
                shown.set_message(if config.consumers.is_empty() {
                    format!("{} Interests received, {:.0} per second", now.asked, per_second(now.asked, last.1.asked))
                } else {
                    let rate = per_second(now.received, last.1.received);
                    format!("{} sent, {} Data, {} lost, {rate:.0} Data per second", now.sent, now.received, now.lost)
                });
                last = (Instant::now(), now);
            }
        });
        drop(shown);
        let report = TrafficReport::of(&done);
        if self.json {
            output::json(&report)?
        } else {
            output::print(&report.describe())?
        }
        if let Some(error) = report.first_error() {
            return Err(Failure::failed(error));
        }
        let received: u64 = done.consumers.iter().map(|consumer| consumer.counts.exchanges).sum();
        match done.consumers.is_empty() || received > 0 {
            true => Ok(()),
            false => Err(Failure::new(FailureKind::Nothing, "no Data was received")),
        }
    }
}

/// Returns a seed that differs from run to run.
pub fn any_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}
