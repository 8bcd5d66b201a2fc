//! Module `strategy-choice`: which strategy forwards the Interests under a prefix.

use std::rc::Rc;

use namehop_client::nfd::numbers::status_code;
use namehop_client::nfd::{ControlParameters, ControlResponse, FieldSet};
use namehop_engine::strategy::StrategyError;
use tokio::task::yield_now;

use super::reply::not_saved;
use super::verbs::{Action, Response, Verb, bad_request};
use super::{ControlPlane, Management, StateChange, fib};

/// Entries of the FIB processed between two pauses, which takes some tenths of a millisecond.
const PORTION: usize = 16_384;

impl<C: ControlPlane> Management<C> {
    /// Verbs of the module.
    pub(super) const STRATEGY_VERBS: &[Verb<C>] = &[
        Verb {
            name: "set",
            required: FieldSet::NAME.with(FieldSet::STRATEGY),
            optional: FieldSet::NONE,
            action: Action::Task(|this, parameters, _| {
                let response = this.set_strategy(parameters);
                this.after_strategies_settled(response)
            }),
        },
        Verb {
            name: "unset",
            required: FieldSet::NAME,
            optional: FieldSet::NONE,
            action: Action::Task(|this, parameters, _| {
                let response = this.unset_strategy(parameters);
                this.after_strategies_settled(response)
            }),
        },
        Verb {
            name: "load",
            required: FieldSet::NONE,
            optional: FieldSet::NAME,
            action: Action::WithFile(Self::load_strategy),
        },
        Verb {
            name: "unload",
            required: FieldSet::NAME,
            optional: FieldSet::NONE,
            action: Action::Now(|this, parameters, _| this.unload_strategy(&parameters)),
        },
    ];

    /// Responds when all prefixes use the strategies that were chosen for them, so that 200 confirms it.
    fn after_strategies_settled(self: Rc<Self>, response: ControlResponse) -> Response {
        Box::pin(async move {
            while !self.control.with_fib(|fib| fib.settle_strategies(PORTION)) {
                yield_now().await;
            }
            response
        })
    }

    fn set_strategy(&self, parameters: ControlParameters) -> ControlResponse {
        let (name, strategy) = (parameters.name.unwrap_or_default(), parameters.strategy.unwrap_or_default());
        let instance = match self.control.with_strategies(|strategies| strategies.parse(strategy.as_ref())) {
            Ok(instance) => instance,
            Err(error) => {
                let code = match error {
                    StrategyError::NotFound => status_code::NOT_FOUND,
                    StrategyError::BadParameters(_) => status_code::CONFLICT,
                };
                return ControlResponse::new(code, error.to_string());
            }
        };
        let full_name = instance.name().clone();
        if let Err(error) = self.control.save(StateChange::StrategySet { prefix: name.as_ref(), strategy: &full_name })
        {
            return not_saved(&error);
        }
        if let Err(error) = self.control.with_fib(|fib| fib.set_strategy(name.as_ref(), instance)) {
            self.control.withdraw();
            return fib::refused(&error);
        }
        ControlResponse::ok(&ControlParameters {
            name: Some(name),
            strategy: Some(full_name),
            ..ControlParameters::default()
        })
    }

    fn unset_strategy(&self, parameters: ControlParameters) -> ControlResponse {
        let name = parameters.name.unwrap_or_default();
        if name.is_empty() {
            return bad_request("the strategy of the name / can be changed but not unset".to_owned());
        }
        // A prefix that is too long for the FIB has no choice to remove.
        if self.control.with_fib(|fib| fib.has_strategy(name.as_ref())) {
            if let Err(error) = self.control.save(StateChange::StrategyUnset(name.as_ref())) {
                return not_saved(&error);
            }
            if let Err(error) = self.control.with_fib(|fib| fib.unset_strategy(name.as_ref())) {
                self.control.withdraw();
                return fib::refused(&error);
            }
        }
        ControlResponse::ok(&ControlParameters { name: Some(name), ..ControlParameters::default() })
    }
}
