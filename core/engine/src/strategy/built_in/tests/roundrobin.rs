//! Tests of the roundrobin strategy.

use crate::strategy::tests::{A, Action, B, C, D, Mock, strategy};
use namehop_wire::lp::NackReason;

#[test]
fn next_hops_take_turns() {
    let roundrobin = strategy("roundrobin");
    let mut mock = Mock::new(&[(A, 1), (B, 2), (C, 3)]);
    let mut sent = Vec::new();
    for _ in 0..5 {
        mock.new_entry();
        sent.extend(mock.interest(&roundrobin, D));
    }
    assert_eq!(sent, [A, B, C, A, B].map(Action::Interest));
}

#[test]
fn next_hops_that_may_not_be_used_lose_their_turn() {
    let roundrobin = strategy("roundrobin");
    let mut mock = Mock::new(&[(A, 1), (B, 2), (C, 3)]);
    mock.forbidden.push(B);
    let mut sent = Vec::new();
    for _ in 0..3 {
        mock.new_entry();
        sent.extend(mock.interest(&roundrobin, D));
    }
    assert_eq!(sent, [A, C, A].map(Action::Interest));
    // The last two are removed: the turn is at a position that no longer exists.
    mock.new_entry();
    mock.interest(&roundrobin, D);
    mock.nexthops.truncate(1);
    mock.new_entry();
    assert_eq!(mock.interest(&roundrobin, D), [Action::Interest(A)]);
}

#[test]
fn retransmissions_are_suppressed_and_then_take_a_turn() {
    let roundrobin = strategy("roundrobin");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    assert_eq!(mock.interest(&roundrobin, D), [Action::Interest(A)]);
    assert_eq!(mock.interest(&roundrobin, D), []);
    mock.pass_ms(10);
    assert_eq!(mock.interest(&roundrobin, D), [Action::Interest(B)]);
}

#[test]
fn what_another_strategy_kept_of_the_prefix_is_not_taken_for_a_turn() {
    let (roundrobin, fastroute) = (strategy("roundrobin"), strategy("fastroute"));
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.interest(&roundrobin, D);
    mock.new_entry();
    mock.interest(&fastroute, D);
    mock.new_entry();
    assert_eq!(mock.interest(&roundrobin, D), [Action::Interest(A)]);
}

#[test]
fn without_a_next_hop_the_answer_is_no_route() {
    let mut mock = Mock::new(&[(D, 1)]);
    let expected = [Action::Nack(D, NackReason::NO_ROUTE), Action::Reject];
    assert_eq!(mock.interest(&strategy("roundrobin"), D), expected);
}
