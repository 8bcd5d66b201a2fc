//! Tests of the reject strategy.

use crate::strategy::tests::{A, Action, D, E, Mock, strategy};
use namehop_wire::lp::NackReason;

#[test]
fn every_downstream_is_told_that_there_is_no_route() {
    let reject = strategy("reject");
    let mut mock = Mock::new(&[(A, 1)]);
    for downstream in [D, E] {
        let expected = [Action::Nack(downstream, NackReason::NO_ROUTE), Action::Reject];
        assert_eq!(mock.interest(&reject, downstream), expected);
    }
}
