//! The power meter: reads the energy counters, or the work of the workers, once a second, and keeps the result. Runs on
//! the control thread; workers only report their status, as for `namehop status`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use namehop_client::nfd::{PowerPart, PowerStatus};
use tracing::{info, warn};

use namehop_power::server::Server;

use super::estimate::{Work, energies, estimate};
use super::powercap::{Powercap, PowercapError};

/// Time between two readings.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Number of readings between two searches for counters that vanished.
const SEARCH_AFTER: u32 = 60;
/// Longest time between two readings for which energy is counted: a counter may wrap more than once in a longer time.
const MAX_GAP: Duration = Duration::from_secs(30);
/// Shortest time: power over a shorter one is not meaningful.
const MIN_GAP: Duration = Duration::from_millis(10);

/// The power meter of this host.
pub struct Meter {
    root: PathBuf,
    counters: Option<Powercap>,
    /// Server description, for estimates while there are no counters.
    server: Option<Server>,
    /// Time of the last reading, and the work of the workers up to it.
    before: Option<(Instant, Work)>,
    checks_without_counters: u32,
    /// Energy of each part since the start, in microjoules.
    totals: Vec<(String, u64)>,
}

impl Meter {
    /// Creates a meter; `None` if there are neither readable counters below `root` nor a server description.
    pub fn new(root: &Path, server: Option<Server>) -> Option<Self> {
        let counters = find(root);
        match (&counters, &server) {
            (Some(_), _) => info!("measuring the power of this host"),
            (None, Some(server)) => info!(server = server.name, "estimating the power of this host"),
            (None, None) => return None,
        }
        let root = root.to_owned();
        Some(Meter { root, counters, server, before: None, checks_without_counters: 0, totals: Vec::new() })
    }

    /// Takes a reading. `None` if no result is possible, as at the first reading.
    pub fn look(&mut self, now: Instant, work: Work) -> Option<PowerStatus> {
        let (then, before) = self.before.replace((now, work)).unzip();
        // Read counters at every reading, so that the next one has a starting value. Newly found counters have just
        // been read.
        let measured = if self.search_again() { None } else { self.read_counters() };
        let elapsed = now.saturating_duration_since(then?);
        if !(MIN_GAP..=MAX_GAP).contains(&elapsed) {
            return None;
        }
        let (elapsed_s, done) = (elapsed.as_secs_f64(), work.since(&before?));
        if let Some(used) = measured {
            return Some(self.status(None, used, elapsed_s, done.packets));
        }
        let server = self.server.as_ref()?;
        let name = server.name.clone();
        let used = energies(&estimate(server, &done, elapsed_s)?, elapsed_s);
        let used = used.map(|(part, microjoules)| (part.to_owned(), microjoules)).to_vec();
        Some(self.status(Some(name), used, elapsed_s, done.packets))
    }

    /// Returns the energy since the last reading by the counters; `None` without counters.
    fn read_counters(&mut self) -> Option<Vec<(String, u64)>> {
        match self.counters.as_mut()?.read() {
            Ok(used) => Some(used.into_iter().map(|zone| (zone.name, zone.microjoules)).collect()),
            Err(error) => {
                warn!("stopped measuring the power of this host: {error}{}", remedy(&error));
                self.counters = None;
                None
            }
        }
    }

    /// Searches at intervals for counters that vanished. Returns whether there are counters that were just found.
    fn search_again(&mut self) -> bool {
        if self.counters.is_some() {
            return false;
        }
        self.checks_without_counters += 1;
        if self.checks_without_counters.is_multiple_of(SEARCH_AFTER) {
            // Errors were logged the first time.
            self.counters = Powercap::find(&self.root).ok().flatten();
        }
        self.counters.is_some()
    }

    fn status(
        &mut self,
        estimated_with: Option<String>,
        used: Vec<(String, u64)>,
        elapsed_s: f64,
        packets: u64,
    ) -> PowerStatus {
        let all_uj: u64 = used.iter().fold(0, |sum, (_, energy)| sum.saturating_add(*energy));
        let parts = used.into_iter().map(|(name, microjoules)| {
            let total = match self.totals.iter_mut().find(|(part, _)| *part == name) {
                Some((_, total)) => {
                    *total = total.saturating_add(microjoules);
                    *total
                }
                None => {
                    self.totals.push((name.clone(), microjoules));
                    microjoules
                }
            };
            PowerPart {
                name,
                milliwatts: (microjoules as f64 / elapsed_s / 1e3).round() as u64,
                millijoules: total / 1000,
            }
        });
        let parts = parts.collect();
        let nanojoules_per_packet = all_uj.saturating_mul(1000).checked_div(packets);
        PowerStatus { estimated_with, nanojoules_per_packet, parts }
    }
}

fn find(root: &Path) -> Option<Powercap> {
    match Powercap::find(root) {
        Ok(found) => found,
        Err(error) => {
            info!("cannot measure the power of this host: {error}{}", remedy(&error));
            None
        }
    }
}

/// Returns the remedy for an error, as the end of a message.
fn remedy(error: &PowercapError) -> &'static str {
    match error.source.kind() {
        io::ErrorKind::PermissionDenied => "; docs/power.md describes how to let the router's user read it",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
