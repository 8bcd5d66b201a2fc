//! Random packet sequences through the engine and through the reference model: both must send the same.
//!
//! Names, nonces, faces and times come from small sets, so that sequences are full of aggregation, retransmission,
//! loops, cache hits and late packets. All waiting times are multiples of 7 ms and all lifetimes leave a remainder of
//! 3. So no timer is due exactly when a packet arrives, and the resolution of the engine's timers does not matter.

mod model;

use model::engines::Division;
use model::runner::Runner;
use model::scenario::{Action, Scenario, any_scenario};
use proptest::prelude::*;

/// Returns a configuration with at least this number of cases.
fn at_least(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(cases), max_shrink_iters: 20_000, failure_persistence: None, ..default }
}

/// Runs a scenario, and returns everything the engine sends.
fn sent(scenario: &Scenario) -> Result<Vec<String>, TestCaseError> {
    sent_by(scenario, Division::NONE)
}

/// The same with everything traced.
fn sent_traced(scenario: &Scenario) -> Result<Vec<String>, TestCaseError> {
    let mut runner = Runner::new(scenario, Division::NONE);
    runner.trace_everything();
    for action in &scenario.actions {
        runner.act(action)?;
    }
    runner.finish()
}

/// The same with several engines that divide the names.
fn sent_by(scenario: &Scenario, division: Division) -> Result<Vec<String>, TestCaseError> {
    let mut runner = Runner::new(scenario, division);
    for action in &scenario.actions {
        runner.act(action)?;
    }
    runner.finish()
}

proptest! {
    #![proptest_config(at_least(400))]

    #[test]
    fn tracing_changes_nothing_that_is_sent(scenario in any_scenario()) {
        prop_assert_eq!(sent(&scenario)?, sent_traced(&scenario)?);
    }
}

proptest! {
    #![proptest_config(at_least(3_000))]

    #[test]
    fn the_engine_sends_what_the_model_sends(scenario in any_scenario()) {
        sent(&scenario)?;
    }
}

/// Returns the same scenario without a Content Store. With several engines, each one caches Data for its own Interests.
/// So an Interest for a prefix shorter than the dispatch depth may find less than with one engine.
fn without_cache(mut scenario: Scenario) -> Scenario {
    scenario.actions.retain(|action| !matches!(action, Action::ContentFlags { .. }));
    scenario.actions.insert(0, Action::ContentFlags { admit: false, serve: false });
    scenario
}

proptest! {
    #![proptest_config(at_least(1_000))]

    /// Names are divided by their first component, so no engine has only a part of what an Interest requests by prefix.
    #[test]
    fn several_engines_send_what_the_model_sends(
        scenario in any_scenario(),
        engines in prop_oneof![Just(2_usize), Just(4)],
    ) {
        sent_by(&scenario, Division { engines, components: 1, divided: 0 })?;
    }

    #[test]
    fn several_engines_answer_interests_for_short_prefixes(
        scenario in any_scenario(),
        engines in prop_oneof![Just(2_usize), Just(4)],
        components in 1..4_usize,
        divided in 0..4_usize,
    ) {
        sent_by(&without_cache(scenario), Division { engines, components, divided })?;
    }
}
