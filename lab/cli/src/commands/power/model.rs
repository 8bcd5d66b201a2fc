//! `namehop power model`: computes the power of a naive and an optimised router, by rate and device.

use std::path::PathBuf;

use clap::Args;
use namehop_model::router::{Router, Traffic};
use namehop_power::cpu::Assignment;
use namehop_power::description::read_server;
use namehop_power::server::{Load, Power, Server};
use namehop_reproduce::{Chart, ChartKind, Series};
use serde::Serialize;

use super::rates::Rates;
use namehop_cli::failure::Failure;
use namehop_cli::output::{self, Align, Table};

/// Server of the thesis's case study.
const DEFAULT_SERVER: &str = "e3-1220-xl710";

/// Compute the power of a naive and an optimised router, by rate and device
///
/// The naive router neither prefetches nor filters admissions to its cache; the optimised one does both. Power is that
/// of processors, memory and network cards above their idle power, and of the chassis, which includes all idle power.
/// The equations are 6.1 to 6.15 of Takemasa's thesis (2019). Values that it shows only in figures are reconstructed
/// from its tables: 'namehop reproduce figure-6.7 figure-6.8' lists them. This is a model of the published routers, not
/// a measurement of this one.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop power model
  namehop power model --rate 58Gbit/s
  namehop power model --server my-server.toml --rate 0..40Gbit/s --steps 8 --svg power.svg
  namehop power model --server e5620 --rate 1Mpps,2Mpps --hit-rate 0.3 --insertion-rate 0.1 --data-bytes 1143 --json")]
pub struct ModelArgs {
    /// A published server ('namehop power server' lists them), or a file that describes one
    #[arg(short, long, value_name = "NAME|FILE", default_value = DEFAULT_SERVER)]
    server: String,
    /// Rates of Data packets to the consumers (Gbit/s, Mbit/s, kbit/s, bit/s) or of Interests (Mpps, kpps, pps), or a
    /// range as in 0..58Gbit/s [default: from 0 to the maximum of the naive router]
    #[arg(short, long, value_name = "LIST", value_delimiter = ',')]
    rate: Vec<Rates>,
    /// Number of steps in a range
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    steps: u32,
    /// Share of the Interests that the Content Store answers, 0 to 1: one value for both routers, or two for the naive
    /// and the optimised one
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_value = "0.238,0.341")]
    hit_rate: Vec<f64>,
    /// Share of the Data that the optimised router inserts into its Content Store, 0 to 1; the naive one inserts all
    #[arg(long, value_name = "SHARE", default_value_t = 0.03)]
    insertion_rate: f64,
    /// Bytes of a Data packet
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..=65_535)
    )]
    data_bytes: u32,
    /// Bytes of an Interest; affects only IN and OUT
    #[arg(long, value_name = "BYTES", default_value_t = 121, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    interest_bytes: u32,
    /// Write a chart to this file, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A router with a kind of traffic.
#[derive(Debug, Clone, Copy, Serialize)]
struct Case {
    name: &'static str,
    hit_rate: f64,
    insertion_rate: f64,
    cycles_per_interest: f64,
    memory_bytes_per_interest: f64,
    /// Rate at which all cores are busy.
    most_interests_per_second: f64,
    #[serde(skip)]
    router: Router,
}

/// A router at a feasible rate.
#[derive(Debug, Serialize)]
struct Point {
    router: &'static str,
    /// Interests and Data on links, without headers below the Interest or Data.
    received_bits_per_second: f64,
    sent_bits_per_second: f64,
    load: Load,
    processors: Assignment,
    power: Power,
    total_watts: f64,
    /// Of the total power; absent at a rate of 0.
    nanojoules_per_interest: Option<f64>,
}

#[derive(Debug, Serialize)]
struct AtRate {
    interests_per_second: f64,
    data_bits_per_second: f64,
    /// Naive and optimised; null above the maximum of the processors.
    routers: Vec<Option<Point>>,
    /// Power saved by the optimised router.
    saved_percent: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Report {
    server: Server,
    data_bytes: u32,
    interest_bytes: u32,
    routers: Vec<Case>,
    rates: Vec<AtRate>,
}

impl ModelArgs {
    pub fn run(self) -> Result<(), Failure> {
        let server = read_server(&self.server).map_err(Failure::usage)?;
        let report = self.report(server)?;
        if let Some(path) = &self.svg {
            std::fs::write(path, chart(&report).to_svg())
                .map_err(|error| Failure::from(error).context(path.display()))?;
        }
        if self.json { output::json(&report) } else { output::print(&describe(&report)) }
    }

    fn report(&self, server: Server) -> Result<Report, Failure> {
        let is_share = |share: &f64| (0.0..=1.0).contains(share);
        let (naive_hits, optimised_hits) = match self.hit_rate[..] {
            [both] => (both, both),
            [naive, optimised] => (naive, optimised),
            _ => {
                return Err(Failure::usage(
                    "--hit-rate takes one share, or two: for the naive and for the optimised router",
                ));
            }
        };
        if !self.hit_rate.iter().all(is_share) || !is_share(&self.insertion_rate) {
            return Err(Failure::usage("--hit-rate and --insertion-rate must be from 0 to 1"));
        }
        let case = |name, router: Router, hit_rate, insertion_rate| {
            let cycles_per_interest = router.cycles.average(hit_rate, insertion_rate);
            let memory_bytes_per_interest = router.bytes.average(hit_rate, insertion_rate);
            let most_interests_per_second = server.cpu.capacity_hz() / cycles_per_interest;
            Case {
                name,
                hit_rate,
                insertion_rate,
                cycles_per_interest,
                memory_bytes_per_interest,
                most_interests_per_second,
                router,
            }
        };
        let naive = case("naive", Router::naive(), naive_hits, 1.0);
        let routers = vec![naive, case("optimised", Router::optimised(), optimised_hits, self.insertion_rate)];
        let data_bytes = f64::from(self.data_bytes);
        // Rounding in the division must not exceed the maximum.
        let all = [Rates::up_to(naive.most_interests_per_second * (1.0 - 1e-12))];
        let asked = if self.rate.is_empty() { &all[..] } else { &self.rate[..] };
        let rates = asked.iter().flat_map(|rates| rates.interests_per_second(self.steps, data_bytes));
        let rates = rates.map(|rate| self.at_rate(&server, &routers, rate)).collect();
        Ok(Report { server, data_bytes: self.data_bytes, interest_bytes: self.interest_bytes, routers, rates })
    }

    fn at_rate(&self, server: &Server, routers: &[Case], interests_per_second: f64) -> AtRate {
        let points: Vec<Option<Point>> =
            routers.iter().map(|case| self.point(server, case, interests_per_second)).collect();
        let saved_percent = match &points[..] {
            [Some(naive), Some(optimised)] if naive.total_watts > 0.0 => {
                Some(100.0 * (1.0 - optimised.total_watts / naive.total_watts))
            }
            _ => None,
        };
        let data_bits_per_second = 8.0 * f64::from(self.data_bytes) * interests_per_second;
        AtRate { interests_per_second, data_bits_per_second, routers: points, saved_percent }
    }

    fn point(&self, server: &Server, case: &Case, interests_per_second: f64) -> Option<Point> {
        let &Case { name, hit_rate, insertion_rate, ref router, .. } = case;
        let load = router.load(&Traffic { interests_per_second, hit_rate, insertion_rate });
        let processors = server.cpu.assign(load.cycles_per_second)?;
        let power = server.power(&load)?;
        let total_watts = power.total_watts();
        let (interest_bits, data_bits) = (8.0 * f64::from(self.interest_bytes), 8.0 * f64::from(self.data_bytes));
        let missed = 1.0 - hit_rate;
        Some(Point {
            router: name,
            received_bits_per_second: interests_per_second * (interest_bits + missed * data_bits),
            sent_bits_per_second: interests_per_second * (data_bits + missed * interest_bits),
            load,
            processors,
            power,
            total_watts,
            nanojoules_per_interest: (interests_per_second > 0.0).then(|| 1e9 * total_watts / interests_per_second),
        })
    }
}

fn describe(report: &Report) -> String {
    let Report { server, data_bytes, interest_bytes, routers, rates } = report;
    let mut text = format!("Server {}, Interests of {interest_bytes} and Data of {data_bytes} bytes\n", server.name);
    for case in routers {
        text.push_str(&format!(
            "{}: hit rate {}, insertion rate {}, {:.0} cycles and {:.0} bytes of memory per Interest, \
             at most {:.3} Mpps\n",
            case.name,
            case.hit_rate,
            case.insertion_rate,
            case.cycles_per_interest,
            case.memory_bytes_per_interest,
            case.most_interests_per_second / 1e6
        ));
    }
    let heads = [
        "MPPS",
        "DATA Gbit/s",
        "IN",
        "OUT",
        "CORES",
        "GHZ",
        "CPU, W",
        "MEMORY, W",
        "NIC, W",
        "CHASSIS, W",
        "ALL, W",
        "nJ EACH",
        "SAVED, %",
    ];
    let columns: Vec<(&str, Align)> =
        std::iter::once(("ROUTER", Align::Left)).chain(heads.map(|head| (head, Align::Right))).collect();
    let mut table = Table::new(&columns);
    for rate in rates {
        for (case, point) in routers.iter().zip(&rate.routers) {
            table.row(cells(rate, case, point.as_ref()));
        }
    }
    text.push('\n');
    text.push_str(&table.render());
    if rates.iter().any(|rate| rate.routers.iter().any(Option::is_none)) {
        text.push_str("\nRows without power: the rate is above the limit of the CPUs.\n");
    }
    text
}

fn cells(rate: &AtRate, case: &Case, point: Option<&Point>) -> Vec<String> {
    let mut cells = vec![
        case.name.to_owned(),
        format!("{:.3}", rate.interests_per_second / 1e6),
        format!("{:.2}", rate.data_bits_per_second / 1e9),
    ];
    let Some(point) = point else {
        cells.resize(14, "-".to_owned());
        return cells;
    };
    let Power { cpu_watts, memory_watts, nic_watts, chassis_watts } = point.power;
    let gigabits =
        [point.received_bits_per_second, point.sent_bits_per_second].map(|bits| format!("{:.2}", bits / 1e9));
    cells.extend(gigabits);
    cells.push(point.processors.all_cores.to_string());
    cells.push(point.processors.ghz.to_string());
    cells.extend(
        [cpu_watts, memory_watts, nic_watts, chassis_watts, point.total_watts].map(|watts| format!("{watts:.2}")),
    );
    cells.push(point.nanojoules_per_interest.map_or_else(|| "-".to_owned(), |energy| format!("{energy:.0}")));
    let saved = rate.saved_percent.filter(|_| case.name != "naive");
    cells.push(saved.map_or_else(String::new, |saved| format!("{saved:.1}")));
    cells
}

fn chart(report: &Report) -> Chart {
    let series = report.routers.iter().enumerate().map(|(place, case)| {
        let watts = report.rates.iter().map(|rate| rate.routers[place].as_ref().map(|point| point.total_watts.into()));
        Series { name: case.name.to_owned(), points: watts.collect() }
    });
    Chart {
        name: "power".to_owned(),
        title: format!("Power of a router on {}", report.server.name),
        y_label: "watts, modelled".to_owned(),
        kind: ChartKind::Lines {
            x_label: "Data packets, Gbit/s".to_owned(),
            x: report.rates.iter().map(|rate| rate.data_bits_per_second / 1e9).collect(),
        },
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use namehop_power::servers::published;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ModelArgs,
    }

    fn report(line: &str) -> Result<Report, Failure> {
        let args = Line::try_parse_from(format!("model {line}").split_whitespace()).expect("understood").args;
        args.report(published(DEFAULT_SERVER).expect("published"))
    }

    #[test]
    fn the_case_study_is_the_default() {
        let report = report("--rate 58Gbit/s").expect("possible");
        let [rate] = &report.rates[..] else { panic!("the report has one rate") };
        assert!((rate.saved_percent.expect("both routers reach the rate") - 10.13).abs() < 0.01, "{rate:?}");
        let [Some(naive), Some(optimised)] = &rate.routers[..] else { panic!("both routers reach the rate") };
        assert_eq!((naive.processors.all_cores, optimised.processors.all_cores), (4, 3));
        assert!((naive.received_bits_per_second / 1e9 - (58.0 * 0.762 + 58.0 * 121.0 / 1024.0)).abs() < 1e-6);
        let text = describe(&report);
        assert!(text.contains("naive: hit rate 0.238, insertion rate 1, 1736 cycles and 1436 bytes"), "{text}");
        assert!(text.contains("10.1") && !text.contains("above the limit of the CPUs"), "{text}");
    }

    #[test]
    fn without_rates_all_that_the_naive_router_can_do_is_shown() {
        let report = report("--steps 4").expect("possible");
        assert_eq!(report.rates.len(), 5);
        assert!(report.rates.iter().all(|rate| rate.routers.iter().all(Option::is_some)));
        assert_eq!(report.rates[0].routers[0].as_ref().expect("idle").total_watts, 34.20);
        assert_eq!(report.rates[4].routers[0].as_ref().expect("busy").processors.all_cores, 4);
        let svg = chart(&report).to_svg();
        assert_eq!(svg.matches("<polyline").count(), 2);
    }

    #[test]
    fn rates_above_what_processors_can_do_have_no_power() {
        let report = report("--rate 1Mpps,70Gbit/s --hit-rate 0.2").expect("shown");
        assert!(report.rates[1].routers[0].is_none() && report.rates[1].routers[1].is_some());
        assert_eq!(report.rates[1].saved_percent, None);
        assert!(describe(&report).contains("above the limit of the CPUs"));
        serde_json::to_string(&report).expect("JSON");
    }

    #[test]
    fn shares_are_checked() {
        for line in ["--hit-rate 1.5", "--hit-rate 0.1,0.2,0.3", "--insertion-rate -0.1", "--hit-rate nan"] {
            let line = line.replacen(' ', "=", 1);
            assert!(report(&line).is_err(), "{line}");
        }
    }
}
