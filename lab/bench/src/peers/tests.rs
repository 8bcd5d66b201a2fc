//! Tests without a forwarder: cases, command lines, and figures from turns. Whole measurements are system tests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use namehop_client::endpoint::{Answer, Endpoint, Request, RouteOptions};
use namehop_client::nfd::{CsInfo, Element};
use namehop_client::testing::Loopback;
use namehop_traffic::loadgen::{CpuUse, LoadReport, ProcessTimes};
use namehop_wire::Name;
use namehop_wire::builder::DataBuilder;
use namehop_wire::security::DigestSigner;

use super::figures::{Turn, of_case};
use super::management::Management;
use super::spec::{Placeholders, Way};
use super::*;

fn axes() -> Axes {
    Axes {
        sockets: vec![SocketKind::Unix, SocketKind::Udp],
        windows: vec![64, 1, 256],
        payloads: vec![1000, 100],
        caches: vec![CacheCase::MissFull, CacheCase::MissEmpty],
        routes: vec![10, 0],
        all_combinations: false,
    }
}

#[test]
fn one_value_differs_at_a_time_unless_all_are_combined() {
    let cases = axes().cases();
    assert_eq!(cases.len(), 1 + 1 + 2 + 1 + 1 + 1);
    let usual =
        Case { socket: SocketKind::Unix, window: 64, payload_bytes: 1000, cache: CacheCase::MissFull, routes: 10 };
    assert!(cases.contains(&usual) && cases.contains(&Case { window: 256, ..usual }));
    assert!(cases.is_sorted_by_key(|case| case.routes));
    let all = Axes { all_combinations: true, ..axes() }.cases();
    assert_eq!(all.len(), 2 * 3 * 2 * 2 * 2);
    let twice = Axes { windows: vec![64, 64], payloads: vec![1000], caches: vec![CacheCase::HitFew], ..axes() };
    assert_eq!(twice.cases().len(), 1 + 1 + 1);
}

#[test]
fn a_hit_needs_names_that_repeat() {
    let case = |cache| Case { socket: SocketKind::Unix, window: 256, payload_bytes: 100, cache, routes: 0 };
    let names = [CacheCase::MissEmpty, CacheCase::HitFew, CacheCase::MissFull, CacheCase::HitFull]
        .map(|cache| case(cache).names(10_000));
    assert_eq!(names, [0, 1024, 0, 5000]);
    assert_eq!(case(CacheCase::HitFew).names(100), 256);
}

#[test]
fn forwarders_are_commands_or_sockets() {
    let spec = |text: &str| text.parse::<ForwarderSpec>().expect(text);
    assert_eq!(spec("namehop"), ForwarderSpec { name: "namehop".to_owned(), way: Way::Namehop });
    assert_eq!(spec("new=namehop").way, Way::Namehop);
    let command = spec("other='/opt/a b/fw' run --set x=y {copy:fw.yml}");
    assert_eq!(command.name, "other");
    assert_eq!(
        command.way,
        Way::Command(["/opt/a b/fw", "run", "--set", "x=y", "{copy:fw.yml}"].map(str::to_owned).to_vec())
    );
    assert_eq!(spec("env A=b /usr/bin/nfd").name, "env");
    let socket = std::path::PathBuf::from("/run/nfd/nfd.sock");
    assert_eq!(spec("unix:///run/nfd/nfd.sock").way, Way::Attach { socket: socket.clone(), port: 6363, pid: None });
    let attached = spec("nfd=unix:///run/nfd/nfd.sock?port=7000&pid=12");
    assert_eq!((attached.name.as_str(), attached.way), ("nfd", Way::Attach { socket, port: 7000, pid: Some(12) }));
    for (text, words) in
        [("", "empty"), ("nfd 'x", "quote"), ("unix:///x?prt=1", "prt=1"), ("unix:///x?port=99999", "99999")]
    {
        let error = text.parse::<ForwarderSpec>().expect_err(text).to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn placeholders_are_filled_in_commands_and_in_copies_of_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let (given, temporary) = (folder.path().join("fw.yml"), folder.path().join("t"));
    std::fs::create_dir(&temporary).expect("made");
    std::fs::write(&given, "path: {socket}\nports: [{port}, {port}]\nother: {kept}\n").expect("written");
    let placeholders = Placeholders { folder: &temporary, socket: std::path::Path::new("/s/x.sock"), port: 7 };
    let fill = |words: &[&str]| placeholders.fill(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let copy = temporary.join("fw.yml");
    let filled = fill(&["fw", &format!("--config={{copy:{}}}", given.display()), "{folder}"]).expect("filled");
    assert_eq!(filled, ["fw".to_owned(), format!("--config={}", copy.display()), temporary.display().to_string()]);
    let text = std::fs::read_to_string(copy).expect("copied");
    assert_eq!(text, "path: /s/x.sock\nports: [7, 7]\nother: {kept}\n");
    assert_eq!(fill(&["fw", "-s", "{socket}", "{copy:x"]).expect("filled")[2..], ["/s/x.sock", "{copy:x"]);
    assert!(fill(&["fw", "run"]).is_err_and(|fault| fault.to_string().contains("must contain {socket}")));
    assert!(fill(&["fw", "{copy:/nonexistent}"]).is_err_and(|fault| fault.to_string().contains("/nonexistent")));
}

/// A turn of one second with these numbers of milliseconds of CPU time, half of it user time and half system time.
fn turn(exchanges: u64, forwarder_ms: u64, generator_ms: u64) -> Turn {
    let used = |ms: u64| {
        let part = Duration::from_millis(ms / 2);
        CpuUse { total: ProcessTimes { user: part, system: part }, busiest_thread: part }
    };
    let mut rtt_ns = Histogram::new_with_bounds(1, 1_000_000_000, 3).expect("bounds");
    rtt_ns.record_n(50_000, exchanges).expect("in range");
    let report = LoadReport {
        elapsed_s: 1.0,
        exchanges,
        interests: exchanges + 3,
        timeouts: 2,
        nacks: 1,
        unexpected: 0,
        served: exchanges,
        served_measured: exchanges,
        malformed: 0,
        rtt_ns: Some(rtt_ns),
        observed_cpu: Some(used(forwarder_ms)),
        own_cpu: used(generator_ms),
    };
    Turn { report, hit_share: 0.0, resident_bytes: 1 << 20, cached_packets: 5 }
}

#[test]
fn ratios_are_those_of_turns_side_by_side() {
    let case = axes().cases()[0];
    let processors = Processors { forwarders: vec![1], generator: vec![0] };
    // The host was half as fast in the second turn.
    let first = vec![turn(100_000, 1000, 500), turn(50_000, 1000, 300), turn(100_000, 1000, 500)];
    let second = vec![turn(20_000, 400, 990), turn(10_000, 400, 990), turn(20_000, 400, 990)];
    let named = vec![
        ("one".to_owned(), Ok(first)),
        ("two".to_owned(), Ok(second)),
        ("three".to_owned(), Err(ForwarderFault::NotEmptied(2))),
    ];
    let figures = of_case(case, named, &processors);
    let [one, two, three] = &figures.forwarders[..] else { panic!("three") };
    assert_eq!((one.cpu_us, one.cpu_us_quartiles, one.kernel_share), (10.0, (10.0, 20.0), 0.5));
    assert_eq!((one.cpu_ratio, one.rate_ratio, one.limit), (Some(1.0), Some(1.0), Limit::Forwarder));
    assert_eq!((two.cpu_us, two.cpu_ratio, two.rate_ratio), (20.0, Some(2.0), Some(0.2)));
    assert_eq!((two.limit, two.exchanges, two.lost), (Limit::Generator, 50_000, 9));
    assert!((one.rtt_p50_us - 50.0).abs() < 0.1 && one.rtt_p999_us >= one.rtt_p99_us);
    let fault = "keeps 2 Data in a cache with a capacity of one";
    assert_eq!((three.turns, three.cpu_ratio, three.failure.as_deref()), (0, None, Some(fault)));
    let roomy = Processors { forwarders: vec![1, 2], generator: vec![0] };
    let idle = of_case(case, vec![("one".to_owned(), Ok(vec![turn(100, 1000, 100)]))], &roomy);
    assert_eq!(idle.forwarders[0].limit, Limit::RoundTrip);
    let named = vec![("x".to_owned(), Err(ForwarderFault::Interrupted)), ("y".to_owned(), Ok(vec![turn(9, 9, 9)]))];
    let alone = of_case(case, named, &roomy);
    assert_eq!(alone.forwarders[1].cpu_ratio, None);
}

/// Returns a management connection to a forwarder that has `entries` Data in its cache. As NFD does, it answers queries
/// within a second from the same dataset.
fn forwarder_with_old_datasets(entries: &Arc<AtomicU64>) -> (Management, Endpoint) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let info: Name = "/localhost/nfd/cs/info".parse().expect("a name");
    let (entries, made) = (Arc::clone(entries), Mutex::new(None::<(Instant, u64)>));
    let dataset = move |_: &Request<'_>| {
        let mut made = made.lock().expect("no other use");
        made.take_if(|(at, _)| at.elapsed() >= Duration::from_secs(1));
        let (_, entries) = *made.get_or_insert_with(|| (Instant::now(), entries.load(Ordering::Relaxed)));
        let name = info.clone().append_version(1).append_segment(0);
        let last = name.clone();
        let data = DataBuilder::new(name).content(CsInfo { entries, ..CsInfo::default() }.to_vec());
        let data = data.final_block_id(last.as_ref().last().expect("a segment"));
        Answer::Data(data.sign(&DigestSigner).expect("signed"))
    };
    let (producer, consumer) = runtime.block_on(async {
        let hub = Loopback::new();
        let producer = hub.endpoint();
        let prefix = "/localhost/nfd/cs".parse().expect("a name");
        producer.produce(&prefix, dataset);
        producer.register_route(&prefix, &RouteOptions::default()).await.expect("registered");
        (producer, hub.endpoint())
    });
    (Management::new(runtime, consumer), producer)
}

#[test]
fn old_datasets_of_a_cache_are_not_believed() {
    let entries = Arc::new(AtomicU64::new(5000));
    let (management, _producer) = forwarder_with_old_datasets(&entries);
    assert_eq!(management.cache().expect("a dataset").entries, 5000);
    entries.store(1, Ordering::Relaxed);
    assert_eq!(management.cache().expect("a dataset").entries, 5000, "it is old");
    assert_eq!(management.cache_entries_until(|entries| entries <= 1).expect("an answer"), 1);
    // A cache that does not become empty is reported in time, and only by a new dataset.
    entries.store(7, Ordering::Relaxed);
    let began = Instant::now();
    assert_eq!(management.cache_entries_until(|entries| entries == 0).expect("an answer"), 7);
    assert!(began.elapsed() < Duration::from_secs(10));
}
