//! Tests that a second Interest for new Data finds it in the Content Store while a window holds new Data: after a loss
//! between the router and the consumer, and when many ask for the same new Data.

use namehop_engine::{CsConfig, EngineConfig};
use namehop_store::PolicyChoice;

use crate::packets::InterestMaker;
use crate::router::*;

const CAPACITY: usize = 300;
/// Packets in the window: 10 % of the capacity.
const WINDOW: u32 = 30;

fn windowed() -> PolicyChoice {
    "w-tinylfu-clock:window=0.1".parse().expect("a policy")
}

/// A router with a full cache of Data that was requested several times.
struct Full {
    router: Router,
    nonce: u32,
}

impl Full {
    fn new(policy: PolicyChoice) -> Self {
        let cs = CsConfig { capacity_packets: CAPACITY, policy, ..CsConfig::default() };
        let mut full =
            Full { router: Router::with_default_route_and(EngineConfig { cs, ..EngineConfig::default() }), nonce: 0 };
        for _ in 0..3 {
            for number in 0..CAPACITY {
                full.is_fetched(&format!("/popular/{number}"));
            }
        }
        full
    }

    /// Sends an Interest, and the Data if the Interest is forwarded. Returns whether it is.
    fn is_fetched(&mut self, uri: &str) -> bool {
        self.nonce += 1;
        let interest: InterestMaker = interest(uri).nonce(self.nonce);
        let hits = self.router.engine.counters().cs_hits;
        self.router.recv(CONSUMER, interest);
        let is_hit = self.router.engine.counters().cs_hits > hits;
        if !is_hit {
            self.router.recv(PRODUCER, data(uri));
        }
        self.router.sent();
        !is_hit
    }

    /// Requests 200 new names, and each again after `behind` others. Returns how many of these came to the producer.
    fn repeated_fetches(&mut self, behind: u32) -> usize {
        let mut fetched = 0;
        for number in 0..200 + behind {
            if number < 200 {
                assert!(self.is_fetched(&format!("/new/{number}")), "a new name");
            }
            if let Some(before) = number.checked_sub(behind) {
                fetched += usize::from(self.is_fetched(&format!("/new/{before}")));
            }
        }
        self.router.engine.check_invariants().expect("invariants");
        fetched
    }
}

#[test]
fn data_that_is_lost_downstream_is_fetched_once_while_the_window_holds_it() {
    for behind in [0, 1, WINDOW - 1] {
        let mut full = Full::new(windowed());
        assert_eq!(full.repeated_fetches(behind), 0, "after {behind} new names");
    }
    // Without a window, nearly all of them go to the producer.
    let mut full = Full::new("tinylfu-clock".parse().expect("a policy"));
    assert!(full.repeated_fetches(1) > 190);
}

#[test]
fn new_data_leaves_the_window_and_popular_data_stays() {
    let mut full = Full::new(windowed());
    for number in 0..20 * WINDOW {
        full.is_fetched(&format!("/new/{number}"));
    }
    let fetched = (0..CAPACITY).filter(|number| full.is_fetched(&format!("/popular/{number}"))).count();
    assert!(fetched <= WINDOW as usize + 5, "{fetched} of {CAPACITY} were no longer cached");
    assert!(full.is_fetched("/new/0"));
}

#[test]
fn a_flash_crowd_fetches_its_data_once() {
    let mut full = Full::new(windowed());
    let mut fetched = 0;
    for number in 0..400 {
        full.is_fetched(&format!("/new/{number}"));
        if number % 5 == 0 {
            fetched += usize::from(full.is_fetched("/news/of/the/day"));
        }
    }
    assert_eq!(fetched, 1);
}
