//! The policies that a simulation can run: the router's, and policies that serve comparisons only.

use std::fmt;
use std::str::FromStr;

use namehop_store::{
    Everything, EvictionPolicy, Fifo, Guarded, Parameters, PolicyChoice, PolicyChoiceError, PolicyKind, PolicyVisitor,
    Random, Tuning, UnknownPolicy,
};
use namehop_table::TableError;

use crate::exact_tinylfu::{ExactTinyLfu, TinyLfuChoices, Victim};
use crate::perfect_lfu::PerfectLfu;

/// Name of [`SimulatedPolicy::PerfectLfu`].
const PERFECT_LFU: &str = "perfect-lfu";

/// The policy of a simulated store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SimulatedPolicy {
    /// A policy of the router, with its settings.
    Router(PolicyChoice),
    /// LFU by the requests for each name since the start, also while its packet was not in the store; written
    /// `perfect-lfu`. Its memory grows with the number of names, so the router does not have it. The router's
    /// [`lfu`](PolicyKind::Lfu) forgets the count of a packet that it evicts.
    PerfectLfu,
    /// TinyLFU with exact counts, to compare choices that descriptions of TinyLFU leave open. It has no name on the
    /// command line.
    ExactTinyLfu(TinyLfuChoices),
}

impl SimulatedPolicy {
    /// Makes this policy for a store of `capacity` packets and passes it to `visitor`.
    ///
    /// # Errors
    /// Fails if its memory cannot be allocated.
    pub(crate) fn visit<V: PolicyVisitor>(self, capacity: usize, visitor: V) -> Result<V::Output, TableError> {
        let of = |tuning| Parameters { slots: capacity, capacity, tuning };
        Ok(match self {
            SimulatedPolicy::Router(choice) => choice.kind.visit(&of(choice.tuning), visitor)?,
            SimulatedPolicy::PerfectLfu => {
                visitor.visit(Guarded::<Everything, PerfectLfu>::new(&of(Tuning::default()))?)
            }
            SimulatedPolicy::ExactTinyLfu(choices) => {
                let parameters = of(Tuning { sample: Some(choices.window), ..Tuning::default() });
                match choices.victim {
                    Victim::Random => visit_tinylfu::<Random, V>(choices, &parameters, visitor)?,
                    Victim::Fifo => visit_tinylfu::<Fifo, V>(choices, &parameters, visitor)?,
                }
            }
        })
    }
}

fn visit_tinylfu<E: EvictionPolicy + 'static, V: PolicyVisitor>(
    choices: TinyLfuChoices,
    parameters: &Parameters,
    visitor: V,
) -> Result<V::Output, TableError> {
    Ok(match choices.admits_equals {
        true => visitor.visit(Guarded::<ExactTinyLfu<true>, E>::new(parameters)?),
        false => visitor.visit(Guarded::<ExactTinyLfu<false>, E>::new(parameters)?),
    })
}

impl From<PolicyChoice> for SimulatedPolicy {
    fn from(choice: PolicyChoice) -> Self {
        SimulatedPolicy::Router(choice)
    }
}

impl From<PolicyKind> for SimulatedPolicy {
    fn from(kind: PolicyKind) -> Self {
        SimulatedPolicy::Router(kind.into())
    }
}

impl fmt::Display for SimulatedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimulatedPolicy::Router(choice) => choice.fmt(f),
            SimulatedPolicy::PerfectLfu => f.write_str(PERFECT_LFU),
            SimulatedPolicy::ExactTinyLfu(TinyLfuChoices { window, admits_equals, victim }) => {
                let equals = if *admits_equals { "admitted" } else { "rejected" };
                write!(f, "exact TinyLFU, window {window} C, equals {equals}, victim {victim:?}")
            }
        }
    }
}

/// A text does not name a policy that can be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulatedPolicyError {
    /// The policy is unknown.
    #[error("{0}; simulations also have '{PERFECT_LFU}'")]
    Unknown(UnknownPolicy),
    /// The policy has no settings.
    #[error("'{PERFECT_LFU}' has no settings")]
    NoSettings,
    /// A policy of the router cannot have these settings.
    #[error(transparent)]
    Settings(PolicyChoiceError),
}

impl FromStr for SimulatedPolicy {
    type Err = SimulatedPolicyError;

    fn from_str(text: &str) -> Result<Self, SimulatedPolicyError> {
        let (name, settings) = text.split_once(':').map_or((text, None), |(name, settings)| (name, Some(settings)));
        if name == PERFECT_LFU {
            return settings.map_or(Ok(SimulatedPolicy::PerfectLfu), |_| Err(SimulatedPolicyError::NoSettings));
        }
        text.parse().map(SimulatedPolicy::Router).map_err(|error| match error {
            PolicyChoiceError::Policy(unknown) => SimulatedPolicyError::Unknown(unknown),
            other => SimulatedPolicyError::Settings(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for text in [PERFECT_LFU, "lfu", "filter:threshold=3"] {
            assert_eq!(text.parse::<SimulatedPolicy>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn errors_name_the_policies_of_simulations() {
        let error = |text: &str| text.parse::<SimulatedPolicy>().expect_err(text).to_string();
        assert!(error("best").ends_with("'priority-fifo'; simulations also have 'perfect-lfu'"), "{}", error("best"));
        assert_eq!(error("perfect-lfu:sample=3"), "'perfect-lfu' has no settings");
        assert_eq!(error("lru:threshold=2"), "content store policy 'lru' has no setting 'threshold'");
    }
}
