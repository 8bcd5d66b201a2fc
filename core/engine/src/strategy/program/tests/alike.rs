//! Tests that the built-in strategies that also exist as programs behave the same in both forms, for all events.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{chosen, registry_with};
use crate::fib::NextHop;
use crate::strategy::tests::{A, B, C, D, E, Mock, strategy};
use crate::strategy::{StrategyInstance, Trigger};
use namehop_ebpf::testing::{compile_c, sdk};
use namehop_packet::FaceId;
use namehop_wire::lp::NackReason;

/// Programs, with the parameters that both forms get.
const BOTH_FORMS: [(&str, &str); 9] = [
    ("best-route", "v=5/retx-suppression-initial~5"),
    ("multicast", "v=5/retx-suppression-max~40"),
    ("random", "v=1"),
    ("roundrobin", "v=1"),
    ("sequential", "v=1"),
    ("fastroute", "v=1/probe-every~3"),
    ("weighted", "v=1/weights~3-1-7"),
    ("delay", "v=1/delay~20"),
    ("reject", "v=1"),
];

#[derive(Debug, Clone)]
enum Happening {
    Interest(FaceId),
    Data(FaceId),
    Nack(FaceId, u64),
    Timer,
    Dropped(FaceId),
    NewNextHop(FaceId),
    Expiry,
    PassMs(u64),
    NewEntry,
    Forbid(FaceId),
    Allow,
    Draw(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let face = || select(vec![A, B, C, D, E]);
    prop_oneof![
        6 => face().prop_map(Happening::Interest),
        2 => face().prop_map(Happening::Data),
        1 => (face(), select(vec![50, 100, 150])).prop_map(|(face, reason)| Happening::Nack(face, reason)),
        2 => Just(Happening::Timer),
        1 => face().prop_map(Happening::Dropped),
        1 => face().prop_map(Happening::NewNextHop),
        1 => Just(Happening::Expiry),
        4 => (0_u64..40).prop_map(Happening::PassMs),
        3 => Just(Happening::NewEntry),
        1 => face().prop_map(Happening::Forbid),
        1 => Just(Happening::Allow),
        2 => any::<u64>().prop_map(Happening::Draw),
    ]
}

/// Applies an event. Returns the actions of the strategy, and the resulting PIT entry.
fn happen(mock: &mut Mock, strategy: &StrategyInstance, happening: &Happening) -> String {
    let actions = match *happening {
        Happening::Interest(face) => mock.interest(strategy, face),
        Happening::Data(face) => mock.data(strategy, face),
        Happening::Nack(face, reason) => mock.nack(strategy, face, NackReason(reason)),
        Happening::Timer => mock.event(strategy, Trigger::Timer),
        Happening::Dropped(face) => mock.event(strategy, Trigger::OnDroppedInterest(face)),
        Happening::NewNextHop(face) => {
            let nexthop = NextHop { face, cost: 9 };
            if mock.nexthops.iter().all(|known| known.face != face) {
                mock.nexthops.push(nexthop);
            }
            mock.event(strategy, Trigger::AfterNewNextHop(nexthop))
        }
        Happening::Expiry => mock.event(strategy, Trigger::BeforeExpirePendingInterest),
        Happening::PassMs(milliseconds) => {
            mock.pass_ms(milliseconds);
            Vec::new()
        }
        Happening::NewEntry => {
            mock.new_entry();
            Vec::new()
        }
        Happening::Forbid(face) => {
            mock.forbidden.push(face);
            Vec::new()
        }
        Happening::Allow => {
            mock.forbidden.clear();
            Vec::new()
        }
        Happening::Draw(drawn) => {
            mock.random = drawn;
            Vec::new()
        }
    };
    format!("{actions:?} {:?} {:?} {}", mock.in_records, mock.out_records, mock.pit_scratch.suppression_us)
}

#[test]
fn both_forms_do_the_same() {
    for ((name, parameters), version) in BOTH_FORMS.into_iter().flat_map(|form| [(form, "v2"), (form, "v3")]) {
        let object = compile_c(&sdk().join(format!("strategies/{name}.c")), &[format!("-mcpu={version}")]);
        let registry = registry_with(&object);
        let program = chosen(&registry, &format!("{name}-ebpf/{parameters}"));
        let built_in = strategy(&format!("{name}/{parameters}"));
        assert_eq!(program.wants_data(), built_in.wants_data(), "{name}");
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(256));
        let nexthops = proptest::sample::subsequence(vec![(A, 1), (B, 2), (C, 3), (D, 4)], 0..=4);
        runner
            .run(&(nexthops, vec(happening(), 1..60)), |(nexthops, happenings)| {
                let mut mocks = [Mock::new(&nexthops), Mock::new(&nexthops)];
                for (step, happening) in happenings.iter().enumerate() {
                    let [first, second] = &mut mocks;
                    let expected = happen(first, &built_in, happening);
                    let found = happen(second, &program, happening);
                    prop_assert_eq!(found, expected, "{} {}, step {} {:?}", name, version, step, happening);
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{error}"));
    }
}
