//! The text of the metrics, and the HTTP server around it.

use namehop_face::registry::{FaceParams, FaceTable};
use namehop_forward::counters::DropReason;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::nfd::ReadvertiseCounters;

fn snapshot() -> Snapshot {
    let faces = FaceTable::new();
    let uri = |text: &str| text.parse().expect("a FaceUri");
    let face = faces.insert(FaceParams::new(uri("udp4://192.0.2.1:6363"), uri("udp4://192.0.2.2:6363"))).expect("room");
    face.counters.worker.received.count_packet(namehop_forward::packet::PacketKind::Interest, 100);
    face.counters.worker.received.count_frame(110);
    face.counters.count_transport_drop(namehop_face::LinkDrop::SendQueueFull);
    face.counters.worker.engine_drops.set(DropReason::DeadNonce as u8, 1);
    face.counters.worker.engine_drops.set(DropReason::NoBuffer as u8, 1);
    face.counters.worker.link_drops.add(namehop_face::LinkDrop::NoBuffer, 1);
    let mut snapshot = Snapshot {
        uptime_seconds: 12.5,
        rib_routes: 3,
        faces: faces.snapshot(),
        link_drops: vec![(namehop_face::LinkDrop::LinkDown, 4)],
        readvertise: vec![ReadvertiseStatus {
            destination: "daemon".to_owned(),
            command_prefix: "/localhost/nlsr/rib".parse().expect("a name"),
            face_ids: vec![300],
            announced_prefixes: 5,
            waiting_prefixes: 3,
            refused_prefixes: 2,
            withdrawing_prefixes: 4,
            counters: ReadvertiseCounters { announced: 9, timed_out: 2, left_out: 1, ..Default::default() },
            last_error: None,
        }],
        ..Snapshot::default()
    };
    (snapshot.engine.cs.capacity, snapshot.engine.cs.serve) = (1000, true);
    snapshot.engine.counters.in_interests = 7;
    snapshot.engine.counters.drops[DropReason::PitFull] = 2;
    snapshot
}

#[test]
fn everything_is_there_with_help_and_labels() {
    let text = render(&snapshot());
    let face = r#"face="256",remote="udp4://192.0.2.1:6363",local="udp4://192.0.2.2:6363""#;
    for line in [
        "namehop_uptime_seconds 12.5".to_owned(),
        r#"namehop_packets_total{direction="in",kind="interest"} 7"#.to_owned(),
        r#"namehop_drops_total{layer="engine",reason="pit-full"} 2"#.to_owned(),
        r#"namehop_drops_total{layer="engine",reason="malformed"} 0"#.to_owned(),
        r#"namehop_drops_total{layer="link",reason="link-down"} 4"#.to_owned(),
        "namehop_cs_capacity_packets 1000.0".to_owned(),
        "namehop_cs_admit_enabled 0.0".to_owned(),
        "namehop_rib_routes 3.0".to_owned(),
        "namehop_faces 1.0".to_owned(),
        r#"namehop_readvertise_commands_total{destination="daemon",result="announced"} 9"#.to_owned(),
        r#"namehop_readvertise_commands_total{destination="daemon",result="timed-out"} 2"#.to_owned(),
        r#"namehop_readvertise_left_out_total{destination="daemon"} 1"#.to_owned(),
        r#"namehop_readvertise_prefixes{destination="daemon",state="announced"} 5.0"#.to_owned(),
        r#"namehop_readvertise_prefixes{destination="daemon",state="waiting"} 3.0"#.to_owned(),
        r#"namehop_readvertise_prefixes{destination="daemon",state="refused"} 2.0"#.to_owned(),
        r#"namehop_readvertise_prefixes{destination="daemon",state="withdrawing"} 4.0"#.to_owned(),
        r#"namehop_readvertise_available{destination="daemon"} 1.0"#.to_owned(),
        format!(r#"namehop_face_packets_total{{{face},direction="in",kind="interest"}} 1"#),
        format!(r#"namehop_face_packets_total{{{face},direction="out",kind="data"}} 0"#),
        format!(r#"namehop_face_bytes_total{{{face},direction="in"}} 110"#),
        format!(r#"namehop_face_drops_total{{{face},layer="link",reason="send-queue-full"}} 1"#),
        format!(r#"namehop_face_drops_total{{{face},layer="engine",reason="dead-nonce"}} 1"#),
        format!(r#"namehop_face_up{{{face}}} 1.0"#),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    let mut series: Vec<_> =
        text.lines().filter(|line| !line.starts_with('#')).filter_map(|l| l.rsplit_once(' ')).collect();
    let total = series.len();
    series.sort_unstable();
    series.dedup_by_key(|(series, _)| *series);
    assert_eq!(series.len(), total, "no series twice");
    assert!(text.ends_with("# EOF\n"));
    assert!(text.contains("namehop_process_resident_memory_bytes "));
    let metrics = text.lines().filter(|line| line.starts_with("# TYPE ")).count();
    assert_eq!(text.lines().filter(|line| line.starts_with("# HELP ")).count(), metrics);
    assert!(text.lines().filter(|line| !line.starts_with('#')).all(|line| line.starts_with("namehop_")));
}

async fn get(address: SocketAddr, path: &str) -> String {
    get_from(address, path, "localhost").await
}

async fn get_from(address: SocketAddr, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("read");
    answer
}

#[tokio::test]
async fn the_server_answers_over_http() {
    let server = MetricsServer::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("bound");
    let address = server.local_address();
    let task = tokio::spawn(server.run(snapshot));
    let metrics = get(address, "/metrics").await;
    assert!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
    assert!(metrics.contains("content-type: application/openmetrics-text"));
    assert!(metrics.contains("namehop_rib_routes 3"));
    assert!(get(address, "/").await.contains("/metrics"));
    assert!(get(address, "/else").await.starts_with("HTTP/1.1 404"));
    task.abort();
}

#[tokio::test]
async fn a_failing_snapshot_is_a_server_error() {
    let server = MetricsServer::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("bound");
    let address = server.local_address();
    let task = tokio::spawn(server.run(|| panic!("no snapshot today")));
    assert!(get(address, "/metrics").await.starts_with("HTTP/1.1 500"));
    task.abort();
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let first = MetricsServer::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("bound");
    let error = MetricsServer::bind(first.local_address()).await.expect_err("taken");
    assert!(error.to_string().contains(&first.local_address().port().to_string()), "{error}");
    let foreign = SocketAddr::from(([192, 0, 2, 1], 0));
    assert!(matches!(MetricsServer::bind(foreign).await, Err(MetricsError::NoSuchAddress(_))));
}

#[test]
fn strangers_are_shown_together_and_their_sums_never_fall() {
    let faces = FaceTable::new();
    let uri = |text: &str| text.parse().expect("a FaceUri");
    let strangers: Vec<_> = (0..1000)
        .map(|number| {
            let remote = uri(&format!("udp4://192.0.2.1:{}", 10_000 + number));
            let mut params = FaceParams::new(remote, uri("udp4://192.0.2.2:6363"));
            params.persistency = namehop_face::registry::FacePersistency::OnDemand;
            let face = faces.insert(params).expect("room");
            face.counters.worker.received.count_frame(10);
            face.counters.count_transport_drop(LinkDrop::SendQueueFull);
            face
        })
        .collect();
    let mut snapshot = Snapshot { faces: faces.snapshot(), ..Snapshot::default() };
    let labels = r#"face="on-demand",remote="udp4",local="""#;
    let has = |text: &str, line: &str| assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    let text = render(&snapshot);
    assert!(text.len() < 20_000, "{} bytes for a thousand strangers", text.len());
    has(&text, &format!(r#"namehop_face_frames_total{{{labels},direction="in"}} 1000"#));
    has(&text, &format!(r#"namehop_face_drops_total{{{labels},layer="link",reason="send-queue-full"}} 1000"#));
    has(&text, &format!("namehop_face_up{{{labels}}} 1000.0"));
    for face in &strangers[..600] {
        faces.remove(face.id());
        snapshot.gone.add(face);
    }
    snapshot.faces = faces.snapshot();
    let text = render(&snapshot);
    has(&text, &format!(r#"namehop_face_frames_total{{{labels},direction="in"}} 1000"#));
    has(&text, &format!("namehop_face_up{{{labels}}} 400.0"));
}

#[tokio::test]
async fn requests_made_out_to_somebody_else_are_refused() {
    let server = MetricsServer::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("bound");
    let address = server.local_address();
    let task = tokio::spawn(server.allow_hosts(vec!["router.example".to_owned()]).run(snapshot));
    for path in ["/metrics", "/"] {
        let refused = get_from(address, path, "rebound.example").await;
        assert!(refused.starts_with("HTTP/1.1 421") && refused.contains("allowed_hosts"), "{refused}");
        assert!(!refused.contains("namehop_"), "{refused}");
        assert!(get_from(address, path, "router.example:9697").await.starts_with("HTTP/1.1 200"));
        assert!(get_from(address, path, &address.to_string()).await.starts_with("HTTP/1.1 200"));
    }
    task.abort();
}

#[tokio::test]
async fn clients_that_say_nothing_are_closed_and_keep_nobody_out() {
    let server = MetricsServer::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("bound");
    let address = server.local_address();
    let task = tokio::spawn(server.run(snapshot));
    let mut silent = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(address).await.expect("connected");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: local").await.expect("written");
        silent.push(stream);
    }
    assert!(get(address, "/metrics").await.starts_with("HTTP/1.1 200"));
    // The first had to give way to others; the last has said too little for too long.
    for stream in [0, 99] {
        let mut rest = Vec::new();
        let closed =
            tokio::time::timeout(std::time::Duration::from_secs(20), silent[stream].read_to_end(&mut rest)).await;
        // Some systems report the bytes that nobody read as a reset.
        let _ = closed.expect("closed");
    }
    task.abort();
}
