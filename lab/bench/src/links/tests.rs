//! Tests without a router: frames through a sink, and figures from turns. Whole measurements are system tests.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use namehop_config::Config;
use namehop_packet::BufferPool;
use namehop_traffic::loadgen::Load;

use super::figures::{Turn, of_turns};
use super::generator::Generator;
use super::place::{Place, RouterSettings};
use super::sink::Sink;
use super::{ForwarderStatus, LinkKind, Processors, SHORTEST_TURN, turn};

fn load(in_flight: usize) -> Load {
    Load {
        prefix: "/bench/links".parse().expect("a name"),
        in_flight,
        payload_bytes: 1000,
        names: 0,
        freshness_ms: 0,
        lifetime: Duration::from_secs(1),
    }
}

#[test]
fn frames_go_through_a_sink_on_memif() {
    let place = Place::new(LinkKind::Memif, 1000).expect("folder");
    let pool = BufferPool::new(4096, 256);
    let Ok(processors) = Processors::choose() else { return };
    let generator = Generator::start(&place, &pool, &load(64).consumer(), &load(64).producer(), processors.generator)
        .expect("started");
    let sink = Sink::start(&place, &pool, processors.forwarder).expect("started");
    generator.wait_for_data(1_000, Duration::from_secs(20), || sink.check()).expect("Data");
    let stop = AtomicBool::new(false);
    let turn = turn(&generator, SHORTEST_TURN, &stop, || Ok(sink.status())).expect("measured");
    let counts = &turn.load.counts;
    assert!(counts.exchanges > 100 && counts.nacks + counts.unexpected() + counts.malformed == 0, "{counts:?}");
    assert_eq!(counts.rtt_ns.len(), counts.exchanges);
    assert!(!turn.load.busy.is_zero() && turn.load.busy <= turn.elapsed);
    assert!(turn.after.busy > turn.before.busy && turn.after.processor_time.is_none());
    let figures = of_turns(LinkKind::Memif, None, vec![turn]);
    assert!(figures.busy_ns > 0.0 && figures.rtt_p99_us >= figures.rtt_p50_us && figures.process_ns.is_none());
}

/// A router that is busy half of the time and has 1,000 exchanges per second needs half a millisecond per exchange.
#[test]
fn costs_are_those_of_exchanges() {
    let place = Place::new(LinkKind::Memif, 1000).expect("folder");
    let pool = BufferPool::new(1024, 64);
    let generator = Generator::start(&place, &pool, &load(1).consumer(), &load(1).producer(), 0).expect("started");
    generator.begin();
    let mut load = generator.end().expect("running");
    load.counts.exchanges = 2_000;
    load.counts.rtt_ns.record_n(1_000, 2_000).expect("in range");
    let at = |busy_ms, running_ms| ForwarderStatus {
        busy: Duration::from_millis(busy_ms),
        running: Duration::from_millis(running_ms),
        processor_time: Some((Duration::from_millis(running_ms), Duration::from_millis(busy_ms))),
    };
    let turn = |busy_ms: u64| Turn {
        before: at(100, 1_000),
        after: at(100 + busy_ms, 3_000),
        load: load.clone(),
        elapsed: Duration::from_secs(2),
    };
    let figures = of_turns(LinkKind::Dev, Some(&"best-route".to_owned()), vec![turn(1_000), turn(1_000), turn(1_600)]);
    assert_eq!((figures.exchanges, figures.exchanges_per_s, figures.busy_share), (6_000, 1_000.0, 0.5));
    assert_eq!((figures.busy_ns, figures.busy_ns_quartiles.1), (500_000.0, 800_000.0));
    assert_eq!((figures.process_ns, figures.process_kernel_ns), (Some(1_500_000.0), Some(500_000.0)));
    assert!((figures.rtt_p50_us - 1.0).abs() < 0.01, "{figures:?}");
}

#[test]
fn the_routers_configuration_is_one() {
    for kind in [LinkKind::Memif, LinkKind::Dev, LinkKind::Xdp] {
        let mut place = Place::new(LinkKind::Memif, 8000).expect("folder");
        // No interfaces are created.
        place.kind = kind;
        let settings = RouterSettings {
            processors: vec![1, 0],
            forwarding: "always_poll = true\n".to_owned(),
            sections: "[content_store]\ncapacity_packets = 7\n".to_owned(),
        };
        let text = place.router_configuration(&settings);
        let config = Config::parse(&text, Path::new("router.toml")).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!((config.face.len(), config.route.len(), config.forwarding.always_poll), (2, 1, true), "{text}");
        assert_eq!(
            (config.forwarding.processors.len(), config.content_store.capacity_packets.value()),
            (2, Some(7)),
            "{text}"
        );
    }
}
