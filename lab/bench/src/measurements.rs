//! The measurements of the forwarding engine, as a trait. The crate that reproduces published figures calls them
//! through it and does not depend on the engine; its tests replace them.

use std::error::Error;

use crate::policy::{BlockFigures, PolicyFigures, PolicyParameters};
use crate::progress::OnProgress;
use crate::schedule::{EngineParameters, ScheduleFigures};

/// Measures the forwarding engine.
pub trait EngineMeasurements {
    /// Measures each schedule of the parameters; results are in that order.
    fn measure(
        &mut self,
        parameters: &EngineParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<ScheduleFigures>, Box<dyn Error + Send + Sync>>;

    /// Measures each cache policy of `of`. Returns a list per run, in the order of the policies.
    fn measure_policies(
        &mut self,
        parameters: &EngineParameters,
        of: &PolicyParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<Vec<PolicyFigures>>, Box<dyn Error + Send + Sync>>;

    /// Measures the blocks of packet flow with each cache policy. Returns a list per run, in the order of the policies,
    /// first for the schedule `Naive`, then for `Burst`.
    fn measure_blocks(
        &mut self,
        parameters: &EngineParameters,
        of: &PolicyParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<Vec<BlockFigures>>, Box<dyn Error + Send + Sync>>;
}
