//! `namehop strategy`: the choice of forwarding strategies for prefixes.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use namehop_client::nfd::names::module;
use namehop_client::nfd::numbers::MAX_COMMAND_FILE_BYTES;
use namehop_client::nfd::{ControlParameters, StrategyChoice, StrategyParameter};
use namehop_engine::strategy::program::MAX_OBJECT_FILE_BYTES;
use namehop_engine::strategy::{ParameterInfo, STRATEGIES, StrategyInfo, registry};
use namehop_manage::views::{StrategyChoiceView, StrategyView};
use namehop_wire::Name;

use super::prefixes::PrefixArgs;
use crate::api::{Api, ApiArgs};
use crate::connection::{ConnectionArgs, block_on};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::output::{self, Align, Table};
use crate::signing::CommandSigningArgs;

/// List and choose forwarding strategies
#[derive(Args, Debug)]
pub struct StrategyArgs {
    #[command(subcommand)]
    command: StrategyCommand,
    #[command(flatten)]
    signing: CommandSigningArgs,
}

#[derive(Subcommand, Debug)]
enum StrategyCommand {
    List(ListArgs),
    Set(SetArgs),
    Unset(UnsetArgs),
    Load(LoadArgs),
    Unload(UnloadArgs),
}

/// List strategy choices
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop strategy list --json")]
struct ListArgs {
    #[command(flatten)]
    prefixes: PrefixArgs,
    /// List the loaded strategies instead, with their parameters
    #[arg(long)]
    loaded: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Choose the strategy of a prefix
#[derive(Args, Debug)]
#[command(after_help = set_help())]
struct SetArgs {
    /// Prefix
    prefix: Name,
    /// Name of the strategy; without '/', it is under /localhost/nfd/strategy
    strategy: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Remove a prefix's strategy choice, so that the choice of a shorter prefix applies
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop strategy unset /example")]
struct UnsetArgs {
    /// Prefix
    prefix: Name,
}

/// Load a strategy into the router, or replace a loaded one
///
/// The file is an eBPF object file compiled from C by clang. The router verifies it and translates it to native code.
/// Prefixes that use a strategy of this name switch to the new one without interrupting traffic. Only Namehop supports
/// this command.
///
/// Loading requires the token of the router's HTTP API, or a key that is authorized for the module strategy-choice in
/// [[management.authorizations]].
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  clang -O2 -target bpf -I sdk -c sdk/examples/hedge.c -o hedge.o
  sudo namehop strategy load hedge.o --token /var/lib/namehop/state.json.api-token
  namehop strategy load hedge.o --signing-key operator.key --certificate operator.ndncert
  namehop strategy set /example hedge/v=1/patience~30")]
struct LoadArgs {
    #[arg(
        value_name = "FILE",
        help = format!("Object file, of at most {MAX_COMMAND_FILE_BYTES} bytes; with --token {MAX_OBJECT_FILE_BYTES}")
    )]
    file: PathBuf,
    /// Name of the strategy [default: the name in the file]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    api: ApiArgs,
}

/// Remove a loaded strategy that no prefix uses
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop strategy unload hedge")]
struct UnloadArgs {
    /// Name of the strategy
    name: String,
}

/// Returns examples, and a list of the strategies that routers of this release have.
fn set_help() -> String {
    let mut help = "Examples:
  namehop strategy set /example multicast
  namehop strategy set / /localhost/nfd/strategy/asf/v=5/probing-interval~30000
  namehop strategy set /example asf --signing-key operator.key --certificate operator.ndncert

Strategies of Namehop:\n"
        .to_owned();
    for StrategyInfo { name, summary, .. } in STRATEGIES {
        help.push_str(&format!("  {name:<15}{summary}\n"));
    }
    help.push_str("\nTheir parameters and default values:\n");
    for (ParameterInfo { key, default, min, max, meaning }, strategies) in registry::all_parameters() {
        help.push_str(&format!(
            "  {key}~{default}\n      {meaning}; {min} to {max}\n      of {}\n",
            strategies.join(", ")
        ));
    }
    help
}

impl StrategyArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        block_on(async {
            if let StrategyCommand::Load(args) = &self.command
                && let Some(api) = args.api.api()?
            {
                return args.run_over_http(&api).await;
            }
            let manager = match &self.command {
                StrategyCommand::List(_) => Manager::connect(connection).await?,
                _ => Manager::connect_with_signer(connection, self.signing.signer()?).await?,
            };
            let is_of_loaded = match &self.command {
                StrategyCommand::List(args) => args.loaded,
                StrategyCommand::Set(_) | StrategyCommand::Unset(_) => false,
                StrategyCommand::Load(_) | StrategyCommand::Unload(_) => true,
            };
            if is_of_loaded {
                manager.only_namehop("loaded strategies").await?;
            }
            match self.command {
                StrategyCommand::List(args) => args.run(&manager).await,
                StrategyCommand::Set(args) => args.run(&manager).await,
                StrategyCommand::Unset(args) => args.run(&manager).await,
                StrategyCommand::Load(args) => args.run(&manager).await,
                StrategyCommand::Unload(args) => args.run(&manager).await,
            }
        })
    }
}

impl ListArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        if self.loaded {
            return self.run_loaded(manager).await;
        }
        let choices = self.prefixes.select(manager.datasets().strategies().await?, |choice| &choice.name);
        let views: Vec<StrategyChoiceView> = choices.iter().map(StrategyChoiceView::from).collect();
        if self.json {
            return output::json(&views);
        }
        let mut table = Table::new(&[("PREFIX", Align::Left), ("STRATEGY", Align::Left)]);
        for view in views {
            table.row([view.prefix, view.strategy]);
        }
        table.print()
    }

    async fn run_loaded(self, manager: &Manager) -> Result<(), Failure> {
        let loaded = manager.datasets().loaded_strategies().await?;
        let views: Vec<StrategyView> = loaded.into_iter().map(StrategyView::from).collect();
        if self.json {
            return output::json(&views);
        }
        for StrategyView { strategy, summary, parameters, .. } in &views {
            output::line(format!("{strategy}\n    {summary}"))?;
            for StrategyParameter { key, default, min, max, meaning } in parameters {
                output::line(format!("    {key}~{default}\n        {meaning}; {min} to {max}"))?;
            }
        }
        Ok(())
    }
}

impl LoadArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let object = self.read(MAX_COMMAND_FILE_BYTES)?;
        let name = self.name.map(|name| Name::new().append_generic(name));
        let parameters = ControlParameters { name, ..ControlParameters::default() };
        let done = manager.command_with_file(module::STRATEGY_CHOICE, "load", &parameters, &object).await;
        let done = done.map_err(|failure| failure.context("loading a strategy"))?;
        is_loaded(done.name.unwrap_or_default().to_string().trim_start_matches('/'))
    }

    async fn run_over_http(&self, api: &Api) -> Result<(), Failure> {
        let object = self.read(MAX_OBJECT_FILE_BYTES)?;
        let query = self.name.as_deref().map(|name| format!("?name={}", encoded(name))).unwrap_or_default();
        let answer = api.post_file(&format!("/strategies/loaded{query}"), object).await?;
        is_loaded(answer.get("name").and_then(serde_json::Value::as_str).unwrap_or_default())
    }

    fn read(&self, max_bytes: usize) -> Result<Vec<u8>, Failure> {
        let shown = self.file.display();
        let object = read_object(&self.file).map_err(|error| Failure::failed(format!("{shown}: {error}")))?;
        match object.len() > max_bytes {
            true => Err(Failure::failed(too_long(&shown.to_string(), object.len()))),
            false => Ok(object),
        }
    }
}

fn is_loaded(name: &str) -> Result<(), Failure> {
    output::line(format!("strategy {name} loaded"))
}

/// Percent-encodes everything but letters and digits, for the query of a URL.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect()
}

/// Reads at most one byte more than the maximum size: some files never end.
fn read_object(path: &Path) -> io::Result<Vec<u8>> {
    let mut object = Vec::new();
    File::open(path)?.take(MAX_OBJECT_FILE_BYTES as u64 + 1).read_to_end(&mut object)?;
    Ok(object)
}

/// Explains what to do with an object file that is too long for a command.
fn too_long(file: &str, bytes: usize) -> String {
    let smaller = "compile it without -g, or run llvm-strip -g on it";
    if bytes > MAX_OBJECT_FILE_BYTES {
        return format!("{file} exceeds the limit of {MAX_OBJECT_FILE_BYTES} bytes; {smaller}");
    }
    format!(
        "{file} has {bytes} bytes, but a command takes at most {MAX_COMMAND_FILE_BYTES}; {smaller}, load it over HTTP \
         (--token), or add it to the configuration (section [[loaded_strategy]])"
    )
}

impl UnloadArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let name = Some(Name::new().append_generic(&self.name));
        let parameters = ControlParameters { name, ..ControlParameters::default() };
        manager.command(module::STRATEGY_CHOICE, "unload", &parameters).await?;
        output::line(format!("strategy {} unloaded", self.name))
    }
}

impl SetArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let strategy = registry::full_name(&self.strategy).map_err(Failure::usage)?;
        let parameters = ControlParameters {
            name: Some(self.prefix.clone()),
            strategy: Some(strategy.clone()),
            ..ControlParameters::default()
        };
        let done = manager.command(module::STRATEGY_CHOICE, "set", &parameters).await?;
        let choice =
            StrategyChoice { name: done.name.unwrap_or(self.prefix), strategy: done.strategy.unwrap_or(strategy) };
        let view = StrategyChoiceView::from(&choice);
        if self.json {
            return output::json(&view);
        }
        output::line(format!("strategy of {} is {}", view.prefix, view.strategy))
    }
}

impl UnsetArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let parameters = ControlParameters { name: Some(self.prefix.clone()), ..ControlParameters::default() };
        manager.command(module::STRATEGY_CHOICE, "unset", &parameters).await?;
        output::line(format!("strategy of {} is inherited", self.prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_too_long_for_a_command_has_other_ways_if_it_may_be_loaded_at_all() {
        assert!(too_long("x.o", MAX_OBJECT_FILE_BYTES).contains("--token"));
        assert!(!too_long("x.o", MAX_OBJECT_FILE_BYTES + 1).contains("HTTP"));
    }

    #[test]
    fn help_names_every_strategy_and_parameter() {
        let help = set_help();
        for info in STRATEGIES {
            assert!(help.contains(&format!("\n  {:<15}{}\n", info.name, info.summary)), "{help}");
            for ParameterInfo { key, default, meaning, .. } in info.parameters() {
                assert!(help.contains(&format!("\n  {key}~{default}\n      {meaning}; ")), "{help}");
            }
        }
    }
}
