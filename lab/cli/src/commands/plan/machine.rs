//! The host of a plan: measured, published or described.

use std::path::{Path, PathBuf};

use clap::Args;
use namehop_bench::machine::available_memory_bytes;
use namehop_model::plan::Machine;
use namehop_model::throughput::{Cost, Host, PacketCosts};
use namehop_power::description::read_server;
use namehop_power::server::Server;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use namehop_cli::failure::Failure;
use namehop_cli::units::{parse_bit_rate, parse_bytes};

/// Bytes of a cache line.
const LINE_BYTES: f64 = 64.0;
/// Name of the host for which the publications give costs of packets.
const PUBLISHED: &str = "e5-2699v4";
/// Schedule of the router.
const SCHEDULE: &str = "burst";

/// Options that describe the host.
#[derive(Args, Debug)]
pub struct MachineArgs {
    /// 'e5-2699v4', the host and packet costs of Takemasa's thesis (2019), or a TOML file that describes a host
    #[arg(short, long, value_name = "NAME|FILE", conflicts_with = "engine")]
    machine: Option<String>,
    /// Output of 'namehop bench engine --json' on the host, with as many prefixes as planned (--fib)
    #[arg(long, value_name = "FILE", requires = "memory")]
    engine: Option<PathBuf>,
    /// Output of 'namehop bench memory --json' on the same host
    #[arg(long, value_name = "FILE", requires = "engine")]
    memory: Option<PathBuf>,
    /// Number of forwarding cores [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    workers: Option<u32>,
    /// Additional cycles of ports per packet received, including what is sent for it: half of what the sink of 'namehop
    /// bench links' takes per exchange
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    port_cycles: u32,
    /// Memory of the host [default: as described, or what is free on this host]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    ram: Option<u64>,
    /// Total rate of the host's links, in each direction [default: unlimited]
    #[arg(long, value_name = "RATE", value_parser = parse_bit_rate)]
    links: Option<u64>,
    /// Power of the host: a published server ('namehop power server' lists them), or a file that describes one
    #[arg(long, value_name = "NAME|FILE")]
    server: Option<String>,
}

/// A host, and the source of its figures.
pub struct Described {
    pub is: String,
    pub machine: Machine,
    pub server: Option<Server>,
}

/// Description of a host in the operator's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    /// Name of the host.
    name: String,
    /// Number of forwarding cores.
    workers: u32,
    cycles_hz: f64,
    /// Rate of random cache-line accesses by all cores together.
    memory_bytes_per_second: f64,
    /// With a unit, as in "64 GiB".
    memory: String,
    /// As in "100Gbit/s"; if absent, links are unlimited.
    links: Option<String>,
    interest_miss: DescribedCost,
    interest_hit: DescribedCost,
    data: DescribedCost,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedCost {
    cycles: f64,
    bytes: f64,
}

/// The fields used of a report of `bench engine`.
#[derive(Debug, Deserialize)]
struct EngineReport {
    machine: MeasuredMachine,
    fib_prefixes: u64,
    schedules: Vec<MeasuredSchedule>,
}

#[derive(Debug, Deserialize)]
struct MeasuredMachine {
    processor: String,
    cores: u32,
    cycles_hz: f64,
}

#[derive(Debug, Deserialize)]
struct MeasuredSchedule {
    schedule: String,
    exchange_ns: f64,
    total_cycles: ByPacket,
    lines: ByPacket,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct ByPacket {
    interest_miss: f64,
    interest_hit: f64,
    data: f64,
}

/// The fields used of a report of `bench memory`.
#[derive(Debug, Deserialize)]
struct MemoryReport {
    by_pages: Vec<MeasuredPages>,
}

#[derive(Debug, Deserialize)]
struct MeasuredPages {
    lines_per_second_by_threads: Vec<MeasuredThreads>,
}

#[derive(Debug, Deserialize)]
struct MeasuredThreads {
    lines_per_second: f64,
}

impl MachineArgs {
    /// Returns the host with all options applied. Measurements without cache hits are accepted only if `hit_rate` is 0.
    pub fn read(&self, hit_rate: f64) -> Result<Described, Failure> {
        let (is, mut machine) = match (&self.machine, &self.engine, &self.memory) {
            (Some(name), ..) if name == PUBLISHED => {
                ("E5-2699 v4, packet costs of Takemasa (2019)".to_owned(), published())
            }
            (Some(path), ..) => described(Path::new(path))?,
            (None, Some(engine), Some(memory)) => self.measured(engine, memory, hit_rate)?,
            _ => {
                return Err(Failure::usage(format!(
                    "no host given: give --machine {PUBLISHED}, --machine FILE, or --engine and --memory with the \
                     output of 'namehop bench engine --json' and 'namehop bench memory --json'"
                )));
            }
        };
        if let Some(workers) = self.workers {
            machine.computer.cores = workers;
        }
        let PacketCosts { interest_miss, interest_hit, data } = &mut machine.costs;
        [interest_miss, interest_hit, data].into_iter().for_each(|cost| cost.cycles += f64::from(self.port_cycles));
        if let Some(bytes) = self.ram {
            machine.memory_bytes = bytes as f64;
        }
        if let Some(rate) = self.links {
            machine.link_bits_per_second = rate as f64;
        }
        check(&machine)?;
        let server = self.server.as_deref().map(read_server).transpose().map_err(Failure::usage)?;
        Ok(Described { is, machine, server })
    }

    fn measured(&self, engine: &Path, memory: &Path, hit_rate: f64) -> Result<(String, Machine), Failure> {
        let report: EngineReport = read_json(engine, "namehop bench engine --json")?;
        let memory: MemoryReport = read_json(memory, "namehop bench memory --json")?;
        let schedule = report.schedules.iter().find(|measured| measured.schedule == SCHEDULE).ok_or_else(|| {
            Failure::usage(format!(
                "{}: the schedule '{SCHEDULE}' is missing, which the router uses; measure it",
                engine.display()
            ))
        })?;
        let (cycles, lines) = (&schedule.total_cycles, &schedule.lines);
        if hit_rate > 0.0 && cycles.interest_hit <= 0.0 {
            return Err(Failure::usage(format!(
                "{}: cache hits were not measured; measure with --hit-ratio {hit_rate:.2}, or plan with --hit-rate 0",
                engine.display()
            )));
        }
        // Bursts of one kind give the ratio of the costs, mixed bursts the cost of an exchange.
        let scale = schedule.exchange_ns * 1e-9 * report.machine.cycles_hz / (cycles.interest_miss + cycles.data);
        let cost = |cycles: f64, lines: f64| Cost { cycles: cycles * scale, bytes: lines * LINE_BYTES };
        let threads = memory.by_pages.first().map_or(&[][..], |pages| &pages.lines_per_second_by_threads);
        let lines_per_second = threads.iter().map(|rate| rate.lines_per_second).fold(0.0, f64::max);
        let machine = Machine {
            computer: Host {
                cores: report.machine.cores,
                hz: report.machine.cycles_hz,
                memory_bytes_per_second: lines_per_second * LINE_BYTES,
            },
            memory_bytes: available_memory_bytes().unwrap_or(0) as f64,
            link_bits_per_second: f64::INFINITY,
            costs: PacketCosts {
                interest_miss: cost(cycles.interest_miss, lines.interest_miss),
                interest_hit: cost(cycles.interest_hit, lines.interest_hit),
                data: cost(cycles.data, lines.data),
            },
        };
        Ok((format!("{}, measured with {} prefixes", report.machine.processor, report.fib_prefixes), machine))
    }
}

/// Returns the costs of table 3.1 and the host of section 3.2.3: 22 cores of 2.2 GHz and four channels of DDR4-2400.
fn published() -> Machine {
    let cost = |cycles, bytes| Cost { cycles, bytes };
    Machine {
        computer: Host { cores: 22, hz: 2.2e9, memory_bytes_per_second: 76.8e9 },
        memory_bytes: f64::from(256 << 20) * 1024.0,
        link_bits_per_second: f64::INFINITY,
        costs: PacketCosts {
            interest_miss: cost(1470.0, 909.0),
            interest_hit: cost(860.0, 511.0),
            data: cost(565.0, 816.0),
        },
    }
}

fn described(path: &Path) -> Result<(String, Machine), Failure> {
    let fault = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| fault(&error))?;
    let description: Description = toml::from_str(&text).map_err(|error| fault(&error))?;
    let links = description.links.as_deref().map(parse_bit_rate).transpose().map_err(|error| fault(&error))?;
    let cost = |cost: DescribedCost| Cost { cycles: cost.cycles, bytes: cost.bytes };
    let machine = Machine {
        computer: Host {
            cores: description.workers,
            hz: description.cycles_hz,
            memory_bytes_per_second: description.memory_bytes_per_second,
        },
        memory_bytes: parse_bytes(&description.memory).map_err(|error| fault(&error))? as f64,
        link_bits_per_second: links.map_or(f64::INFINITY, |rate| rate as f64),
        costs: PacketCosts {
            interest_miss: cost(description.interest_miss),
            interest_hit: cost(description.interest_hit),
            data: cost(description.data),
        },
    };
    Ok((format!("{}, described in {}", description.name, path.display()), machine))
}

/// Fails if a figure is not usable for computing.
fn check(machine: &Machine) -> Result<(), Failure> {
    let Machine { computer, costs, .. } = machine;
    let usual = [
        ("cores", f64::from(computer.cores)),
        ("cycles per second", computer.hz),
        ("bytes per second between memory and CPU", computer.memory_bytes_per_second),
        ("memory", machine.memory_bytes),
        ("link rate", machine.link_bits_per_second),
        ("cycles per Interest that misses the cache", costs.interest_miss.cycles),
        ("cycles per Data", costs.data.cycles),
    ];
    match usual.into_iter().find(|(_, value)| value.is_nan() || *value <= 0.0) {
        Some((what, value)) => Err(Failure::usage(format!("the host's {what} must be above 0, not {value}"))),
        None => Ok(()),
    }
}

fn read_json<T: DeserializeOwned>(path: &Path, command: &str) -> Result<T, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("{} is not output of '{command}': {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: MachineArgs,
    }

    fn read(line: &str, hit_rate: f64) -> Result<Described, Failure> {
        Line::try_parse_from(format!("machine {line}").split_whitespace()).expect("understood").args.read(hit_rate)
    }

    const DESCRIPTION: &str = r#"
name = "lab"
workers = 4
cycles_hz = 3e9
memory_bytes_per_second = 1e10
memory = "64 GiB"
links = "100Gbit/s"
interest_miss = { cycles = 1000, bytes = 600 }
interest_hit = { cycles = 700, bytes = 900 }
data = { cycles = 500, bytes = 1000 }
"#;

    #[test]
    fn a_description_is_read_and_can_be_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lab.toml");
        std::fs::write(&path, DESCRIPTION).expect("written");
        let line = format!("--machine {}", path.display());
        let Described { machine, server, .. } = read(&line, 0.5).expect("described");
        assert_eq!((machine.computer.cores, machine.link_bits_per_second), (4, 1e11));
        assert_eq!((machine.memory_bytes, machine.costs.data.bytes), (64.0 * f64::from(1 << 30), 1000.0));
        assert!(server.is_none());
        let changed =
            read(&format!("{line} --workers 2 --ram 1GiB --links 1Gbit --port-cycles 50 --server e3-1220"), 0.5)
                .expect("described");
        assert_eq!((changed.machine.costs.data.cycles, changed.machine.costs.interest_hit.cycles), (550.0, 750.0));
        assert_eq!((changed.machine.computer.cores, changed.machine.link_bits_per_second), (2, 1e9));
        assert!(changed.server.is_some());
        for (good, bad) in [
            ("workers = 4", "workers = 0"),
            ("3e9", "nan"),
            ("64 GiB", "much"),
            ("name", "nane"),
            ("100Gbit/s", "fast"),
        ] {
            std::fs::write(&path, DESCRIPTION.replace(good, bad)).expect("written");
            assert!(read(&line, 0.5).is_err(), "{bad}");
        }
    }

    #[test]
    fn measurements_are_scaled_to_an_exchange() {
        let folder = tempfile::tempdir().expect("a folder");
        let [engine, memory] = ["engine", "memory"].map(|name| folder.path().join(name));
        let by = |miss, hit, data| serde_json::json!({"interest_miss": miss, "interest_hit": hit, "data": data});
        let report = |hit: f64| {
            serde_json::json!({
                "machine": {"processor": "P", "cores": 2, "cycles_hz": 2e9, "last_level_cache_bytes": null},
                "fib_prefixes": 1000,
                "schedules": [
                    {
                        "schedule": "naive",
                        "exchange_ns": 2000.0,
                        "total_cycles": by(9.0, 9.0, 9.0),
                        "lines": by(1.0, 1.0, 1.0),
                    },
                    {
                        "schedule": "burst",
                        "exchange_ns": 900.0,
                        "total_cycles": by(1000.0, hit, 500.0),
                        "lines": by(6.0, 9.0, 12.0),
                    },
                ],
            })
            .to_string()
        };
        std::fs::write(&engine, report(800.0)).expect("written");
        let threads =
            serde_json::json!([{"threads": 1, "lines_per_second": 5e7}, {"threads": 2, "lines_per_second": 8e7}]);
        let pages = serde_json::json!({"by_pages": [{"lines_per_second_by_threads": threads}]});
        std::fs::write(&memory, pages.to_string()).expect("written");
        let line = format!("--engine {} --memory {} --ram 1GiB", engine.display(), memory.display());
        let machine = read(&line, 0.3).expect("measured").machine;
        // 900 ns are 1800 cycles, 1.2 times the cost in bursts of one kind.
        let PacketCosts { interest_miss, interest_hit, data } = machine.costs;
        assert!((interest_miss.cycles - 1200.0).abs() < 1e-6 && (data.cycles - 600.0).abs() < 1e-6);
        assert!((interest_hit.cycles - 960.0).abs() < 1e-6 && interest_miss.bytes == 384.0);
        assert_eq!(machine.computer.memory_bytes_per_second, 8e7 * 64.0);
        std::fs::write(&engine, report(0.0)).expect("written");
        assert!(read(&line, 0.3).is_err() && read(&line, 0.0).is_ok());
        std::fs::write(&memory, r#"{"by_pages": []}"#).expect("written");
        assert!(read(&line, 0.0).is_err(), "the memory rate must not be 0");
        std::fs::write(&memory, "{}").expect("written");
        assert!(read(&line, 0.0).is_err());
    }
}
