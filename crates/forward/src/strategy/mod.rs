//! Forwarding strategies: which next hops an Interest goes to, and when.
//!
//! The pipelines call [`dispatch`] with a [`Trigger`] and a [`StrategyContext`] for one PIT entry. A strategy holds no state of its own: its
//! parameters are in the [`StrategyInstance`], what it remembers of a pending Interest in the scratch bytes of PIT entry and
//! out-records, and what it learns of next hops in the worker's [`MeasurementTable`]. A new strategy is a file here, a
//! variant of [`Parameters`], a line in the registry and an arm in `dispatch`.

mod access;
mod asf;
mod best_route;
pub mod context;
pub mod measurements;
mod multicast;
mod nack;
mod random;
pub mod registry;
mod self_learning;
mod suppression;
#[cfg(test)]
mod tests;
mod upstreams;

pub use asf::AsfParameters;
pub use context::{InRecord, OutRecord, OutScratch, PitScratch, StrategyContext, Trigger};
pub use measurements::{MeasurementTable, Measurements};
pub use registry::{Parameters, STRATEGIES, StrategyError, StrategyInfo, StrategyInstance, StrategyKind};
pub use suppression::ExponentialSuppression;

/// Lets the strategy handle one trigger.
pub fn dispatch<C: StrategyContext>(instance: &StrategyInstance, trigger: Trigger, ctx: &mut C) {
    match instance.parameters() {
        Parameters::BestRoute(suppression) => match trigger {
            Trigger::AfterReceiveInterest => best_route::after_receive_interest(suppression, ctx),
            other => by_default(other, ctx),
        },
        Parameters::Random(suppression) => match trigger {
            Trigger::AfterReceiveInterest => random::after_receive_interest(suppression, ctx),
            other => by_default(other, ctx),
        },
        Parameters::Multicast(suppression) => match trigger {
            Trigger::AfterReceiveInterest => multicast::after_receive_interest(suppression, ctx),
            Trigger::AfterNewNextHop(nexthop) => multicast::after_new_next_hop(nexthop, ctx),
            other => by_default(other, ctx),
        },
        Parameters::Access(suppression) => access::dispatch(suppression, trigger, ctx),
        Parameters::Asf(parameters) => asf::dispatch(parameters, trigger, ctx),
        Parameters::SelfLearning(suppression) => self_learning::dispatch(suppression, trigger, ctx),
    }
}

/// What a strategy does that takes no interest in a trigger.
///
/// Looping Interests are answered by the pipeline. What the link dropped or what expires is left to the consumer's
/// retransmission.
fn by_default<C: StrategyContext>(trigger: Trigger, ctx: &mut C) {
    match trigger {
        Trigger::AfterReceiveData => ctx.send_data_to_all(),
        Trigger::AfterReceiveNack(_) => nack::process_nack(ctx),
        Trigger::AfterReceiveInterest
        | Trigger::BeforeSatisfyInterest
        | Trigger::OnDroppedInterest(_)
        | Trigger::AfterNewNextHop(_)
        | Trigger::Timer
        | Trigger::BeforeExpire => {}
    }
}
