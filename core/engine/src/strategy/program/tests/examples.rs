//! Tests of the worked examples.

use super::{chosen, object, registry_with};
use crate::strategy::tests::{A, Action, B, C, D, Mock};
use crate::strategy::{StrategyInstance, Trigger};
use namehop_wire::lp::NackReason;

fn example(name: &str, parameters: &str) -> StrategyInstance {
    chosen(&registry_with(&object(&format!("examples/{name}.c"))), &format!("{name}{parameters}"))
}

#[test]
fn lowest_rtt_finds_the_fastest() {
    let strategy = example("lowest-rtt", "/v=1/probe-every~10");
    let mut mock = Mock::new(&[(A, 1), (B, 2), (C, 3)]);
    let all = [A, B, C].map(Action::Interest);
    assert_eq!(mock.interest(&strategy, D), all, "next hops that were not measured must all be tried");
    mock.pass_ms(10);
    assert_eq!(mock.data(&strategy, B), [Action::Data]);
    mock.new_entry();
    for count in 2..=20 {
        let asked = mock.interest(&strategy, D);
        assert_eq!(asked, if count % 10 == 0 { &all[..] } else { &all[1..2] }, "Interest {count}");
        if count == 20 {
            mock.pass_ms(5);
            mock.data(&strategy, C);
        }
        mock.new_entry();
    }
    assert_eq!(mock.interest(&strategy, D), [Action::Interest(C)], "the other next hop is faster now");
}

#[test]
fn hedge_asks_a_second_next_hop_in_time() {
    let strategy = example("hedge", "/v=1/patience~20");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    assert_eq!(mock.interest(&strategy, D), [Action::Interest(A), Action::Timer(20_000)]);
    mock.pass_ms(20);
    assert_eq!(mock.event(&strategy, Trigger::Timer), [Action::Interest(B)]);
    assert_eq!(mock.event(&strategy, Trigger::Timer), [], "a second next hop must be tried only once");
    let mut alone = Mock::new(&[(D, 1)]);
    assert_eq!(alone.interest(&strategy, D), [Action::Nack(D, NackReason::NO_ROUTE), Action::Reject]);
}

#[test]
fn avoid_congested_lets_a_next_hop_rest() {
    let strategy = example("avoid-congested", "/v=1/rest~500");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    assert_eq!(mock.interest(&strategy, D), [Action::Interest(A)]);
    assert_eq!(
        mock.nack(&strategy, A, NackReason::CONGESTION),
        [Action::Nacks(NackReason::CONGESTION), Action::Reject]
    );
    mock.new_entry();
    assert_eq!(mock.interest(&strategy, D), [Action::Interest(B)]);
    mock.new_entry();
    mock.pass_ms(500);
    assert_eq!(mock.interest(&strategy, D), [Action::Interest(A)], "the congested next hop must be used again");
}
