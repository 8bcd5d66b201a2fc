//! PIT tokens (NDNLPv2 "PIT token"): returned to downstreams, used and not trusted from upstreams.

use namehop_packet::DropReason;
use namehop_wire::lp::NackReason;

use crate::router::*;

#[test]
fn data_returns_each_downstreams_own_token() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").nonce(1).packet().token(&[0xAA]));
    router.recv(CONSUMER2, interest("/A").nonce(2).packet().token(&[0xBB; 32]));
    router.recv(APP, interest("/A").nonce(3)).sent();
    let long = format!("D257 /A t:{}", "bb".repeat(32));
    router.recv(PRODUCER, data("/A")).expect(&["D256 /A t:aa", &long, "D260 /A"]);
}

#[test]
fn data_for_several_pit_entries_returns_tokens_too() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").prefix().nonce(1).packet().token(&[1]));
    router.recv(CONSUMER, interest("/A/B").nonce(2).packet().token(&[2]));
    router.recv(CONSUMER, interest("/A/B").fresh().nonce(3).packet().token(&[2])).sent();
    router.recv(PRODUCER, data("/A/B")).expect(&["D256 /A/B t:01", "D256 /A/B t:02"]);
}

#[test]
fn a_retransmission_replaces_the_token() {
    for (first, second) in
        [(vec![1], vec![2; 9]), (vec![1; 20], vec![2]), (vec![1; 20], vec![2; 32]), (vec![1; 9], vec![])]
    {
        let mut router = Router::with_default_route();
        router.recv(CONSUMER, interest("/A").nonce(1).packet().token(&first));
        router.recv(CONSUMER, interest("/A").nonce(2).packet().token(&second)).sent();
        router.recv(PRODUCER, data("/A"));
        assert_eq!(router.only().token(), second);
    }
}

#[test]
fn cached_data_returns_the_token() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A")).recv(PRODUCER, data("/A")).sent();
    router.recv(CONSUMER, interest("/A").nonce(2).packet().token(&[7, 7])).expect(&["D256 /A t:0707"]);
}

#[test]
fn nacks_return_the_token() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").packet().token(&[5])).sent();
    router.recv(PRODUCER, interest("/A").packet().nack(NackReason::NO_ROUTE)).expect(&["N256 /A NoRoute n1 t:05"]);
    let mut router = Router::new();
    router.recv(CONSUMER, interest("/A").packet().token(&[6])).expect(&["N256 /A NoRoute n1 t:06"]);
}

#[test]
fn data_is_found_with_and_without_the_routers_own_token() {
    // rule; the peer's change of the token
    type Change = fn(Vec<u8>) -> Vec<u8>;
    let rows: [(&str, Change); 7] = [
        ("returned unmodified", |token| token),
        ("not returned", |_| Vec::new()),
        ("another worker's", |mut token| {
            token[0] ^= 1;
            token
        }),
        ("another entry", |mut token| {
            token[4] ^= 1;
            token
        }),
        ("an invalid entry", |mut token| {
            token[1] = 0xFF;
            token
        }),
        ("another generation", |mut token| {
            token[7] ^= 1;
            token
        }),
        ("too long", |mut token| {
            token.push(0);
            token
        }),
    ];
    for (rule, change) in rows {
        let mut router = Router::with_default_route();
        router.recv(CONSUMER2, interest("/other")).sent();
        router.recv(CONSUMER, interest("/A"));
        let token = router.only().token();
        assert_eq!(token.len(), 8);
        router.recv(PRODUCER, data("/A").packet().token(&change(token)));
        assert_eq!(router.lines(), ["D256 /A"], "{rule}");
    }
}

#[test]
fn a_forged_token_does_not_make_data_match() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A"));
    let token = router.only().token();
    router.recv(PRODUCER, data("/B").packet().token(&token)).expect(&[]);
    assert_eq!(router.drops(DropReason::UnsolicitedData), 1);
    assert_eq!(router.pit_len(), 1);
}

#[test]
fn the_token_of_a_pit_entry_that_has_ended_leads_nowhere() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").lifetime(10));
    let old = router.only().token();
    router.wait(20).recv(CONSUMER, interest("/B"));
    let new = router.only().token();
    assert_ne!(old, new);
    assert_eq!(old[..5], new[..5], "the entry must be reused");
    router.recv(PRODUCER, data("/B").packet().token(&old)).expect(&["D256 /B"]);
}

#[test]
fn data_with_a_token_satisfies_other_interests_as_well() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A/B"));
    let token = router.only().token();
    router.recv(CONSUMER2, interest("/A").prefix().nonce(2));
    router.recv(APP, interest("/A/B").hint("/x").nonce(3)).sent();
    router.recv(PRODUCER, data("/A/B").packet().token(&token)).expect(&["D256 /A/B", "D257 /A/B", "D260 /A/B"]);
}

#[test]
fn data_is_cached_under_the_hint_of_the_interest_that_its_token_names() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").hint("/x"));
    let token = router.only().token();
    router.recv(CONSUMER2, interest("/A").nonce(2)).sent();
    router.recv(PRODUCER, data("/A").packet().token(&token)).expect(&["D256 /A", "D257 /A"]);
    router.recv(APP, interest("/A").nonce(3)).expect(&["I300 /A n3"]);
    router.recv(APP2, interest("/A").hint("/x").nonce(4)).expect(&["D261 /A"]);
}
