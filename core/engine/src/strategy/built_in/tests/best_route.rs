//! Tests of the best-route strategy.

use namehop_packet::LinkType;

use crate::fib::NextHop;
use crate::strategy::Trigger;
use crate::strategy::tests::{A, Action, B, C, D, E, Mock, strategy};
use namehop_wire::lp::NackReason;

#[test]
fn a_new_interest_takes_the_cheapest_eligible_next_hop() {
    let best_route = strategy("best-route");
    assert_eq!(Mock::new(&[(A, 1), (B, 2)]).interest(&best_route, D), [Action::Interest(A)]);
    // Never back to its ingress, nor to a face that scope forbids, nor to a removed face.
    assert_eq!(Mock::new(&[(A, 1), (B, 2)]).interest(&best_route, A), [Action::Interest(B)]);
    let mut mock = Mock::new(&[(A, 1), (B, 2), (C, 3)]);
    mock.forbidden.push(A);
    mock.faces.retain(|face| face.id != B);
    assert_eq!(mock.interest(&best_route, D), [Action::Interest(C)]);
    let mut mock = Mock::new(&[(A, 1)]);
    mock.faces[0].link_type = LinkType::AdHoc;
    assert_eq!(mock.interest(&best_route, A), [Action::Interest(A)]);
}

#[test]
fn without_a_next_hop_the_answer_is_no_route() {
    let best_route = strategy("best-route");
    let no_route = [Action::Nack(D, NackReason::NO_ROUTE), Action::Reject];
    assert_eq!(Mock::new(&[]).interest(&best_route, D), no_route);
    let mut mock = Mock::new(&[(D, 1)]);
    assert_eq!(mock.interest(&best_route, D), no_route);
}

#[test]
fn no_route_for_one_downstream_leaves_the_others_waiting() {
    let best_route = strategy("best-route");
    let mut mock = Mock::new(&[(A, 1)]);
    mock.lifetime_ms = 10_000;
    mock.interest(&best_route, D);
    mock.out_records[0].0.expiry = mock.now;
    // The only next hop is also a downstream, while D still waits.
    assert_eq!(mock.interest(&best_route, A), [Action::Nack(A, NackReason::NO_ROUTE)]);
    // After D's record has expired too, no downstream waits.
    mock.pass_ms(10_000);
    assert_eq!(mock.interest(&best_route, A), [Action::Nack(A, NackReason::NO_ROUTE), Action::Reject]);
}

#[test]
fn interests_within_the_interval_are_aggregated() {
    let best_route = strategy("best-route");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.interest(&best_route, D);
    mock.pass_ms(9);
    assert_eq!(mock.interest(&best_route, E), []);
}

#[test]
fn retransmissions_try_unused_next_hops_then_the_one_used_longest_ago() {
    let best_route = strategy("best-route");
    let mut mock = Mock::new(&[(A, 1), (B, 2), (C, 3)]);
    let mut sent = Vec::new();
    for _ in 0..6 {
        sent.extend(mock.interest(&best_route, D));
        mock.pass_ms(300);
    }
    assert_eq!(sent, [A, B, C, A, B, C].map(Action::Interest));
}

#[test]
fn a_nacked_next_hop_counts_as_unused_again() {
    let best_route = strategy("best-route");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.interest(&best_route, D);
    mock.pass_ms(300);
    assert_eq!(mock.interest(&best_route, D), [Action::Interest(B)]);
    assert_eq!(mock.nack(&best_route, A, NackReason::CONGESTION), []);
    mock.pass_ms(300);
    assert_eq!(mock.interest(&best_route, D), [Action::Interest(A)]);
}

#[test]
fn a_retransmission_without_any_eligible_next_hop_sends_nothing() {
    let best_route = strategy("best-route");
    let mut mock = Mock::new(&[(A, 1)]);
    mock.interest(&best_route, D);
    mock.pass_ms(300);
    assert_eq!(mock.interest(&best_route, A), []);
}

#[test]
fn suppression_parameters_are_used() {
    let best_route = strategy("best-route/v=5/retx-suppression-initial~100/retx-suppression-multiplier~1");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.interest(&best_route, D);
    for expected in [B, A, B] {
        mock.pass_ms(99);
        assert_eq!(mock.interest(&best_route, D), []);
        mock.pass_ms(1);
        assert_eq!(mock.interest(&best_route, D), [Action::Interest(expected)]);
    }
}

#[test]
fn data_goes_to_all_and_other_triggers_do_nothing() {
    let best_route = strategy("best-route");
    let mut mock = Mock::new(&[(A, 1)]);
    mock.interest(&best_route, D);
    assert_eq!(mock.event(&best_route, Trigger::OnDroppedInterest(A)), []);
    assert_eq!(mock.event(&best_route, Trigger::AfterNewNextHop(NextHop { face: B, cost: 0 })), []);
    assert_eq!(mock.event(&best_route, Trigger::BeforeExpirePendingInterest), []);
    assert_eq!(mock.event(&best_route, Trigger::Timer), []);
    mock.ingress = A;
    assert_eq!(mock.trigger(&best_route, Trigger::BeforeSatisfyInterest), []);
    assert_eq!(mock.data(&best_route, A), [Action::Data]);
}
