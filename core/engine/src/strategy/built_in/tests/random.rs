//! Tests of the random strategy.

use crate::strategy::tests::{A, Action, B, C, D, E, Mock, strategy};
use namehop_wire::lp::NackReason;

#[test]
fn every_eligible_next_hop_is_drawn() {
    let random = strategy("random");
    let mut sent = Vec::new();
    let mut mock = Mock::new(&[(A, 1), (B, 200), (C, 3)]);
    for _ in 0..6 {
        mock.new_entry();
        sent.extend(mock.interest(&random, B));
    }
    assert_eq!(sent, [A, C, A, C, A, C].map(Action::Interest));
}

#[test]
fn pending_names_are_aggregated_and_retransmissions_draw_again() {
    let random = strategy("random");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    assert_eq!(mock.interest(&random, D), [Action::Interest(A)]);
    assert_eq!(mock.interest(&random, E), []);
    mock.pass_ms(10);
    assert_eq!(mock.interest(&random, D), [Action::Interest(B)]);
}

#[test]
fn without_a_next_hop_the_answer_is_no_route() {
    let random = strategy("random");
    let mut mock = Mock::new(&[(D, 1)]);
    assert_eq!(mock.interest(&random, D), [Action::Nack(D, NackReason::NO_ROUTE), Action::Reject]);
    let mut mock = Mock::new(&[(A, 1)]);
    mock.interest(&random, D);
    mock.pass_ms(10);
    assert_eq!(mock.interest(&random, A), []);
}
