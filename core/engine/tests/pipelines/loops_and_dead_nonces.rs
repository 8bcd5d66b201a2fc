//! Looping Interests: duplicate nonces in the PIT and the Dead Nonce List.

use namehop_packet::DropReason;

use crate::router::*;

#[test]
fn duplicate_nonces_of_pending_interests() {
    // rule; first from; then the same Interest from; sent for the second
    let rows: [(&str, u32, u32, &[&str]); 7] = [
        ("same point-to-point face: a retransmission, suppressed", CONSUMER, CONSUMER, &[]),
        ("another point-to-point face: a loop, answered", CONSUMER, CONSUMER2, &["N257 /A Duplicate n1"]),
        ("the upstream sends it back: a loop, answered", CONSUMER, PRODUCER, &["N300 /A Duplicate n1"]),
        ("same multi-access face: a loop, not answered", MULTI, MULTI, &[]),
        ("same ad hoc face: a loop, not answered", ADHOC, ADHOC, &[]),
        ("multi-access after point-to-point: not answered", CONSUMER, MULTI, &[]),
        ("point-to-point after multi-access: answered", MULTI, CONSUMER, &["N256 /A Duplicate n1"]),
    ];
    for (rule, first, second, expected) in rows {
        let mut router = Router::with_default_route();
        router.recv(first, interest("/A"));
        assert_eq!(router.lines(), ["I300 /A n1"], "{rule}");
        router.recv(second, interest("/A"));
        assert_eq!(router.lines(), expected, "{rule}");
        let is_loop = first != second || first != CONSUMER;
        assert_eq!(router.drops(DropReason::DuplicateNonce), u64::from(is_loop), "{rule}");
    }
}

#[test]
fn a_retransmission_with_the_same_nonce_is_forwarded_after_the_suppression_interval() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A")).expect(&["I300 /A n1"]);
    router.wait(20).recv(CONSUMER, interest("/A")).expect(&["I300 /A n1"]);
}

#[test]
fn the_loop_nack_returns_the_token_and_the_interest_as_received() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").hop_limit(9)).sent();
    router.recv(CONSUMER2, interest("/A").hop_limit(7).packet().token(&[1, 2]).mark(1));
    router.expect(&["N257 /A Duplicate n1 h7 t:0102 m1"]);
}

#[test]
fn nonces_of_unanswered_interests_are_remembered_for_six_seconds() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").lifetime(100)).expect(&["I300 /A n1"]);
    router.wait(102);
    assert_eq!(router.pit_len(), 0);
    router.recv(CONSUMER2, interest("/A")).expect(&["N257 /A Duplicate n1"]);
    router.recv(MULTI, interest("/A")).expect(&[]);
    assert_eq!(router.drops(DropReason::DeadNonce), 2);
    router.recv(CONSUMER2, interest("/B")).expect(&["I300 /B n1"]);
    router.recv(CONSUMER2, interest("/A").nonce(2).lifetime(10)).expect(&["I300 /A n2"]);
    router.wait(6_500).recv(CONSUMER2, interest("/A")).expect(&["I300 /A n1"]);
}

#[test]
fn which_satisfied_interests_are_remembered() {
    // rule; must be fresh; freshness of the Data; whether the nonce is dead afterwards
    let rows = [
        ("without MustBeFresh: the cache stops the loop", false, None, false),
        ("fresh for a shorter time than the nonce is remembered", true, Some(1_000), true),
        ("never fresh", true, None, true),
        ("fresh for longer: the cache stops the loop", true, Some(7_000), false),
    ];
    for (rule, must_be_fresh, freshness_ms, dead) in rows {
        let mut router = Router::with_default_route();
        let asked = || if must_be_fresh { interest("/A").fresh() } else { interest("/A") };
        let answer = freshness_ms.map_or(data("/A"), |milliseconds| data("/A").freshness(milliseconds));
        router.recv(CONSUMER, asked()).recv(PRODUCER, answer).sent();
        assert_eq!(router.pit_len(), 0, "{rule}");
        router.recv(CONSUMER2, asked());
        assert_eq!(router.drops(DropReason::DeadNonce), u64::from(dead), "{rule}");
        assert_eq!(router.lines().concat().contains("Duplicate"), dead, "{rule}");
    }
}

#[test]
fn a_nonce_is_added_where_there_is_none() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").no_nonce());
    let first = router.only();
    router.recv(CONSUMER, interest("/B").no_nonce().hop_limit(4));
    let second = router.only();
    assert!(first.line().starts_with("I300 /A n") && second.line().ends_with(" h3"));
    assert_ne!(first.line().split(' ').nth(2), second.line().split(' ').nth(2));
}
