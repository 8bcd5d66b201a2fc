//! Tests of the measurement table and of single measurements.

use super::super::tests::{A, B};
use super::*;

const LIFETIME_MS: u64 = 300_000;

#[test]
fn an_entry_is_found_again_and_the_oldest_of_a_full_set_is_replaced() {
    let mut table = MeasurementTable::new(WAYS);
    assert_eq!(table.capacity(), WAYS);
    assert!(table.is_empty());
    let hash = |number: u64| number << 32 | 0xABCD;
    for number in 0..WAYS as u64 {
        table.entry(hash(number), Timestamp(number)).set_last_working(FaceId(1_000 + number as u32), Timestamp(number));
    }
    assert_eq!(table.len(), WAYS);
    // Use the first again, so that the second is the oldest.
    assert_eq!(table.entry(hash(0), Timestamp(100)).last_working(Timestamp(100), 1), Some(FaceId(1_000)));
    assert_eq!(
        table.entry(hash(99), Timestamp(101)).last_working(Timestamp(101), 1),
        None,
        "a new entry must be empty"
    );
    assert_eq!(table.len(), WAYS);
    assert!(table.entry(hash(0), Timestamp(102)).last_working(Timestamp(102), 1).is_some());
    assert!(table.entry(hash(2), Timestamp(103)).last_working(Timestamp(103), 1).is_some());
    assert_eq!(
        table.entry(hash(1), Timestamp(104)).last_working(Timestamp(104), 1),
        None,
        "the entry must have been replaced"
    );
}

#[test]
fn equal_tags_are_told_apart_by_the_whole_hash() {
    let mut table = MeasurementTable::new(1);
    table.entry(0x5_0000_0001, Timestamp(1)).set_last_working(A, Timestamp(1));
    assert_eq!(table.entry(0x5_0000_0002, Timestamp(1)).last_working(Timestamp(1), 1), None);
    assert_eq!(table.entry(0x5_0000_0001, Timestamp(1)).last_working(Timestamp(1), 1), Some(A));
}

#[test]
fn memory_is_bounded_and_never_moves() {
    let mut table = MeasurementTable::new(100);
    let capacity = table.capacity();
    assert_eq!(capacity, 128);
    let reserved = table.entries.capacity();
    let mut hash = 1_u64;
    for number in 0..10_000 {
        hash = hash.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        table.entry(hash ^ hash >> 29, Timestamp(number));
    }
    assert_eq!(table.len(), capacity);
    assert_eq!(table.entries.capacity(), reserved);
}

#[test]
fn a_prefix_with_too_many_next_hops_forgets_the_one_not_used_for_longest() {
    let mut measurements = Measurements::default();
    let face = |number: usize| FaceId(500 + number as u32);
    for number in 0..MEASURED_NEXT_HOPS {
        measurements.next_hop_or_new(face(number), Timestamp(1 + number as u64), LIFETIME_MS);
    }
    measurements.next_hop_or_new(face(0), Timestamp(100), LIFETIME_MS).sent(Timestamp(100));
    measurements.next_hop_or_new(face(99), Timestamp(101), LIFETIME_MS);
    assert!(measurements.next_hop(face(0), Timestamp(101), LIFETIME_MS).is_some());
    assert!(measurements.next_hop(face(1), Timestamp(101), LIFETIME_MS).is_none());
    assert!(measurements.next_hop(face(2), Timestamp(101), LIFETIME_MS).is_some());
}

#[test]
fn measurements_of_an_unused_next_hop_end_with_their_lifetime() {
    let mut measurements = Measurements::default();
    let start = Timestamp(0);
    measurements.next_hop_or_new(A, start, 1_000).answered(start, start.plus_ms(20), true);
    let last = start.plus_ms(20);
    assert!(measurements.next_hop(A, last.plus_ms(1_000), 1_000).is_some());
    let later = last.plus_ms(1_001);
    assert!(measurements.next_hop(A, later, 1_000).is_none());
    assert_eq!(measurements.next_hop_or_new(A, later, 1_000).rtt().srtt_ns(), None);
    assert!(measurements.next_hop(B, later, 1_000).is_none());
}

#[test]
fn time_outs_count_only_in_a_row() {
    let mut measured = NextHopMeasurement::FREE;
    let mut now = Timestamp(0);
    for round in 1..=2 {
        measured.sent(now);
        measured.check_timeout(now.plus_ms(999), 3);
        assert_eq!(measured.timeouts(), round - 1, "the first timeout is one second");
        now = now.plus_ms(1_000);
        measured.check_timeout(now, 3);
        measured.check_timeout(now, 3);
        assert_eq!(measured.timeouts(), round, "one timeout must count once");
    }
    measured.sent(now);
    measured.answered(now, now.plus_ms(5), true);
    assert_eq!(measured.timeouts(), 0);
    measured.count_timeout(2);
    assert!(!measured.is_timed_out());
    measured.count_timeout(2);
    assert!(measured.is_timed_out());
    measured.answered(now, now.plus_ms(5), false);
    assert!(!measured.is_timed_out(), "an ambiguous answer must count as a sign of life");
}

#[test]
fn an_old_answer_does_not_end_the_watch_for_a_later_interest() {
    let mut measured = NextHopMeasurement::FREE;
    measured.sent(Timestamp(0));
    measured.count_timeout(9);
    let second = Timestamp(0).plus_ms(1_000);
    measured.sent(second);
    measured.answered(Timestamp(0), second.plus_ms(1), true);
    measured.check_timeout(second.plus_ms(60_000), 9);
    assert_eq!(measured.timeouts(), 1);
}
