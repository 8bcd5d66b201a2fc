//! Tests of the access strategy.

use crate::strategy::Trigger;
use crate::strategy::tests::{A, Action, B, C, D, E, Mock, strategy};
use namehop_wire::lp::NackReason;

/// Returns a mock in which B has answered an Interest 30 ms after it was sent.
fn after_first_exchange() -> Mock {
    let access = strategy("access");
    let mut mock = Mock::new(&[(A, 1), (B, 2), (C, 3)]);
    assert_eq!(mock.interest(&access, D), [A, B, C].map(Action::Interest));
    mock.pass_ms(30);
    assert_eq!(mock.data(&access, B), [Action::Data]);
    mock.new_entry();
    mock
}

#[test]
fn the_last_working_next_hop_is_used_with_a_time_out() {
    let mut mock = after_first_exchange();
    // SRTT 30 ms, RTTVAR 15 ms: 90 ms, raised to the minimum time-out.
    assert_eq!(mock.interest(&strategy("access"), D), [Action::Interest(B), Action::Timer(200_000)]);
}

#[test]
fn when_it_does_not_answer_in_time_the_others_are_asked() {
    let access = strategy("access");
    let mut mock = after_first_exchange();
    mock.interest(&access, D);
    mock.pass_ms(200);
    assert_eq!(mock.event(&access, Trigger::Timer), [A, C].map(Action::Interest));
    assert_eq!(mock.event(&access, Trigger::Timer), [], "the others must be tried only once");
    mock.pass_ms(20);
    mock.data(&access, C);
    mock.new_entry();
    assert_eq!(
        mock.interest(&access, D)[0],
        Action::Interest(C),
        "the next hop that answered must be the last working one"
    );
}

#[test]
fn a_timer_that_is_not_needed_does_nothing() {
    let access = strategy("access");
    let mut mock = after_first_exchange();
    mock.interest(&access, D);
    mock.in_records.clear();
    assert_eq!(mock.event(&access, Trigger::Timer), []);
}

#[test]
fn what_was_learnt_is_forgotten_after_eight_seconds() {
    let access = strategy("access");
    let mut mock = after_first_exchange();
    mock.pass_ms(8_000);
    assert_eq!(mock.interest(&access, D)[0], Action::Interest(B));
    mock.new_entry();
    mock.pass_ms(1);
    assert_eq!(mock.interest(&access, D), [A, B, C].map(Action::Interest));
}

#[test]
fn a_last_working_next_hop_that_left_the_fib_or_asks_itself_is_not_used() {
    let access = strategy("access");
    let mut mock = after_first_exchange();
    assert_eq!(mock.interest(&access, B), [A, C].map(Action::Interest));
    mock.new_entry();
    mock.nexthops.retain(|nexthop| nexthop.face != B);
    assert_eq!(mock.interest(&access, D), [A, C].map(Action::Interest));
}

#[test]
fn a_retransmission_goes_to_all_and_early_ones_are_aggregated() {
    let access = strategy("access");
    let mut mock = after_first_exchange();
    mock.interest(&access, D);
    mock.pass_ms(5);
    assert_eq!(mock.interest(&access, E), []);
    mock.pass_ms(5);
    assert_eq!(mock.interest(&access, D), [A, B, C].map(Action::Interest));
}

#[test]
fn only_the_first_answer_counts() {
    let access = strategy("access");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.interest(&access, D);
    mock.data(&access, B);
    mock.data(&access, A);
    mock.new_entry();
    assert_eq!(mock.interest(&access, D)[0], Action::Interest(B));
}

#[test]
fn a_nack_makes_the_next_interest_go_to_all() {
    let access = strategy("access");
    let mut mock = after_first_exchange();
    mock.interest(&access, D);
    assert_eq!(mock.nack(&access, B, NackReason::NO_ROUTE), [Action::Nacks(NackReason::NO_ROUTE), Action::Reject]);
    mock.new_entry();
    assert_eq!(mock.interest(&access, D), [A, B, C].map(Action::Interest));
}

#[test]
fn without_measurement_memory_or_next_hop_it_still_works() {
    let access = strategy("access");
    let mut mock = Mock::new(&[(A, 1)]);
    mock.measurements = None;
    assert_eq!(mock.interest(&access, D), [Action::Interest(A)]);
    assert_eq!(mock.data(&access, A), [Action::Data]);
    let mut mock = Mock::new(&[]);
    assert_eq!(mock.interest(&access, D), [Action::Nack(D, NackReason::NO_ROUTE), Action::Reject]);
}
