//! `namehop ndt`: the name dispatch table, which assigns names to workers.

use clap::{Args, Subcommand};
use namehop_client::nfd::{ControlParameters, names::module};
use namehop_manage::views::DispatchMoveView;
use namehop_wire::Name;

use crate::connection::{ConnectionArgs, block_on};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::output::{self, Align, Table};
use crate::signing::CommandSigningArgs;

/// Feature that other forwarders lack, as named in error messages.
const TABLE: &str = "a name dispatch table";

/// Show and change the assignment of names to workers
#[derive(Args, Debug)]
pub struct NdtArgs {
    #[command(subcommand)]
    command: NdtCommand,
    #[command(flatten)]
    signing: CommandSigningArgs,
}

#[derive(Subcommand, Debug)]
enum NdtCommand {
    List(ListArgs),
    Move(MoveArgs),
}

/// List entries of the name dispatch table: those with packets in the last seconds, busiest first, and the divided
/// ones. A hash of a name's first components selects its entry, so an entry holds one such prefix or a few. Longer
/// names in a divided entry have entries of their own
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop ndt list --json")]
struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Assign the names with the same first components as this one to another worker. With 'rebalance' enabled in the
/// configuration, the router may move them again
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop ndt move /example/video 1")]
struct MoveArgs {
    /// A name; only its first components count (two by default; more in a divided entry)
    name: Name,
    /// Number of the worker, as in 'namehop status'
    worker: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl NdtArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        block_on(async {
            match self.command {
                NdtCommand::List(args) => {
                    let manager = Manager::connect(connection).await?;
                    manager.only_namehop(TABLE).await?;
                    args.run(&manager).await
                }
                NdtCommand::Move(args) => {
                    let manager = Manager::connect_with_signer(connection, self.signing.signer()?).await?;
                    manager.only_namehop(TABLE).await?;
                    args.run(&manager).await
                }
            }
        })
    }
}

impl ListArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let entries = manager.datasets().dispatch_entries().await?;
        if self.json {
            return output::json(&entries);
        }
        let columns = [
            ("ENTRY", Align::Right),
            ("WORKER", Align::Right),
            ("BEFORE", Align::Right),
            ("PACKETS/S", Align::Right),
            ("DIVIDED", Align::Left),
        ];
        let mut table = Table::new(&columns);
        for entry in entries {
            table.row(vec![
                entry.entry.to_string(),
                entry.worker.to_string(),
                output::or_dash(entry.former_worker),
                entry.packets_per_s.to_string(),
                if entry.is_divided { "yes" } else { "-" }.to_owned(),
            ]);
        }
        output::print(&table.render())
    }
}

impl MoveArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let parameters = ControlParameters {
            name: Some(self.name.clone()),
            count: Some(self.worker),
            ..ControlParameters::default()
        };
        let done = manager.command(module::NDT, "move", &parameters).await?;
        let worker = done.count.unwrap_or(self.worker);
        if self.json {
            return output::json(&DispatchMoveView { name: self.name.to_string(), worker });
        }
        output::line(format!("names that share a dispatch entry with {} belong to worker {worker}", self.name))
    }
}
