//! Tests of the weighted strategy.

use crate::strategy::tests::{A, Action, B, C, D, Mock, strategy};
use namehop_wire::lp::NackReason;

/// Returns where this many Interests go, one for each random number from 0 on.
fn sent(name: &str, mock: &mut Mock, interests: usize) -> Vec<Action> {
    mock.random = 0;
    let mut sent = Vec::new();
    for _ in 0..interests {
        mock.new_entry();
        // Sending draws a nonce.
        let drawn = mock.random;
        sent.extend(mock.interest(&strategy(name), D));
        mock.random = drawn + 1;
    }
    sent
}

#[test]
fn next_hops_are_drawn_by_weight() {
    let mut mock = Mock::new(&[(A, 1), (B, 2), (C, 3)]);
    assert_eq!(sent("weighted/v=1/weights~3-1-2", &mut mock, 7), [A, A, A, B, C, C, A].map(Action::Interest));
    assert_eq!(
        sent("weighted/v=1/weights~2-1", &mut mock, 4),
        [A, A, B, C].map(Action::Interest),
        "the last weight applies to further next hops"
    );
    assert_eq!(sent("weighted", &mut mock, 4), [A, B, C, A].map(Action::Interest), "equal weights");
    mock.forbidden.push(A);
    assert_eq!(sent("weighted/v=1/weights~3-1-2", &mut mock, 4), [B, C, C, B].map(Action::Interest));
}

#[test]
fn retransmissions_draw_again() {
    let weighted = strategy("weighted");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    assert_eq!(mock.interest(&weighted, D), [Action::Interest(A)]);
    assert_eq!(mock.interest(&weighted, D), []);
    mock.pass_ms(10);
    mock.random = 1;
    assert_eq!(mock.interest(&weighted, D), [Action::Interest(B)]);
}

#[test]
fn without_a_next_hop_the_answer_is_no_route() {
    let mut mock = Mock::new(&[(D, 1)]);
    let expected = [Action::Nack(D, NackReason::NO_ROUTE), Action::Reject];
    assert_eq!(mock.interest(&strategy("weighted"), D), expected);
}
