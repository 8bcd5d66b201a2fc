//! Tests of the fastroute strategy.

use crate::strategy::tests::{A, Action, B, C, D, Mock, strategy};
use namehop_wire::lp::NackReason;

/// Returns a mock in which B has answered first.
fn after_first_exchange(name: &str) -> Mock {
    let mut mock = Mock::new(&[(A, 1), (B, 2), (C, 3)]);
    assert_eq!(mock.interest(&strategy(name), D), [A, B, C].map(Action::Interest));
    assert_eq!(mock.data(&strategy(name), B), [Action::Data]);
    // Data of the others finds no downstream.
    assert_eq!(mock.data(&strategy(name), C), [Action::Data]);
    mock.new_entry();
    mock
}

#[test]
fn the_first_to_answer_gets_the_following_interests() {
    let mut mock = after_first_exchange("fastroute");
    for _ in 0..3 {
        assert_eq!(mock.interest(&strategy("fastroute"), D), [Action::Interest(B)]);
        mock.new_entry();
    }
    mock.forbidden.push(B);
    assert_eq!(mock.interest(&strategy("fastroute"), D), [A, C].map(Action::Interest));
}

#[test]
fn all_are_asked_again_from_time_to_time() {
    let fastroute = "fastroute/v=1/probe-every~3";
    let mut mock = after_first_exchange(fastroute);
    let mut sent = Vec::new();
    for _ in 0..6 {
        sent.push(mock.interest(&strategy(fastroute), D).len());
        mock.new_entry();
    }
    assert_eq!(sent, [1, 1, 3, 1, 1, 3]);
}

#[test]
fn all_are_asked_for_a_retransmission_and_after_a_nack() {
    let fastroute = strategy("fastroute");
    let mut mock = after_first_exchange("fastroute");
    mock.interest(&fastroute, D);
    assert_eq!(mock.interest(&fastroute, D), [], "suppressed");
    mock.pass_ms(10);
    assert_eq!(mock.interest(&fastroute, D), [A, B, C].map(Action::Interest));
    // A Nack of another face changes nothing; one of the fastest does.
    for (refusing, asked) in [(A, vec![B]), (B, vec![A, B, C])] {
        mock.nack(&fastroute, refusing, NackReason::NO_ROUTE);
        mock.new_entry();
        assert_eq!(mock.interest(&fastroute, D), asked.into_iter().map(Action::Interest).collect::<Vec<_>>());
    }
}

#[test]
fn without_a_next_hop_the_answer_is_no_route() {
    let mut mock = Mock::new(&[(D, 1)]);
    let expected = [Action::Nack(D, NackReason::NO_ROUTE), Action::Reject];
    assert_eq!(mock.interest(&strategy("fastroute"), D), expected);
}
