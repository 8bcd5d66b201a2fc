//! A plan as text and as a chart.

use namehop_model::plan::{Bounds, Limit};
use namehop_reproduce::{Chart, ChartKind, Series};

use super::{Each, Report};
use namehop_cli::output::{Align, Table, properties};
use namehop_cli::units::{show_bit_rate, show_bytes};

/// Number of points per line in the chart.
const STEPS: u32 = 20;

fn words(limit: Limit) -> &'static str {
    match limit {
        Limit::Computation => "cores",
        Limit::MemoryRate => "memory bandwidth",
        Limit::Links => "links",
        Limit::MemorySize => "memory size",
    }
}

fn millions(rate: f64) -> String {
    format!("{:.3}", rate / 1e6)
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

fn bytes(bytes: f64) -> String {
    show_bytes(bytes as u64)
}

pub(super) fn describe(report: &Report) -> String {
    let Report { machine, demand, need, each, cost, .. } = report;
    let total = each.tables.total();
    let workers = format!("{:.0} of {} workers", need.workers, machine.computer.cores);
    let machines = match need.machines {
        1.0 => format!("1, with {workers}"),
        machines => format!("{machines:.0}, each with {workers}"),
    };
    let watts = match (&each.power, each.total_watts) {
        (Some(power), Some(total)) => format!(
            "{total:.1} W (cpu {:.1}, memory {:.1}, nic {:.1}, chassis {:.1})",
            power.cpu_watts, power.memory_watts, power.nic_watts, power.chassis_watts
        ),
        _ => "unknown: give --server; only loads within the server's limits have an estimate".to_owned(),
    };
    let mut text = properties(&[
        ("Host", report.machine_is.clone()),
        (
            "Interests",
            format!("{} million/s, {} cache hits", millions(demand.interests_per_second), percent(demand.hit_rate)),
        ),
        ("Data to consumers", show_bit_rate(8.0 * demand.data_bytes * demand.interests_per_second)),
        ("Cost per exchange", format!("{:.0} cycles, {:.0} bytes of memory traffic", cost.cycles, cost.bytes)),
        ("Hosts", machines),
        ("First bound", words(need.limit).to_owned()),
    ]);
    text.push_str("\nPer host\n");
    text.push_str(&properties(&[
        ("  Packets received", format!("{} million/s", millions(each.packets_per_second))),
        (
            "  On links",
            format!(
                "{} in, {} out",
                show_bit_rate(each.received_bits_per_second),
                show_bit_rate(each.sent_bits_per_second)
            ),
        ),
        ("  Memory traffic", format!("{:.2} GB/s", each.memory_bytes_per_second / 1e9)),
        ("  Tables", format!("{} of {} ({})", bytes(total), bytes(machine.memory_bytes), percent(each.memory_load))),
        ("    FIB", bytes(each.tables.fib_bytes)),
        ("    PIT", format!("{}, {:.0} pending Interests", bytes(each.tables.pit_bytes), each.pending_interests)),
        ("    Cache", bytes(each.tables.cache_bytes)),
        ("  Power", watts),
    ]));
    text.push('\n');
    text.push_str(&bounds(report));
    text.push_str(&format!("\nTotal cache of all hosts, for {} contents by popularity\n", report.contents));
    let mut table = Table::new(&[
        ("PACKETS", Align::Right),
        ("MEMORY", Align::Right),
        ("HIT RATE", Align::Right),
        ("MAX, million Interests/s", Align::Right),
    ]);
    for cache in &report.caches {
        table.row([
            cache.packets.to_string(),
            bytes(cache.bytes),
            format!("{:.3}", cache.hit_rate),
            millions(cache.most_interests_per_second),
        ]);
    }
    text.push_str(&table.render());
    text
}

fn bounds(report: &Report) -> String {
    let Report { bounds, each, .. } = report;
    let mut table =
        Table::new(&[("BOUND", Align::Left), ("MAX, million Interests/s", Align::Right), ("LOAD", Align::Right)]);
    for (name, most, load) in loads(bounds, each) {
        let most = if most.is_finite() { millions(most) } else { "-".to_owned() };
        table.row([name.to_owned(), most, if load > 0.0 { percent(load) } else { "-".to_owned() }]);
    }
    table.render()
}

/// Returns the bounds of one host and its loads.
fn loads(bounds: &Bounds, each: &Each) -> [(&'static str, f64, f64); 3] {
    [
        (words(Limit::Computation), bounds.by_computation, each.cores_load),
        (words(Limit::MemoryRate), bounds.by_memory_rate, each.memory_rate_load),
        (words(Limit::Links), bounds.by_links, each.links_load),
    ]
}

/// Returns a chart of the load of each part of one host, up to its bound.
pub(super) fn chart(report: &Report) -> Chart {
    let most = report.bounds.rate();
    let x: Vec<f64> = (0..=STEPS).map(|step| most * f64::from(step) / f64::from(STEPS)).collect();
    let known = loads(&report.bounds, &report.each).into_iter().filter(|(_, most, _)| most.is_finite());
    let series = known.map(|(name, bound, _)| Series {
        name: name.to_owned(),
        points: x.iter().map(|rate| Some((100.0 * rate / bound).into())).collect(),
    });
    Chart {
        name: "plan".to_owned(),
        title: format!("Load of one host: {}", report.machine_is),
        y_label: "% of the bound".to_owned(),
        series: series.collect(),
        kind: ChartKind::Lines {
            x_label: "Interests, million/s".to_owned(),
            x: x.iter().map(|rate| rate / 1e6).collect(),
        },
    }
}
