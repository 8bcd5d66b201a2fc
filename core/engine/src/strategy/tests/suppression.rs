//! Tests of the suppression intervals.

use super::super::tests::{A, B, D, Mock};
use super::*;
use namehop_wire::lp::NackReason;

fn sent_to(mock: &mut Mock, face: FaceId) {
    assert!(mock.send_interest(face));
}

#[test]
fn per_entry_interval_doubles_up_to_the_maximum() {
    let suppression = ExponentialSuppression::default();
    let mut mock = Mock::new(&[(A, 1)]);
    mock.ingress = D;
    mock.lifetime_ms = 60_000;
    assert_eq!(suppression.decide_per_entry(&mut mock), Decision::New);
    sent_to(&mut mock, A);
    for interval_ms in [10, 20, 40, 80, 160, 250, 250] {
        mock.pass_ms(interval_ms - 1);
        assert_eq!(suppression.decide_per_entry(&mut mock), Decision::Suppress, "before {interval_ms} ms");
        mock.pass_ms(1);
        assert_eq!(suppression.decide_per_entry(&mut mock), Decision::Forward, "after {interval_ms} ms");
        sent_to(&mut mock, A);
    }
}

#[test]
fn an_entry_whose_upstreams_are_nacked_or_expired_is_new() {
    let suppression = ExponentialSuppression::default();
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    sent_to(&mut mock, A);
    assert_eq!(suppression.decide_per_entry(&mut mock), Decision::Suppress);
    mock.out_records[0].0.nacked = Some(NackReason::NO_ROUTE);
    assert_eq!(suppression.decide_per_entry(&mut mock), Decision::New);
    sent_to(&mut mock, B);
    assert_eq!(suppression.decide_per_entry(&mut mock), Decision::Suppress);
    mock.pass_ms(4_000);
    assert_eq!(suppression.decide_per_entry(&mut mock), Decision::New);
}

#[test]
fn per_upstream_intervals_are_independent() {
    let suppression = ExponentialSuppression::default();
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    sent_to(&mut mock, A);
    assert_eq!(suppression.decide_per_upstream(&mut mock, A), Decision::Suppress);
    assert_eq!(suppression.decide_per_upstream(&mut mock, B), Decision::New);
    mock.pass_ms(10);
    assert_eq!(suppression.decide_per_upstream(&mut mock, A), Decision::Forward);
    sent_to(&mut mock, A);
    suppression.grow_upstream(&mut mock, A);
    sent_to(&mut mock, B);
    mock.pass_ms(10);
    assert_eq!(suppression.decide_per_upstream(&mut mock, A), Decision::Suppress);
    assert_eq!(suppression.decide_per_upstream(&mut mock, B), Decision::Forward);
    mock.pass_ms(10);
    assert_eq!(suppression.decide_per_upstream(&mut mock, A), Decision::Forward);
}

#[test]
fn a_huge_multiplier_ends_at_the_maximum() {
    let suppression = ExponentialSuppression { initial_ms: 1, max_ms: MAX_INTERVAL_MS, multiplier: MAX_MULTIPLIER };
    let mut mock = Mock::new(&[(A, 1)]);
    mock.lifetime_ms = u64::MAX;
    sent_to(&mut mock, A);
    mock.pass_ms(1);
    assert_eq!(suppression.decide_per_entry(&mut mock), Decision::Forward);
    assert_eq!(mock.pit_scratch.suppression_us, 1_000_000_000);
    sent_to(&mut mock, A);
    mock.pass_ms(1_000_000);
    assert_eq!(suppression.decide_per_entry(&mut mock), Decision::Forward);
    assert_eq!(mock.pit_scratch.suppression_us, MAX_INTERVAL_MS * 1_000);
}
