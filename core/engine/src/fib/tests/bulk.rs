//! Tests of adding many prefixes at once, of walks over all prefixes, and of growth during both.

use std::collections::HashMap;

use super::*;

fn prefix(number: u32) -> Name {
    name(&format!("/bulk/{}/{}/{number}", number % 10, number % 1000))
}

fn add(fib: &mut FibWriter<u32>, numbers: impl Iterator<Item = u32>, hops: &[NextHop]) {
    let names: Vec<Name> = numbers.map(prefix).collect();
    let additions: Vec<FibAddition<'_>> =
        names.iter().map(|name| FibAddition { prefix: name.as_ref(), nexthops: hops }).collect();
    assert_eq!(fib.add_many(&additions), Ok(()));
}

/// Returns all prefixes and how often each is shown, in portions of `portion`, with a change between two portions.
fn walk(fib: &mut FibWriter<u32>, portion: usize, mut change: impl FnMut(&mut FibWriter<u32>)) -> HashMap<Name, usize> {
    let (mut seen, mut cursor) = (HashMap::new(), Some(FibCursor::default()));
    while let Some(from) = cursor {
        // As a caller does that stores the position as a number.
        let from = from.number().map_or(FibCursor::default(), FibCursor::from_number);
        cursor = fib.visit_entries(from, portion, |name, _| *seen.entry(name.to_owned()).or_default() += 1);
        change(fib);
    }
    seen
}

#[test]
fn a_reserved_table_grows_once_and_readers_find_everything_meanwhile() {
    let mut fib = FibWriter::new(KEY, 0).expect("memory");
    add(&mut fib, 0..30_000, &[hop(1, 1)]);
    let before = fib.statistics().buckets.capacity;
    fib.reserve(200_000).expect("memory");
    assert_eq!(fib.statistics().buckets.capacity, before, "the table must not grow yet");
    let mut reader = fib.reader();
    let mut capacities = vec![before];
    for start in (30_000..230_000).step_by(500) {
        add(&mut fib, start..start + 500, &[hop(2, 2)]);
        let capacity = fib.statistics().buckets.capacity;
        if capacities.last() != Some(&capacity) {
            capacities.push(capacity);
        }
        for number in [0, 29_999, start, start + 499] {
            let name = prefix(number).append_generic("data");
            let found = reader.longest_prefix_match(&hashes(&name), name.as_ref());
            assert_eq!((found.prefix_len(), found.nexthops().len()), (4, 1), "{name}");
        }
        reader.quiescent();
    }
    assert_eq!(capacities.len(), 2, "{capacities:?}");
    assert!(capacities[1] >= 230_000);
    assert_eq!(fib.len(), 230_000);
    reader.offline();
    assert_eq!(fib.reclaim(), 0);
}

#[test]
fn it_takes_as_much_memory_as_is_said_beforehand() {
    for (number, expected_lines) in [(7, 1), (40, 2), (200, 3)] {
        let mut fib = FibWriter::new(KEY, 0).expect("memory");
        let names: Vec<Name> = (0..40_000).map(|at| name(&format!("/{at:05}{}", "x".repeat(number)))).collect();
        let hops = [hop(1, 1)];
        let additions: Vec<FibAddition<'_>> =
            names.iter().map(|name| FibAddition { prefix: name.as_ref(), nexthops: &hops }).collect();
        assert_eq!(fib.add_many(&additions), Ok(()));
        let said = fib_bytes(names.len(), names[0].value().len());
        assert!(said >= names.len() * 64 * expected_lines, "{said}");
        let ratio = fib.statistics().bytes as f64 / said as f64;
        assert!((0.97..1.10).contains(&ratio), "names of {number} bytes: ratio {ratio}");
    }
}

#[test]
fn every_number_is_a_place_from_which_a_walk_comes_to_its_end() {
    let mut fib = FibWriter::new(KEY, 0).expect("memory");
    add(&mut fib, 0..1000, &[hop(1, 1)]);
    for number in [0, 1, u64::from(u32::MAX), 1 << 63, (1 << 63) + 1, u64::MAX] {
        let (mut shown, mut cursor) = (0, Some(FibCursor::from_number(number)));
        while let Some(from) = cursor {
            cursor = fib.visit_entries(from, 100, |_, _| shown += 1);
        }
        assert!(shown <= 1000, "{number}");
        assert_eq!(shown == 1000, number <= u64::from(u32::MAX), "cursor {number}: entries before it must be skipped");
    }
}

#[test]
fn what_is_there_keeps_its_other_next_hops_and_its_strategy() {
    let mut fib = FibWriter::new(KEY, 0).expect("memory");
    let reader = fib.reader();
    fib.add_nexthop(prefix(5).as_ref(), FaceId(9), 9).expect("add");
    fib.set_strategy(prefix(6).as_ref(), 6).expect("set");
    fib.set_strategy(name("/bulk/7").as_ref(), 7).expect("set");
    add(&mut fib, (0..100).chain(0..100), &[hop(1, 1), hop(2, 2), hop(1, 3)]);
    assert_eq!(fib.len(), 100);
    assert_eq!(lookup(&reader, &prefix(5).to_string()).1, [hop(2, 2), hop(1, 3), hop(9, 9)]);
    for number in 0..100 {
        let strategy = match number {
            6 => 6,
            _ if number % 10 == 7 => 7,
            _ => 0,
        };
        assert_eq!(lookup(&reader, &prefix(number).to_string()).3, strategy, "prefix {number}");
    }
    drop(reader);
    assert_eq!(fib.reclaim(), 0);
    // Everything replaced is freed: 100 entries, /bulk/7 and the root remain, in reused slots.
    assert_eq!(fib.statistics().entries, 102);
}

#[test]
fn a_refused_prefix_is_told_and_the_others_can_go_on() {
    let mut fib = FibWriter::new(KEY, 0).expect("memory");
    let deep = (0..70).fold(Name::default(), |name, _| name.append_generic("c"));
    let names: Vec<Name> = (0..100).map(|number| if number == 70 { deep.clone() } else { prefix(number) }).collect();
    let hops = [hop(1, 1)];
    let additions: Vec<FibAddition<'_>> =
        names.iter().map(|name| FibAddition { prefix: name.as_ref(), nexthops: &hops }).collect();
    let refused = fib.add_many(&additions).expect_err("the prefix is too long");
    assert_eq!(refused, BulkError { position: 70, error: FibError::PrefixTooLong });
    assert_eq!(fib.len(), 70);
    assert_eq!(fib.add_many(&additions[71..]), Ok(()));
    assert_eq!(fib.len(), 99);
    let many: Vec<NextHop> = (0..=MAX_NEXTHOPS as u32).map(|face| hop(face, 0)).collect();
    let addition = FibAddition { prefix: names[0].as_ref(), nexthops: &many };
    assert_eq!(fib.add_many(&[addition]).expect_err("there are too many next hops").error, FibError::TooManyNextHops);
    assert_eq!(fib.nexthops(names[0].as_ref()).to_vec(), hops);
}

#[test]
fn a_walk_shows_what_stays_although_everything_else_changes() {
    for portion in [1, 100, 5000] {
        let mut fib = FibWriter::new(KEY, 0).expect("memory");
        add(&mut fib, 0..20_000, &[hop(1, 1)]);
        fib.add_nexthop(name("/").as_ref(), FaceId(1), 0).expect("add");
        let mut next = 20_000;
        let seen = walk(&mut fib, portion, |fib| {
            if next < 60_000 {
                // The table grows, and prefixes move to other slots.
                add(fib, next..next + 2000, &[hop(1, 1)]);
                add(fib, next - 20_000..next - 19_000, &[hop(3, 3)]);
                next += 2000;
            }
        });
        assert!((0..20_000).all(|number| seen.contains_key(&prefix(number))));
        assert!(seen.contains_key(&Name::default()));
    }
}

#[test]
fn a_face_is_removed_in_portions() {
    let mut fib = FibWriter::new(KEY, 0).expect("memory");
    add(&mut fib, 0..20_000, &[hop(1, 1)]);
    add(&mut fib, 10_000..30_000, &[hop(2, 2)]);
    let (mut total, mut portions, mut cursor) = (0, 0, Some(FibCursor::default()));
    while let Some(from) = cursor {
        let (removed, next) = fib.remove_face_from_portion(FaceId(1), from, 1000).expect("remove");
        assert!(removed < 1500, "{removed}");
        (total, portions, cursor) = (total + removed, portions + 1, next);
    }
    assert_eq!((total, fib.len()), (20_000, 20_000));
    assert!(portions >= 15, "{portions}");
    assert!(fib.entries().all(|(_, hops)| hops.to_vec() == [hop(2, 2)]));
}
