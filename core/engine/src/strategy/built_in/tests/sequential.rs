//! Tests of the sequential strategy.

use crate::strategy::tests::{A, Action, B, C, D, Mock, strategy};
use namehop_wire::lp::NackReason;

#[test]
fn each_retransmission_goes_one_further() {
    let sequential = strategy("sequential");
    let mut mock = Mock::new(&[(A, 1), (B, 2), (C, 3)]);
    mock.forbidden.push(B);
    let mut sent = mock.interest(&sequential, D);
    for pause_ms in [10, 20, 40] {
        assert_eq!(mock.interest(&sequential, D), [], "suppressed");
        mock.pass_ms(pause_ms);
        sent.extend(mock.interest(&sequential, D));
    }
    assert_eq!(sent, [A, C, A, C].map(Action::Interest));
    mock.new_entry();
    assert_eq!(mock.interest(&sequential, D), [Action::Interest(A)], "another name starts at the cheapest next hop");
}

#[test]
fn after_a_nack_the_consumer_gets_the_next_one() {
    let sequential = strategy("sequential");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.interest(&sequential, D);
    assert_eq!(
        mock.nack(&sequential, A, NackReason::CONGESTION),
        [Action::Nacks(NackReason::CONGESTION), Action::Reject]
    );
    // The entry still exists when the consumer retransmits at once.
    assert_eq!(mock.interest(&sequential, D), [Action::Interest(B)]);
}

#[test]
fn without_a_next_hop_the_answer_is_no_route() {
    let mut mock = Mock::new(&[]);
    let expected = [Action::Nack(D, NackReason::NO_ROUTE), Action::Reject];
    assert_eq!(mock.interest(&strategy("sequential"), D), expected);
}
