//! Tests of the FIB case by case; against a simple model in `model`; with readers and writer on several threads in
//! `stress` and `stalls`; many prefixes at once in `bulk`; strategies of many prefixes in `rounds`.

mod bulk;
mod model;
mod rounds;
mod stalls;
mod stress;

use std::sync::Arc;

use namehop_hash::{HashKey, PrefixHashes, hash_name, hash_prefixes};
use namehop_table::touched::count_lines;
use namehop_wire::Name;

use super::*;

const KEY: HashKey = HashKey::new(1, 2);

fn name(uri: &str) -> Name {
    uri.parse().expect("valid URI")
}

fn hashes(name: &Name) -> PrefixHashes {
    let mut hashes = PrefixHashes::new();
    hash_prefixes(&KEY, name.value(), &mut hashes).expect("the name is not too deep");
    hashes
}

fn hop(face: u32, cost: u64) -> NextHop {
    NextHop { face: FaceId(face), cost }
}

/// Returns the result of a lookup: prefix length, next hops, length of the prefix they belong to, strategy.
fn lookup<S: Send + Sync + Clone>(reader: &FibReader<S>, uri: &str) -> (usize, Vec<NextHop>, usize, S) {
    let name = name(uri);
    let hashes = hashes(&name);
    reader.prefetch_buckets(&hashes);
    let guess = reader.guess(&hashes);
    reader.prefetch_guessed(guess);
    let found = reader.longest_prefix_match(&hashes, name.as_ref());
    let near = reader.longest_prefix_match_near(guess, &hashes, name.as_ref());
    assert_eq!((near.prefix_len(), near.prefix_hash()), (found.prefix_len(), found.prefix_hash()));
    assert_eq!(found.prefix_hash(), hash_name(&KEY, name.prefix(found.prefix_len()).value()));
    assert_eq!(found.has_nexthops(), !found.nexthops().is_empty());
    (found.prefix_len(), found.nexthops().to_vec(), found.nexthop_prefix_len(), found.strategy().clone())
}

#[test]
fn next_hops_of_equal_cost_keep_their_order() {
    let mut fib = FibWriter::new(KEY, 'r').expect("memory");
    let a = name("/a");
    for face in [305, 301, 303] {
        assert_eq!(fib.add_nexthop(a.as_ref(), FaceId(face), 7), Ok(true));
    }
    let faces = |fib: &FibWriter<char>| fib.nexthops(a.as_ref()).faces().iter().map(|face| face.0).collect::<Vec<_>>();
    assert_eq!(faces(&fib), [305, 301, 303], "earlier next hops must come first");
    assert_eq!(fib.add_nexthop(a.as_ref(), FaceId(305), 7), Ok(false));
    assert_eq!(faces(&fib), [305, 301, 303], "a repeated next hop must keep its position");
    assert_eq!(fib.place_nexthop(a.as_ref(), hop(309, 7), &[FaceId(303), FaceId(301)]), Ok(true));
    assert_eq!(faces(&fib), [305, 309, 301, 303]);
    assert_eq!(fib.place_nexthop(a.as_ref(), hop(305, 7), &[]), Ok(false));
    assert_eq!(faces(&fib), [309, 301, 303, 305]);
    assert_eq!(fib.place_nexthop(a.as_ref(), hop(303, 1), &[FaceId(309)]), Ok(false));
    assert_eq!(faces(&fib), [303, 309, 301, 305], "next hops must be ordered by cost first");
}

#[test]
fn nobody_changes_where_a_dedicated_prefix_leads() {
    let mut fib = FibWriter::new(KEY, 'r').expect("memory");
    let reader = fib.reader();
    assert_eq!(fib.dedicate(name("/a/b").as_ref(), FaceId(1)), Ok(()));
    for prefix in ["/a/b", "/a/b/c", "/a/b/c/d"] {
        let prefix = name(prefix);
        assert!(fib.is_dedicated(prefix.as_ref()));
        assert_eq!(fib.add_nexthop(prefix.as_ref(), FaceId(300), 0), Err(FibError::Dedicated));
        assert_eq!(fib.place_nexthop(prefix.as_ref(), hop(300, 0), &[]), Err(FibError::Dedicated));
        assert_eq!(fib.set_nexthops(prefix.as_ref(), &[hop(300, 0)]), Err(FibError::Dedicated));
        let addition = FibAddition { prefix: prefix.as_ref(), nexthops: &[hop(300, 0)] };
        assert_eq!(fib.add_many(&[addition]), Err(BulkError { position: 0, error: FibError::Dedicated }));
    }
    assert_eq!(fib.remove_nexthop(name("/a/b").as_ref(), FaceId(1)), Err(FibError::Dedicated));
    for prefix in ["/", "/a", "/a/bb", "/a/c"] {
        assert!(!fib.is_dedicated(name(prefix).as_ref()));
        assert_eq!(fib.add_nexthop(name(prefix).as_ref(), FaceId(300), 0), Ok(true));
    }
    fib.set_strategy(name("/a/b/c").as_ref(), 's').expect("a strategy can be set below a dedicated prefix");
    assert_eq!(lookup(&reader, "/a/b/c/d"), (3, vec![hop(1, 0)], 2, 's'));
}

#[test]
fn next_hops_are_found_by_longest_prefix_and_sorted_by_cost() {
    let mut fib = FibWriter::new(KEY, 'r').expect("memory");
    let reader = fib.reader();
    assert_eq!(lookup(&reader, "/a/b"), (0, vec![], 0, 'r'));
    let a = name("/a");
    assert_eq!(fib.add_nexthop(a.as_ref(), FaceId(300), 20), Ok(true));
    assert_eq!(fib.add_nexthop(a.as_ref(), FaceId(301), 10), Ok(true));
    assert_eq!(fib.add_nexthop(name("/a/b/c").as_ref(), FaceId(302), 0), Ok(true));
    assert_eq!(lookup(&reader, "/a/b"), (1, vec![hop(301, 10), hop(300, 20)], 1, 'r'));
    assert_eq!(lookup(&reader, "/a/b/c/d"), (3, vec![hop(302, 0)], 3, 'r'));
    assert_eq!(lookup(&reader, "/b"), (0, vec![], 0, 'r'));
    // Adding an existing face changes its cost.
    assert_eq!(fib.add_nexthop(a.as_ref(), FaceId(300), 5), Ok(false));
    assert_eq!(fib.add_nexthop(a.as_ref(), FaceId(300), 5), Ok(false));
    assert_eq!(fib.nexthops(a.as_ref()).to_vec(), [hop(300, 5), hop(301, 10)]);
    // The default route.
    assert_eq!(fib.add_nexthop(name("/").as_ref(), FaceId(303), 1), Ok(true));
    assert_eq!(lookup(&reader, "/b"), (0, vec![hop(303, 1)], 0, 'r'));
    assert_eq!(fib.len(), 3);
    assert_eq!(fib.remove_nexthop(a.as_ref(), FaceId(300)), Ok(true));
    assert_eq!(fib.remove_nexthop(a.as_ref(), FaceId(300)), Ok(false));
    assert_eq!(fib.remove_nexthop(a.as_ref(), FaceId(301)), Ok(true));
    assert_eq!(lookup(&reader, "/a/b"), (0, vec![hop(303, 1)], 0, 'r'));
    assert_eq!(fib.statistics().entries, 2);
}

#[test]
fn a_guess_of_another_name_time_or_reader_changes_nothing() {
    let mut fib = FibWriter::new(KEY, 'r').expect("memory");
    for prefix in ["/a", "/a/b", "/c"] {
        fib.add_nexthop(name(prefix).as_ref(), FaceId(300), 1).expect("room");
    }
    let (mut reader, other) = (fib.reader(), fib.reader());
    let (ours, others) = (name("/a/b/x"), name("/c/x"));
    let prefix_len = |reader: &FibReader<char>, guess, name: &Name| {
        reader.longest_prefix_match_near(guess, &hashes(name), name.as_ref()).prefix_len()
    };
    let guess = reader.guess(&hashes(&ours));
    assert_eq!(prefix_len(&reader, guess, &ours), 2);
    assert_eq!(prefix_len(&reader, guess, &others), 1);
    assert_eq!(prefix_len(&reader, guess, &name("/")), 0);
    assert_eq!(prefix_len(&other, guess, &ours), 2);
    // Within the period the guess reflects the former table; after it, it is invalid.
    fib.set_nexthops(name("/a/b").as_ref(), &[]).expect("removal");
    assert_eq!(prefix_len(&reader, guess, &ours), 2);
    reader.quiescent();
    assert_eq!(prefix_len(&reader, guess, &ours), 1);
    let guess = reader.guess(&hashes(&ours));
    reader.offline();
    assert_eq!(prefix_len(&reader, guess, &ours), 1);
}

#[test]
fn what_an_entry_has_not_it_inherits() {
    let mut fib = FibWriter::new(KEY, 'r').expect("memory");
    let reader = fib.reader();
    fib.set_strategy(name("/a/b").as_ref(), 's').expect("set");
    assert_eq!(lookup(&reader, "/a/b/c"), (2, vec![], 0, 's'));
    fib.add_nexthop(name("/").as_ref(), FaceId(1), 0).expect("add");
    assert_eq!(lookup(&reader, "/a/b/c"), (2, vec![hop(1, 0)], 0, 's'));
    fib.add_nexthop(name("/a").as_ref(), FaceId(2), 0).expect("add");
    assert_eq!(lookup(&reader, "/a/b/c"), (2, vec![hop(2, 0)], 1, 's'));
    fib.add_nexthop(name("/a/b/c").as_ref(), FaceId(3), 0).expect("add");
    assert_eq!(lookup(&reader, "/a/b/c"), (3, vec![hop(3, 0)], 3, 's'));
    // The choice itself changes, then a nearer one is added, then both are removed.
    fib.set_strategy(name("/a/b").as_ref(), 't').expect("set");
    assert_eq!(lookup(&reader, "/a/b/c").3, 't');
    fib.set_strategy(name("/a/b/c").as_ref(), 'u').expect("set");
    assert_eq!(lookup(&reader, "/a/b/c").3, 'u');
    assert_eq!(fib.unset_strategy(name("/a/b/c").as_ref()), Ok(true));
    assert_eq!(lookup(&reader, "/a/b/c").3, 't');
    assert_eq!(fib.unset_strategy(name("/a/b").as_ref()), Ok(true));
    assert_eq!(fib.unset_strategy(name("/a/b").as_ref()), Ok(false));
    assert_eq!(lookup(&reader, "/a/b/c"), (3, vec![hop(3, 0)], 3, 'r'));
    assert_eq!(lookup(&reader, "/a/b"), (1, vec![hop(2, 0)], 1, 'r'));
    assert_eq!(fib.set_strategy(name("/").as_ref(), 'v'), Ok(()));
    assert_eq!(lookup(&reader, "/a/b").3, 'v');
    assert_eq!(*fib.effective_strategy(name("/x").as_ref()), 'v');
    assert_eq!(fib.unset_strategy(name("/").as_ref()), Err(FibError::RootStrategy));
}

#[test]
fn limits_are_errors_and_change_nothing() {
    let mut fib = FibWriter::new(KEY, 'r').expect("memory");
    let deep = (0..MAX_PREFIX_COMPONENTS).fold(Name::default(), |name, _| name.append_generic("c"));
    let too_deep = deep.clone().append_generic("c");
    assert_eq!(fib.add_nexthop(deep.as_ref(), FaceId(1), 0), Ok(true));
    assert_eq!(fib.add_nexthop(too_deep.as_ref(), FaceId(1), 0), Err(FibError::PrefixTooLong));
    assert_eq!(fib.set_strategy(too_deep.as_ref(), 's'), Err(FibError::PrefixTooLong));
    assert_eq!(fib.set_strategy(deep.as_ref(), 's'), Ok(()));
    let deepest = (0..200).fold(Name::default(), |name, _| name.append_generic("c"));
    assert_eq!(fib.add_nexthop(deepest.as_ref(), FaceId(1), 0), Err(FibError::PrefixTooLong));
    assert_eq!(*fib.effective_strategy(deepest.as_ref()), 's');
    assert!(fib.nexthops(deepest.as_ref()).is_empty());
    let longest = (0..64).fold(Name::default(), |name, _| name.append_generic("c"));
    let found = fib.reader();
    let found = found.longest_prefix_match(&hashes(&longest), longest.as_ref()).prefix_len();
    assert_eq!(found, MAX_PREFIX_COMPONENTS);

    let a = name("/a");
    for face in 0..MAX_NEXTHOPS as u32 {
        assert_eq!(fib.add_nexthop(a.as_ref(), FaceId(face), u64::from(face)), Ok(true));
    }
    assert_eq!(fib.add_nexthop(a.as_ref(), FaceId(1000), 0), Err(FibError::TooManyNextHops));
    assert_eq!(fib.nexthops(a.as_ref()).len(), MAX_NEXTHOPS);
    assert_eq!(fib.set_nexthops(a.as_ref(), &[hop(7, 3), hop(8, 1), hop(7, 0)]), Ok(()));
    assert_eq!(fib.nexthops(a.as_ref()).to_vec(), [hop(7, 0), hop(8, 1)]);
    assert_eq!(fib.set_nexthops(a.as_ref(), &[]), Ok(()));
    assert_eq!(fib.len(), 1);
}

#[test]
fn it_grows_far_beyond_its_first_size_and_shrinks_to_nothing() {
    let mut fib = FibWriter::new(KEY, 0u32).expect("memory");
    let mut reader = fib.reader();
    let prefix = |number: u32| name(&format!("/network/{}/site/{number}", number % 100));
    for number in 0..30_000 {
        assert_eq!(fib.add_nexthop(prefix(number).as_ref(), FaceId(number), 1), Ok(true));
        if number % 1000 == 0 {
            reader.quiescent();
            fib.reclaim();
        }
    }
    assert_eq!(fib.entries().count(), 30_000);
    for number in 0..30_000 {
        let name = prefix(number).append_generic("more");
        let found = reader.longest_prefix_match(&hashes(&name), name.as_ref());
        assert_eq!((found.prefix_len(), found.nexthops().to_vec()), (4, vec![hop(number, 1)]));
    }
    let statistics = fib.statistics();
    assert_eq!((statistics.entries, statistics.nexthop_entries), (30_001, 30_000));
    assert!(statistics.bytes < 30_000 * 200, "{statistics:?}");
    assert_eq!(fib.remove_face(FaceId(7)), Ok(1));
    assert_eq!(fib.remove_face(FaceId(7)), Ok(0));
    for number in 0..30_000 {
        assert_eq!(fib.remove_nexthop(prefix(number).as_ref(), FaceId(number)), Ok(number != 7));
    }
    assert!(fib.is_empty());
    assert_eq!(fib.statistics().entries, 1);
    assert_eq!(lookup(&reader, "/network/1/site/1").0, 0);
    reader.offline();
    assert_eq!(fib.reclaim(), 0);
    assert_eq!(fib.statistics().buckets.overflow_buckets, 0);
}

#[test]
fn memory_is_reused_although_nobody_asks_for_reclamation() {
    let mut fib = FibWriter::new(KEY, 0u32).expect("memory");
    let long = name(&format!("/{}/{}", "x".repeat(200), "y".repeat(300)));
    for round in 0..100_000u64 {
        fib.add_nexthop(long.as_ref(), FaceId(1), round).expect("add");
    }
    let statistics = fib.statistics();
    assert!(statistics.pending <= 2048, "{statistics:?}");
    assert!(statistics.bytes < 4 << 20, "{statistics:?}");
    assert_eq!(fib.reclaim(), 0);
    let bytes = fib.statistics().bytes;
    fib.remove_face(FaceId(1)).expect("remove");
    assert_eq!(fib.reclaim(), 0);
    // Exactly the extension block of the one long entry was freed: 505 bytes of name and one face in whole words.
    assert_eq!(bytes - fib.statistics().bytes, 512);
}

#[test]
fn readers_may_outlive_the_writer_and_nothing_leaks() {
    let counted = Arc::new(());
    let mut fib = FibWriter::new(KEY, Arc::clone(&counted)).expect("memory");
    for uri in ["/a", "/a/b", "/c"] {
        fib.set_strategy(name(uri).as_ref(), Arc::clone(&counted)).expect("set");
    }
    let reader = fib.reader();
    assert_eq!(lookup(&reader, "/a").0, 1);
    fib.set_strategy(name("/a").as_ref(), Arc::clone(&counted)).expect("set");
    fib.unset_strategy(name("/c").as_ref()).expect("unset");
    let long = name(&format!("/{}", "x".repeat(1000)));
    fib.add_nexthop(long.as_ref(), FaceId(5), 0).expect("add");
    // The replaced and the removed strategy wait for the reader.
    assert!(fib.reclaim() > 0);
    assert_eq!(Arc::strong_count(&counted), 1 + 5);
    drop(fib);
    assert_eq!(lookup(&reader, "/a/b/c").0, 2);
    assert_eq!(lookup(&reader, &long.to_string()).1, [hop(5, 0)]);
    assert_eq!(Arc::strong_count(&counted), 1 + 5);
    drop(reader);
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
fn a_lookup_touches_one_bucket_for_each_depth_in_use_and_one_entry() {
    let mut fib = FibWriter::new(KEY, 'r').expect("memory");
    let reader = fib.reader();
    let lines = |uri: &str| {
        let name = name(uri);
        let hashes = hashes(&name);
        count_lines(|| reader.longest_prefix_match(&hashes, name.as_ref()).prefix_len())
    };
    // The list of segments and the line of an entry.
    const ENTRY: usize = 2;
    assert_eq!(lines("/a/b/c/d/e/f/g"), (ENTRY, 0), "only the root");
    for prefix in ["/a/b/c/d", "/a/b/c/x", "/x/y"] {
        assert_eq!(fib.add_nexthop(name(prefix).as_ref(), FaceId(300), 0), Ok(true));
    }
    assert_eq!(lines("/a/b/c/d/e/f/g"), (1 + ENTRY, 4), "a hit at the longest depth");
    assert_eq!(lines("/x/y/z/z/z"), (2 + ENTRY, 2), "a miss at depth 4, a hit at depth 2");
    assert_eq!(lines("/z/z/z/z/z"), (2 + ENTRY, 0), "two misses and the root");
    assert_eq!(lines("/z"), (ENTRY, 0), "a name shorter than all prefixes");
}
