//! Compares every lane width with hashing one name at a time.

use proptest::prelude::*;

use super::*;
use crate::tests::{VECTOR_KEY, VECTORS, name_value};
use crate::{MAX_DEPTH, TooDeep, hash_name};

/// Hashes and lengths of all prefixes, or that the name is too deep.
type Expected = Result<Vec<(u64, usize)>, TooDeep>;

fn read(hashes: &PrefixHashes) -> Expected {
    let prefixes = (0..=hashes.depth()).map(|depth| (hashes.get(depth), hashes.value_bytes(depth))).collect();
    hashes.result().map(|()| prefixes)
}

fn one_at_a_time(name: &[u8]) -> Expected {
    let mut hashes = PrefixHashes::new();
    assert_eq!(hash_prefixes(&VECTOR_KEY, name, &mut hashes), hashes.result());
    read(&hashes)
}

/// Checks all widths, with results that were used before.
fn check(names: &[Vec<u8>]) {
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let expected: Vec<Expected> = names.iter().map(|name| one_at_a_time(name)).collect();
    let mut used = PrefixHashes::new();
    let deep = name_value(&vec![(8, b"used".to_vec()); MAX_DEPTH]);
    assert_eq!(hash_prefixes(&VECTOR_KEY, &deep, &mut used), Ok(()));
    for lanes in Lanes::available() {
        // One element more than names, to check that it is not changed.
        let mut out = vec![used.clone(); names.len() + 1];
        hash_group(&VECTOR_KEY, lanes, &names, &mut out);
        for (number, expected) in expected.iter().enumerate() {
            assert_eq!(&read(&out[number]), expected, "{lanes}, name {number}: {:?}", names[number]);
            assert_eq!(out[number].get(0), hash_name(&VECTOR_KEY, b""));
        }
        assert_eq!(read(&out[names.len()]), read(&used));
    }
}

/// Components of all sizes of type and length, mostly short ones.
fn component() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let typ = prop_oneof![9 => 1u16..=60, 1 => 250u16..=260, 1 => 1u16..];
    let bytes = prop_oneof![
        9 => prop::collection::vec(any::<u8>(), 0..20),
        1 => prop::collection::vec(any::<u8>(), 240..300),
    ];
    (typ, bytes)
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let components = |count| prop::collection::vec(component(), count).prop_map(|components| name_value(&components));
    prop_oneof![
        8 => components(0..12),
        1 => components(60..70),
        1 => prop::collection::vec((8u16..10, prop::collection::vec(any::<u8>(), 0..2)), 60..70)
            .prop_map(|components| name_value(&components)),
        // Bytes that are no names, or truncated names.
        2 => prop::collection::vec(any::<u8>(), 0..200),
        2 => prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(252), Just(253), Just(255)], 0..40),
        1 => (components(1..12), any::<prop::sample::Index>()).prop_map(|(mut name, at)| {
            name.truncate(at.index(name.len()));
            name
        }),
    ]
}

proptest! {
    #[test]
    fn groups_of_all_sorts_of_names(names in prop::collection::vec(name(), 0..100)) {
        check(&names);
    }

    #[test]
    fn names_of_one_shape(lengths in prop::collection::vec(0usize..40, 0..20), count in 0usize..150, seed: u8) {
        let names: Vec<Vec<u8>> = (0..count)
            .map(|number| {
                let components: Vec<_> = lengths
                    .iter()
                    .map(|&length| (8, (0..length).map(|byte| (number * 7 + byte) as u8 ^ seed).collect()))
                    .collect();
                name_value(&components)
            })
            .collect();
        check(&names);
    }
}

#[test]
fn published_vectors_in_groups() {
    // Read as a name, each input ends in its last, truncated component.
    let inputs: Vec<Vec<u8>> = (0..16).map(|length| (0..length).collect()).collect();
    let names: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    for lanes in Lanes::available() {
        let mut out = vec![PrefixHashes::new(); names.len()];
        hash_group(&VECTOR_KEY, lanes, &names, &mut out);
        for (out, vector) in out.iter().zip(VECTORS) {
            assert_eq!(out.full(), u64::from_le_bytes(vector), "{lanes}");
        }
    }
}

#[test]
fn names_at_the_limits() {
    let shortest = vec![(8, Vec::new()); MAX_DEPTH];
    let long = |bytes: usize| name_value(&[(8, b"a".to_vec()), (8, vec![7; bytes]), (8, b"b".to_vec())]);
    let mut names = vec![
        name_value(&shortest),
        [name_value(&shortest), vec![8]].concat(),
        [name_value(&shortest), vec![8, 0]].concat(),
        name_value(&vec![(8, vec![1; 100]); MAX_DEPTH + 40]),
        long(500),
        long(501),
        long(502),
        long(503),
        long(504),
        long(8800),
        long(70_000),
        name_value(&vec![(8, vec![1; 5]); MAX_DEPTH + 1]),
    ];
    check(&names);
    names.rotate_left(5);
    check(&names);
}

#[test]
fn the_widest_lanes_are_best() {
    let available: Vec<Lanes> = Lanes::available().collect();
    assert_eq!(available.first(), Some(&Lanes::SCALAR));
    assert_eq!(available.last(), Some(&Lanes::best()));
    assert!(available.is_sorted_by_key(|lanes| lanes.count()));
    assert_eq!(Lanes::SCALAR.to_string(), "scalar");
    assert_eq!(format!("{:>8?}", Lanes::SCALAR), "  scalar");
}

#[test]
#[should_panic(expected = "out of range")]
fn every_name_needs_a_slot() {
    hash_group(&VECTOR_KEY, Lanes::best(), &[b"", b""], &mut [PrefixHashes::new()]);
}
