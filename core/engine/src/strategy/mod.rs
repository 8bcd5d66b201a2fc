//! Forwarding strategies: which next hops an Interest is sent to, and when.
//!
//! The trait [`Strategy`] defines a strategy; each one is a file in `built_in`, beside the list of all. The pipelines
//! call [`dispatch`] with a [`Trigger`] and a [`StrategyContext`] for one PIT entry. A strategy has no state except its
//! parameters. Its state of a pending Interest is in scratch bytes of the PIT entry and of its out-records; its
//! measurements of next hops are in the worker's [`MeasurementTable`].
//!
//! In addition to the built-in strategies there are eBPF programs that are loaded at run time ([`program`]).

mod built_in;
pub mod context;
pub mod measurements;
mod nack;
mod parameter;
pub mod program;
pub mod registry;
mod suppression;
#[cfg(test)]
mod tests;
pub(crate) mod upstreams;

use namehop_packet::FaceId;
use namehop_wire::lp::NackReason;

use crate::fib::NextHop;

pub use built_in::STRATEGIES;
use built_in::best_route::BestRoute;
pub use context::{InRecord, OutRecord, OutScratch, PitScratch, StrategyContext, Trigger};
pub use measurements::{MeasurementTable, Measurements};
use parameter::Parameters;
pub use parameter::{ParameterError, ParameterInfo};
pub use program::StrategyProgram;
use registry::Chosen;
pub use registry::{ProgramRefused, StrategyError, StrategyInfo, StrategyInstance, StrategyRegistry};

/// A forwarding strategy with its parameters; its `Default` has all default values.
///
/// The triggers are the same as in NFD ("Triggers" in section "Strategy API" of the NFD Developer's Guide); [`Trigger`]
/// says when they occur. A strategy implements only those for which the default is unsuitable.
trait Strategy: Default {
    /// Name component after `/localhost/nfd/strategy`.
    const NAME: &'static str;
    /// Version. For a strategy that NFD has too, NFD's version.
    const VERSION: u64;
    /// One line of help.
    const SUMMARY: &'static str;
    /// Whether it does more with Data than send it to all downstreams. If not, Data is sent to the downstreams without
    /// a FIB lookup and without a call of the strategy, wherever possible. So it must be `true` for a strategy that
    /// implements [`after_receive_data`](Self::after_receive_data) or
    /// [`before_satisfy_interest`](Self::before_satisfy_interest).
    const WANTS_DATA: bool;

    /// Its parameters, each with the field that holds it.
    fn parameters(&mut self) -> Parameters<'_> {
        Parameters::default()
    }

    /// Checks rules between several of its own parameters.
    fn check(&self) -> Result<(), ParameterError> {
        Ok(())
    }

    /// An Interest arrived that is not a loop and was not answered from the Content Store; or a pending one is retried.
    fn after_receive_interest<C: StrategyContext>(&self, ctx: &mut C);

    /// Data arrived that satisfies only this PIT entry. The strategy must send it.
    fn after_receive_data<C: StrategyContext>(&self, ctx: &mut C) {
        ctx.send_data_to_all();
    }

    /// Data arrived that satisfies several PIT entries, among them this one. The pipeline sends it.
    fn before_satisfy_interest<C: StrategyContext>(&self, _ctx: &mut C) {}

    /// A Nack arrived and is stored in its out-record.
    fn after_receive_nack<C: StrategyContext>(&self, _reason: NackReason, ctx: &mut C) {
        nack::process_nack(ctx);
    }

    /// The link could not deliver the Interest to this next hop. By default the consumer has to retransmit.
    fn on_dropped_interest<C: StrategyContext>(&self, _nexthop: FaceId, _ctx: &mut C) {}

    /// The FIB entry of the pending Interest got a next hop.
    fn after_new_next_hop<C: StrategyContext>(&self, _nexthop: NextHop, _ctx: &mut C) {}

    /// A timer of [`StrategyContext::schedule_timer_us`] is due.
    fn after_timer<C: StrategyContext>(&self, _ctx: &mut C) {}

    /// The PIT entry ends unsatisfied.
    fn before_expire_pending_interest<C: StrategyContext>(&self, _ctx: &mut C) {}

    /// Calls the method for the trigger.
    #[inline]
    fn handle<C: StrategyContext>(&self, trigger: Trigger, ctx: &mut C) {
        match trigger {
            Trigger::AfterReceiveInterest => self.after_receive_interest(ctx),
            Trigger::AfterReceiveData => self.after_receive_data(ctx),
            Trigger::BeforeSatisfyInterest => self.before_satisfy_interest(ctx),
            Trigger::AfterReceiveNack(reason) => self.after_receive_nack(reason, ctx),
            Trigger::OnDroppedInterest(nexthop) => self.on_dropped_interest(nexthop, ctx),
            Trigger::AfterNewNextHop(nexthop) => self.after_new_next_hop(nexthop, ctx),
            Trigger::Timer => self.after_timer(ctx),
            Trigger::BeforeExpirePendingInterest => self.before_expire_pending_interest(ctx),
        }
    }
}

/// Makes the strategy handle one trigger.
pub fn dispatch<C: StrategyContext>(instance: &StrategyInstance, trigger: Trigger, ctx: &mut C) {
    match instance.strategy() {
        Chosen::BuiltIn(strategy) => strategy.dispatch(trigger, ctx),
        Chosen::Program(program) => program.handle(trigger, ctx),
    }
}

/// Handles one trigger of an Interest that goes to the router itself.
#[cold]
#[inline(never)]
pub fn dispatch_to_router<C: StrategyContext>(trigger: Trigger, ctx: &mut C) {
    BestRoute::default().handle(trigger, ctx);
}
