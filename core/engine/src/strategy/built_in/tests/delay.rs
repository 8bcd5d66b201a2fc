//! Tests of the delay strategy.

use crate::strategy::Trigger;
use crate::strategy::tests::{A, Action, B, D, E, Mock, strategy};
use namehop_wire::lp::NackReason;

#[test]
fn an_interest_waits_and_then_goes_to_the_cheapest_next_hop() {
    let delay = strategy("delay/v=1/delay~30");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    assert_eq!(mock.interest(&delay, D), [Action::Timer(30_000)]);
    assert_eq!(mock.interest(&delay, E), [], "the PIT entry has its timer already");
    mock.pass_ms(30);
    assert_eq!(mock.event(&delay, Trigger::Timer), [Action::Interest(A)]);
    assert_eq!(mock.event(&delay, Trigger::Timer), [], "a stale timer must do nothing");
    assert_eq!(mock.interest(&delay, D), [], "suppressed");
    mock.pass_ms(10);
    assert_eq!(mock.interest(&delay, D), [Action::Timer(30_000)], "a retransmission is delayed as well");
}

#[test]
fn without_a_next_hop_the_answer_is_no_route() {
    let delay = strategy("delay");
    let mut mock = Mock::new(&[(D, 1)]);
    let expected = [Action::Nack(D, NackReason::NO_ROUTE), Action::Reject];
    assert_eq!(mock.interest(&delay, D), expected);
    // A next hop that is removed while the Interest is delayed.
    let mut mock = Mock::new(&[(A, 1)]);
    assert_eq!(mock.interest(&delay, D), [Action::Timer(100_000)]);
    mock.nexthops.clear();
    assert_eq!(mock.event(&delay, Trigger::Timer), []);
}
