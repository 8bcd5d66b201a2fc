//! Cost to a worker of a disk that does not answer. Requests are measured without a second tier of the Content Store,
//! with a second tier on a working disk, and while the file system of that disk is frozen.
//!
//! Two workers get the same requests, one with a second tier and one without. They take turns of some milliseconds, so
//! that changes of the host's speed affect both alike. Every name is requested once: each request is a forwarded
//! Interest and its Data, which evicts another Data that is offered to the disk.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use namehop_disk::{DiskCache, DiskSettings, DiskTier, Worker as DiskWorker};
use namehop_engine::second_tier::{TierReport, TierState};
use namehop_orders::{Order, PathKind, ScheduleKind};
use serde::Serialize;

use super::requests::{Requests, Work};
use super::rig::Rig;
use super::rotation::PIECE;
use super::{EngineBench, EngineBenchError};
use crate::disk::Rate;
use crate::progress::{OnProgress, Progress};
use crate::schedule::{Buffers, EngineParameters};

/// Time limit for the disk to work, at the start and after a stall.
const PATIENCE: Duration = Duration::from_secs(60);
/// Script that freezes a file system for a fixed time. It ends in time even if no process waits for it.
const FREEZE: &str =
    r#"trap "" INT TERM HUP; fsfreeze --freeze "$1" || exit 1; echo frozen; sleep "$2"; exec fsfreeze --unfreeze "$1""#;

/// Parameters besides the load.
#[derive(Debug, Clone, PartialEq)]
pub struct StallParameters {
    /// File on a separate file system. A file that did not exist is created, and removed at the end.
    pub path: PathBuf,
    /// Size of the file, in bytes.
    pub capacity_bytes: u64,
    /// Measuring time with a working disk, per round.
    pub working: Duration,
    /// Time for which the file system is frozen, per round.
    pub frozen: Duration,
    /// Number of rounds.
    pub rounds: usize,
}

/// Results. Costs are time-stamp counter ticks per request: an Interest and its Data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StallFigures {
    /// Duration of each stall, in seconds.
    pub frozen_s: f64,
    /// Number of stalls.
    pub stalls: u64,
    /// Cost without a second tier.
    pub without_cycles: Rate,
    /// Cost with a second tier on a working disk.
    pub working_cycles: Rate,
    /// Cost with a second tier during stalls.
    pub stalled_cycles: Rate,
    /// Ratio of the cost with a working disk to that without a second tier, in adjacent turns.
    pub working_ratio: Rate,
    /// Ratio of the cost during stalls to that without a second tier, in adjacent turns.
    pub stalled_ratio: Rate,
    /// The same ratio in the first second of the stalls, before the stall is detected.
    pub first_second_ratio: Rate,
    /// Share of evicted Data that the working disk stored.
    pub stored_share: f64,
}

/// A turn of each worker, in ticks per request.
#[derive(Debug, Clone, Copy)]
struct Turn {
    without: f64,
    beside: f64,
    /// Time since the start of the phase (working or frozen).
    after: Duration,
}

impl EngineBench {
    /// Runs the measurement; `on_progress` is called with each step.
    ///
    /// # Errors
    /// Fails if the file system may not or cannot be frozen, if a router cannot be set up, or if an Interest or Data is
    /// lost.
    pub fn run_stalls(
        &self,
        parameters: &EngineParameters,
        of: &StallParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<StallFigures, EngineBenchError> {
        let is_new = !of.path.exists();
        let figures = check_freezable(&of.path).and_then(|()| self.measure_stalls(parameters, of, on_progress));
        if is_new {
            // A new file is removed. An error here does not matter, because the measurement is done.
            let _ = fs::remove_file(&of.path);
        }
        figures
    }

    fn measure_stalls(
        &self,
        parameters: &EngineParameters,
        of: &StallParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<StallFigures, EngineBenchError> {
        let tell = |what: String, done, total| on_progress(Progress { what, done, total });
        let parameters = EngineParameters { buffers: Buffers::Near, workers: 1, ..parameters.clone() };
        let mut without = self.warm_worker(&parameters, None, &tell)?;
        let settings =
            DiskSettings { path: of.path.clone(), capacity_bytes: of.capacity_bytes, keep: false, read_timeout_ms: 50 };
        let worker = DiskWorker { wake: Box::new(|| {}), started: Instant::now() };
        let (cache, mut tiers) = DiskCache::start(settings, self.key, vec![worker], |_| 0)?;
        let mut beside = self.warm_worker(&parameters, tiers.pop(), &tell)?;
        let (mut working, mut stalled, mut stored) = (Vec::new(), Vec::new(), [0, 0]);
        for round in 1..=of.rounds {
            wait_until_it_works(&mut beside)?;
            let before = report(&beside).counters;
            let begun = Instant::now();
            tell(format!("round {round} of {}: disk working", of.rounds), 0, 0);
            while begun.elapsed() < of.working {
                working.push(turn(&mut without, &mut beside, begun)?);
            }
            let after = report(&beside).counters;
            stored[0] += after.stored - before.stored;
            stored[1] += after.not_stored - before.not_stored;
            tell(format!("round {round} of {}: freezing the file system", of.rounds), 0, 0);
            let frozen = Frozen::begin(&of.path, of.frozen)?;
            tell(format!("round {round} of {}: frozen for {} s", of.rounds, of.frozen.as_secs_f64()), 0, 0);
            while frozen.begun.elapsed() + 2 * PIECE < of.frozen {
                stalled.push(turn(&mut without, &mut beside, frozen.begun)?);
            }
            frozen.end()?;
        }
        wait_until_it_works(&mut beside)?;
        let stalls = report(&beside).status.counters.stalls;
        if stalls < of.rounds as u64 {
            return Err(EngineBenchError::Freeze(format!(
                "the disk stalled only {stalls} times in {} rounds",
                of.rounds
            )));
        }
        // `finish` checks that no packet was lost.
        without.finish()?;
        beside.finish()?;
        cache.stop();
        let costs = |turns: &[Turn], cost: fn(&Turn) -> f64| Rate::of(&turns.iter().map(cost).collect::<Vec<_>>());
        let ratio = |turn: &Turn| turn.beside / turn.without;
        let first: Vec<Turn> = stalled.iter().copied().filter(|turn| turn.after < Duration::from_secs(1)).collect();
        Ok(StallFigures {
            frozen_s: of.frozen.as_secs_f64(),
            stalls,
            without_cycles: costs(&stalled, |turn| turn.without),
            working_cycles: costs(&working, |turn| turn.beside),
            stalled_cycles: costs(&stalled, |turn| turn.beside),
            working_ratio: costs(&working, ratio),
            stalled_ratio: costs(&stalled, ratio),
            first_second_ratio: costs(&first, ratio),
            stored_share: stored[0] as f64 / (stored[0] + stored[1]).max(1) as f64,
        })
    }

    /// Creates a worker with a full cache, with or without a second tier.
    fn warm_worker<'a>(
        &'a self,
        parameters: &'a EngineParameters,
        tier: Option<DiskTier>,
        tell: &dyn Fn(String, u64, u64),
    ) -> Result<Requests<'a>, EngineBenchError> {
        let pool = self.pools.first().cloned();
        let pool = pool.ok_or_else(|| EngineBenchError::Rig("no worker is configured".to_owned()))?;
        let order = Order::new(ScheduleKind::Burst, PathKind::Whole);
        let mut rig = Rig::new(&self.prefixes.fib, self.key, pool, parameters, order)?;
        let with = if tier.is_some() { "with" } else { "without" };
        if let Some(tier) = tier {
            rig.use_second_tier(Box::new(tier));
        }
        // No name is requested twice.
        let mut next = 0;
        let next = move || {
            next += 1;
            next
        };
        let mut worker = Requests::new(rig, &self.prefixes, parameters, Box::new(next));
        let warm_up = 2 * parameters.cs_capacity as u64;
        worker
            .warm_up(&|done, _| done >= warm_up, &|done| tell(format!("{with} a disk: warming up"), done, warm_up))?;
        Ok(worker)
    }
}

/// Report of the worker's second tier.
fn report(beside: &Requests<'_>) -> TierReport {
    beside.disk_report().unwrap_or_default()
}

fn turn(without: &mut Requests<'_>, beside: &mut Requests<'_>, begun: Instant) -> Result<Turn, EngineBenchError> {
    let after = begun.elapsed();
    let per_request = |Work { ticks, requests, .. }: Work| ticks as f64 / requests.max(1) as f64;
    let without = per_request(without.measure(PIECE)?);
    Ok(Turn { without, beside: per_request(beside.measure(PIECE)?), after })
}

fn wait_until_it_works(beside: &mut Requests<'_>) -> Result<(), EngineBenchError> {
    let deadline = Instant::now() + PATIENCE;
    while report(beside).status.state != TierState::Working {
        if Instant::now() > deadline {
            let state = report(beside).status.state;
            return Err(EngineBenchError::Freeze(format!("the disk cache did not recover: its state is {state}")));
        }
        beside.measure(Duration::from_millis(1))?;
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Returns the folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Checks that the file system may be frozen: the host and this program must not run on it.
fn check_freezable(path: &Path) -> Result<(), EngineBenchError> {
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev());
    let of_file = device(folder(path)).map_err(|error| EngineBenchError::Freeze(error.to_string()))?;
    let (program, here) = (std::env::current_exe().ok(), std::env::current_dir().ok());
    let others = ["/", "/etc", "/home", "/root", "/run", "/tmp", "/usr", "/var", "/var/log", "/var/tmp"];
    let others = others.iter().map(PathBuf::from).chain(program).chain(here);
    match others.into_iter().find(|other| device(other).is_ok_and(|device| device == of_file)) {
        Some(other) => Err(EngineBenchError::Freeze(format!(
            "{} is on the same file system as {}, which must not be frozen; give a file on a separate file system",
            path.display(),
            other.display()
        ))),
        None => Ok(()),
    }
}

/// A file system that is frozen for a fixed time.
struct Frozen {
    child: Child,
    begun: Instant,
}

impl Frozen {
    /// Freezes the file system of a file.
    fn begin(path: &Path, time: Duration) -> Result<Self, EngineBenchError> {
        let failed = |error: std::io::Error| EngineBenchError::Freeze(error.to_string());
        let mut child = Command::new("sh")
            .args(["-c", FREEZE, "sh"])
            .arg(folder(path))
            .arg(time.as_secs_f64().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(failed)?;
        }
        let frozen = Frozen { child, begun: Instant::now() };
        if line.trim() != "frozen" {
            return Err(EngineBenchError::Freeze(
                "cannot freeze the file system: this needs root, the program fsfreeze, and a file system such as ext4 \
                 or XFS"
                    .to_owned(),
            ));
        }
        Ok(frozen)
    }

    /// Waits until the file system is unfrozen.
    fn end(mut self) -> Result<(), EngineBenchError> {
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(EngineBenchError::Freeze(
                "the file system may still be frozen; run 'fsfreeze --unfreeze'".to_owned(),
            )),
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // Waits in any case, because later code may write to that file system.
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_computer_runs_on_is_not_frozen() {
        let here = tempfile::tempdir().expect("a folder");
        let refused = check_freezable(&here.path().join("cache"));
        let Err(EngineBenchError::Freeze(reason)) = refused else { panic!("{refused:?}") };
        assert!(reason.contains("a separate file system"), "{reason}");
        assert!(matches!(check_freezable(Path::new("/no/such/folder/cache")), Err(EngineBenchError::Freeze(_))));
    }
}
