//! Tests of segment requests, retransmissions, and the end of a transfer.

use super::super::congestion::WindowKind;
use super::super::rtt::RtoBounds;
use super::*;

const MS: Duration = Duration::from_millis(1);

fn transfer(initial: f64, reorder_limit: u64) -> Transfer {
    let control = CongestionControl::new(WindowKind::Aimd, initial, 1000.0);
    Transfer::new(control, RttEstimator::new(RtoBounds::default()), reorder_limit)
}

/// Returns the time `ms` milliseconds after `base`.
fn at(base: Instant, ms: u32) -> Instant {
    base + MS * ms
}

fn arrive(transfer: &mut Transfer, now: Instant, segment: u64, last: Option<u64>) -> Vec<u64> {
    transfer.on_data(now, segment, last, MS, false).unwrap().lost
}

fn requests(transfer: &mut Transfer, now: Instant) -> Vec<u64> {
    std::iter::from_fn(|| transfer.next_request(now)).map(|request| request.segment).collect()
}

#[test]
fn segments_known_from_metadata_do_not_wait_for_the_first() {
    let (mut transfer, now) = (transfer(4.0, 100), Instant::now());
    transfer.expect_last(Some(2));
    assert_eq!(requests(&mut transfer, now), [0, 1, 2]);
    arrive(&mut transfer, now, 1, None);
    assert_eq!(requests(&mut transfer, now), [0; 0], "segment 0 has not arrived");
    arrive(&mut transfer, now, 0, None);
    assert_eq!(requests(&mut transfer, now).first(), Some(&3), "the last segment is unknown");
}

#[test]
fn the_first_segment_goes_alone_and_the_rest_in_order() {
    let (mut transfer, now) = (transfer(4.0, 100), Instant::now());
    assert_eq!(requests(&mut transfer, now), [0]);
    arrive(&mut transfer, now, 0, Some(3));
    assert_eq!(requests(&mut transfer, now), [1, 2, 3]);
    arrive(&mut transfer, now, 2, None);
    assert_eq!((transfer.first_missing(), transfer.arrived()), (1, 2));
    arrive(&mut transfer, now, 1, None);
    assert!(!transfer.on_data(now, 1, None, MS, false).unwrap().is_new);
    assert_eq!((transfer.first_missing(), transfer.arrived()), (3, 3));
    assert!(!transfer.is_complete());
    arrive(&mut transfer, now, 3, Some(3));
    assert!(transfer.is_complete());
    let counts = transfer.counts;
    assert_eq!((counts.interests, counts.data, counts.duplicates, counts.unneeded()), (4, 4, 1, 0));
}

#[test]
fn memory_is_bounded_while_a_segment_is_missing() {
    let (mut transfer, now) = (transfer(100.0, 5), Instant::now());
    requests(&mut transfer, now);
    arrive(&mut transfer, now, 0, None);
    assert_eq!(requests(&mut transfer, now), [1, 2, 3, 4, 5]);
    for segment in 2..=5 {
        arrive(&mut transfer, now, segment, None);
    }
    assert_eq!(requests(&mut transfer, now), [0u64; 0]);
    arrive(&mut transfer, now, 1, None);
    assert_eq!(transfer.first_missing(), 6);
    assert_eq!(requests(&mut transfer, now).len(), 5);
}

#[test]
fn losses_of_one_round_trip_reduce_the_window_and_back_off_once() {
    let (mut transfer, base) = (transfer(16.0, 100), Instant::now());
    requests(&mut transfer, base);
    arrive(&mut transfer, base, 0, None);
    let sent = requests(&mut transfer, base);
    let (before, rto) = (transfer.control.window(), transfer.rtt.rto());
    for segment in &sent[..5] {
        assert_eq!(transfer.on_timeout(at(base, 50), *segment), Some(1));
    }
    assert_eq!((transfer.control.decreases(), transfer.control.window()), (1, before / 2));
    assert_eq!(transfer.rtt.rto(), rto * 2);
    for segment in &sent[5..] {
        arrive(&mut transfer, at(base, 51), *segment, None);
    }
    let again = requests(&mut transfer, at(base, 52));
    assert_eq!(again[..5], sent[..5]);
    assert_eq!(transfer.counts.retransmissions, 5);
    // Interests sent after the reduction count again, including retransmissions.
    transfer.on_nack(at(base, 60), again[0], NackReason::CONGESTION, MS);
    assert_eq!(transfer.control.decreases(), 2);
}

#[test]
fn overtaken_and_late_segments_are_requested_again() {
    let (mut transfer, base) = (transfer(8.0, 100), Instant::now());
    requests(&mut transfer, base);
    arrive(&mut transfer, base, 0, None);
    let sent = requests(&mut transfer, base);
    assert_eq!(sent[..5], [1, 2, 3, 4, 5]);
    // Segment 1 is overtaken but not late yet. The samples make anything over 3 ms late.
    for segment in [2, 3, 4] {
        assert_eq!(arrive(&mut transfer, at(base, 1), segment, None), [0u64; 0]);
    }
    // Now it is late as well.
    assert_eq!(arrive(&mut transfer, at(base, 100), 5, None), [1]);
    assert_eq!((transfer.control.decreases(), transfer.counts.timeouts), (1, 0));
    let again = transfer.next_request(at(base, 100)).unwrap();
    assert_eq!((again.segment, again.attempt), (1, 1));
}

#[test]
fn a_missing_segment_is_requested_early_once() {
    let (mut transfer, base) = (transfer(8.0, 100_000), Instant::now());
    requests(&mut transfer, base);
    arrive(&mut transfer, base, 0, None);
    let mut requested = 0;
    for ms in 1..2000 {
        for segment in requests(&mut transfer, at(base, ms)) {
            requested += u32::from(segment == 5);
            if segment != 5 {
                arrive(&mut transfer, at(base, ms + 1), segment, None);
            }
        }
    }
    assert_eq!(requested, 2, "a third attempt must wait for the time-out");
}

#[test]
fn segments_beyond_the_end_are_forgotten() {
    let (mut transfer, now) = (transfer(4.0, 100), Instant::now());
    requests(&mut transfer, now);
    arrive(&mut transfer, now, 0, None);
    assert_eq!(requests(&mut transfer, now), [1, 2, 3, 4, 5]);
    arrive(&mut transfer, now, 1, Some(1));
    assert_eq!(transfer.on_timeout(now, 4), None);
    assert_eq!(transfer.on_nack(now, 5, NackReason::NO_ROUTE, MS), None);
    assert_eq!((requests(&mut transfer, now).len(), transfer.control.decreases()), (0, 0));
    assert!(transfer.is_complete());
    let counts = transfer.counts;
    assert_eq!((counts.interests, counts.data, counts.nacks, counts.nacks_no_route), (6, 2, 1, 1));
    assert_eq!(counts.unneeded(), 3);
}

#[test]
fn data_that_contradict_each_other_about_the_end_are_an_error() {
    let (mut transfer, now) = (transfer(8.0, 100), Instant::now());
    requests(&mut transfer, now);
    arrive(&mut transfer, now, 0, None);
    requests(&mut transfer, now);
    arrive(&mut transfer, now, 5, None);
    let mut say = |segment, said| transfer.on_data(now, segment, Some(said), MS, false).map(|arrived| arrived.is_new);
    assert_eq!(say(2, 4), Err(EndError::Passed { segment: 2, said: 4, highest: 5 }));
    assert_eq!(say(7, 6), Err(EndError::Passed { segment: 7, said: 6, highest: 7 }));
    assert_eq!(say(2, 9), Ok(true));
    for said in [8, 10, u64::MAX] {
        assert_eq!(say(3, said), Err(EndError::Changed { segment: 3, said, was: 9 }));
    }
    assert_eq!(say(3, 9), Ok(true));
}

#[test]
fn marks_reduce_and_retransmitted_segments_give_no_sample() {
    let (mut transfer, base) = (transfer(8.0, 100), Instant::now());
    requests(&mut transfer, base);
    transfer.on_timeout(at(base, 1), 0);
    assert_eq!(requests(&mut transfer, at(base, 2)), [0]);
    transfer.on_data(at(base, 3), 0, None, MS, true).unwrap();
    assert_eq!((transfer.rtt.smoothed(), transfer.counts.congestion_marks, transfer.control.decreases()), (None, 1, 2));
}
