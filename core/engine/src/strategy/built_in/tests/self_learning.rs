//! Tests of the self-learning strategy.

use namehop_packet::FaceScope;

use crate::strategy::Trigger;
use crate::strategy::tests::{A, Action, B, C, D, E, Mock, strategy};
use namehop_wire::lp::NackReason;

/// D is a local application, the other faces are links.
fn mock(nexthops: &[(namehop_packet::FaceId, u64)]) -> Mock {
    let mut mock = Mock::new(nexthops);
    mock.faces[3].scope = FaceScope::Local;
    mock
}

#[test]
fn an_unknown_name_is_flooded_to_all_non_local_faces() {
    let self_learning = strategy("self-learning");
    let mut mock = mock(&[]);
    assert_eq!(mock.interest(&self_learning, A), [B, C, E].map(|face| Action::Discovery(face, false)));
    // Another downstream at once: only the face that was excluded before.
    assert_eq!(mock.interest(&self_learning, D), [Action::Discovery(A, false)]);
}

#[test]
fn a_known_name_goes_to_its_next_hops_as_non_discovery() {
    let self_learning = strategy("self-learning");
    let mut mock = mock(&[(A, 1), (B, 2)]);
    assert_eq!(mock.interest(&self_learning, D), [A, B].map(|face| Action::Discovery(face, true)));
    mock.pass_ms(9);
    assert_eq!(mock.interest(&self_learning, D), []);
    mock.pass_ms(1);
    assert_eq!(mock.interest(&self_learning, D), [A, B].map(|face| Action::Discovery(face, true)));
}

#[test]
fn a_non_discovery_interest_without_route_is_answered_no_route() {
    let self_learning = strategy("self-learning");
    let mut mock = mock(&[]);
    mock.non_discovery = true;
    assert_eq!(mock.interest(&self_learning, A), [Action::Nack(A, NackReason::NO_ROUTE), Action::Reject]);
}

#[test]
fn a_route_is_learnt_from_the_answer_to_a_discovery_interest_only() {
    let self_learning = strategy("self-learning");
    let mut flooded = mock(&[]);
    flooded.interest(&self_learning, D);
    assert_eq!(flooded.data(&self_learning, B), [Action::Learn, Action::Data]);

    let mut routed = mock(&[(B, 1)]);
    routed.interest(&self_learning, D);
    assert_eq!(routed.data(&self_learning, B), [Action::Data]);

    let mut unasked = mock(&[]);
    unasked.interest(&self_learning, D);
    unasked.out_records.clear();
    assert_eq!(unasked.data(&self_learning, B), [Action::Data]);
}

#[test]
fn several_satisfied_entries_learn_but_do_not_send() {
    let self_learning = strategy("self-learning");
    let mut mock = mock(&[]);
    mock.interest(&self_learning, D);
    mock.ingress = C;
    assert_eq!(mock.trigger(&self_learning, Trigger::BeforeSatisfyInterest), [Action::Learn]);
}

#[test]
fn a_discovering_neighbour_gets_the_announcement_of_the_known_route() {
    let self_learning = strategy("self-learning");
    let mut mock = mock(&[(B, 1)]);
    mock.interest(&self_learning, A);
    assert_eq!(mock.data(&self_learning, B), [Action::RequestAnnouncement]);
    // Not needed for a local application, nor for a neighbour that did not discover.
    mock.new_entry();
    mock.interest(&self_learning, D);
    assert_eq!(mock.data(&self_learning, B), [Action::Data]);
    mock.new_entry();
    mock.non_discovery = true;
    mock.interest(&self_learning, A);
    assert_eq!(mock.data(&self_learning, B), [Action::Data]);
}

#[test]
fn no_route_from_a_next_hop_ends_the_learnt_route() {
    let self_learning = strategy("self-learning");
    let mut mock = mock(&[(B, 1), (C, 1)]);
    mock.interest(&self_learning, A);
    assert_eq!(
        mock.nack(&self_learning, B, NackReason::NO_ROUTE),
        [Action::Nacks(NackReason::NO_ROUTE), Action::Reject, Action::Forget(B)]
    );
}

#[test]
fn other_nacks_and_those_of_flooded_faces_wait_for_the_rest() {
    let self_learning = strategy("self-learning");
    let mut routed = mock(&[(B, 1), (C, 1)]);
    routed.interest(&self_learning, A);
    assert_eq!(routed.nack(&self_learning, B, NackReason::CONGESTION), []);
    let mut flooded = mock(&[]);
    flooded.interest(&self_learning, A);
    assert_eq!(flooded.nack(&self_learning, B, NackReason::NO_ROUTE), []);
    flooded.nack(&self_learning, C, NackReason::NO_ROUTE);
    assert_eq!(
        flooded.nack(&self_learning, E, NackReason::NO_ROUTE),
        [Action::Nacks(NackReason::NO_ROUTE), Action::Reject]
    );
}
