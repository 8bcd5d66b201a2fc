//! `namehop status`: what a forwarder is doing.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use namehop_manage::nfd::DropCount;

use crate::connection::{ConnectionArgs, block_on};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::output::{self, Align, Table, properties};
use crate::units::show_duration;

/// Show version, uptime, table sizes and packet counts of the forwarder, and every dropped packet by reason
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop status --json")]
pub struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct StatusView<'a> {
    version: &'a str,
    start_time_unix_ms: u64,
    current_time_unix_ms: u64,
    uptime_s: f64,
    name_tree_entries: u64,
    fib_entries: u64,
    pit_entries: u64,
    measurements_entries: u64,
    cs_entries: u64,
    in_interests: u64,
    in_data: u64,
    in_nacks: u64,
    out_interests: u64,
    out_data: u64,
    out_nacks: u64,
    satisfied_interests: u64,
    unsatisfied_interests: u64,
    /// By layer, then by reason. Absent where the forwarder does not tell.
    drops: Option<BTreeMap<&'a str, BTreeMap<&'a str, u64>>>,
    face_drops: Option<Vec<FaceDropView<'a>>>,
}

#[derive(Serialize)]
struct FaceDropView<'a> {
    face_id: u64,
    layer: &'a str,
    reason: &'a str,
    count: u64,
}

/// Forwarders that answer with this version have the dataset of drops.
const OWN_VERSION: &str = "Namehop/";

impl StatusArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let (status, drops) = block_on(async {
            let manager = Manager::connect(connection).await?;
            let datasets = manager.datasets();
            let status = datasets.status().await?;
            let tells_drops = status.version.starts_with(OWN_VERSION);
            let drops = if tells_drops { Some(datasets.drops().await?) } else { None };
            Ok((status, drops))
        })?;
        let uptime = Duration::from_millis(status.current_timestamp_ms.saturating_sub(status.start_timestamp_ms));
        if self.json {
            return output::json(&StatusView {
                version: &status.version,
                start_time_unix_ms: status.start_timestamp_ms,
                current_time_unix_ms: status.current_timestamp_ms,
                uptime_s: uptime.as_secs_f64(),
                name_tree_entries: status.name_tree_entries,
                fib_entries: status.fib_entries,
                pit_entries: status.pit_entries,
                measurements_entries: status.measurements_entries,
                cs_entries: status.cs_entries,
                in_interests: status.in_interests,
                in_data: status.in_data,
                in_nacks: status.in_nacks,
                out_interests: status.out_interests,
                out_data: status.out_data,
                out_nacks: status.out_nacks,
                satisfied_interests: status.satisfied_interests,
                unsatisfied_interests: status.unsatisfied_interests,
                drops: drops.as_deref().map(totals),
                face_drops: drops.as_deref().map(|drops| of_faces(drops).collect()),
            });
        }
        let mut text = properties(&[
            ("Version", status.version.clone()),
            ("Uptime", show_duration(uptime)),
            ("FIB entries", status.fib_entries.to_string()),
            ("PIT entries", status.pit_entries.to_string()),
            ("CS entries", status.cs_entries.to_string()),
            ("Name tree entries", status.name_tree_entries.to_string()),
            ("Measurements entries", status.measurements_entries.to_string()),
            ("Interests", format!("{} in, {} out", status.in_interests, status.out_interests)),
            ("Data", format!("{} in, {} out", status.in_data, status.out_data)),
            ("Nacks", format!("{} in, {} out", status.in_nacks, status.out_nacks)),
            ("Interests answered", format!("{} yes, {} no", status.satisfied_interests, status.unsatisfied_interests)),
        ]);
        if let Some(drops) = drops.filter(|drops| !drops.is_empty()) {
            text.push_str(&show_drops(&drops));
        }
        output::print(&text)
    }
}

fn totals(drops: &[DropCount]) -> BTreeMap<&str, BTreeMap<&str, u64>> {
    let mut totals: BTreeMap<&str, BTreeMap<&str, u64>> =
        BTreeMap::from([("engine", BTreeMap::new()), ("link", BTreeMap::new())]);
    for drop in drops.iter().filter(|drop| drop.face_id.is_none()) {
        totals.entry(drop.layer.as_str()).or_default().insert(drop.reason.as_str(), drop.count);
    }
    totals
}

fn of_faces(drops: &[DropCount]) -> impl Iterator<Item = FaceDropView<'_>> {
    drops.iter().filter_map(|drop| {
        Some(FaceDropView { face_id: drop.face_id?, layer: &drop.layer, reason: &drop.reason, count: drop.count })
    })
}

/// Every reason that occurred: in total (with faces that are gone), and on which faces that exist.
fn show_drops(drops: &[DropCount]) -> String {
    let mut table = Table::new(&[
        ("DROPPED", Align::Right),
        ("LAYER", Align::Left),
        ("REASON", Align::Left),
        ("ON FACES", Align::Left),
    ]);
    for (layer, reasons) in totals(drops) {
        for (reason, count) in reasons {
            let faces: Vec<String> = of_faces(drops)
                .filter(|drop| drop.layer == layer && drop.reason == reason)
                .map(|drop| format!("{}: {}", drop.face_id, drop.count))
                .collect();
            table.row([count.to_string(), layer.to_owned(), reason.to_owned(), faces.join(", ")]);
        }
    }
    format!("\n{}", table.render())
}
