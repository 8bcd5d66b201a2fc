//! `namehop status`: what a forwarder is doing.

use std::time::Duration;

use clap::Args;
use namehop_manage::views::StatusView;

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
        let status = StatusView::new(status, drops.as_deref());
        if self.json {
            return output::json(&status);
        }
        let mut text = properties(&[
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
        ]);
        text.push_str(&show_drops(&status));
        output::print(&text)
    }
}

/// Every reason that occurred: in total (with faces that are gone), and on which faces that exist.
fn show_drops(status: &StatusView) -> String {
    let mut table = Table::new(&[
        ("DROPPED", Align::Right),
        ("LAYER", Align::Left),
        ("REASON", Align::Left),
        ("ON FACES", Align::Left),
    ]);
    let mut is_empty = true;
    for (layer, reasons) in status.drops.iter().flatten() {
        for (reason, count) in reasons {
            let on_faces = status.face_drops.iter().flatten();
            let faces: Vec<String> = on_faces
                .filter(|drop| drop.layer == *layer && drop.reason == *reason)
                .map(|drop| format!("{}: {}", drop.face_id, drop.count))
                .collect();
            table.row([count.to_string(), layer.clone(), reason.clone(), faces.join(", ")]);
            is_empty = false;
        }
    }
    if is_empty { String::new() } else { format!("\n{}", table.render()) }
}
