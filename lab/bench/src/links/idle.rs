//! Cost and benefit of sleeping workers: CPU time and round-trip time by offered load, from none to saturation, with
//! workers that sleep when idle and with workers that busy-poll.
//!
//! ```text
//!   consumer ── link ── port  router  port ── link ── producer
//! ```
//!
//! Router and load are as in the parent module. The load never sleeps. So the longer round-trip time with sleeping
//! workers is wake-up latency; both the Interest and its Data may find the worker asleep.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use namehop_packet::BufferPool;
use namehop_traffic::loadgen::{ConsumerPlan, Load, Pacing};
use serde::Serialize;

use super::generator::Generator;
use super::place::{Place, RouterSettings};
use super::router::RouterProcess;
use super::{BUFFERS, LinkKind, LinksError, Processors, START_TIMEOUT, nothing, turn};
use crate::progress::{OnProgress, Progress};

/// Rate for practically no Interests, per second.
const NEXT_TO_NONE: f64 = 0.001;
/// Time for a router to become idle after its start or after the end of a load.
const REST: Duration = Duration::from_millis(1_500);

/// Parameters of the measurement.
#[derive(Debug, Clone)]
pub struct IdleParameters {
    /// Kind of the links on both sides of the router.
    pub link: LinkKind,
    /// Load on the links; its Interests in flight apply at saturation.
    pub load: Load,
    /// Offered rates in Interests per second, 0 for none. Saturation is measured after these in any case.
    pub rates: Vec<f64>,
    /// Measuring time per load.
    pub turn: Duration,
    /// Path of the program run as the router, this program.
    pub program: PathBuf,
}

/// Results of the measurement.
#[derive(Debug, Clone, Serialize)]
pub struct IdleFigures {
    /// CPUs used.
    pub processors: Processors,
    /// Figures by offered load, in the order of the rates.
    pub loads: Vec<IdleLoad>,
}

/// Figures of one offered load.
#[derive(Debug, Clone, Serialize)]
pub struct IdleLoad {
    /// Interests per second; `None` for saturation.
    pub offered_per_s: Option<f64>,
    /// With workers that sleep when idle, the default.
    pub sleeping: IdleTurn,
    /// With workers that busy-poll.
    pub polling: IdleTurn,
}

/// Figures of one turn.
#[derive(Debug, Clone, Serialize)]
pub struct IdleTurn {
    /// Data received by the consumer per second.
    pub exchanges_per_s: f64,
    /// Interests without an answer, or not sent because too many were in flight.
    pub lost: u64,
    /// CPU time of all the router's threads, as a share of one CPU.
    pub processor_share: f64,
    /// Median round-trip time, in microseconds; `None` without exchanges.
    pub rtt_p50_us: Option<f64>,
    /// 99th percentile of the round-trip time, in microseconds.
    pub rtt_p99_us: Option<f64>,
    /// Maximum round-trip time, in microseconds.
    pub rtt_max_us: Option<f64>,
}

impl IdleLoad {
    /// Round-trip time added by sleeping, in microseconds: median and 99th percentile.
    pub fn added_us(&self) -> (Option<f64>, Option<f64>) {
        let added = |of: fn(&IdleTurn) -> Option<f64>| Some(of(&self.sleeping)? - of(&self.polling)?);
        (added(|turn| turn.rtt_p50_us), added(|turn| turn.rtt_p99_us))
    }
}

/// Measures all loads. Setting `stop` ends the measurement early with the results so far.
///
/// # Errors
/// See [`LinksError`].
pub fn measure(
    parameters: &IdleParameters,
    stop: &AtomicBool,
    on_progress: &OnProgress<'_>,
) -> Result<IdleFigures, LinksError> {
    let processors = Processors::choose()?;
    // Runs in its own thread, because the thread moves to its own network namespace.
    thread::scope(|scope| scope.spawn(|| measure_here(parameters, processors, stop, on_progress)).join())
        .unwrap_or_else(|_| Err(std::io::Error::other("the measuring thread panicked").into()))
}

fn measure_here(
    parameters: &IdleParameters,
    processors: Processors,
    stop: &AtomicBool,
    on_progress: &OnProgress<'_>,
) -> Result<IdleFigures, LinksError> {
    let place = Place::new(parameters.link, parameters.load.payload_bytes)?;
    let pool = BufferPool::new(BUFFERS.0, BUFFERS.1);
    let offered: Vec<Option<f64>> = parameters.rates.iter().copied().map(Some).chain([None]).collect();
    let total = 2 * offered.len() as u64;
    let mut done = 0;
    let mut of_router = |always_poll: bool| -> Result<Vec<IdleTurn>, LinksError> {
        let what = if always_poll { "workers that never sleep" } else { "workers that sleep when idle" };
        let forwarding = format!("always_poll = {always_poll}\n");
        let settings = RouterSettings { forwarding, ..RouterSettings::one_worker(processors.forwarder) };
        let mut router = RouterProcess::start(&parameters.program, &place, &[], &settings)?;
        let mut turns = Vec::new();
        for &rate in offered.iter().take_while(|_| !stop.load(Ordering::Relaxed)) {
            let load = rate.map_or_else(|| "saturation".to_owned(), |rate| format!("{rate} Interests/s"));
            on_progress(Progress { what: format!("{what}: {load}"), done, total });
            done += 1;
            turns.push(measure_load(parameters, rate, (&place, &pool), processors, &mut router, stop)?);
        }
        Ok(turns)
    };
    let (sleeping, polling) = (of_router(false)?, of_router(true)?);
    let both = sleeping.into_iter().zip(polling);
    let loads = offered.into_iter().zip(both);
    let loads = loads.map(|(offered_per_s, (sleeping, polling))| IdleLoad { offered_per_s, sleeping, polling });
    Ok(IdleFigures { processors, loads: loads.collect() })
}

fn measure_load(
    parameters: &IdleParameters,
    rate: Option<f64>,
    (place, pool): (&Place, &BufferPool),
    processors: Processors,
    router: &mut RouterProcess,
    stop: &AtomicBool,
) -> Result<IdleTurn, LinksError> {
    let load = &parameters.load;
    let mut plan: ConsumerPlan = load.consumer();
    if let Some(per_second) = rate {
        let per_second = per_second.max(NEXT_TO_NONE);
        plan.pacing = Pacing::Rate { per_second, poisson: true, max_in_flight: load.in_flight };
    }
    let generator = Generator::start(place, pool, &plan, &load.producer(), processors.generator)?;
    let first_exchanges = rate.map_or(1_000, |rate| (rate / 10.0) as u64).min(1_000);
    let ready = generator.wait_for_data(first_exchanges, START_TIMEOUT, || router.check());
    ready.map_err(|error| nothing(error, place.kind, &router.log()))?;
    generator.wait(REST, stop);
    let measured = turn(&generator, parameters.turn, stop, || router.status())?;
    let counts = &measured.load.counts;
    let rtt = Some(&counts.rtt_ns).filter(|rtt| !rtt.is_empty());
    let rtt_us = |percentile| rtt.map(|rtt| rtt.value_at_percentile(percentile) as f64 / 1e3);
    Ok(IdleTurn {
        exchanges_per_s: measured.exchanges_per_s(),
        lost: counts.timeouts + counts.not_sent,
        processor_share: measured.processor_share(),
        rtt_p50_us: rtt_us(50.0),
        rtt_p99_us: rtt_us(99.0),
        rtt_max_us: rtt_us(100.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_what_takes_longer() {
        let turn = |rtt_us: Option<f64>| IdleTurn {
            exchanges_per_s: 1.0,
            lost: 0,
            processor_share: 0.1,
            rtt_p50_us: rtt_us,
            rtt_p99_us: rtt_us.map(|us| 3.0 * us),
            rtt_max_us: rtt_us,
        };
        let load =
            |sleeping, polling| IdleLoad { offered_per_s: Some(1.0), sleeping: turn(sleeping), polling: turn(polling) };
        assert_eq!(load(Some(50.0), Some(20.0)).added_us(), (Some(30.0), Some(90.0)));
        assert_eq!(load(None, Some(20.0)).added_us(), (None, None));
    }
}
