//! The power meter: looks once a second at the energy counters, or at what workers do, and keeps what came of it. On the control
//! thread; workers only say what they have done, as for `namehop status`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tracing::{info, warn};

use namehop_manage::server::{PowerPart, PowerStatus};
use namehop_model::power::server::Server;

use super::estimate::{Work, energies, estimate};
use super::powercap::{Powercap, PowercapError};

/// Time between two looks.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Looks between two searches for counters that have vanished.
const SEARCH_AFTER: u32 = 60;
/// Longest time between two looks whose energy is taken: in more, a counter may have gone round more than once.
const MAX_GAP: Duration = Duration::from_secs(30);
/// Shortest: shorter ones say nothing of power.
const MIN_GAP: Duration = Duration::from_millis(10);

/// What the power of this computer is known from.
pub struct Meter {
    root: PathBuf,
    counters: Option<Powercap>,
    /// For estimates while there are no counters.
    server: Option<Server>,
    /// When it was looked last, and what the workers had done by then.
    before: Option<(Instant, Work)>,
    looks_without_counters: u32,
    /// Energy of each part so far, in microjoules.
    totals: Vec<(String, u64)>,
}

impl Meter {
    /// A meter, if there are counters below `root` that this user may read, or a description of the computer.
    pub fn new(root: &Path, server: Option<Server>) -> Option<Self> {
        let counters = find(root);
        match (&counters, &server) {
            (Some(_), _) => info!("the power of this computer is measured"),
            (None, Some(server)) => info!(server = server.name, "the power of this computer is estimated"),
            (None, None) => return None,
        }
        let root = root.to_owned();
        Some(Meter { root, counters, server, before: None, looks_without_counters: 0, totals: Vec::new() })
    }

    /// Looks again. `None` when nothing can be told, as at the first look.
    pub fn look(&mut self, now: Instant, work: Work) -> Option<PowerStatus> {
        let (then, before) = self.before.replace((now, work)).unzip();
        // Counters are read at every look, so that the next one has a start. Those just found have been.
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

    /// Energy by the counters; `None` without them.
    fn read_counters(&mut self) -> Option<Vec<(String, u64)>> {
        match self.counters.as_mut()?.read() {
            Ok(used) => Some(used.into_iter().map(|zone| (zone.name, zone.microjoules)).collect()),
            Err(error) => {
                warn!("the power of this computer is not measured any more: {error}{}", remedy(&error));
                self.counters = None;
                None
            }
        }
    }

    /// Looks for counters that have vanished, from time to time; says whether they are there again.
    fn search_again(&mut self) -> bool {
        if self.counters.is_some() {
            return false;
        }
        self.looks_without_counters += 1;
        if self.looks_without_counters.is_multiple_of(SEARCH_AFTER) {
            // What is wrong was said the first time.
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
            info!("the power of this computer is not measured: {error}{}", remedy(&error));
            None
        }
    }
}

/// What to do next.
fn remedy(error: &PowercapError) -> &'static str {
    match error.source.kind() {
        io::ErrorKind::PermissionDenied => "; docs/power.md says how the router's user may read it",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
