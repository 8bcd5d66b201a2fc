//! `namehop strategy`: which forwarding strategy applies to which names.

use clap::{Args, Subcommand};
use namehop_manage::nfd::{ControlParameters, StrategyChoice, names::module};
use namehop_manage::views::StrategyChoiceView;
use namehop_wire::Name;

use super::prefixes::PrefixArgs;
use super::signing::CommandSigningArgs;
use crate::connection::{ConnectionArgs, block_on};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::output::{self, Align, Table};

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
}

/// List strategy choices
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop strategy list --json")]
struct ListArgs {
    #[command(flatten)]
    prefixes: PrefixArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Choose the strategy of a prefix
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop strategy set /example multicast
  namehop strategy set / /localhost/nfd/strategy/asf/v=5/probing-interval~30000
  namehop strategy set /example asf --signing-key operator.key --certificate operator.ndncert")]
struct SetArgs {
    /// Prefix
    prefix: Name,
    /// Name of the strategy; one without '/' stands under /localhost/nfd/strategy
    strategy: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Make a prefix follow the choice of a shorter one
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop strategy unset /example")]
struct UnsetArgs {
    /// Prefix
    prefix: Name,
}

fn strategy_name(text: &str) -> Result<Name, Failure> {
    let uri = if text.starts_with('/') { text.to_owned() } else { format!("/localhost/nfd/strategy/{text}") };
    uri.parse().map_err(Failure::usage)
}

impl StrategyArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        block_on(async {
            let manager = match &self.command {
                StrategyCommand::List(_) => Manager::connect(connection).await?,
                _ => Manager::connect_with_signer(connection, self.signing.signer()?).await?,
            };
            match self.command {
                StrategyCommand::List(args) => args.run(&manager).await,
                StrategyCommand::Set(args) => args.run(&manager).await,
                StrategyCommand::Unset(args) => args.run(&manager).await,
            }
        })
    }
}

impl ListArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
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
}

impl SetArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let strategy = strategy_name(&self.strategy)?;
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
    fn short_names_stand_for_strategies_of_the_forwarder() {
        let name = |text| strategy_name(text).unwrap().to_string();
        assert_eq!(name("multicast"), "/localhost/nfd/strategy/multicast");
        assert_eq!(name("/x/y"), "/x/y");
    }
}
