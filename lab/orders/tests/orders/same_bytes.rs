//! Random packet sequences through the engine in every order, and through the reference model: all must send the same.

use namehop_orders::{Order, PathKind, ScheduleKind};
use proptest::prelude::*;

use crate::model::engines::{Division, Process};
use crate::model::runner::Runner;
use crate::model::scenario::{Scenario, any_scenario};

/// Runs a scenario, and returns everything the engine sends.
fn sent(scenario: &Scenario, mut runner: Runner) -> Result<Vec<String>, TestCaseError> {
    for action in &scenario.actions {
        runner.act(action)?;
    }
    runner.finish()
}

/// Returns the engine's function that handles a burst, in this order.
fn in_order(kind: ScheduleKind) -> Process {
    let mut order = Order::new(kind, PathKind::Whole);
    Box::new(move |engine, now, burst, out| order.process(engine, now, burst, out))
}

fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = default.cases.max(400);
    ProptestConfig { cases, max_shrink_iters: 20_000, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn all_orders_send_the_same_bytes(scenario in any_scenario()) {
        let mut traced = Runner::new(&scenario, Division::NONE);
        traced.trace_everything();
        let router = sent(&scenario, traced)?;
        for &kind in ScheduleKind::ALL {
            let runner = Runner::with(&scenario, Division::NONE, in_order(kind));
            prop_assert_eq!(&router, &sent(&scenario, runner)?, "{}", kind);
        }
    }
}
