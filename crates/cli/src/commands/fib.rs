//! `namehop fib`: the forwarding information base.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::prefixes::PrefixArgs;
use crate::connection::{ConnectionArgs, block_on};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::output::{self, Align, Table};

/// Show where Interests go
#[derive(Args, Debug)]
pub struct FibArgs {
    #[command(subcommand)]
    command: FibCommand,
}

#[derive(Subcommand, Debug)]
enum FibCommand {
    List(ListArgs),
}

/// List prefixes and their next hops
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  namehop fib list\n  namehop fib list --prefix /example --json")]
struct ListArgs {
    #[command(flatten)]
    prefixes: PrefixArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct NextHopView {
    face_id: u64,
    remote_uri: Option<String>,
    cost: u64,
}

#[derive(Serialize)]
struct FibView {
    prefix: String,
    nexthops: Vec<NextHopView>,
}

impl FibArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let FibCommand::List(args) = self.command;
        block_on(async { args.run(&Manager::connect(connection).await?).await })
    }
}

impl ListArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let entries = self.prefixes.select(manager.datasets().fib().await?, |entry| &entry.name);
        let faces = manager.remote_uris().await?;
        let views: Vec<FibView> = entries
            .iter()
            .map(|entry| FibView {
                prefix: entry.name.to_string(),
                nexthops: entry
                    .next_hops
                    .iter()
                    .map(|hop| NextHopView {
                        face_id: hop.face_id,
                        remote_uri: faces.get(&hop.face_id).cloned(),
                        cost: hop.cost,
                    })
                    .collect(),
            })
            .collect();
        if self.json {
            return output::json(&views);
        }
        let mut table = Table::new(&[
            ("PREFIX", Align::Left),
            ("FACE", Align::Right),
            ("COST", Align::Right),
            ("REMOTE", Align::Left),
        ]);
        for view in views {
            for (index, hop) in view.nexthops.into_iter().enumerate() {
                // The prefix stands once, before its first next hop.
                let prefix = if index == 0 { view.prefix.clone() } else { String::new() };
                table.row([prefix, hop.face_id.to_string(), hop.cost.to_string(), hop.remote_uri.unwrap_or_default()]);
            }
        }
        table.print()
    }
}
