//! Random packet sequences through the engine and through the reference model: both must send the same.
//!
//! Names, nonces, faces and times come from small sets, so that sequences are full of aggregation, retransmission, loops,
//! cache hits and late packets. All waiting times are multiples of 7 ms and all lifetimes leave a remainder of 3, so that no timer
//! is due exactly when a packet arrives and the resolution of the engine's timers does not matter.

mod model;

use model::runner::Runner;
use model::scenario::any_scenario;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(3_000), max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_sends_what_the_model_sends(scenario in any_scenario()) {
        let mut runner = Runner::new(&scenario);
        for action in &scenario.actions {
            runner.act(action)?;
        }
        runner.finish()?;
    }
}
