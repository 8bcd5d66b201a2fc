//! The text of the metrics.

use namehop_client::nfd::{LatencyCounts, PowerPart, ReadvertiseCounters};
use namehop_face::registry::{FaceParams, FaceTable};
use namehop_packet::DropReason;

use super::*;

fn snapshot() -> Snapshot {
    let faces = FaceTable::new();
    let uri = |text: &str| text.parse().expect("a FaceUri");
    let face = faces.insert(FaceParams::new(uri("udp4://192.0.2.1:6363"), uri("udp4://192.0.2.2:6363"))).expect("room");
    face.counters.worker(0).received.count_packet(namehop_packet::packet::PacketKind::Interest, 100);
    face.counters.worker(0).received.count_frame(110);
    face.counters.count_transport_drop(namehop_face::LinkDrop::SendQueueFull);
    face.counters.worker(0).engine_drops.set(DropReason::DeadNonce as u8, 1);
    face.counters.worker(0).engine_drops.set(DropReason::NoBuffer as u8, 1);
    face.counters.worker(0).link_drops.add(namehop_face::LinkDrop::NoBuffer, 1);
    let mut snapshot = Snapshot {
        uptime_seconds: 12.5,
        rib_routes: 3,
        table_memory: vec![("byte strings", 4096, 1024)],
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
        power: Some(PowerStatus {
            estimated_with: None,
            nanojoules_per_packet: Some(350),
            parts: vec![PowerPart { name: "package-0".to_owned(), milliwatts: 10_500, millijoules: 2_250 }],
        }),
        latency: LatencyStatus {
            one_in: std::num::NonZeroU32::new(1024),
            measured_ms: 1_000,
            data: LatencyCounts(vec![(900, 4), (1_500, 2), (2_000_000_000, 1)]),
            ..LatencyStatus::default()
        },
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
        r#"namehop_power_watts{source="measured",part="package-0"} 10.5"#.to_owned(),
        r#"namehop_energy_joules_total{source="measured",part="package-0"} 2.25"#.to_owned(),
        r#"namehop_packet_energy_nanojoules{source="measured"} 350.0"#.to_owned(),
        "namehop_latency_sample 1024.0".to_owned(),
        r#"namehop_latency_seconds_sum{way="data"} 2.0000066"#.to_owned(),
        r#"namehop_latency_seconds_count{way="data"} 7"#.to_owned(),
        r#"namehop_latency_seconds_count{way="cs_hit"} 0"#.to_owned(),
        r#"namehop_latency_seconds_bucket{le="0.000001",way="data"} 4"#.to_owned(),
        r#"namehop_latency_seconds_bucket{le="0.000002",way="data"} 6"#.to_owned(),
        r#"namehop_latency_seconds_bucket{le="1.0",way="data"} 6"#.to_owned(),
        r#"namehop_latency_seconds_bucket{le="+Inf",way="data"} 7"#.to_owned(),
        r#"namehop_readvertise_commands_total{destination="daemon",result="announced"} 9"#.to_owned(),
        r#"namehop_readvertise_commands_total{destination="daemon",result="timed-out"} 2"#.to_owned(),
        r#"namehop_readvertise_left_out_total{destination="daemon"} 1"#.to_owned(),
        r#"namehop_readvertise_prefixes{destination="daemon",state="announced"} 5.0"#.to_owned(),
        r#"namehop_readvertise_prefixes{destination="daemon",state="waiting"} 3.0"#.to_owned(),
        r#"namehop_table_memory_bytes{contents="byte strings",state="resident"} 1024.0"#.to_owned(),
        r#"namehop_table_memory_bytes{contents="byte strings",state="reserved"} 4096.0"#.to_owned(),
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
        assert!(text.lines().any(|found| found == line), "the metrics must have the line {line}:\n{text}");
    }
    let mut series: Vec<_> =
        text.lines().filter(|line| !line.starts_with('#')).filter_map(|l| l.rsplit_once(' ')).collect();
    let total = series.len();
    series.sort_unstable();
    series.dedup_by_key(|(series, _)| *series);
    assert_eq!(series.len(), total, "every series must be unique");
    assert!(text.ends_with("# EOF\n"));
    assert!(text.contains("namehop_process_resident_memory_bytes "));
    let metrics = text.lines().filter(|line| line.starts_with("# TYPE ")).count();
    assert_eq!(text.lines().filter(|line| line.starts_with("# HELP ")).count(), metrics);
    assert!(text.lines().filter(|line| !line.starts_with('#')).all(|line| line.starts_with("namehop_")));
}

#[test]
fn unsolicited_peers_are_summed_and_their_sums_never_fall() {
    let faces = FaceTable::new();
    let uri = |text: &str| text.parse().expect("a FaceUri");
    let unsolicited: Vec<_> = (0..1000)
        .map(|number| {
            let remote = uri(&format!("udp4://192.0.2.1:{}", 10_000 + number));
            let mut params = FaceParams::new(remote, uri("udp4://192.0.2.2:6363"));
            params.persistency = namehop_face::registry::FacePersistency::OnDemand;
            let face = faces.insert(params).expect("room");
            face.counters.worker(0).received.count_frame(10);
            face.counters.count_transport_drop(LinkDrop::SendQueueFull);
            face
        })
        .collect();
    let mut snapshot = Snapshot { faces: faces.snapshot(), ..Snapshot::default() };
    let labels = r#"face="on-demand",remote="udp4",local="""#;
    let has = |text: &str, line: &str| {
        assert!(text.lines().any(|found| found == line), "the metrics must have the line {line}:\n{text}")
    };
    let text = render(&snapshot);
    assert!(text.len() < 20_000, "{} bytes for a thousand on-demand faces", text.len());
    has(&text, &format!(r#"namehop_face_frames_total{{{labels},direction="in"}} 1000"#));
    has(&text, &format!(r#"namehop_face_drops_total{{{labels},layer="link",reason="send-queue-full"}} 1000"#));
    has(&text, &format!("namehop_face_up{{{labels}}} 1000.0"));
    for face in &unsolicited[..600] {
        faces.remove(face.id());
        snapshot.gone.add(face);
    }
    snapshot.faces = faces.snapshot();
    let text = render(&snapshot);
    has(&text, &format!(r#"namehop_face_frames_total{{{labels},direction="in"}} 1000"#));
    has(&text, &format!("namehop_face_up{{{labels}}} 400.0"));
}
