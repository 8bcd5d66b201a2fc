//! Tests of which packets are charged, and of how faces share the allowance.

use namehop_wire::Name;

use super::*;

impl Allowance {
    fn take(&mut self, name: NameRef<'_>) -> bool {
        let bytes = name.value().len();
        bytes <= SHORT_BYTES || self.take_cost(cost_of(bytes, name.len()))
    }
}

fn name(components: usize, bytes: usize) -> Name {
    (0..components).fold(Name::new(), |name, _| name.append_generic(vec![b'x'; bytes]))
}

#[test]
fn usual_names_are_free_and_others_cost_what_they_have_beyond() {
    let mut names = Allowance::new(10_000);
    assert_eq!(names.left, 1_000);
    for (components, bytes, cost) in [(7, 9, 0), (64, 0, 0), (16, 14, 0), (16, 15, 16), (17, 14, 24), (40, 4, 176)] {
        let before = names.left;
        assert!(names.take(name(components, bytes).as_ref()));
        assert_eq!(before - names.left, cost, "{components} components of {bytes} bytes");
    }
    let (long, left) = (name(8, 200), names.left);
    assert!(!names.take(long.as_ref()) && names.left == left);
    assert!(names.take(name(7, 9).as_ref()));
}

#[test]
fn the_allowance_grows_with_time_up_to_what_is_saved_up() {
    let mut names = Allowance::new(10_000);
    names.left = 0;
    // 10 bytes in a millisecond; single nanoseconds add up.
    for ns in (0..=1_000_000).step_by(1_000) {
        names.grow(Timestamp(ns));
    }
    assert_eq!(names.left, 10);
    names.grow(Timestamp(60 * 1_000_000_000));
    assert_eq!(names.left, 1_000);
    assert!(!Allowance::new(0).take(name(2, 200).as_ref()));
}

#[test]
fn after_a_refusal_some_has_to_grow_first() {
    let mut names = Allowance::new(10_000);
    assert!(names.take(name(12, 98).as_ref()) && names.left == 56);
    let (cheap, free) = (name(16, 15), name(7, 9));
    assert!(!names.take(name(10, 98).as_ref()));
    for (ms, passes) in [(1, false), (3, false), (5, true)] {
        names.grow(Timestamp(ms * 1_000_000));
        assert_eq!(names.may_take(cheap.value().len()), passes, "after {ms} ms");
        assert_eq!(names.take(cheap.as_ref()), passes, "after {ms} ms");
        assert!(names.take(free.as_ref()) && names.may_take(free.value().len()));
    }
    assert_eq!(names.left, 56 + 50 - 16);
}

#[test]
fn what_may_not_be_taken_is_not_taken() {
    let mut names = Allowance::new(10_000);
    for (components, bytes) in [(9, 98), (5, 98), (12, 20), (60, 2), (7, 9), (1, 250), (9, 98), (17, 12), (7, 9)] {
        let name = name(components, bytes);
        let may_take = names.may_take(name.value().len());
        let taken = names.take(name.as_ref());
        assert!(may_take || !taken, "{components} components of {bytes} bytes");
        assert!(components > FREE_COMPONENTS || may_take == taken, "{components} components of {bytes} bytes");
    }
    assert!(names.is_used_up);
}

const SECOND: u64 = 1_000_000_000;

/// Lets two faces request long names, `asks_per_ms` times per millisecond. Returns the bytes that each gets in 10 s.
fn served(asks_per_ms: [usize; 2], faces: [u32; 2], start_ms: [u64; 2]) -> [u64; 2] {
    let mut names = LongNames::new(1_000_000);
    let long = name(2, 600);
    let cost = cost_of(long.value().len(), 2);
    let mut served = [0; 2];
    for ms in 0..10_000 {
        names.grow(Timestamp(ms * SECOND / 1_000));
        for who in [0, 1] {
            for _ in 0..if ms >= start_ms[who] { asks_per_ms[who] } else { 0 } {
                let total = names.total();
                let may_take = names.may_take(FaceId(faces[who]), long.value().len(), &total);
                let is_taken = names.take(FaceId(faces[who]), long.as_ref());
                assert!(may_take || !is_taken);
                served[who] += u64::from(is_taken) * cost;
            }
        }
    }
    served
}

#[test]
fn a_flood_from_one_face_takes_nothing_from_another() {
    // A face that is alone gets the whole allowance; it requested 40 times as much.
    let [alone, _] = served([40, 0], [300, 301], [0, 0]);
    assert!((9_800_000..=10_200_000).contains(&alone), "{alone}");
    // One request per millisecond costs some 950 kB a second of the million, so each face gets half.
    let [flood, few] = served([40, 1], [300, 301], [0, 0]);
    assert!(flood + few <= 10_200_000);
    assert!((4_700_000..=5_200_000).contains(&few), "{few} bytes beside a flood of {flood}");
    // A face that comes later soon gets its share.
    let [flood, late] = served([40, 40], [300, 301], [0, 5_000]);
    assert!(flood + late <= 10_200_000);
    assert!(late >= 2_300_000, "{late} bytes beside a flood of {flood}");
    // Faces with the same share index share the allowance.
    let [one, other] = served([40, 40], [300, 300 + SHARES as u32], [0, 0]);
    assert!(one + other <= 10_200_000);
}

#[test]
fn many_faces_get_no_more_than_one() {
    let mut names = LongNames::new(1_000_000);
    let long = name(2, 600);
    let mut taken = 0;
    for ms in 0..5_000 {
        names.grow(Timestamp(ms * SECOND / 1_000));
        taken += (0..2_000).filter(|number| names.take(FaceId(256 + number % 1_000), long.as_ref())).count() as u64;
    }
    let bytes = taken * cost_of(long.value().len(), 2);
    assert!((4_000_000..=5_200_000).contains(&bytes), "{bytes}");
}
