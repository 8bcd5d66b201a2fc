//! Tests of the multicast strategy.

use crate::fib::NextHop;
use crate::strategy::Trigger;
use crate::strategy::tests::{A, Action, B, C, D, E, Mock, strategy};

#[test]
fn every_interest_goes_to_all_eligible_next_hops() {
    let multicast = strategy("multicast");
    let mut mock = Mock::new(&[(A, 1), (B, 2), (C, 3)]);
    mock.forbidden.push(C);
    assert_eq!(mock.interest(&multicast, A), [Action::Interest(B)]);
    // From another downstream, within the interval: only the upstream that is still unused.
    assert_eq!(mock.interest(&multicast, D), [Action::Interest(A)]);
    assert_eq!(mock.interest(&multicast, E), []);
}

#[test]
fn each_upstream_has_its_own_interval() {
    let multicast = strategy("multicast");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.interest(&multicast, D);
    mock.pass_ms(10);
    assert_eq!(mock.interest(&multicast, A), [Action::Interest(B)]);
    mock.pass_ms(10);
    // The interval of B has grown to 20 ms; that of A is still 10 ms, which are over.
    assert_eq!(mock.interest(&multicast, D), [Action::Interest(A)]);
    mock.pass_ms(10);
    assert_eq!(mock.interest(&multicast, D), [Action::Interest(B)]);
}

#[test]
fn an_interest_without_next_hop_waits_for_one() {
    let multicast = strategy("multicast");
    let mut mock = Mock::new(&[]);
    assert_eq!(mock.interest(&multicast, D), []);
    let nexthop = NextHop { face: A, cost: 0 };
    mock.nexthops.push(nexthop);
    assert_eq!(mock.event(&multicast, Trigger::AfterNewNextHop(nexthop)), [Action::Interest(A)]);
    assert_eq!(mock.event(&multicast, Trigger::AfterNewNextHop(nexthop)), [], "the next hop has the Interest already");
    // If the downstream itself becomes a next hop, it gets nothing, unless another downstream waits too.
    let back = NextHop { face: D, cost: 0 };
    assert_eq!(mock.event(&multicast, Trigger::AfterNewNextHop(back)), []);
    mock.interest(&multicast, E);
    assert_eq!(mock.event(&multicast, Trigger::AfterNewNextHop(back)), [Action::Interest(D)]);
}

#[test]
fn data_goes_to_all() {
    let multicast = strategy("multicast");
    let mut mock = Mock::new(&[(A, 1), (B, 1)]);
    mock.interest(&multicast, D);
    assert_eq!(mock.data(&multicast, B), [Action::Data]);
}
