//! `namehop status`: the state of a forwarder.

use std::cmp::Reverse;
use std::time::Duration;

use clap::Args;
use namehop_manage::views::{OwnDatasets, PowerView, ReadvertiseView, StatusView};

use super::cs::{disk_faults, disk_use};
use crate::connection::{ConnectionArgs, block_on};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::output::{self, Align, Table, properties};
use crate::units::show_duration;

/// Show version, uptime, table sizes and packet counts of the forwarder, its cache on disk, the routing daemon or
/// gateway that learns its routes, the host's power, the packets in the queues of ports, and every dropped packet by
/// reason
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop status --json")]
pub struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Version prefix of forwarders that have the datasets of drops and of readvertising.
const OWN_VERSION: &str = "Namehop/";

impl StatusArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let (status, own) = block_on(async {
            let manager = Manager::connect(connection).await?;
            let datasets = manager.datasets();
            let status = datasets.status().await?;
            let own = match status.version.starts_with(OWN_VERSION) {
                true => {
                    let (drops, readvertise) = (datasets.drops().await?, datasets.readvertise().await?);
                    let cs_disk = datasets.cs_info().await?.disk;
                    Some((drops, readvertise, datasets.workers().await?, datasets.power().await?, cs_disk))
                }
                false => None,
            };
            Ok((status, own))
        })?;
        let own = own.as_ref().map(|(drops, readvertise, workers, power, cs_disk)| OwnDatasets {
            drops,
            readvertise,
            workers,
            power: power.as_ref(),
            cs_disk: *cs_disk,
        });
        let status = StatusView::new(status, own);
        if self.json {
            return output::json(&status);
        }
        let mut lines = vec![
            ("Version", status.version.clone()),
            ("Uptime", show_duration(Duration::from_secs_f64(status.uptime_s))),
            ("FIB entries", status.fib_entries.to_string()),
            ("PIT entries", status.pit_entries.to_string()),
            ("CS entries", status.cs_entries.to_string()),
            ("Name tree entries", status.name_tree_entries.to_string()),
            ("Measurements entries", status.measurements_entries.to_string()),
            ("Interests", format!("{} in, {} out", status.in_interests, status.out_interests)),
            ("Data", format!("{} in, {} out", status.in_data, status.out_data)),
            ("Nacks", format!("{} in, {} out", status.in_nacks, status.out_nacks)),
            ("Interests answered", format!("{} yes, {} no", status.satisfied_interests, status.unsatisfied_interests)),
        ];
        lines.extend(
            status.cs_disk.as_ref().map(|disk| ("CS on disk", format!("{}; {}", disk_use(disk), disk_faults(disk)))),
        );
        lines.extend(status.power.as_ref().map(|power| ("Power", show_power(power))));
        for readvertise in status.readvertise.iter().flatten() {
            lines.extend(show_readvertise(readvertise));
        }
        let mut text = properties(&lines);
        text.push_str(&show_workers(&status));
        text.push_str(&show_queues(&status));
        text.push_str(&show_drops(&status));
        output::print(&text)
    }
}

/// Formats the total power, its parts, and the source of the figures.
fn show_power(power: &PowerView) -> String {
    let source = match &power.server {
        None => "measured".to_owned(),
        Some(server) => format!("estimated for server {server}"),
    };
    let parts: Vec<String> = power.parts.iter().map(|part| format!("{} {:.1}", part.name, part.watts)).collect();
    let mut text = format!("{:.1} W, {source} ({})", power.watts, parts.join(", "));
    if let Some(energy) = power.nanojoules_per_packet {
        text.push_str(&format!("; {energy} nJ per packet"));
    }
    text
}

/// Formats the destination of readvertised routes, its progress, and the last error.
fn show_readvertise(readvertise: &ReadvertiseView) -> Vec<(&'static str, String)> {
    let label = if readvertise.destination == "daemon" { "Routing daemon" } else { "Gateway" };
    let known_prefixes = readvertise.announced_prefixes + readvertise.waiting_prefixes + readvertise.refused_prefixes;
    let mut text = match readvertise.face_ids.as_slice() {
        [] if known_prefixes == 0 => "none".to_owned(),
        [] => format!("none (no route for {}); prefixes: {known_prefixes} waiting", readvertise.command_prefix),
        faces => {
            let faces: Vec<String> = faces.iter().map(u64::to_string).collect();
            let mut text = format!(
                "at face {}; prefixes: {} announced, {} waiting, {} refused",
                faces.join(" and "),
                readvertise.announced_prefixes,
                readvertise.waiting_prefixes,
                readvertise.refused_prefixes
            );
            if readvertise.withdrawing_prefixes > 0 {
                text.push_str(&format!(", {} being withdrawn", readvertise.withdrawing_prefixes));
            }
            text
        }
    };
    if readvertise.left_out_prefixes > 0 {
        text.push_str(&format!(", {} omitted", readvertise.left_out_prefixes));
    }
    let mut lines = vec![(label, text)];
    if let Some(error) = &readvertise.last_error {
        let age = show_duration(Duration::from_secs_f64(error.age_s));
        lines.push(("  last error", format!("{}, {age} ago: {}", error.prefix, error.reason)));
    }
    lines
}

/// Formats a table of the workers, if there are several.
fn show_workers(status: &StatusView) -> String {
    let workers = status.workers.as_deref().unwrap_or_default();
    if workers.len() < 2 {
        return String::new();
    }
    let mut table = Table::new(&[
        ("WORKER", Align::Right),
        ("CPU", Align::Right),
        ("BUSY", Align::Right),
        ("NAMES", Align::Right),
        ("PACKETS", Align::Right),
        ("PIT", Align::Right),
        ("CS", Align::Right),
        ("TRANSFERRED IN", Align::Right),
        ("TRANSFERRED OUT", Align::Right),
        ("TRANSFERS LOST", Align::Right),
    ]);
    for (number, worker) in workers.iter().enumerate() {
        table.row([
            number.to_string(),
            worker.processor.map_or_else(|| "any".to_owned(), |processor| processor.to_string()),
            format!("{:.1} %", 100.0 * worker.busy_share),
            format!("{:.1} %", worker.dispatch_entries as f64 / 655.36),
            worker.packets.to_string(),
            worker.pit_entries.to_string(),
            worker.cs_entries.to_string(),
            worker.handover.handed_in.to_string(),
            worker.handover.handed_out.to_string(),
            worker.handover.lost().to_string(),
        ]);
    }
    format!("\n{}", table.render())
}

/// Formats a table of the ports' queues, if there are ports.
fn show_queues(status: &StatusView) -> String {
    let workers = status.workers.as_deref().unwrap_or_default();
    let mut queues: Vec<_> = workers
        .iter()
        .enumerate()
        .flat_map(|(worker, of)| of.queues.iter().map(move |queue| (queue, worker)))
        .collect();
    if queues.is_empty() {
        return String::new();
    }
    queues.sort_by(|(one, _), (other, _)| (&one.port, one.queue).cmp(&(&other.port, other.queue)));
    let mut table = Table::new(&[
        ("PORT", Align::Left),
        ("QUEUE", Align::Right),
        ("WORKER", Align::Right),
        ("RECEIVED", Align::Right),
        ("SENT", Align::Right),
        ("STEERED FACES", Align::Right),
    ]);
    for (queue, worker) in queues {
        table.row([
            queue.port.clone(),
            queue.queue.to_string(),
            worker.to_string(),
            queue.received_frames.to_string(),
            queue.sent_frames.to_string(),
            queue.steered_faces.to_string(),
        ]);
    }
    format!("\n{}", table.render())
}

/// Formats every drop reason that occurred, most frequent first: in total (including closed faces), and per existing
/// face.
fn show_drops(status: &StatusView) -> String {
    let layers = status.drops.iter().flatten();
    let mut reasons: Vec<(u64, &str, &str)> = layers
        .flat_map(|(layer, reasons)| reasons.iter().map(move |(reason, &count)| (count, &**layer, &**reason)))
        .collect();
    if reasons.is_empty() {
        return String::new();
    }
    // The sort is stable: equally frequent reasons remain sorted by name.
    reasons.sort_by_key(|&(count, ..)| Reverse(count));
    let mut table = Table::new(&[
        ("DROPPED", Align::Right),
        ("LAYER", Align::Left),
        ("REASON", Align::Left),
        ("ON FACES", Align::Left),
    ]);
    for (count, layer, reason) in reasons {
        let on_faces = status.face_drops.iter().flatten();
        let faces: Vec<String> = on_faces
            .filter(|drop| drop.layer == layer && drop.reason == reason)
            .map(|drop| format!("{}: {}", drop.face_id, drop.count))
            .collect();
        table.row([count.to_string(), layer.to_owned(), reason.to_owned(), faces.join(", ")]);
    }
    format!("\n{}", table.render())
}

#[cfg(test)]
mod tests {
    use namehop_manage::views::PowerPartView;

    use super::*;

    #[test]
    fn power_says_where_it_is_known_from() {
        let part = |name: &str, watts| PowerPartView { name: name.to_owned(), watts, joules: 5.0 };
        let measured = PowerView {
            source: "measured".to_owned(),
            server: None,
            watts: 12.34,
            nanojoules_per_packet: Some(350),
            parts: vec![part("dram-0", 2.34), part("package-0", 10.0)],
        };
        assert_eq!(show_power(&measured), "12.3 W, measured (dram-0 2.3, package-0 10.0); 350 nJ per packet");
        let estimated = PowerView { server: Some("rack-3".to_owned()), nanojoules_per_packet: None, ..measured };
        assert_eq!(show_power(&estimated), "12.3 W, estimated for server rack-3 (dram-0 2.3, package-0 10.0)");
    }
}
