//! The Content Store: hits, admission, eviction.

use namehop_engine::engine::CsCounters;
use namehop_engine::{CsChange, CsConfig, CsErasure, EngineConfig};
use namehop_packet::{DropReason, FaceId};
use namehop_store::{PolicyKind, Progress};

use crate::router::*;

/// Fetches `uri` so that it is cached.
fn fetch(router: &mut Router, uri: &str) {
    let nonce = router.engine.counters().in_interests as u32 + 1_000;
    router.recv(CONSUMER, interest(uri).nonce(nonce)).recv(PRODUCER, data(uri)).sent();
}

fn router_with(cs: CsConfig) -> Router {
    Router::with_default_route_and(EngineConfig { cs, ..EngineConfig::default() })
}

/// Completes the work that changed settings require.
fn settle(router: &mut Router) {
    while let Progress::Going = router.engine.cs_settle() {
        router.engine.check_invariants().expect("invariants");
    }
}

#[test]
fn which_interests_cached_data_answers() {
    let cached = || data("/A/B/C").freshness(1_000);
    let full = cached().full_name();
    let other = cached().content(b"other").full_name();
    // rule; Interest; milliseconds after arrival; whether it is answered
    let rows = [
        ("same name", interest("/A/B/C"), 0, true),
        ("another name", interest("/A/B/D"), 0, false),
        ("a prefix without CanBePrefix", interest("/A/B"), 0, false),
        ("a prefix with CanBePrefix", interest("/A/B").prefix(), 0, true),
        ("a shorter prefix", interest("/A").prefix(), 0, true),
        ("the whole name with CanBePrefix", interest("/A/B/C").prefix(), 0, true),
        ("a longer name", interest("/A/B/C/D").prefix(), 0, false),
        ("the full name", interest_named(full.clone()), 0, true),
        ("another digest", interest_named(other), 0, false),
        ("fresh", interest("/A/B/C").fresh(), 999, true),
        ("stale", interest("/A/B/C").fresh(), 1_000, false),
        ("stale without MustBeFresh", interest("/A/B/C"), 100_000, true),
        ("fresh by prefix", interest("/A").prefix().fresh(), 999, true),
        ("stale by prefix", interest("/A").prefix().fresh(), 1_000, false),
        ("fresh by full name", interest_named(full.clone()).fresh(), 999, true),
        ("stale by full name", interest_named(full).fresh(), 1_000, false),
    ];
    for (rule, asked, after_ms, hit) in rows {
        let mut router = Router::with_default_route();
        router.recv(CONSUMER, interest("/A/B/C").nonce(99)).recv(PRODUCER, cached()).sent();
        router.wait(after_ms).recv(CONSUMER2, asked);
        let sent = router.sent();
        assert_eq!(sent.len(), 1, "{rule}");
        let answered = sent[0].line() == "D257 /A/B/C" && sent[0].bytes == cached().packet().bytes;
        assert_eq!(answered, hit, "{rule}");
        let counters = router.engine.counters();
        assert_eq!((counters.cs_hits, counters.cs_misses), (u64::from(hit), 1 + u64::from(!hit)), "{rule}");
    }
}

#[test]
fn data_without_freshness_period_is_never_fresh() {
    let mut router = Router::with_default_route();
    fetch(&mut router, "/A");
    router.recv(CONSUMER2, interest("/A").fresh()).expect(&["I300 /A MBF n1"]);
}

#[test]
fn a_hit_satisfies_the_interest_without_a_pit_entry() {
    let mut router = Router::with_default_route();
    fetch(&mut router, "/A");
    router.recv(CONSUMER2, interest("/A")).expect(&["D257 /A"]);
    assert_eq!(router.pit_len(), 0);
    assert_eq!(router.engine.counters().satisfied_interests, 2);
}

#[test]
fn an_interest_and_its_data_share_one_entry() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A"));
    let token = router.only().token();
    assert_eq!(router.engine.table_sizes().pcct, 1);
    router.recv(PRODUCER, data("/A").freshness(1_000).packet().token(&token)).sent();
    let sizes = router.engine.table_sizes();
    assert_eq!((sizes.pit, sizes.cs, sizes.pcct), (0, 1, 1));
    router.wait(2_000).recv(CONSUMER, interest("/A").fresh().nonce(2));
    assert_eq!(router.only().token()[1..5], token[1..5]);
    assert_eq!(router.engine.table_sizes().pcct, 1);
}

#[test]
fn what_does_not_enter() {
    let mut router = Router::with_default_route();
    router
        .recv(CONSUMER, interest("/A"))
        .recv(PRODUCER, data("/A").packet().no_cache())
        .expect(&["D256 /A", "I300 /A n1"]);
    assert_eq!(router.cs_len(), 0, "Data with CachePolicy NoCache must not be cached");
    router.engine.cs_configure(CsChange { admit: Some(false), ..CsChange::default() }).expect("settings");
    fetch(&mut router, "/B");
    assert_eq!(router.cs_len(), 0, "nothing may be cached while admission is off");
    assert_eq!(router.engine.table_sizes().pcct, 0);
}

#[test]
fn serving_can_be_turned_off() {
    let mut router = Router::with_default_route();
    fetch(&mut router, "/A");
    router.engine.cs_configure(CsChange { serve: Some(false), ..CsChange::default() }).expect("settings");
    router.recv(CONSUMER2, interest("/A")).expect(&["I300 /A n1"]);
    let info = router.engine.cs_info();
    assert!(info.admit && !info.serve);
    assert_eq!(info.entries, 1);
}

#[test]
fn capacity_holds_and_the_policy_chooses() {
    for (policy, survivor) in [("lru", "/A"), ("fifo", "/B")] {
        let policy = policy.parse().expect("policy");
        let mut router = router_with(CsConfig { capacity_packets: 2, policy, ..CsConfig::default() });
        fetch(&mut router, "/A");
        fetch(&mut router, "/B");
        router.recv(CONSUMER2, interest("/A")).expect(&["D257 /A"]);
        fetch(&mut router, "/C");
        assert_eq!(router.cs_len(), 2);
        router.engine.cs_configure(CsChange { admit: Some(false), ..CsChange::default() }).expect("settings");
        for uri in ["/A", "/B", "/C"] {
            router.recv(CONSUMER2, interest(uri).nonce(77));
            let hit = router.only().line().starts_with('D');
            assert_eq!(hit, uri == survivor || uri == "/C", "{policy} {uri}");
        }
    }
}

#[test]
fn a_store_for_nothing_caches_nothing() {
    for cs in
        [CsConfig { capacity_packets: 0, ..CsConfig::default() }, CsConfig { capacity_bytes: 0, ..CsConfig::default() }]
    {
        let mut router = router_with(cs);
        fetch(&mut router, "/A");
        assert_eq!(router.cs_len(), 0);
        assert_eq!(router.engine.table_sizes().pcct, 0);
    }
}

#[test]
fn memory_moves_between_sizes_of_data() {
    let capacity_bytes = 512 << 10;
    let mut router = router_with(CsConfig { capacity_packets: 100_000, capacity_bytes, ..CsConfig::default() });
    let sizes = [10, 8_000, 100, 3_000, 10];
    for (round, size) in sizes.into_iter().enumerate() {
        for number in 0..3_000 {
            let uri = format!("/{round}/{number}");
            router.recv(CONSUMER, interest(&uri).nonce(number)).recv(PRODUCER, data(&uri).content(&vec![1; size]));
        }
        router.sent();
        let newest = format!("/{round}/2999");
        router.recv(CONSUMER2, interest(&newest).nonce(5)).expect(&[&format!("D257 {newest}")]);
        // Bytes of content only; a chunk cleared for another size may be one of the new size.
        let bytes = router.cs_len() * size;
        assert!(bytes <= capacity_bytes && (size == 10 || bytes > capacity_bytes / 3), "{size}: {}", router.cs_len());
    }
    assert_eq!(router.engine.counters().cs_no_room, 0);
}

#[test]
fn newer_data_of_the_same_name_replaces_older() {
    let mut router = Router::with_default_route();
    fetch(&mut router, "/A");
    router.recv(CONSUMER, interest("/A").fresh()).recv(PRODUCER, data("/A").content(b"new").freshness(5)).sent();
    assert_eq!(router.cs_len(), 1);
    router.recv(CONSUMER2, interest("/A").nonce(3));
    assert_eq!(router.only().bytes, data("/A").content(b"new").freshness(5).packet().bytes);
    // The digest is that of the new Data.
    let old = data("/A").full_name();
    let new = data("/A").content(b"new").freshness(5).full_name();
    router.recv(CONSUMER2, interest_named(new)).expect(&["D257 /A"]);
    router.recv(CONSUMER2, interest_named(old));
    assert!(router.only().line().starts_with('I'));
}

#[test]
fn the_same_data_again_is_fresh_again() {
    let mut router = Router::with_default_route();
    for round in 0..3 {
        router.recv(CONSUMER, interest("/A").fresh().nonce(round)).recv(PRODUCER, data("/A").freshness(100)).sent();
        router.wait(99).recv(CONSUMER2, interest("/A").fresh().nonce(50)).expect(&["D257 /A"]);
        router.wait(1);
    }
    assert_eq!(router.cs_len(), 1);
}

#[test]
fn the_newest_data_answers_a_prefix() {
    let mut router = Router::with_default_route();
    for version in 1..=3 {
        fetch(&mut router, &format!("/A/{version}"));
    }
    router.recv(CONSUMER2, interest("/A").prefix()).expect(&["D257 /A/3"]);
    assert_eq!(router.erase("/A/3", 100), 1);
    router.recv(CONSUMER2, interest("/A").prefix().nonce(5)).expect(&["I300 /A CBP n5"]);
}

#[test]
fn prefixes_of_lengths_that_nobody_asks_for_are_not_indexed() {
    let mut router = Router::with_default_route();
    fetch(&mut router, "/start");
    router.wait(61_000);
    fetch(&mut router, "/A/B/C");
    router.recv(CONSUMER2, interest("/A").prefix().nonce(5)).expect(&["I300 /A CBP n5"]);
    // An Interest has now requested a prefix of one component, so the next Data is found.
    router.wait(10_000);
    fetch(&mut router, "/A/B/D");
    router.recv(CONSUMER2, interest("/A").prefix().nonce(6)).expect(&["D257 /A/B/D"]);
    router.recv(CONSUMER2, interest("/A/B").prefix().nonce(7)).expect(&["I300 /A/B CBP n7"]);
}

#[test]
fn erase_is_limited_and_by_prefix() {
    let mut router = Router::with_default_route();
    for uri in ["/A/1", "/A/2", "/A/3", "/B/1"] {
        fetch(&mut router, uri);
    }
    assert_eq!(router.erase("/A", 2), 2);
    assert_eq!(router.erase("/A", 2), 1);
    assert_eq!(router.erase("/A", 2), 0);
    assert_eq!(router.cs_len(), 1);
    assert_eq!(router.erase("/", 256), 1);
    assert_eq!(router.engine.table_sizes().pcct, 0);
    router.expect(&[]);
}

#[test]
fn an_erasure_looks_at_a_bounded_number_of_entries_at_a_time() {
    let mut router = router_with(CsConfig { capacity_packets: 50_000, ..CsConfig::default() });
    for number in 0..20_000u32 {
        let uri = format!("/{}/{number}", if number < 19_990 { "A" } else { "B" });
        router.recv(CONSUMER, interest(&uri).nonce(number)).recv(PRODUCER, data(&uri)).sent_unchecked();
    }
    let step = |router: &mut Router, prefix: &str, erasure: &mut CsErasure| {
        router.engine.cs_erase(name(prefix).as_ref(), 4, erasure)
    };
    // The wanted Data lies in the last of three parts.
    let mut erasure = CsErasure::default();
    let erased = [(); 3].map(|()| step(&mut router, "/B", &mut erasure));
    assert_eq!((erased, erasure.is_complete()), ([0, 0, 4], false));
    // The next erasure starts where this one ended, and wraps around.
    let mut erasure = CsErasure::default();
    assert_eq!(step(&mut router, "/B", &mut erasure), 4);
    let mut erasure = CsErasure::default();
    assert_eq!(step(&mut router, "/B", &mut erasure), 2);
    assert!(!erasure.is_complete());
    assert_eq!([(); 2].map(|()| step(&mut router, "/B", &mut erasure)), [0, 0]);
    assert!(erasure.is_complete());
    assert_eq!(step(&mut router, "/A", &mut erasure), 0, "everything has been examined");
    assert_eq!(router.erase("/", usize::MAX), 19_990);
    assert_eq!(router.engine.table_sizes().pcct, 0);
    router.engine.check_invariants().expect("invariants");
}

#[test]
fn a_hit_ends_a_pit_entry_that_nobody_waits_for() {
    // rule; the Interest; freshness of the cached Data; whether the nonce sent upstream goes to the Dead Nonce List
    let rows = [
        ("any Data", interest("/A"), 1_000, false),
        ("Data that stays fresh for long", interest("/A").fresh(), 60_000, false),
        ("Data that becomes stale soon and then stops no loop", interest("/A").fresh(), 1_000, true),
    ];
    let serve = |router: &mut Router, serve| {
        router.engine.cs_configure(CsChange { serve: Some(serve), ..CsChange::default() }).expect("settings");
    };
    for (rule, asked, freshness_ms, is_remembered) in rows {
        let mut router = Router::with_default_route();
        router.recv(APP, interest("/A").nonce(99)).recv(PRODUCER, data("/A").freshness(freshness_ms)).sent();
        serve(&mut router, false);
        router.recv(CONSUMER, asked.clone().nonce(1)).sent();
        assert_eq!(router.pit_len(), 1, "{rule}");
        serve(&mut router, true);
        router.engine.remove_face(FaceId(CONSUMER));
        router.recv(CONSUMER2, asked.clone().nonce(2)).expect(&["D257 /A"]);
        assert_eq!(router.pit_len(), 0, "{rule}");
        let counters = router.engine.counters();
        assert_eq!((counters.satisfied_interests, counters.unsatisfied_interests), (2, 0), "{rule}");
        router.recv(PRODUCER2, asked.nonce(1)).sent();
        assert_eq!(router.drops(DropReason::DeadNonce), u64::from(is_remembered), "{rule}");
    }
}

#[test]
fn capacity_can_shrink_and_grow_while_running() {
    let mut router = router_with(CsConfig { capacity_packets: 10, ..CsConfig::default() });
    for number in 0..10 {
        fetch(&mut router, &format!("/A/{number}"));
    }
    let set = |router: &mut Router, capacity| {
        router.engine.cs_configure(CsChange { capacity: Some(capacity), ..CsChange::default() }).expect("settings");
        assert_eq!(router.engine.cs_info().capacity, capacity);
        router.engine.check_invariants().expect("invariants");
        settle(router);
        router.engine.check_invariants().expect("invariants");
    };
    set(&mut router, 3);
    assert_eq!(router.cs_len(), 3);
    router.recv(CONSUMER2, interest("/A/9")).expect(&["D257 /A/9"]);
    router.recv(CONSUMER2, interest("/pending")).sent();
    set(&mut router, 400_000);
    assert_eq!(router.cs_len(), 3);
    router.recv(PRODUCER, data("/pending")).expect(&["D257 /pending"]);
    for number in 0..2_000 {
        fetch(&mut router, &format!("/B/{number}"));
    }
    assert_eq!(router.cs_len(), 2_004);
    router.recv(CONSUMER2, interest("/A/9").nonce(2)).expect(&["D257 /A/9"]);
    set(&mut router, 0);
    assert_eq!((router.cs_len(), router.engine.table_sizes().pcct), (0, 0));
}

#[test]
fn data_of_every_size_is_returned_byte_by_byte() {
    let mut router = Router::with_default_route();
    for size in [0, 1, 100, 191, 192, 500, 1_400, 2_000, 4_000, 8_000, 8_700] {
        let packet = data(&format!("/A/{size}")).content(&vec![7; size]).packet();
        router.recv(CONSUMER, interest(&format!("/A/{size}"))).recv(PRODUCER, packet.clone()).sent();
        router.recv(CONSUMER2, interest(&format!("/A/{size}")).nonce(2));
        assert_eq!(router.only().bytes, packet.bytes);
    }
}

#[test]
fn cached_data_of_any_size_answers_by_digest_even_when_memory_is_full() {
    for capacity_bytes in [512 << 10, 64 << 20] {
        let mut router = router_with(CsConfig { capacity_bytes, ..CsConfig::default() });
        for number in 0..650_usize {
            // Sizes for which the digest fits into the last line of the block, and for which it does not.
            let content = vec![number as u8; 13 * number];
            let cached = || data(&format!("/A/{number}")).content(&content);
            router.recv(CONSUMER, interest(&format!("/A/{number}")).nonce(1)).recv(PRODUCER, cached()).sent();
            // The first time it is computed, the second time it may be stored.
            for _ in 0..2 {
                router.recv(CONSUMER2, interest_named(cached().full_name()));
                let sent = router.sent();
                assert_eq!(sent.len(), 1, "{number}");
                assert!(sent[0].bytes == cached().packet().bytes, "{number}");
            }
            router.engine.check_invariants().expect("invariants");
        }
    }
}

#[test]
fn policy_can_change_while_running() {
    let policy = PolicyKind::Lru.into();
    let mut router = router_with(CsConfig { capacity_packets: 600, policy, ..CsConfig::default() });
    let change = |router: &mut Router, policy: &str| {
        let policy = Some(policy.parse().expect("a policy"));
        router.engine.cs_configure(CsChange { policy, ..CsChange::default() }).expect("settings");
        assert_eq!(Some(router.engine.cs_info().policy), policy);
    };
    let is_cached = |router: &mut Router, uri: &str| {
        let hits = router.engine.counters().cs_hits;
        let nonce = router.engine.counters().in_interests as u32 + 100_000;
        router.recv(CONSUMER2, interest(uri).nonce(nonce)).recv(PRODUCER, data(uri)).sent();
        router.engine.counters().cs_hits > hits
    };
    for number in 0..600 {
        fetch(&mut router, &format!("/A/{number}"));
    }
    // Used last, which matters only for the first policy.
    assert!(is_cached(&mut router, "/A/0"));
    change(&mut router, "fifo");
    assert!(matches!(router.engine.cs_settle(), Progress::Going), "the packets must move in portions");
    // Data inserted meanwhile evicts the first victim of the old policy.
    fetch(&mut router, "/B/0");
    router.engine.check_invariants().expect("invariants");
    settle(&mut router);
    assert_eq!(router.cs_len(), 600);
    assert!(is_cached(&mut router, "/A/0"));
    assert!(is_cached(&mut router, "/B/0"));
    // A policy that admits only what is requested twice, and one that differs only in its settings.
    change(&mut router, "filter");
    settle(&mut router);
    assert!(!is_cached(&mut router, "/C/0"));
    assert!(!is_cached(&mut router, "/C/0"));
    assert!(is_cached(&mut router, "/C/0"));
    change(&mut router, "filter:threshold=1");
    assert!(!is_cached(&mut router, "/D/0"));
    assert!(is_cached(&mut router, "/D/0"), "settings must take effect at once");
    settle(&mut router);

    let info = router.engine.cs_info();
    let expected = [
        (PolicyKind::Lru, CsCounters { hits: 1, misses: 600, insertions: 600, evictions: 0, rejections: 0 }),
        (PolicyKind::Fifo, CsCounters { hits: 2, misses: 1, insertions: 1, evictions: 1, rejections: 0 }),
        (PolicyKind::Filter, CsCounters { hits: 2, misses: 3, insertions: 2, evictions: 2, rejections: 1 }),
    ];
    assert_eq!(info.by_policy.used().collect::<Vec<_>>(), expected);
    let total = info.by_policy.total();
    assert_eq!((total.hits, total.misses), (info.hits, info.misses));
    assert_eq!(total.insertions - total.evictions, info.entries as u64);
}
