//! Tests of strategy names and parameters.

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
        assert_eq!(instance.kind(), info.kind);
        assert_eq!(instance.kind().info(), info);
        assert_eq!(instance.kind().to_string(), info.name);
        assert_eq!(*instance.name(), info.versioned_name());
        assert_eq!(instance, StrategyInstance::new(info.kind));
        for parameter in info.parameters {
            let with_default = format!("{}/{}~{}", info.versioned_name(), parameter.key, parameter.default);
            let explicit = parse(&with_default).expect("defaults are acceptable");
            assert_eq!(explicit.parameters(), instance.parameters(), "{}", parameter.key);
        }
    }
    assert_eq!(StrategyInstance::default().kind(), StrategyKind::BestRoute);
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
fn parameters_are_read_and_kept_in_the_name() {
    let uri = "/localhost/nfd/strategy/asf/v=5/probing-interval~30000/max-timeouts~5/measurements-lifetime~60000\
               /retx-suppression-initial~20/retx-suppression-max~500/retx-suppression-multiplier~1.5";
    let instance = parse(uri).expect("acceptable");
    let expected = AsfParameters {
        suppression: ExponentialSuppression { initial_us: 20_000, max_us: 500_000, multiplier: 1.5 },
        probing_interval_ms: 30_000,
        max_timeouts: 5,
        measurements_lifetime_ms: 60_000,
    };
    assert_eq!(*instance.parameters(), Parameters::Asf(expected));
    assert_eq!(*instance.name(), uri.parse::<Name>().expect("a name"));
    // An older version is replaced in the name, its parameters stay.
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
        assert!(text.contains("probing-interval (default 60000)"), "{parameter}: {text}");
    }
}

#[test]
fn parameters_of_another_strategy_or_without_version_are_refused() {
    assert!(refusal("/localhost/nfd/strategy/random/v=1/max-timeouts~3").contains("unknown parameter"));
    assert!(refusal("/localhost/nfd/strategy/asf/max-timeouts~3").contains("after the version"));
}
