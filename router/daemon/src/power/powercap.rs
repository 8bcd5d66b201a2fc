//! Energy counters of CPUs (RAPL), from `/sys/class/powercap`: one folder for each zone, with its name, a counter of
//! microjoules (`energy_uj`) and the value at which it wraps to 0 (`max_energy_range_uj`).
//!
//! Zones `intel-rapl:N` are CPU packages (`package-N`; AMD's too). Zones `intel-rapl:N:M` are parts of a package,
//! except for its memory (`dram`). Packages and memory are counted. Parts of a package (`core`, `uncore`), the whole
//! platform (`psys`), and duplicates (`intel-rapl-mmio`) are not. Since Linux 5.10 only root can read the counters,
//! unless their modes are changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folder of the counters.
pub const POWERCAP: &str = "/sys/class/powercap";

/// Most bytes that are read of each of these files.
const MAX_BYTES: u64 = 64;

/// The reason why energy cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct PowercapError {
    /// The file.
    path: PathBuf,
    /// Error of the operating system, or that the content is not a number.
    pub source: io::Error,
}

/// An energy counter.
#[derive(Debug)]
struct Zone {
    name: String,
    counter: PathBuf,
    /// The value at which the counter wraps to 0, in microjoules.
    range_uj: u64,
    last_uj: u64,
}

/// Energy that a zone has used since the last reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneEnergy {
    /// Name of the zone: `package-0`, `dram-0`.
    pub name: String,
    /// Energy in microjoules.
    pub microjoules: u64,
}

/// All energy counters of a host.
#[derive(Debug)]
pub struct Powercap(Vec<Zone>);

impl Powercap {
    /// Searches for the counters below `root`, which is [`POWERCAP`] except in tests. `None` if there are none.
    ///
    /// # Errors
    /// There are counters that cannot be read.
    pub fn find(root: &Path) -> Result<Option<Self>, PowercapError> {
        let Ok(entries) = fs::read_dir(root) else { return Ok(None) };
        let mut zones = Vec::new();
        for entry in entries.flatten() {
            let folder = entry.path();
            let Some(number) =
                entry.file_name().to_str().and_then(|name| name.strip_prefix("intel-rapl:")).map(str::to_owned)
            else {
                continue;
            };
            let Ok(kind) = read(&folder.join("name")) else { continue };
            let name = match number.split_once(':') {
                None if kind.starts_with("package") => kind,
                Some((package, _)) if kind == "dram" => format!("dram-{package}"),
                _ => continue,
            };
            let range_uj = read_number(&folder.join("max_energy_range_uj"))?;
            let counter = folder.join("energy_uj");
            let last_uj = read_number(&counter)?;
            zones.push(Zone { name, counter, range_uj, last_uj });
        }
        zones.sort_by(|one, other| one.name.cmp(&other.name));
        Ok((!zones.is_empty()).then_some(Powercap(zones)))
    }

    /// Returns the energy since the last call, or since the counters were found.
    ///
    /// # Errors
    /// A counter can no longer be read; then call [`find`](Self::find) again.
    pub fn read(&mut self) -> Result<Vec<ZoneEnergy>, PowercapError> {
        let mut energies = Vec::with_capacity(self.0.len());
        for zone in &mut self.0 {
            let now_uj = read_number(&zone.counter)?;
            energies
                .push(ZoneEnergy { name: zone.name.clone(), microjoules: since(zone.last_uj, now_uj, zone.range_uj) });
            zone.last_uj = now_uj;
        }
        Ok(energies)
    }
}

/// Returns the difference of two readings of a counter that wraps at `range`.
fn since(last: u64, now: u64, range: u64) -> u64 {
    match now.checked_sub(last) {
        Some(counted) => counted,
        None => range.saturating_sub(last).saturating_add(now),
    }
}

fn read(path: &Path) -> Result<String, PowercapError> {
    let failed = |source| PowercapError { path: path.to_owned(), source };
    let mut text = String::new();
    let file = fs::File::open(path).map_err(failed)?;
    io::Read::read_to_string(&mut io::Read::take(file, MAX_BYTES), &mut text).map_err(failed)?;
    Ok(text.trim().to_owned())
}

fn read_number(path: &Path) -> Result<u64, PowercapError> {
    let text = read(path)?;
    text.parse().map_err(|_| PowercapError {
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidData, format!("'{text}' is not a number")),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A folder like that of Linux.
    pub struct FakePowercap(tempfile::TempDir);

    impl FakePowercap {
        pub fn new() -> Self {
            FakePowercap(tempfile::tempdir().expect("a folder"))
        }

        pub fn root(&self) -> &Path {
            self.0.path()
        }

        pub fn zone(&self, folder: &str, name: &str, range: &str, energy: &str) {
            let folder = self.root().join(folder);
            fs::create_dir_all(&folder).expect("made");
            for (file, text) in [("name", name), ("max_energy_range_uj", range), ("energy_uj", energy)] {
                fs::write(folder.join(file), format!("{text}\n")).expect("written");
            }
        }

        pub fn remove(&self, folder: &str) {
            fs::remove_dir_all(self.root().join(folder)).expect("removed");
        }
    }

    fn energies(powercap: &mut Powercap) -> Vec<(String, u64)> {
        powercap.read().expect("readable").into_iter().map(|energy| (energy.name, energy.microjoules)).collect()
    }

    #[test]
    fn packages_and_memory_are_counted_once() {
        let fake = FakePowercap::new();
        fake.zone("intel-rapl:1", "package-1", "1000", "10");
        fake.zone("intel-rapl:0", "package-0", "1000", "20");
        fake.zone("intel-rapl:0:0", "core", "1000", "1");
        fake.zone("intel-rapl:0:1", "dram", "1000", "30");
        fake.zone("intel-rapl:2", "psys", "1000", "50");
        fake.zone("intel-rapl-mmio:0", "package-0", "1000", "20");
        fs::create_dir(fake.root().join("intel-rapl")).expect("made");
        let mut powercap = Powercap::find(fake.root()).expect("readable").expect("counters");
        fake.zone("intel-rapl:0", "package-0", "1000", "25");
        fake.zone("intel-rapl:0:1", "dram", "1000", "31");
        let expected =
            [("dram-0", 1), ("package-0", 5), ("package-1", 0)].map(|(name, energy)| (name.to_owned(), energy));
        assert_eq!(energies(&mut powercap), expected);
        assert!(energies(&mut powercap).iter().all(|(_, energy)| *energy == 0));
    }

    #[test]
    fn counters_start_again_from_zero() {
        let fake = FakePowercap::new();
        fake.zone("intel-rapl:0", "package-0", "262143328850", "262143328000");
        let mut powercap = Powercap::find(fake.root()).expect("readable").expect("counters");
        fake.zone("intel-rapl:0", "package-0", "262143328850", "150");
        assert_eq!(energies(&mut powercap), [("package-0".to_owned(), 1000)]);
        // The last value is above the range: only the count since 0 is known.
        assert_eq!(since(200, 7, 100), 7);
    }

    #[test]
    fn counters_may_vanish() {
        let fake = FakePowercap::new();
        fake.zone("intel-rapl:0", "package-0", "1000", "1");
        let mut powercap = Powercap::find(fake.root()).expect("readable").expect("counters");
        fake.remove("intel-rapl:0");
        let error = powercap.read().expect_err("a removed counter is an error");
        assert_eq!(error.source.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("intel-rapl:0/energy_uj"), "{error}");
        assert!(Powercap::find(fake.root()).expect("readable").is_none());
    }

    #[test]
    fn hosts_without_counters_have_none() {
        assert!(Powercap::find(Path::new("/nonexistent")).expect("readable").is_none());
        let fake = FakePowercap::new();
        assert!(Powercap::find(fake.root()).expect("readable").is_none());
        // The folder of a zone without a name is ignored.
        fs::create_dir(fake.root().join("intel-rapl:0")).expect("made");
        assert!(Powercap::find(fake.root()).expect("readable").is_none());
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let fake = FakePowercap::new();
        fake.zone("intel-rapl:0", "package-0", "1000", "many");
        let error = Powercap::find(fake.root()).expect_err("a counter that is not a number is an error").to_string();
        assert!(error.ends_with("intel-rapl:0/energy_uj: 'many' is not a number"), "{error}");
        fake.zone("intel-rapl:0", "package-0", "1000", &"9".repeat(100));
        assert!(Powercap::find(fake.root()).is_err());
        fs::remove_file(fake.root().join("intel-rapl:0/energy_uj")).expect("removed");
        // Reading a folder fails for every user, as reading a file without permission does for all except root.
        fs::create_dir(fake.root().join("intel-rapl:0/energy_uj")).expect("made");
        assert!(Powercap::find(fake.root()).is_err());
    }

    proptest! {
        #[test]
        fn counted_is_what_was_added(start in 0..1000_u64, added in 0..1000_u64) {
            // A counter from 0 to 999.
            prop_assert_eq!(since(start, (start + added) % 1000, 1000), added);
        }
    }
}
