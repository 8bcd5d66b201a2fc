//! Tests of sessions with several consumers and producers: every Interest is accounted for.

use super::*;

pub(super) fn reply(weight: u32, kind: ReplyKind) -> Reply {
    Reply { weight, kind, delay: Duration::ZERO }
}

pub(super) fn data(payload_bytes: usize) -> ReplyKind {
    ReplyKind::Data(DataShape { payload_bytes, ..DataShape::default() })
}

/// Configures a consumer and a producer that use the forwarder at this socket.
fn session(socket: &std::path::Path, plan: ConsumerPlan, replies: Vec<Reply>) -> SessionConfig {
    let link = LinkAddress::Socket(TransportUri::Unix(socket.to_owned()));
    SessionConfig {
        consumers: vec![ConsumerConfig { name: "consumer".to_owned(), link: link.clone(), plan }],
        producers: vec![ProducerConfig {
            name: "producer".to_owned(),
            link,
            control: None,
            registers: true,
            patterns: vec![ReplyPattern { prefix: prefix(), replies }],
            seed: 1,
        }],
        signer: Arc::new(DigestSigner),
        duration: None,
    }
}

pub(super) fn start(config: &SessionConfig) -> Result<Session, LoadError> {
    Session::start(config, &AtomicBool::new(false))
}

pub(super) fn plan(pacing: Pacing, count: u64) -> ConsumerPlan {
    let pattern = Pattern { lifetime: Duration::from_millis(300), ..pattern() };
    ConsumerPlan { patterns: vec![pattern], pacing, count: Some(count), seed: 1 }
}

pub(super) fn window(size: usize) -> Pacing {
    Pacing::Window { size, law: WindowKind::Fixed, max: size }
}

pub(super) fn assert_accounted(counts: &ConsumerCounts) {
    let known = counts.exchanges + counts.nacks + counts.timeouts + counts.unanswered;
    assert_eq!(counts.interests, known, "{counts:?}");
    assert_eq!(counts.rtt_ns.len(), counts.exchanges);
}

fn run_session(faults: Faults, plan: ConsumerPlan, replies: Vec<Reply>) -> SessionReport {
    let mut report = None;
    with_forwarder(faults, |socket, _| {
        let session = start(&session(socket, plan, replies)).unwrap();
        report = Some(session.wait(&AtomicBool::new(false), |_| {}));
    });
    report.unwrap()
}

#[test]
fn every_interest_is_accounted_for_with_all_replies() {
    let replies = vec![
        reply(4, data(100)),
        reply(2, ReplyKind::Nack(NackReason::CONGESTION)),
        reply(1, ReplyKind::Nack(NackReason::NO_ROUTE)),
        reply(1, ReplyKind::Silence),
        Reply { weight: 2, kind: data(10), delay: Duration::from_millis(20) },
    ];
    let report = run_session(Faults::default(), plan(window(64), 2000), replies);
    let (consumer, producer) = (&report.consumers[0].counts, report.producers[0].counts);
    assert_accounted(consumer);
    assert_eq!((consumer.interests, consumer.unanswered, consumer.unexpected()), (2000, 0, 0));
    assert_eq!(
        (consumer.exchanges, consumer.nacks, consumer.timeouts),
        (producer.data, producer.nacks, producer.silent)
    );
    assert_eq!(consumer.nacks, consumer.nacks_congestion + consumer.nacks_no_route);
    // Four standard deviations of each count are less than 90.
    for (count, expected) in [
        (consumer.exchanges, 1200_i64),
        (consumer.nacks_congestion, 400),
        (consumer.nacks_no_route, 200),
        (consumer.timeouts, 200),
    ] {
        assert!((count as i64 - expected).abs() < 90, "{consumer:?}");
    }
    assert!(consumer.rtt_ns.max() >= 20_000_000, "some Data must be delayed");
}

#[test]
fn interests_that_are_faster_than_the_answer_to_the_registration_are_answered() {
    let faults = Faults { early_requests: 5, ..Faults::default() };
    let report = run_session(faults, plan(window(8), 100), vec![reply(1, data(10))]);
    let (consumer, producer) = (&report.consumers[0].counts, &report.producers[0]);
    assert_eq!((consumer.exchanges, producer.counts.interests, producer.counts.data), (100, 105, 105));
    assert_eq!(producer.link.frames_received, 105);
}

#[test]
#[ignore = "slow"]
fn every_interest_is_accounted_for_under_loss_and_duplication() {
    let faults = Faults { lose_every: 10, duplicate_every: 7, mark_every: 5, ..Faults::default() };
    for law in [WindowKind::Fixed, WindowKind::Cubic, WindowKind::Aimd, WindowKind::Adaptive] {
        let pacing = Pacing::Window { size: 20, law, max: 100 };
        let report = run_session(faults, plan(pacing, 200), vec![reply(1, data(50))]);
        let counts = &report.consumers[0].counts;
        assert_accounted(counts);
        assert_eq!((counts.interests, counts.timeouts, counts.exchanges), (200, 20, 180), "{law:?}");
        assert_eq!((counts.duplicates, counts.marked), (180 / 7, 180 / 5), "{law:?}");
        assert_eq!(report.consumers[0].window.is_some(), law != WindowKind::Fixed);
        assert!(report.consumers[0].window.is_none_or(|(_, _, decreases)| decreases > 0));
    }
}

#[test]
fn clocks_send_at_their_rate_and_names_that_are_pending_are_held_back() {
    let pacing = Pacing::Rate { per_second: 1000.0, poisson: true, max_in_flight: 100 };
    let report = run_session(Faults::default(), plan(pacing, 500), vec![reply(1, data(50))]);
    assert_accounted(&report.consumers[0].counts);
    assert_eq!(report.consumers[0].counts.exchanges, 500);
    let elapsed_s = report.consumers[0].elapsed_s;
    assert!((0.3..5.0).contains(&elapsed_s), "500 Interests at 1000 per second took {elapsed_s} s");

    let names = Names::Zipf { names: 3, alpha: 0.8 };
    let mut plan = plan(Pacing::Rate { per_second: 2000.0, poisson: false, max_in_flight: 100 }, 60);
    plan.patterns[0].names = names;
    let held = Reply { weight: 1, kind: data(5), delay: Duration::from_millis(10) };
    let report = run_session(Faults::default(), plan, vec![held]);
    assert_accounted(&report.consumers[0].counts);
    assert!(report.consumers[0].counts.held_back > 60, "all three names must be pending most of the time");
}

#[test]
fn a_forwarder_that_dies_leaves_a_full_account() {
    with_forwarder(Faults::default(), |socket, kill| {
        let mut endless = plan(window(50), u64::MAX);
        endless.count = None;
        let session = start(&session(socket, endless, vec![reply(1, data(50))])).unwrap();
        let mut kill = Some(kill);
        let report = session.wait(&AtomicBool::new(false), |session| {
            if session.progress().received > 100
                && let Some(kill) = kill.take()
            {
                kill();
            }
        });
        let consumer = &report.consumers[0];
        assert!(consumer.error.is_some() && report.producers[0].error.is_some(), "{report:?}");
        assert!(consumer.counts.exchanges > 100 && consumer.counts.unanswered > 0, "{report:?}");
        assert_accounted(&consumer.counts);
    });
}

#[test]
fn an_interrupted_run_reports_soon() {
    with_forwarder(Faults::default(), |socket, _| {
        let mut silent = plan(window(50), 10);
        silent.count = None;
        silent.patterns[0].lifetime = Duration::from_secs(3600);
        let session = start(&session(socket, silent, vec![reply(1, ReplyKind::Silence)])).unwrap();
        let stop = AtomicBool::new(false);
        let report = session.wait(&stop, |session| stop.store(session.progress().sent == 50, Ordering::Relaxed));
        assert_eq!((report.consumers[0].counts.interests, report.consumers[0].counts.unanswered), (50, 50));
        assert_accounted(&report.consumers[0].counts);
        assert!(report.elapsed_s < 30.0);
    });
}

#[test]
fn plans_that_make_no_sense_are_errors() {
    let socket = std::path::Path::new("/nowhere");
    let errors = |change: &dyn Fn(&mut SessionConfig)| {
        let mut config = session(socket, plan(window(1), 1), vec![reply(1, data(1))]);
        change(&mut config);
        start(&config).map(drop).unwrap_err().to_string()
    };
    let udp = || LinkAddress::Socket("udp4://127.0.0.1:9".parse().unwrap());
    assert!(errors(&|config| config.producers[0].link = udp()).contains("--control"));
    assert!(errors(&|config| config.producers[0].patterns[0].replies[0].weight = 0).contains("weight"));
    assert!(errors(&|config| config.producers[0].patterns[0].replies.clear()).contains("no reply"));
    assert!(errors(&|config| config.duration = Some(Duration::ZERO)).contains("duration"));
    assert!(errors(&|config| (config.consumers, config.producers) = (Vec::new(), Vec::new())).contains("neither"));
    let consumer_errors = |change: fn(&mut ConsumerPlan)| {
        struct Nothing;
        impl Link for Nothing {
            fn counts(&self) -> LinkCounts {
                LinkCounts::default()
            }
            fn receive(&mut self, _: Duration, _: &mut dyn FnMut(&[u8])) -> io::Result<()> {
                Ok(())
            }
            fn send(&mut self, _: &[u8], _: &[usize]) -> io::Result<()> {
                Ok(())
            }
        }
        let mut plan = plan(window(1), 1);
        change(&mut plan);
        Consumer::new(Nothing, &plan).map(drop).unwrap_err().to_string()
    };
    assert!(consumer_errors(|plan| plan.patterns.clear()).contains("patterns"));
    assert!(consumer_errors(|plan| plan.patterns.push(plan.patterns[0].clone())).contains("two patterns"));
    assert!(consumer_errors(|plan| plan.patterns[0].weight = 0).contains("weight"));
    assert!(consumer_errors(|plan| plan.patterns[0].lifetime = Duration::ZERO).contains("lifetime"));
    assert!(consumer_errors(|plan| plan.patterns[0].names = Names::Cycle(0)).contains("names"));
    assert!(consumer_errors(|plan| plan.patterns[0].names = Names::Zipf { names: 1, alpha: -1.0 }).contains("Zipf"));
    assert!(consumer_errors(|plan| plan.pacing = window(0)).contains("in flight"));
    assert!(
        consumer_errors(|plan| {
            plan.pacing = Pacing::Rate { per_second: f64::NAN, poisson: false, max_in_flight: 1 };
        })
        .contains("a rate of NaN")
    );
}
