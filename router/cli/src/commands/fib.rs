//! `namehop fib`: the forwarding information base.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, Subcommand};
use namehop_client::endpoint::Endpoint;
use namehop_client::nfd::names;
use namehop_manage::fib_file::{FibFile, FileError};
use namehop_manage::views::FibView;
use namehop_traffic::segmented::{Discovery, FetchOptions, InOrder, fetch};

use super::prefixes::PrefixArgs;
use crate::connection::{ConnectionArgs, block_on};
use crate::failure::{Failure, FailureKind};
use crate::manager::Manager;
use crate::output::{self, Align, Table};
use crate::progress::Progress;
use crate::units::show_duration;

/// Show the next hops of Interests
#[derive(Args, Debug)]
pub struct FibArgs {
    #[command(subcommand)]
    command: FibCommand,
}

#[derive(Subcommand, Debug)]
enum FibCommand {
    List(ListArgs),
    Save(SaveArgs),
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

/// Save all prefixes and their next hops to a file
///
/// The router can load the file at start: see `file` in section [fib] of its configuration. Next hops to on-demand
/// faces, opened by applications and other hosts, are skipped, because the router cannot open them. Only Namehop
/// supports this command.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  namehop fib save /var/lib/namehop/fib.snapshot")]
struct SaveArgs {
    /// File to write; an existing one is replaced when the new one is complete
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl FibArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        match self.command {
            FibCommand::List(args) => block_on(async { args.run(&Manager::connect(connection).await?).await }),
            FibCommand::Save(args) => {
                block_on(async { args.run(Manager::connect(connection).await?.endpoint()).await })
            }
        }
    }
}

impl ListArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let mut entries = self.prefixes.select(manager.datasets().fib().await?, |entry| &entry.name);
        // A table that grows while it is listed may list an entry twice.
        entries.dedup_by(|later, earlier| later.name == earlier.name);
        let faces = manager.remote_uris().await?;
        let views: Vec<FibView> = entries.iter().map(|entry| FibView::new(entry, &faces)).collect();
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
                // The prefix is shown once, before its first next hop.
                let prefix = if index == 0 { view.prefix.clone() } else { String::new() };
                table.row([prefix, hop.face_id.to_string(), hop.cost.to_string(), hop.remote_uri.unwrap_or_default()]);
            }
        }
        table.print()
    }
}

impl SaveArgs {
    async fn run(self, endpoint: &Endpoint) -> Result<(), Failure> {
        let started = Instant::now();
        let about = |error: Failure| error.context(self.file.display());
        // In the same folder, so that a rename replaces the file atomically.
        let mut unfinished = self.file.clone().into_os_string();
        unfinished.push(".new");
        let unfinished = PathBuf::from(unfinished);
        let result = save(endpoint, &unfinished).await.and_then(|bytes| {
            check(&unfinished).map_err(Failure::failed)?;
            std::fs::rename(&unfinished, &self.file)?;
            Ok(bytes)
        });
        if result.is_err() {
            // The file may not exist.
            let _ = std::fs::remove_file(&unfinished);
        }
        let bytes = result.map_err(about)?;
        output::line(format!(
            "{:.1} MB saved to {} in {}",
            bytes as f64 / 1e6,
            self.file.display(),
            show_duration(started.elapsed())
        ))
    }
}

/// Fetches the snapshot and returns its length in bytes.
async fn save(endpoint: &Endpoint, file: &Path) -> Result<u64, Failure> {
    let mut output = tokio::io::BufWriter::with_capacity(1 << 20, tokio::fs::File::create(file).await?);
    let shown = Progress::new("{msg} {bytes_per_sec} {elapsed}");
    let options = FetchOptions { discovery: Discovery::Prefix, ..FetchOptions::default() };
    let name = names::localhost_verb(names::module::FIB, "snapshot");
    let mut in_order = InOrder::new(&mut output);
    let fetched = fetch(endpoint, &name, &mut in_order, &options, |progress| {
        shown.set_position(progress.bytes);
        shown.set_message(format!("{:.1} MB fetched", progress.bytes as f64 / 1e6));
    });
    let fetched = fetched.await;
    drop(shown);
    let report = fetched.map_err(|error| {
        let hint = "saving needs a router that runs this version of Namehop";
        match error.is_timeout() {
            true => Failure::new(FailureKind::Nothing, format!("{error}; {hint}")),
            false => error.into(),
        }
    })?;
    output.into_inner().sync_all().await?;
    Ok(report.bytes)
}

/// Reads the whole file, as a router does.
fn check(file: &Path) -> Result<(), FileError> {
    let mut file = FibFile::open(file)?;
    while file.next_part()?.is_some() {}
    Ok(())
}
