//! Tests of what counts as a request for policies that count requests: all Interests for the Data, under any name.

use namehop_engine::{CsConfig, EngineConfig};

use crate::packets::InterestMaker;
use crate::router::*;

const CAPACITY: usize = 600;
const WANTED: &str = "/B/C/1";

/// Returns a router with a small cache of this policy.
fn router_with(policy: &str) -> Router {
    let policy = policy.parse().expect("a policy");
    let cs = CsConfig { capacity_packets: CAPACITY, policy, ..CsConfig::default() };
    Router::with_default_route_and(EngineConfig { cs, ..EngineConfig::default() })
}

/// Returns the number of Interests that miss before the first hit; the cache is full of Data requested once.
fn misses_before_a_hit(policy: &str, ask: impl Fn() -> InterestMaker) -> u32 {
    let mut router = router_with(policy);
    for number in 0..2 * CAPACITY as u32 {
        let uri = format!("/A/{number}");
        router.recv(CONSUMER, interest(&uri).nonce(number)).recv(PRODUCER, data(&uri)).sent();
    }
    for misses in 0..100 {
        router.recv(CONSUMER, ask().nonce(1_000_000 + misses)).recv(PRODUCER, data(WANTED)).sent();
        if router.engine.counters().cs_hits > 0 {
            router.engine.check_invariants().expect("invariants");
            return misses;
        }
    }
    panic!("the Data is never admitted");
}

#[test]
fn data_is_worth_as_much_by_whatever_name_it_is_asked_for() {
    for policy in
        ["filter", "filter:threshold=4", "tinylfu", "tinylfu-random", "tinylfu-clock", "w-tinylfu", "w-tinylfu-clock"]
    {
        let by_name = misses_before_a_hit(policy, || interest(WANTED));
        let ways: [(&str, &dyn Fn() -> InterestMaker); 3] = [
            ("a prefix", &|| interest("/B").prefix()),
            ("its name, with CanBePrefix", &|| interest(WANTED).prefix()),
            ("its digest", &|| interest_named(data(WANTED).full_name())),
        ];
        for (way, ask) in ways {
            assert_eq!(misses_before_a_hit(policy, ask), by_name, "{policy}, by {way}");
        }
    }
}

/// Requests are counted also while the cache answers; otherwise the most requested Data would be worth least.
#[test]
fn hits_by_a_prefix_keep_data_worth_its_place() {
    let mut router = router_with("tinylfu");
    let mut nonce = 0;
    let mut fetch = |router: &mut Router, interest: InterestMaker, uri: &str| {
        nonce += 1;
        let hits = router.engine.counters().cs_hits;
        router.recv(CONSUMER, interest.nonce(nonce)).recv(PRODUCER, data(uri)).sent();
        router.engine.counters().cs_hits > hits
    };
    for _ in 0..8 {
        fetch(&mut router, interest("/B").prefix(), WANTED);
    }
    // Twice as many packets as fit, each requested three times: more than the misses of the wanted Data alone.
    for number in 0..2 * CAPACITY {
        let uri = format!("/A/{number}");
        for _ in 0..3 {
            fetch(&mut router, interest(&uri), &uri);
        }
    }
    assert!(fetch(&mut router, interest("/B").prefix(), WANTED));
}
