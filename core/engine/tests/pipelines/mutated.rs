//! Damaged packets: the engine stays consistent, regardless of what they decode to.

use namehop_engine::EngineConfig;
use namehop_wire::lp::NackReason;

use crate::router::*;

/// A sequence of numbers that is the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn damaged_packets_do_no_harm() {
    let mut router = Router::with(EngineConfig { pit_capacity: 200, ..EngineConfig::default() });
    router.route("/", PRODUCER, 1);
    router.route("/A", MULTI, 1);
    router.strategy("/A", "multicast");
    let originals = [
        interest("/A/B/C").prefix().fresh().hint("/x/y").hint("/z").lifetime(300).hop_limit(9).packet(),
        interest("/A/B").parameters(b"parameters").packet(),
        interest_named(data("/A/B/C").full_name()).packet(),
        data("/A/B/C").freshness(1_000).content(b"content").packet(),
        data("/A").packet(),
        interest("/A").packet().nack(NackReason::NO_ROUTE),
    ];
    let faces = [CONSUMER, CONSUMER2, APP, MULTI, ADHOC, PRODUCER];
    let mut numbers = Numbers(11);
    for round in 0..100_000u32 {
        let mut packet = originals[numbers.below(originals.len())].clone();
        for _ in 0..numbers.below(4) {
            let at = numbers.below(packet.bytes.len());
            packet.bytes[at] = numbers.below(256) as u8;
        }
        if numbers.below(20) == 0 {
            packet.bytes.truncate(numbers.below(packet.bytes.len()));
        }
        packet = packet.token(&vec![numbers.below(256) as u8; numbers.below(12)]);
        router.recv(faces[numbers.below(faces.len())], packet);
        if round.is_multiple_of(16) {
            router.wait(numbers.below(50) as u64);
            // Sent packets are valid: `line` decodes them.
            for sent in router.sent_unchecked() {
                sent.line();
            }
        }
        if round.is_multiple_of(4_096) {
            router.engine.check_invariants().unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
    }
    let counters = router.engine.counters();
    assert!(counters.out_interests > 1_000 && counters.cs_hits > 100, "many packets must still be valid");
    router.wait(200_000).sent();
    assert!(router.engine.is_idle());
    assert_eq!(router.pool.in_use(), 0);
}
