//! The end of PIT entries.

use namehop_engine::EngineConfig;
use namehop_packet::Timestamp;

use crate::router::*;

/// Timers fire within two milliseconds of their deadline.
const TICK_MS: u64 = 2;

#[test]
fn how_long_an_interest_is_pending() {
    // rule; lifetime; milliseconds after which it is still pending; milliseconds after which it has ended
    let rows = [
        ("4 s without InterestLifetime", None, 3_999, 4_000),
        ("InterestLifetime of 100 ms", Some(100), 99, 100),
        ("InterestLifetime of 50 s", Some(50_000), 49_999, 50_000),
        ("at most the configured limit", Some(10_000_000), 119_999, 120_000),
        ("2^63 ms", Some(1 << 63), 119_999, 120_000),
        ("2^64 - 1 ms", Some(u64::MAX), 119_999, 120_000),
    ];
    for (rule, lifetime_ms, pending, gone) in rows {
        let config = EngineConfig { max_lifetime_ms: 120_000, ..EngineConfig::default() };
        let mut router = Router::with_default_route_and(config);
        let asked = lifetime_ms.map_or(interest("/A"), |milliseconds| interest("/A").lifetime(milliseconds));
        router.recv(CONSUMER, asked.clone());
        assert_eq!(router.only().bytes, asked.packet().bytes, "{rule}");
        router.wait(pending);
        assert_eq!(router.pit_len(), 1, "{rule}");
        router.wait(gone - pending + TICK_MS);
        assert_eq!(router.pit_len(), 0, "{rule}");
        router.expect(&[]);
        assert_eq!(router.engine.counters().unsatisfied_interests, 1, "{rule}");
        assert!(router.engine.is_idle());
    }
}

#[test]
fn lifetime_0_is_forwarded_and_ends_at_once() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").lifetime(0)).expect(&["I300 /A n1"]);
    assert_eq!(router.pit_len(), 0);
    assert_eq!(router.engine.counters().unsatisfied_interests, 1);
    router.recv(PRODUCER, data("/A")).expect(&[]);
}

#[test]
fn the_last_downstream_decides() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").nonce(1).lifetime(1_000));
    router.recv(CONSUMER2, interest("/A").nonce(2).lifetime(3_000));
    router.recv(APP, interest("/A").nonce(3).lifetime(10)).sent();
    router.wait(2_999);
    assert_eq!(router.pit_len(), 1);
    router.wait(1 + TICK_MS);
    assert_eq!(router.pit_len(), 0);
}

#[test]
fn a_retransmission_renews_or_shortens() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").nonce(1).lifetime(1_000)).wait(900);
    router.recv(CONSUMER, interest("/A").nonce(2).lifetime(1_000)).wait(900).sent();
    assert_eq!(router.pit_len(), 1);
    router.recv(CONSUMER, interest("/A").nonce(3).lifetime(10)).wait(10 + TICK_MS).sent();
    assert_eq!(router.pit_len(), 0);
}

#[test]
fn a_stale_timer_does_not_end_a_newer_pit_entry() {
    let mut router = Router::with_default_route();
    router.recv(CONSUMER, interest("/A").nonce(1).lifetime(100)).recv(PRODUCER, data("/A")).sent();
    router.wait(50).recv(CONSUMER, interest("/A").fresh().nonce(2).lifetime(100)).sent();
    router.wait(60);
    assert_eq!(router.pit_len(), 1, "only the first timer was due");
    router.recv(PRODUCER, data("/A")).expect(&["D256 /A"]);
}

#[test]
fn next_deadline_is_never_late() {
    let mut router = Router::with_default_route();
    assert_eq!(router.engine.next_deadline(), None);
    router.recv(CONSUMER, interest("/A").lifetime(500)).sent();
    let deadline = router.engine.next_deadline().expect("a timer is set");
    assert!(deadline > router.now && deadline <= router.now.plus_ms(500 + 10));
}

#[test]
fn time_may_start_anywhere() {
    for start in [0, u64::MAX / 2, 1 << 62] {
        let mut router = Router::with_default_route();
        router.now = Timestamp(start);
        router.recv(CONSUMER, interest("/A").lifetime(100)).sent();
        router.wait(99);
        assert_eq!(router.pit_len(), 1, "pending, start at {start}");
        router.wait(1 + TICK_MS);
        assert_eq!(router.pit_len(), 0, "expired, start at {start}");
    }
}

#[test]
fn the_cap_on_lifetimes_is_a_setting() {
    let mut router = Router::with(EngineConfig { max_lifetime_ms: 50, ..EngineConfig::default() });
    router.route("/", PRODUCER, 1);
    router.recv(CONSUMER, interest("/A")).sent();
    router.wait(50 + TICK_MS);
    assert_eq!(router.pit_len(), 0);
}

const DAY_MS: u64 = 24 * 3600 * 1_000;

fn patient() -> Router {
    let mut router = Router::with(EngineConfig { max_lifetime_ms: 10 * DAY_MS, ..EngineConfig::default() });
    router.route("/", PRODUCER, 1);
    router
}

#[test]
fn answered_interests_leave_no_timers_however_long_they_might_have_waited() {
    let mut router = patient();
    for number in 0..40_000u32 {
        let uri = format!("/A/{}", number % 500);
        router.recv(CONSUMER, interest(&uri).fresh().lifetime(10 * DAY_MS).nonce(number));
        router.recv(PRODUCER, data(&uri));
        if number % 10 == 9 {
            router.wait(1).sent();
        }
    }
    // The timers of the last 2.1 s.
    let timers = router.engine.table_sizes().timers;
    assert!(timers <= 21_600, "{timers} timers are kept");
    router.wait(2_200);
    assert_eq!((router.pit_len(), router.engine.table_sizes().timers), (0, 0));
    assert_eq!(router.engine.next_deadline(), None, "no timer may be left");
}

#[test]
fn an_interest_whose_end_is_moved_keeps_few_timers() {
    let mut router = patient();
    for number in 0..3_000u32 {
        // Each ends earlier than the previous one.
        let lifetime = 10 * DAY_MS - u64::from(number) * 100;
        router.recv(CONSUMER, interest("/A").lifetime(lifetime).nonce(number));
        router.wait(1).sent();
    }
    let timers = router.engine.table_sizes().timers;
    assert!(timers <= 2_160, "{timers} timers are kept");
    router.wait(5_000);
    assert_eq!((router.pit_len(), router.engine.table_sizes().timers), (1, 1));
    // The remaining timer is the right one.
    router.recv(CONSUMER, interest("/A").lifetime(30_000).nonce(10_000)).sent();
    router.wait(29_990);
    assert_eq!(router.pit_len(), 1);
    router.wait(10 + TICK_MS);
    assert_eq!(router.pit_len(), 0);
}
