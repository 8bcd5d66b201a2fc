//! Strategies loaded at run time: the commands `strategy-choice/load` and `unload`.
//!
//! When a program replaces another of the same name, prefixes that have chosen the old one switch to the new one with
//! the same parameters. Workers use the old one until they have passed a quiescent state; then its memory is freed.

use std::sync::Arc;

use namehop_client::nfd::numbers::status_code;
use namehop_client::nfd::{ControlParameters, ControlResponse};
use namehop_engine::strategy::{StrategyError, StrategyInstance, StrategyProgram};
use namehop_wire::{Name, NameRef};
use tracing::warn;

use super::dispatcher::Requester;
use super::reply::not_saved;
use super::verbs::bad_request;
use super::{ControlPlane, Management, StateChange, fib};
use crate::authentication::Authority;

/// Returns the strategy name in a Name, which must be its only component.
fn strategy_name(name: &Name) -> Option<&str> {
    let name: NameRef<'_> = name.as_ref();
    let component = name.get(0).filter(|component| component.is_generic() && name.len() == 1)?;
    std::str::from_utf8(component.value).ok()
}

fn conflict(text: impl Into<String>) -> ControlResponse {
    ControlResponse::new(status_code::CONFLICT, text.into())
}

fn warn_if_interpreted(program: &StrategyProgram) {
    if let Some(reason) = program.interpreted_because() {
        warn!(strategy = program.name(), reason, "a loaded strategy is interpreted, which is slower than native code");
    }
}

impl<C: ControlPlane> Management<C> {
    /// Loads a saved program, before any strategy choice is restored.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub fn restore_strategy(&self, name: &str, object: &[u8]) -> Result<(), String> {
        let program = StrategyProgram::load(object, Some(name));
        let program = program.map_err(|error| error.to_string())?;
        warn_if_interpreted(&program);
        self.control.with_strategies(|strategies| strategies.insert(program)).map_err(|error| error.to_string())
    }

    /// Loads a program if the requester is authorized. Code that runs inside the router takes a listed key or the token
    /// of the HTTP API; being a local application is not enough.
    pub(super) fn load_strategy(
        &self,
        parameters: ControlParameters,
        object: &[u8],
        requester: Requester,
    ) -> ControlResponse {
        if !matches!(requester.authority, Authority::ListedKey | Authority::Token) {
            return ControlResponse::new(
                status_code::FORBIDDEN,
                "loading a strategy needs a key that is listed for the module strategy-choice in \
                 [[management.authorizations]], or the token of the HTTP API",
            );
        }
        let name = match parameters.name.as_ref().map(strategy_name) {
            Some(None) => return bad_request("Name must be one component, the name of the strategy".to_owned()),
            name => name.flatten(),
        };
        let program = match StrategyProgram::load(object, name) {
            Ok(program) => program,
            Err(error) => return conflict(error.to_string()),
        };
        let choices = match self.choices_with(&program) {
            Ok(choices) => choices,
            Err((prefix, error)) => {
                return conflict(match error {
                    StrategyError::NotFound => {
                        format!("{prefix} uses a higher version of this strategy; choose another strategy there first")
                    }
                    StrategyError::BadParameters(text) => {
                        format!("the strategy choice of {prefix} does not fit this strategy: {text}")
                    }
                });
            }
        };
        if let Err(error) = self.control.save(StateChange::StrategyLoaded { name: program.name(), object }) {
            return not_saved(&error);
        }
        if let Err(error) = self.control.with_strategies(|strategies| strategies.insert(Arc::clone(&program))) {
            self.control.withdraw();
            return conflict(error.to_string());
        }
        warn_if_interpreted(&program);
        for (prefix, instance) in choices {
            // The prefix already has a choice, which is replaced in place.
            if let Err(error) = self.control.with_fib(|fib| fib.set_strategy(prefix.as_ref(), instance)) {
                return fib::refused(&error);
            }
        }
        ControlResponse::ok(&ControlParameters {
            name: Some(Name::new().append_generic(program.name())),
            ..ControlParameters::default()
        })
    }

    pub(super) fn unload_strategy(&self, parameters: &ControlParameters) -> ControlResponse {
        let Some(name) = parameters.name.as_ref().and_then(strategy_name) else {
            return bad_request("Name must be one component, the name of the strategy".to_owned());
        };
        if self.control.with_strategies(|strategies| strategies.program(name).is_none()) {
            return ControlResponse::new(status_code::NOT_FOUND, format!("no strategy {name} is loaded"));
        }
        if let Some((prefix, _)) = self.choices_of(name).first() {
            return conflict(format!("{prefix} uses this strategy; choose another there first"));
        }
        if let Err(error) = self.control.save(StateChange::StrategyUnloaded(name)) {
            return not_saved(&error);
        }
        self.control.with_strategies(|strategies| drop(strategies.remove(name)));
        ControlResponse::ok(parameters)
    }

    /// Returns the prefixes that have chosen the loaded strategy with this name, and their choices.
    fn choices_of(&self, name: &str) -> Vec<(Name, StrategyInstance)> {
        self.control.with_fib(|fib| {
            let choices = fib.strategies();
            let of_name = choices.filter(|(_, choice)| choice.program().is_some_and(|program| program.name() == name));
            of_name.map(|(prefix, choice)| (prefix.to_owned(), choice.clone())).collect()
        })
    }

    /// Returns the choices that switch to a program, or the first choice that it rejects.
    fn choices_with(
        &self,
        program: &Arc<StrategyProgram>,
    ) -> Result<Vec<(Name, StrategyInstance)>, (Name, StrategyError)> {
        let choices = self.choices_of(program.name()).into_iter();
        let changed = choices.map(|(prefix, choice)| match choice.with_program(Arc::clone(program)) {
            Ok(instance) => Ok((prefix, instance)),
            Err(error) => Err((prefix, error)),
        });
        changed.collect()
    }
}
