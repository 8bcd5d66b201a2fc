//! Tests of strategy names and parameters.

use super::super::context::Trigger;
use super::super::tests::{A, Action, D, Mock};
use super::*;

fn parse(uri: &str) -> Result<StrategyInstance, StrategyError> {
    let name: Name = uri.parse().expect("a name");
    StrategyInstance::parse(name.as_ref())
}

fn refusal(uri: &str) -> String {
    match parse(uri) {
        Err(StrategyError::BadParameters(text)) => text,
        other => panic!("{uri}: {other:?}"),
    }
}

#[test]
fn every_strategy_is_found_by_its_name_and_described_truthfully() {
    for info in STRATEGIES {
        let instance = parse(&format!("/localhost/nfd/strategy/{}", info.name)).expect("known");
        assert_eq!(*instance.name(), info.versioned_name());
        assert_eq!(instance, info.with_defaults());
        for ParameterInfo { key, default, min, max, .. } in info.parameters() {
            let with = |value: &str| parse(&format!("{}/{key}~{value}", info.versioned_name()));
            assert_eq!(with(&default).expect("the defaults are valid").strategy(), instance.strategy(), "{key}");
            for value in [min, max].iter().filter(|value| **value != default) {
                // A rule between two parameters may refuse it; its own range does not.
                match with(value) {
                    Ok(changed) => assert_ne!(changed.strategy(), instance.strategy(), "{key}~{value} has no effect"),
                    Err(error) => assert!(error.to_string().contains("is less than"), "{key}~{value}: {error}"),
                }
            }
        }
    }
    assert_eq!(StrategyInstance::default().name().to_string(), "/localhost/nfd/strategy/best-route/v=5");
}

#[test]
fn names_of_strategies_are_all_different() {
    for (position, info) in STRATEGIES.iter().enumerate() {
        assert!(STRATEGIES[..position].iter().all(|other| other.name != info.name), "{}", info.name);
    }
}

#[test]
fn every_strategy_with_suppression_checks_its_intervals() {
    let mut checked = 0;
    for info in STRATEGIES {
        if info.parameters().iter().any(|parameter| parameter.key == "retx-suppression-max") {
            let text = refusal(&format!("{}/retx-suppression-initial~300", info.versioned_name()));
            assert!(text.starts_with("retx-suppression-max is less than retx-suppression-initial"), "{text}");
            checked += 1;
        }
    }
    assert!(checked >= 2);
}

#[test]
fn strategies_that_do_not_want_data_learn_nothing_from_it() {
    for info in STRATEGIES {
        let strategy = info.with_defaults();
        let mut mock = Mock::new(&[]);
        mock.interest(&strategy, D);
        let mut routed = Mock::new(&[(A, 1)]);
        routed.interest(&strategy, D);
        for mock in [&mut mock, &mut routed] {
            let before = (mock.measurements, mock.pit_scratch, mock.out_records.clone());
            mock.ingress = mock.out_records.first().map_or(A, |(record, _)| record.face);
            let satisfied_with_others = mock.trigger(&strategy, Trigger::BeforeSatisfyInterest);
            let satisfied_alone = mock.trigger(&strategy, Trigger::AfterReceiveData);
            let is_default = satisfied_with_others.is_empty() && satisfied_alone == [Action::Data];
            let after = (mock.measurements, mock.pit_scratch, mock.out_records.clone());
            assert!(strategy.wants_data() || is_default && before == after, "{}", info.name);
        }
    }
}

#[test]
fn the_documentation_has_all_strategies_and_parameters() {
    let mut strategies = "| Strategy | Version | What it does |\n|---|---|---|\n".to_owned();
    for StrategyInfo { name, version, summary, .. } in STRATEGIES {
        strategies.push_str(&format!("| `{name}` | {version} | {summary} |\n"));
    }
    let mut parameters = "| Parameter | Default | Values | Meaning | Strategies |\n|---|---|---|---|---|\n".to_owned();
    for (ParameterInfo { key, default, min, max, meaning }, users) in all_parameters() {
        let users = users.join(", ");
        parameters.push_str(&format!("| `{key}` | {default} | {min} to {max} | {meaning} | {users} |\n"));
    }
    let documentation = include_str!("../../../../../docs/strategies.md");
    for table in [strategies, parameters] {
        // Includes the end of the table, so that it has no more lines.
        assert!(documentation.contains(&format!("{table}\n")), "docs/strategies.md does not contain:\n{table}");
    }
    for info in STRATEGIES {
        assert!(
            documentation.contains(&format!("\n### {}\n", info.name)),
            "docs/strategies.md has no section on {}",
            info.name
        );
    }
}

#[test]
fn short_names_stand_for_strategies_of_the_forwarder() {
    let full = |text| full_name(text).map(|name| name.to_string());
    assert_eq!(full("asf/v=5"), Ok("/localhost/nfd/strategy/asf/v=5".to_owned()));
    assert_eq!(full("/x/y"), Ok("/x/y".to_owned()));
    assert!(full("a//b").is_err());
}

#[test]
fn versions_lead_to_the_next_higher_one() {
    for (given, found) in [(1, true), (4, true), (5, true), (6, false), (u64::MAX, false)] {
        let result = parse(&format!("/localhost/nfd/strategy/best-route/v={given}"));
        match result {
            Ok(instance) => {
                assert!(found);
                assert_eq!(instance.name().to_string(), "/localhost/nfd/strategy/best-route/v=5");
            }
            Err(error) => {
                assert!(!found);
                assert_eq!(error, StrategyError::NotFound);
            }
        }
    }
}

#[test]
fn unknown_names_are_not_found() {
    for uri in [
        "/",
        "/localhost/nfd/strategy",
        "/localhost/nfd/strategy/worst-route",
        "/localhost/nfd/strategy/32=asf",
        "/localhop/nfd/strategy/asf",
        "/localhost/nfd/asf",
        "/strategy/asf",
    ] {
        assert_eq!(parse(uri), Err(StrategyError::NotFound), "{uri}");
    }
}

#[test]
fn parameters_are_kept_in_the_name() {
    let uri = "/localhost/nfd/strategy/asf/v=5/probing-interval~30000/max-timeouts~5/measurements-lifetime~60000\
               /retx-suppression-initial~20/retx-suppression-max~500/retx-suppression-multiplier~1.5";
    let instance = parse(uri).expect("acceptable");
    assert_eq!(*instance.name(), uri.parse::<Name>().expect("a name"));
    // An older version is replaced in the name; its parameters stay.
    let older = parse("/localhost/nfd/strategy/multicast/v=3/retx-suppression-max~1000").expect("acceptable");
    assert_eq!(older.name().to_string(), "/localhost/nfd/strategy/multicast/v=5/retx-suppression-max~1000");
}

#[test]
fn bad_parameters_are_refused_with_a_reason() {
    for (parameter, reason) in [
        ("probing-interval~999", "not a number from 1000 to"),
        ("max-timeouts~0", "not a number from 1 to"),
        ("max-timeouts~three", "not a number"),
        ("max-timeouts~-1", "not a number"),
        ("retx-suppression-initial~0", "not a number from 1 to"),
        ("retx-suppression-initial~300", "retx-suppression-max is less than retx-suppression-initial"),
        ("retx-suppression-max~9999999999", "not a number"),
        ("retx-suppression-multiplier~0.9", "not a number from 1 to"),
        ("retx-suppression-multiplier~NaN", "not a number"),
        ("retx-suppression-multiplier~inf", "not a number"),
        ("measurements-lifetime~5000", "measurements-lifetime is less than probing-interval"),
        ("colour~red", "unknown parameter 'colour'"),
        ("max-timeouts", "not of the form <key>~<value>"),
        ("32=max-timeouts~3", "not of the form"),
        ("max-timeouts~3/max-timeouts~4", "given twice"),
    ] {
        let text = refusal(&format!("/localhost/nfd/strategy/asf/v=5/{parameter}"));
        assert!(text.contains(reason), "{parameter}: {text}");
        assert!(text.contains("probing-interval (default 60000, 1000 to 2592000000)"), "{parameter}: {text}");
    }
}

#[test]
fn lists_of_numbers_are_read_and_written() {
    let info = STRATEGIES.iter().find(|info| info.name == "weighted").expect("the weighted strategy is registered");
    let read = |text: &str| parse(&format!("{}/weights~{text}", info.versioned_name()));
    for text in ["", "0", "1-0", "256", "1--2", "1-2-", "1-1-1-1-1-1-1-1-1", "a", "+"] {
        assert!(
            refusal(&format!("{}/weights~{text}", info.versioned_name())).contains("weights (default 1, 1 to"),
            "{text}"
        );
    }
    for (text, same) in [("7", "7-7"), ("3-2", "3-2-2-2-2-2-2-2"), ("255-1", "255-1-1")] {
        assert_eq!(read(text).expect("a list").strategy(), read(same).expect("a list").strategy());
    }
    assert_ne!(read("3-2").expect("a list").strategy(), read("3-2-3").expect("a list").strategy());
    let list: parameter::ByteList = "3-2-2-5-5-5-5-5".parse().expect("a list");
    assert_eq!(list.to_string(), "3-2-2-5");
    assert_eq!([0, 3, 4, 31].map(|position| list.get(position)), [3, 5, 5, 5]);
}

#[test]
fn parameters_of_another_strategy_or_without_version_are_refused() {
    assert!(refusal("/localhost/nfd/strategy/random/v=1/max-timeouts~3").contains("unknown parameter"));
    assert!(refusal("/localhost/nfd/strategy/asf/max-timeouts~3").contains("after the version"));
}
