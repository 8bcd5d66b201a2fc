//! `namehop status`: what a forwarder is doing.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use namehop_manage::nfd::{DropCount, ReadvertiseStatus};

use crate::connection::{ConnectionArgs, block_on};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::output::{self, Align, Table, properties};
use crate::units::show_duration;

/// Show version, uptime, table sizes and packet counts of the forwarder, which routing daemon or gateway is told of its
/// routes, and every dropped packet by reason
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
    /// Who is told of the routes. Absent where the forwarder does not tell.
    readvertise: Option<Vec<ReadvertiseView<'a>>>,
}

#[derive(Serialize)]
struct FaceDropView<'a> {
    face_id: u64,
    layer: &'a str,
    reason: &'a str,
    count: u64,
}

#[derive(Serialize)]
struct ReadvertiseView<'a> {
    destination: &'a str,
    command_prefix: String,
    is_available: bool,
    face_ids: &'a [u64],
    announced_prefixes: u64,
    waiting_prefixes: u64,
    refused_prefixes: u64,
    withdrawing_prefixes: u64,
    left_out_prefixes: u64,
    commands: CommandsView,
    last_error: Option<LastErrorView<'a>>,
}

#[derive(Serialize)]
struct CommandsView {
    announced: u64,
    withdrawn: u64,
    refused: u64,
    nack: u64,
    timed_out: u64,
}

#[derive(Serialize)]
struct LastErrorView<'a> {
    prefix: String,
    reason: &'a str,
    age_s: f64,
}

impl<'a> ReadvertiseView<'a> {
    fn new(status: &'a ReadvertiseStatus) -> Self {
        let counters = status.counters;
        ReadvertiseView {
            destination: &status.destination,
            command_prefix: status.command_prefix.to_string(),
            is_available: !status.face_ids.is_empty(),
            face_ids: &status.face_ids,
            announced_prefixes: status.announced_prefixes,
            waiting_prefixes: status.waiting_prefixes,
            refused_prefixes: status.refused_prefixes,
            withdrawing_prefixes: status.withdrawing_prefixes,
            left_out_prefixes: counters.left_out,
            commands: CommandsView {
                announced: counters.announced,
                withdrawn: counters.withdrawn,
                refused: counters.refused,
                nack: counters.nacked,
                timed_out: counters.timed_out,
            },
            last_error: status.last_error.as_ref().map(|error| LastErrorView {
                prefix: error.prefix.to_string(),
                reason: &error.reason,
                age_s: Duration::from_millis(error.age_ms).as_secs_f64(),
            }),
        }
    }
}

/// Forwarders that answer with this version have the datasets of drops and of readvertising.
const OWN_VERSION: &str = "Namehop/";

impl StatusArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let (status, own) = block_on(async {
            let manager = Manager::connect(connection).await?;
            let datasets = manager.datasets();
            let status = datasets.status().await?;
            let own = match status.version.starts_with(OWN_VERSION) {
                true => Some((datasets.drops().await?, datasets.readvertise().await?)),
                false => None,
            };
            Ok((status, own))
        })?;
        let (drops, readvertise) = own.unzip();
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
                readvertise: readvertise.as_deref().map(|told| told.iter().map(ReadvertiseView::new).collect()),
            });
        }
        let mut lines = vec![
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
        ];
        for told in readvertise.iter().flatten() {
            lines.extend(show_readvertise(told));
        }
        let mut text = properties(&lines);
        if let Some(drops) = drops.filter(|drops| !drops.is_empty()) {
            text.push_str(&show_drops(&drops));
        }
        output::print(&text)
    }
}

/// Who is told of the routes, how far that is, and what went wrong last.
fn show_readvertise(told: &ReadvertiseStatus) -> Vec<(&'static str, String)> {
    let label = if told.destination == "daemon" { "Routing daemon" } else { "Gateway" };
    let to_be_told = told.announced_prefixes + told.waiting_prefixes + told.refused_prefixes;
    let mut text = match told.face_ids.as_slice() {
        [] if to_be_told == 0 => "none".to_owned(),
        [] => format!("none (no route for {}); prefixes: {to_be_told} waiting", told.command_prefix),
        faces => {
            let faces: Vec<String> = faces.iter().map(u64::to_string).collect();
            let mut text = format!(
                "at face {}; prefixes: {} announced, {} waiting, {} refused",
                faces.join(" and "),
                told.announced_prefixes,
                told.waiting_prefixes,
                told.refused_prefixes
            );
            if told.withdrawing_prefixes > 0 {
                text.push_str(&format!(", {} to be withdrawn", told.withdrawing_prefixes));
            }
            text
        }
    };
    if told.counters.left_out > 0 {
        text.push_str(&format!(", {} left out", told.counters.left_out));
    }
    let mut lines = vec![(label, text)];
    if let Some(error) = &told.last_error {
        let age = show_duration(Duration::from_millis(error.age_ms));
        lines.push(("  last error", format!("{}, {age} ago: {}", error.prefix, error.reason)));
    }
    lines
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
