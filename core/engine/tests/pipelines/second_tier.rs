//! The second tier of the Content Store: which Data is offered to it, which Interests it answers, which ones wait. The
//! crate `disk` tests a second tier on a file, with an engine and without.

mod memory_tier;
mod tiers;

use namehop_packet::{DropReason, FaceId, FaceScope, LinkType};
use proptest::prelude::*;

use crate::router::*;
use memory_tier::TIMEOUT_MS;
use tiers::{IN_MEMORY, Tiers};

#[test]
fn which_interests_the_second_tier_answers() {
    let stored = || data("/A/B").freshness(1_000).content(b"stored");
    let full = stored().full_name();
    // rule; Interest; milliseconds after arrival; whether it is answered
    let rows = [
        ("same name", interest("/A/B").nonce(5), 0, true),
        ("same name with CanBePrefix", interest("/A/B").prefix().nonce(5), 0, true),
        ("a prefix", interest("/A").prefix().nonce(5), 0, false),
        ("another name", interest("/A/C").nonce(5), 0, false),
        ("the full name", interest_named(full).nonce(5), 0, false),
        ("under a hint", interest("/A/B").hint("/hint").nonce(5), 0, false),
        ("fresh", interest("/A/B").fresh().nonce(5), 900, true),
        ("stale", interest("/A/B").fresh().nonce(5), 1_100, false),
        ("stale without MustBeFresh", interest("/A/B").nonce(5), 100_000, true),
    ];
    for (rule, asked, after_ms, is_answered) in rows {
        let mut tiers = Tiers::new();
        tiers.fetch(stored());
        tiers.fill_memory();
        tiers.router.wait(after_ms);
        tiers.router.sent();
        let (hits, misses) = (tiers.router.engine.counters().cs_hits, tiers.router.engine.counters().cs_misses);
        let lines = tiers.ask(CONSUMER2, asked);
        let counters = tiers.router.engine.counters();
        assert_eq!(counters.cs_hits - hits, u64::from(is_answered), "{rule}");
        assert_eq!(counters.cs_misses - misses, u64::from(!is_answered), "{rule}");
        if is_answered {
            assert_eq!(lines, ["D257 /A/B"], "{rule}");
            assert_eq!(tiers.router.pit_len(), 0, "{rule}");
            assert_eq!(tiers.report().counters.found, 1, "{rule}");
        } else {
            assert!(lines.len() == 1 && lines[0].starts_with("I300 "), "{rule}: {lines:?}");
        }
        assert_eq!(counters.in_interests, 2 + IN_MEMORY as u64, "{rule}: each Interest must count once");
    }
}

#[test]
fn what_was_read_is_in_memory_again() {
    let mut tiers = Tiers::new();
    tiers.fetch(data("/A"));
    tiers.fill_memory();
    assert_eq!(tiers.ask(CONSUMER2, interest("/A").nonce(1)), ["D257 /A"]);
    let reads = tiers.report().status.counters.reads;
    tiers.router.recv(CONSUMER2, interest("/A").nonce(2)).expect(&["D257 /A"]);
    assert_eq!(tiers.report().status.counters.reads, reads);
    // It is still in the second tier, so it is not written again.
    let stored = tiers.report().counters.stored;
    tiers.fill_memory();
    assert_eq!(tiers.ask(CONSUMER2, interest("/A").nonce(3)), ["D257 /A"]);
    assert_eq!(tiers.report().counters.stored - stored, 2, "only the evicted packets must be written");
}

#[test]
fn what_memory_refuses_goes_to_the_second_tier() {
    // Nothing is requested often enough to be admitted to memory.
    let mut tiers = Tiers::with_policy("filter:threshold=1000");
    tiers.fetch(data("/A"));
    tiers.fill_memory();
    assert_eq!(tiers.router.cs_len(), 0);
    let stored = tiers.report().counters.stored;
    assert_eq!(stored, 1 + IN_MEMORY as u64);
    assert_eq!(tiers.ask(CONSUMER2, interest("/A").nonce(1)), ["D257 /A"]);
    assert_eq!(tiers.ask(CONSUMER2, interest("/A").nonce(2)), ["D257 /A"]);
    assert_eq!(tiers.router.cs_len(), 0);
    assert_eq!(tiers.report().counters.stored, stored, "the packet must not be written again");
    // Newer Data replaces it.
    let newer = || data("/A").content(b"newer");
    tiers.router.recv(CONSUMER, interest("/A").fresh().nonce(3));
    tiers.settle();
    tiers.router.recv(PRODUCER, newer()).sent();
    tiers.router.recv(CONSUMER2, interest("/A").nonce(4));
    tiers.settle();
    assert_eq!(tiers.router.only().bytes, newer().packet().bytes);
}

#[test]
fn all_who_wait_get_the_data_with_their_own_tokens() {
    let mut tiers = Tiers::with_latency(10);
    tiers.fetch(data("/A").freshness(60_000));
    tiers.fill_memory();
    let reads = tiers.report().status.counters.reads;
    tiers.router.recv(CONSUMER, interest("/A").nonce(1).packet().token(&[1, 2]));
    tiers.router.recv(CONSUMER2, interest("/A").nonce(1).packet().token(&[3]));
    tiers.router.recv(APP, interest("/A").fresh().nonce(2).packet().token(&[4]));
    assert_eq!(tiers.report().waiting, 3);
    tiers.settle();
    tiers.router.expect(&["D256 /A t:0102", "D257 /A t:03", "D260 /A t:04"]);
    assert_eq!(tiers.report().status.counters.reads - reads, 1, "one read must serve all Interests");
}

#[test]
fn whoever_waits_too_long_goes_on() {
    let mut tiers = Tiers::with_latency(1_000);
    tiers.fetch(data("/A"));
    tiers.fill_memory();
    tiers.router.recv(CONSUMER, interest("/A").nonce(1));
    tiers.router.wait(TIMEOUT_MS - 1).expect(&[]);
    tiers.router.wait(1).expect(&["I300 /A n1"]);
    assert_eq!((tiers.report().counters.timed_out, tiers.report().waiting), (1, 0));
    // The read ends later, and no Interest waits for it.
    tiers.router.wait(1_000).expect(&[]);
    assert_eq!(tiers.report().counters.found, 0);
}

#[test]
fn a_face_leaves_room_for_others() {
    let mut tiers = Tiers::new();
    let count = 400;
    for number in 0..count {
        tiers.fetch(data(&format!("/A/{number}")));
    }
    tiers.fill_memory();
    // In one burst, during which no completion is polled.
    tiers.router.recv_together((0..count).map(|number| (CONSUMER, interest(&format!("/A/{number}")).nonce(number))));
    let busy = tiers.report().counters.busy;
    assert_eq!(busy, u64::from(count) - 128, "one face must get half of the reads");
    tiers.settle();
    assert_eq!(tiers.report().counters.found, 128);
    let answered = tiers.router.lines();
    assert_eq!(answered.iter().filter(|line| line.starts_with("D256")).count(), 128);
    // All places are free again, and a face with few waiting Interests has room beside one with many. The names are the
    // first 128, which were never requested from the producer.
    let burst = [(CONSUMER, 128, 1_000), (CONSUMER2, 16, 2_000), (CONSUMER, 10, 3_000)];
    let interests = |(face, count, nonce): (u32, u32, u32)| {
        (0..count).map(move |number| (face, interest(&format!("/A/{number}")).nonce(nonce + number)))
    };
    tiers.router.recv_together(burst.into_iter().flat_map(interests));
    assert_eq!(tiers.report().counters.busy, busy + 10);
}

#[test]
fn newer_data_and_erasures_count_in_the_second_tier_too() {
    let mut tiers = Tiers::new();
    let newer = || data("/A").content(b"newer");
    for packet in [data("/A").content(b"older").freshness(1), newer()] {
        tiers.router.wait(10);
        let nonce = tiers.router.now.0 as u32;
        tiers.router.recv(CONSUMER, interest("/A").fresh().nonce(nonce));
        tiers.settle();
        tiers.router.recv(PRODUCER, packet).sent();
        tiers.fill_memory();
    }
    tiers.router.recv(CONSUMER2, interest("/A").nonce(1));
    tiers.settle();
    assert_eq!(tiers.router.only().bytes, newer().packet().bytes);
    tiers.fill_memory();
    assert_eq!(tiers.router.erase("/A", 10), 0, "the packet must not be in memory");
    assert_eq!(tiers.ask(CONSUMER2, interest("/A").nonce(2)), ["I300 /A n2"]);
}

#[test]
fn what_may_not_be_cached_or_leave_this_host_is_not_written() {
    let mut tiers = Tiers::new();
    tiers.router.recv(CONSUMER, interest("/A").nonce(1)).recv(PRODUCER, data("/A").packet().no_cache()).sent();
    tiers.router.recv(APP, interest("/localhost/A").nonce(1)).recv(APP2, data("/localhost/A")).sent();
    tiers.fetch(data("/B"));
    tiers.fill_memory();
    tiers.fill_memory();
    assert_eq!(tiers.ask(CONSUMER2, interest("/B").nonce(2)), ["D257 /B"]);
    assert_eq!(tiers.ask(CONSUMER2, interest("/A").nonce(2)), ["I300 /A n2"]);
    tiers.router.recv(APP, interest("/localhost/A").nonce(2));
    tiers.settle();
    assert!(!tiers.router.lines().iter().any(|line| line.starts_with("D260")));
}

#[test]
fn an_interest_that_only_seems_to_be_in_the_second_tier_comes_out_of_its_burst_later() {
    // An index keeps a part of each hash, so one name in a few millions matches an entry of another name. Its Interest
    // is then missing from what its burst sends at once, and is counted as waiting.
    let mut tiers = Tiers::with_record("/A/7", data("/other"));
    tiers.router.recv_together((0..32).map(|number| (CONSUMER, interest(&format!("/A/{number}")).nonce(number))));
    assert_eq!(tiers.router.lines().len(), 31);
    assert_eq!(tiers.report().waiting, 1);
    assert_eq!(tiers.router.engine.counters().cs_misses, 31);
    tiers.settle();
    tiers.router.expect(&["I300 /A/7 n7"]);
    assert_eq!(tiers.router.engine.counters().cs_misses, 32);
    assert_eq!((tiers.report().counters.not_found, tiers.router.all_drops()), (1, 0));
    // From now on it does not match.
    tiers.router.recv(CONSUMER2, interest("/A/7").nonce(100));
    assert_eq!(tiers.report().waiting, 0);
}

#[test]
fn an_interest_whose_face_goes_while_it_waits_is_counted() {
    let mut tiers = Tiers::new();
    tiers.fetch(data("/A"));
    tiers.fill_memory();
    tiers.router.recv(CONSUMER2, interest("/A").nonce(1));
    assert_eq!(tiers.report().waiting, 1);
    tiers.router.engine.remove_face(FaceId(CONSUMER2));
    tiers.settle();
    assert_eq!(tiers.router.drops(DropReason::UnknownFace), 1);
    tiers.router.expect(&[]);
}

#[test]
fn unsolicited_peers_share_half_of_the_places() {
    let mut tiers = Tiers::new();
    tiers.fetch(data("/A"));
    tiers.fill_memory();
    let unsolicited = 1_000..1_100;
    for id in unsolicited.clone() {
        tiers.router.face(id, FaceScope::NonLocal, LinkType::PointToPoint);
        tiers.router.engine.set_unsolicited(FaceId(id), true);
    }
    // All request the same name, so reads are not the limit.
    let some = |id: u32, count: u32| (0..count).map(move |number| (id, interest("/A").nonce(id * 1_000 + number)));
    // 32 unsolicited peers with 16 each have all places for such peers; the others still have theirs.
    let unsolicited = unsolicited.take(32).flat_map(|id| some(id, 16));
    let others = some(CONSUMER, 128).chain(some(CONSUMER2, 16));
    // In one burst, during which no completion is polled.
    tiers.router.recv_together(unsolicited.chain(others).chain(some(1_050, 1)));
    assert_eq!(tiers.report().waiting, 512 + 128 + 16);
    assert_eq!(tiers.report().counters.busy, 1, "a further unsolicited peer must not use the second tier");
    tiers.settle();
}

#[test]
fn an_erasure_with_a_limit_is_one_in_the_second_tier_too() {
    let mut tiers = Tiers::new();
    for number in 0..5 {
        tiers.fetch(data(&format!("/A/{number}")));
    }
    tiers.fill_memory();
    // It comes into memory, and stays in the second tier.
    assert_eq!(tiers.ask(CONSUMER, interest("/A/0").nonce(1)), ["D256 /A/0"]);
    assert_eq!(tiers.router.erase("/A", 1), 1);
    assert_eq!(tiers.ask(CONSUMER, interest("/A/0").nonce(2)), ["I300 /A/0 n2"]);
}

#[derive(Debug, Clone)]
enum Step {
    Ask {
        name: u8,
        face: u32,
        nonce: u32,
        is_fresh: bool,
        is_prefix: bool,
    },
    Answer(u8),
    Pass(u64),
    /// A poll iteration without packets.
    Rest,
    Erase,
}

fn step() -> impl Strategy<Value = Step> {
    let ask =
        (0..12_u8, proptest::sample::select(vec![CONSUMER, CONSUMER2, APP]), 0..50_u32, any::<bool>(), any::<bool>());
    prop_oneof![
        8 => ask.prop_map(|(name, face, nonce, is_fresh, is_prefix)| {
            Step::Ask { name, face, nonce, is_fresh, is_prefix }
        }),
        6 => (0..12_u8).prop_map(Step::Answer),
        2 => (0..200_u64).prop_map(Step::Pass),
        2 => Just(Step::Rest),
        1 => Just(Step::Erase),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_interest_goes_uncounted(steps in prop::collection::vec(step(), 1..200), latency_ms in 0..2 * TIMEOUT_MS) {
        let mut tiers = Tiers::with_latency(latency_ms);
        for step in steps {
            match step {
                Step::Ask { name, face, nonce, is_fresh, is_prefix } => {
                    let mut asked = interest(&format!("/n/{name}")).nonce(nonce);
                    if is_fresh { asked = asked.fresh(); }
                    if is_prefix { asked = asked.prefix(); }
                    tiers.router.recv(face, asked);
                }
                Step::Answer(name) => {
                    tiers.router.recv(PRODUCER, data(&format!("/n/{name}")).freshness(100));
                }
                Step::Pass(ms) => {
                    tiers.router.wait(ms);
                }
                Step::Rest => tiers.router.wait_one_step(),
                Step::Erase => {
                    tiers.router.erase("/n/1", 100);
                }
            }
            let waiting = tiers.report().waiting;
            let counters = tiers.router.engine.counters();
            // Only looping Interests are dropped before any lookup.
            let loops = counters.drops[DropReason::DuplicateNonce] + counters.drops[DropReason::DeadNonce];
            let known = counters.cs_hits + counters.cs_misses + counters.aggregated_interests + loops + waiting;
            prop_assert_eq!(counters.in_interests, known);
        }
        tiers.settle();
    }
}
