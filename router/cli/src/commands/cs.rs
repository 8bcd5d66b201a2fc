//! `namehop cs`: the Content Store.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use namehop_client::nfd::names::module;
use namehop_client::nfd::{Code, ControlParameters, CsDisk, CsPolicyCounters};
use namehop_disk::{DeviceContents, clear_device, inspect_device};
use namehop_manage::requests::CsSettings;
use namehop_manage::views::{CsConfigView, CsErasureView, CsInfoView};
use namehop_store::PolicyChoice;
use namehop_wire::Name;

use crate::connection::{ConnectionArgs, block_on};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::output::{self, Align, Table, or_dash, properties};
use crate::signing::CommandSigningArgs;
use crate::units::{parse_switch, show_switch};

/// Show, configure and erase the cache
#[derive(Args, Debug)]
pub struct CsArgs {
    #[command(subcommand)]
    command: CsCommand,
    #[command(flatten)]
    signing: CommandSigningArgs,
}

#[derive(Subcommand, Debug)]
enum CsCommand {
    Info(InfoArgs),
    Config(ConfigArgs),
    Erase(EraseArgs),
    Format(FormatArgs),
}

/// Show capacity, policy, entries, hits and misses, counts by policy, and the second tier on disk
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop cs info --json")]
struct InfoArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Change capacity or policy, or switch admitting and serving on or off
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop cs config --capacity 1000000
  namehop cs config --policy filter:threshold=3
  namehop cs config --admit off --serve on
  namehop cs config --capacity 1000000 --signing-key operator.key --certificate operator.ndncert")]
struct ConfigArgs {
    /// Maximum number of packets in the cache, as far as its memory (capacity_bytes in the configuration) suffices
    #[arg(long, value_name = "PACKETS")]
    capacity: Option<u64>,
    /// Admission and eviction policy, with settings (see docs/caching.md): lru, filter:threshold=3, ...
    #[arg(long, value_name = "POLICY")]
    policy: Option<PolicyChoice>,
    /// Put Data into the cache: on, off
    #[arg(long, value_name = "SWITCH", value_parser = parse_switch)]
    admit: Option<bool>,
    /// Answer from the cache: on, off
    #[arg(long, value_name = "SWITCH", value_parser = parse_switch)]
    serve: Option<bool>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Remove Data under a prefix
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  namehop cs erase /example\n  namehop cs erase / --count 1000")]
struct EraseArgs {
    /// Prefix
    prefix: Name,
    /// Maximum number of packets to remove [default: all]
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Clear a block device for the second tier of the cache
///
/// A router uses a device for [content_store.disk] only if it is empty or holds a cache of the router. This command
/// shows what is on a device; with --yes it overwrites both ends of the device with zeros, and its content is lost. It
/// refuses a device that is mounted or otherwise in use. Needs write permission on the device, but no router.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  namehop cs format /dev/nvme1n1p3\n  namehop cs format /dev/nvme1n1p3 --yes")]
struct FormatArgs {
    /// Block device
    device: PathBuf,
    /// Clear the device; without this option nothing is changed
    #[arg(long)]
    yes: bool,
}

impl CsArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let CsArgs { command, signing } = self;
        let signed = async || Manager::connect_with_signer(connection, signing.signer()?).await;
        match command {
            CsCommand::Info(args) => block_on(async { args.run(&Manager::connect(connection).await?).await }),
            CsCommand::Config(args) => block_on(async { args.run(&signed().await?).await }),
            CsCommand::Erase(args) => block_on(async { args.run(&signed().await?).await }),
            CsCommand::Format(args) => args.run(),
        }
    }
}

impl InfoArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let view = CsInfoView::from(manager.datasets().cs_info().await?);
        if self.json {
            return output::json(&view);
        }
        let ratio = view.hit_ratio.map(|ratio| format!(" ({:.1}%)", ratio * 100.0)).unwrap_or_default();
        let mut lines = vec![
            ("Capacity", format!("{} packets", view.capacity_packets)),
            ("Policy", or_dash(view.policy)),
            ("Entries", view.entries.to_string()),
            ("Admit", show_switch(view.admit)),
            ("Serve", show_switch(view.serve)),
            ("Hits", format!("{}{ratio}", view.hits)),
            ("Misses", view.misses.to_string()),
        ];
        if let Some(disk) = view.disk {
            lines.extend(disk_lines(&disk));
        }
        output::print(&properties(&lines))?;
        if view.by_policy.is_empty() {
            return Ok(());
        }
        let mut table = Table::new(&[
            ("POLICY", Align::Left),
            ("HITS", Align::Right),
            ("MISSES", Align::Right),
            ("INSERTIONS", Align::Right),
            ("EVICTIONS", Align::Right),
            ("REJECTIONS", Align::Right),
        ]);
        for CsPolicyCounters { policy, hits, misses, insertions, evictions, rejections } in view.by_policy {
            let counts = [hits, misses, insertions, evictions, rejections].map(|count| count.to_string());
            table.row([policy].into_iter().chain(counts).collect::<Vec<_>>());
        }
        output::line("")?;
        table.print()
    }
}

/// Returns the properties of the second tier.
fn disk_lines(disk: &CsDisk) -> [(&'static str, String); 8] {
    [
        ("Disk", disk_use(disk)),
        ("Disk hits", disk.hits.to_string()),
        (
            "Disk misses",
            format!("{} ({} timed out, {} skipped)", disk.misses + disk.timeouts, disk.timeouts, disk.busy),
        ),
        ("Disk waits", format!("{} Interests", disk.waiting)),
        ("Disk stored", format!("{} packets ({} not stored)", disk.stored, disk.not_stored)),
        ("Disk reads", disk.reads.to_string()),
        ("Disk writes", format!("{} ({} MiB)", disk.writes, disk.written_bytes >> 20)),
        ("Disk faults", disk_faults(disk)),
    ]
}

/// Formats the state of the second tier and its use.
pub(super) fn disk_use(disk: &CsDisk) -> String {
    format!("{}, {} of {} MiB used", disk.state.name(), disk.used_bytes >> 20, disk.capacity_bytes >> 20)
}

/// Formats the error counts of the second tier.
pub(super) fn disk_faults(disk: &CsDisk) -> String {
    format!("{} errors, {} damaged packets, {} stalls", disk.errors, disk.checksum_failures, disk.stalls)
}

impl ConfigArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let settings = CsSettings {
            capacity_packets: self.capacity,
            admit: self.admit,
            serve: self.serve,
            policy: self.policy.map(|policy| policy.to_string()),
        };
        let Some(parameters) = settings.parameters() else {
            return Err(Failure::usage("nothing to change: give --capacity, --policy, --admit or --serve"));
        };
        let done = manager.command(module::CS, "config", &parameters).await?;
        let view = CsConfigView::new(&done, self.capacity);
        if self.json {
            return output::json(&view);
        }
        output::print(&properties(&[
            ("Capacity", view.capacity_packets.map_or_else(|| "-".to_owned(), |packets| format!("{packets} packets"))),
            ("Policy", or_dash(view.policy)),
            ("Admit", view.admit.map_or_else(|| "-".to_owned(), show_switch)),
            ("Serve", view.serve.map_or_else(|| "-".to_owned(), show_switch)),
        ]))?;
        if let Some(warning) = view.warning {
            eprintln!("namehop: {warning}");
        }
        Ok(())
    }
}

impl FormatArgs {
    fn run(self) -> Result<(), Failure> {
        let device = self.device.display();
        let DeviceContents { bytes, holds } = inspect_device(&self.device).map_err(Failure::failed)?;
        let found = format!("{device} has {} MiB and holds {}", bytes >> 20, holds.unwrap_or("nothing"));
        match holds {
            None => output::line(format!("{found}; a router can use it")),
            Some(_) if self.yes => {
                clear_device(&self.device).map_err(Failure::failed)?;
                output::line(format!("{device} is empty; a router can use it"))
            }
            Some(_) => Err(Failure::usage(format!("{found}; nothing was changed: --yes erases all of it"))),
        }
    }
}

impl EraseArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let mut erased: u64 = 0;
        loop {
            let parameters = ControlParameters {
                name: Some(self.prefix.clone()),
                count: self.count.map(|count| count.saturating_sub(erased)),
                ..ControlParameters::default()
            };
            let done = manager.command(module::CS, "erase", &parameters).await?;
            let count = done.count.unwrap_or(0);
            erased = count.saturating_add(erased);
            // One command erases a limited number of packets. Capacity in the answer means that more remain.
            let more = done.capacity.is_some() && count > 0;
            if !more || self.count.is_some_and(|limit| erased >= limit) {
                break;
            }
        }
        if self.json {
            return output::json(&CsErasureView { prefix: self.prefix.to_string(), erased });
        }
        output::line(format!("{erased} packets under {} erased", self.prefix))
    }
}
