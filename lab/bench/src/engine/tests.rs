//! Tests a small measurement: every schedule forwards all packets, and the figures are plausible.

use std::time::Duration;

use namehop_orders::FlowBlock;
use namehop_port::{Devices, Eal};
use namehop_simulate::run::{Plan, Source, run};
use namehop_store::PolicyKind;
use namehop_traffic::workload::{Workload, WorkloadKind, WorkloadShape};

use super::*;
use crate::counters::CounterFigures;
use crate::schedule::PacketKind;
use crate::workload::WorkloadParameters;

/// Memory for the packet buffers of all tests. Buffers last as long as the process, and the first test determines their
/// total size, so each test requests enough for all.
const BUFFERS_OF_ALL_TESTS_BYTES: usize = 256 << 20;

/// Creates a measurement of such loads.
pub(super) fn bench(parameters: &EngineParameters) -> EngineBench {
    Eal::start(BUFFERS_OF_ALL_TESTS_BYTES, Devices::None).unwrap_or_else(|error| panic!("{error}"));
    EngineBench::new(parameters, &|_| ()).expect("a small FIB")
}

fn small() -> EngineParameters {
    EngineParameters {
        workload: WorkloadParameters { prefixes: 1_000, ..EngineParameters::published().workload },
        in_flight: 256,
        cs_capacity: 512,
        time: Duration::from_millis(30),
        ..EngineParameters::published()
    }
}

/// A small version of the realistic load: packets wait before they are received, and some Interests are never answered.
fn small_and_realistic() -> EngineParameters {
    let realistic = EngineParameters::realistic();
    EngineParameters {
        schedules: ScheduleKind::ALL.to_vec(),
        workload: WorkloadParameters { prefixes: 1_000, ..realistic.workload },
        in_flight: 1_000,
        cs_capacity: 8_192,
        // The PIT has room for the unanswered Interests under all schedules.
        unanswered: 0.02,
        time: Duration::from_millis(30),
        warm_up: Duration::from_millis(20),
        private_cache_bytes: 1 << 16,
        ..realistic
    }
}

/// Sends requests for a few objects with each policy. All are answered, and the engine has the hits of a simulation of
/// the same requests.
fn the_cache_answers_as_simulated(bench: &EngineBench) {
    // An Interest for a pending name is not a hit, unlike in the simulation, so few are pending.
    let parameters = EngineParameters { cs_capacity: 200, in_flight: 4, payload_bytes: 64, ..small() };
    let shape = WorkloadShape { objects: 2_000, ..WorkloadShape::published(WorkloadKind::Web) };
    let policies = PolicyKind::ALL.to_vec();
    let (warm_up, longest_warm_up) = (20_000, 20_000);
    let of = PolicyParameters { policies, shape, warm_up, longest_warm_up, time: Duration::from_millis(50), runs: 2 };
    let runs = bench.run_policies(&parameters, &of, &|_| ()).expect("figures");
    assert_eq!(runs.len(), 2);
    let figures = &runs[1];
    let simulated = {
        let stores = of.policies.iter().map(|&policy| (policy.into(), parameters.cs_capacity)).collect();
        let plan = Plan { stores, requests: 200_000, warm_up: 20_000, threads: 1 };
        run(&mut Source::Workload(Workload::new(shape)), &plan, &|_| ()).expect("a simulation")
    };
    for (figures, simulated) in figures.iter().zip(simulated) {
        let simulated = simulated.counts;
        let is_near = |measured: f64, simulated: f64| (measured - simulated).abs() < 0.03;
        assert!(is_near(figures.hit_rate, simulated.hit_rate()), "{figures:?} instead of {simulated:?}");
        assert!(is_near(figures.insertion_rate, simulated.insertion_rate()), "{figures:?} instead of {simulated:?}");
        assert!(figures.request_ns > 50.0 && figures.gigabits_per_s > 0.0 && figures.requests > 1_000, "{figures:?}");
        assert!(figures.request_ns_quartiles.0 <= figures.request_ns && figures.speed > 0.0, "{figures:?}");
    }
    assert_eq!((figures[0].speed, figures[0].speed_quartiles), (1.0, (1.0, 1.0)));

    let cold = PolicyParameters { warm_up: 100, longest_warm_up: 100, ..of.clone() };
    let refused = bench
        .run_policies(&parameters, &cold, &|_| ())
        .expect_err("a cache that is not full must be refused")
        .to_string();
    assert!(
        refused.contains(&format!("'{}' holds", PolicyKind::ALL[0])) && refused.contains("of 200 packets"),
        "{refused}"
    );

    let of = PolicyParameters { policies: vec![PolicyKind::Arc, PolicyKind::Filter], ..of };
    let blocks = bench.run_blocks(&parameters, &of, &|_| ()).expect("blocks");
    assert!(blocks.len() == 2 && blocks.iter().all(|run| run.len() == 4));
    for figures in blocks.iter().flatten() {
        for block in FlowBlock::ALL {
            // Filter admits little Data, but some; ARC has no admission control, but its admission block runs.
            assert!(figures.of(block).is_some(), "{block:?} of {figures:?}");
        }
        assert!(figures.history_cycles >= figures.of(FlowBlock::HistoryUpdate), "{figures:?}");
    }
}

/// All loads share the packet buffers, which last as long as the process.
#[test]
#[ignore = "slow"]
fn every_schedule_forwards_what_it_is_given() {
    let mut bench = bench(&small_and_realistic());
    so_it_does_under_the_realistic_load(&bench);
    let parameters = EngineParameters { computing: true, ..small() };
    bench.refill(&parameters).expect("a small FIB");
    bench.few_prefixes = Some(Prefixes::new(bench.key, &with_small_tables(&parameters), &|_| ()).expect("a FIB"));
    // One more prefix is as long as names.
    assert_eq!(bench.fib_statistics().nexthop_entries, 1_001);
    let figures = bench.run(&parameters, &|_| ()).expect("figures");
    assert_eq!(figures.len(), parameters.schedules.len());
    for figure in figures {
        assert!(figure.imiss_cycles > 100.0 && figure.data_cycles > 100.0 && figure.ihit_cycles > 100.0, "{figure:?}");
        assert!(figure.pair_ns_spread.least <= figure.pair_ns && figure.pair_ns <= figure.pair_ns_spread.most);
        assert!(figure.mpps > 0.0 && figure.stripped.is_none() && figure.whole_vs_stripped.is_none());
        let computing = figure.computing.expect("measured");
        assert!(computing.imiss_cycles > 100.0 && computing.ihit_cycles > 100.0 && computing.data_cycles > 100.0);
        // There is only one run.
        assert!((figure.waiting_ns.expect("measured") - (figure.exchange_ns - computing.exchange_ns)).abs() < 1.0);
    }
    so_does_every_schedule_on_the_stripped_path(&bench, &small());
    the_cache_answers_as_simulated(&bench);
}

fn so_it_does_under_the_realistic_load(bench: &EngineBench) {
    let whole = small_and_realistic();
    let burst = EngineParameters { schedules: vec![ScheduleKind::Burst], ..whole.clone() };
    let cases = [
        EngineParameters { burst: 1, ..burst.clone() },
        EngineParameters { burst: 7, hit_ratio: 0.3, ..burst.clone() },
        EngineParameters { data_has_token: false, ..burst.clone() },
        EngineParameters { payload_bytes: 1_000, ..burst },
        EngineParameters { stripped: true, ..whole.clone() },
    ];
    for parameters in [whole].into_iter().chain(cases) {
        for figure in bench.run(&parameters, &|_| ()).expect("figures") {
            let total = figure.total_cycles;
            assert!(total.interest_miss > 100.0 && total.interest_hit > 100.0 && total.data > 100.0, "{figure:?}");
            // The exchange is from mixed bursts, but of the same order of magnitude as bursts of one kind.
            let exchange = figure.exchange_ns;
            assert!((figure.pair_ns / 3.0..figure.pair_ns * 30.0).contains(&exchange), "{figure:?}");
            assert!((figure.mpps - 2e3 / exchange).abs() < 1e-9);
        }
    }
}

/// The far ends check that all packets are sent, and that Interests have tokens or not.
fn so_does_every_schedule_on_the_stripped_path(bench: &EngineBench, parameters: &EngineParameters) {
    for cs_capacity in [0, parameters.cs_capacity] {
        let parameters = EngineParameters {
            stripped: true,
            runs: 2,
            cs_capacity,
            cs_policy: PolicyKind::Fifo,
            ..parameters.clone()
        };
        for figure in bench.run(&parameters, &|_| ()).expect("figures") {
            assert!(figure.computing.is_none() && figure.waiting_ns.is_none());
            let stripped = figure.stripped.expect("measured");
            assert!(stripped.imiss_cycles > 100.0 && stripped.data_cycles > 100.0, "{figure:?}");
            assert_eq!(stripped.ihit_cycles > 100.0, cs_capacity > 0, "{figure:?}");
            let ratio = figure.whole_vs_stripped.expect("a ratio");
            // The median lies between the ratios of the runs, bounded by their least and most.
            let (whole, stripped) = (figure.exchange_ns_spread, stripped.exchange_ns_spread);
            assert!((whole.least / stripped.most..=whole.most / stripped.least).contains(&ratio), "{figure:?}");
        }
    }
}

#[test]
fn too_many_workers_are_refused() {
    let parameters = EngineParameters { workers: 10_000, ..small() };
    let refused = EngineBench::new(&parameters, &|_| ()).err();
    assert!(matches!(refused, Some(EngineBenchError::TooFewCores { .. })), "{refused:?}");
}

/// Software events take the same path as CPU events: opened by each worker, read around poll iterations, divided by
/// packets.
#[test]
fn counters_are_read_around_turns() {
    let parameters = EngineParameters {
        schedules: vec![ScheduleKind::Burst],
        hit_ratio: 0.5,
        time: Duration::from_millis(200),
        stripped: true,
        ..small()
    };
    let mut bench = bench(&parameters);
    bench.events = Ok(Events::of_the_system());
    let figures = bench.run(&parameters, &|_| ()).expect("figures").remove(0);
    let counted = figures.counters.expect("counted");
    // "Cycles" are nanoseconds here.
    let ns_per_cycle = 1e9 / namehop_table::clock::cycles_per_second() as f64;
    let ticks = [figures.imiss_cycles, figures.ihit_cycles, figures.data_cycles];
    for (kind, ticks) in PacketKind::ALL.into_iter().zip(ticks) {
        let CounterFigures { cycles, instructions, stages, backend, retired_loads, .. } = *counted.get(kind);
        let ratio = cycles / (ticks * ns_per_cycle);
        // One is a mean and the other a median, on a host with other load.
        assert!((0.3..30.0).contains(&ratio), "{kind:?}: {cycles} ns counted, {ticks} ticks");
        assert!(instructions < 1.0, "{kind:?}: {instructions} page faults per packet");
        assert!(stages.is_some() && backend.is_some() && retired_loads.is_none(), "{kind:?}");
    }
    // The stripped path has its own counts.
    let stripped = figures.stripped.and_then(|costs| costs.counters).expect("counted");
    assert!(stripped.interest_miss.cycles > 0.0 && stripped.interest_miss != counted.interest_miss);

    // Without counters there is a reason, and no figures.
    bench.events = Err(CountersUnavailable::NoHardwareCounters);
    assert_eq!(bench.counters_unavailable(), Some(&CountersUnavailable::NoHardwareCounters));
    let figures = bench.run(&parameters, &|_| ()).expect("figures").remove(0);
    assert_eq!(figures.counters, None);
    assert!(!serde_json::to_string(&figures).expect("JSON").contains("counters"));
}

/// All floods share one FIB, because its packet buffers last as long as the process.
#[test]
fn floods() {
    let parameters = EngineParameters { schedules: vec![ScheduleKind::Burst], ..small() };
    let bench = bench(&parameters);
    a_flood_is_mixed_in_and_taken_out_again(&bench, &parameters);
    most_of_a_flood_of_long_names_is_dropped(&bench, &parameters);
    impossible_floods_are_refused(&bench, &parameters);
}

fn a_flood_is_mixed_in_and_taken_out_again(bench: &EngineBench, parameters: &EngineParameters) {
    for can_be_prefix in [false, true] {
        let flood = FloodParameters { share: 0.25, components: 16, component_bytes: 10, can_be_prefix };
        let suffered = bench.run_flood(parameters, &flood, &|_| ()).expect("figures");
        let [(ScheduleKind::Burst, figures)] = suffered[..] else { panic!("{suffered:?}") };
        assert_eq!((figures.flood.share, figures.flood_forwarded), (0.25, 1.0));
        assert!(figures.flood_cycles > 100.0 && figures.imiss_cycles.with > 100.0 && figures.data_cycles.with > 100.0);
        // The loss of ordinary traffic is not tested: in so short a time it depends on other load on the host.
        assert!(figures.throughput_ratio > 0.0 && figures.slowdown_vs_share.is_finite(), "{figures:?}");
    }
}

fn most_of_a_flood_of_long_names_is_dropped(bench: &EngineBench, parameters: &EngineParameters) {
    let flood = FloodParameters { share: 0.5, components: 64, component_bytes: 30, can_be_prefix: false };
    let suffered = bench.run_flood(parameters, &flood, &|_| ()).expect("figures");
    assert!(suffered.iter().all(|(_, figures)| figures.flood_forwarded < 0.5), "{suffered:?}");
}

fn impossible_floods_are_refused(bench: &EngineBench, parameters: &EngineParameters) {
    let good = FloodParameters { share: 0.5, components: 20, component_bytes: 12, can_be_prefix: false };
    for wrong in [
        FloodParameters { share: 0.0, ..good },
        FloodParameters { share: 1.0, ..good },
        // The longest prefixes have 6.
        FloodParameters { components: 6, ..good },
        FloodParameters { component_bytes: 253, ..good },
        FloodParameters { components: 200, component_bytes: 250, ..good },
    ] {
        let refused = bench.run_flood(parameters, &wrong, &|_| ()).err();
        assert!(matches!(refused, Some(EngineBenchError::Flood(_))), "{wrong:?}: {refused:?}");
    }
}
