//! Tests of the common rule for Nacks.

use namehop_packet::FaceId;

use super::super::tests::{A, Action, B, D, E, Mock, strategy};
use namehop_wire::lp::NackReason;

#[test]
fn the_last_of_several_nacks_is_answered_with_the_least_severe_reason() {
    let multicast = strategy("multicast");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.interest(&multicast, D);
    assert_eq!(mock.nack(&multicast, A, NackReason::CONGESTION), []);
    assert_eq!(mock.nack(&multicast, B, NackReason::NO_ROUTE), [Action::Nacks(NackReason::CONGESTION), Action::Reject]);
}

#[test]
fn a_nack_without_reason_is_the_most_severe() {
    let multicast = strategy("multicast");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.interest(&multicast, D);
    mock.nack(&multicast, A, NackReason::NONE);
    assert_eq!(mock.nack(&multicast, B, NackReason::NO_ROUTE), [Action::Nacks(NackReason::NO_ROUTE), Action::Reject]);

    let mut mock = Mock::new(&[(A, 1)]);
    mock.interest(&multicast, D);
    assert_eq!(mock.nack(&multicast, A, NackReason::NONE), [Action::Nacks(NackReason::NONE), Action::Reject]);
}

#[test]
fn an_upstream_that_never_answered_in_its_lifetime_is_not_waited_for() {
    let best_route = strategy("best-route");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.lifetime_ms = 1_000;
    mock.interest(&best_route, D);
    mock.pass_ms(500);
    assert_eq!(mock.interest(&best_route, D), [Action::Interest(B)]);
    mock.pass_ms(700);
    assert_eq!(mock.nack(&best_route, B, NackReason::NO_ROUTE), [Action::Nacks(NackReason::NO_ROUTE), Action::Reject]);
}

#[test]
fn two_nodes_that_wait_for_each_other_are_told_apart() {
    // A is both an upstream of D's Interest and a downstream with its own Interest for the same name; B returned a
    // Nack.
    let multicast = strategy("multicast");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.interest(&multicast, D);
    mock.interest(&multicast, A);
    assert_eq!(mock.nack(&multicast, B, NackReason::NO_ROUTE), [Action::Nack(A, NackReason::NO_ROUTE)]);
    let waiting: Vec<FaceId> = mock.in_records.iter().map(|record| record.face).collect();
    assert_eq!(waiting, [D]);
}

#[test]
fn two_pending_upstreams_are_both_waited_for() {
    let multicast = strategy("multicast");
    let mut mock = Mock::new(&[(A, 1), (B, 2), (E, 3)]);
    mock.interest(&multicast, D);
    mock.interest(&multicast, A);
    assert_eq!(mock.nack(&multicast, E, NackReason::NO_ROUTE), []);
}
