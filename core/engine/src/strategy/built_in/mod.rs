//! The built-in strategies: one file each, and the list of them.
//!
//! A new strategy is a file here, its `mod` line, and its line in the list. (The list does not generate the `mod`
//! lines, because rustfmt skips modules that a macro declares.)

use super::context::{StrategyContext, Trigger};
use super::registry::StrategyInfo;
use super::{Strategy, parameter};

mod access;
mod asf;
pub(super) mod best_route;
mod delay;
mod fastroute;
mod multicast;
mod random;
mod reject;
mod roundrobin;
mod self_learning;
mod sequential;
mod weighted;

/// Generates from the list everything that depends on all strategies: the enum, the dispatch of triggers, and the
/// descriptions for names and help. Dispatch is a `match`, so that packets need no virtual call.
macro_rules! built_in_strategies {
    ($($module:ident::$strategy:ident,)+) => {
        /// A strategy of the list, with its parameters.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum BuiltIn {
            $($strategy($module::$strategy),)+
        }

        /// All strategies. The first is the default.
        pub static STRATEGIES: &[StrategyInfo] = &[
            $(StrategyInfo::new::<$module::$strategy>(
                || BuiltIn::$strategy($module::$strategy::default()),
                |values| parameter::read(values).map(BuiltIn::$strategy),
            ),)+
        ];

        impl BuiltIn {
            /// Returns [`Strategy::WANTS_DATA`].
            pub fn wants_data(&self) -> bool {
                match self {
                    $(BuiltIn::$strategy(_) => $module::$strategy::WANTS_DATA,)+
                }
            }

            /// Makes the strategy handle a trigger.
            #[inline]
            pub fn dispatch<C: StrategyContext>(&self, trigger: Trigger, ctx: &mut C) {
                match self {
                    $(BuiltIn::$strategy(strategy) => strategy.handle(trigger, ctx),)+
                }
            }
        }
    };
}

built_in_strategies! {
    best_route::BestRoute,
    multicast::Multicast,
    asf::Asf,
    random::Random,
    access::Access,
    self_learning::SelfLearning,
    roundrobin::RoundRobin,
    weighted::Weighted,
    sequential::Sequential,
    fastroute::FastRoute,
    delay::Delay,
    reject::Reject,
}
