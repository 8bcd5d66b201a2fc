//! Tests that datagrams in a burst are handled as each would be alone.

use std::collections::BTreeMap;

use super::*;

const GROUP_LOCAL: &str = "dev://test0?ip=192.0.2.1";

/// A VXLAN frame from `OTHER` with this inner sender.
fn tunnelled(inner: MacAddress, payload: &[u8]) -> Vec<u8> {
    let mut inside = vec![8, 0, 0, 0, 0, 0, 7, 0];
    inside.extend([HERE, inner].concat());
    inside.extend(ETHERTYPE_NDN.to_be_bytes());
    inside.extend(payload);
    datagram(OTHER, 50_000, 4789, &inside)
}

/// Faces of all kinds: for one sender, for any at one address, for both at one address, and in VXLANs.
fn bench_with_faces() -> Bench {
    let mut bench = bench_with_vlan();
    for (remote, local) in [
        ("udp4://192.0.2.2:6363", "dev://test0?ip=192.0.2.1&port=6363"),
        ("udp6://[2001:db8::2]:6363", "dev://test0?ip=2001:db8::1&port=6363"),
        ("udp4://192.0.2.3:6363", "dev://test0?ip=192.0.2.1&port=6363&source_port=name"),
        ("udp4://192.0.2.4:6363", "dev://test0?ip=192.0.2.1&port=6363&source_port=name"),
        ("udp4://192.0.2.4:7000", "dev://test0?ip=192.0.2.1&port=6363"),
        ("udp4://192.0.2.2:6363", "dev://test0?vlan=7&ip=192.0.2.1&port=6363"),
        ("udp6://[2001:db8::2]:6363", "dev://test0?vlan=7&ip=2001:db8::1&port=6363"),
        ("vxlan4://192.0.2.2?vni=7", "dev://test0?vlan=7&ip=192.0.2.1"),
        ("vxlan4://192.0.2.2?vni=7", GROUP_LOCAL),
        ("vxlan4://192.0.2.2?vni=7&inner=02:00:00:00:00:03", GROUP_LOCAL),
    ] {
        bench.face_on(0, "dev://test0", peer(remote, local));
    }
    bench
}

/// The faces and contents of frames, and the number of drops for each reason.
type Outcome = (Vec<(FaceId, Vec<u8>)>, BTreeMap<&'static str, u64>);

/// Returns the outcome of a burst of frames.
fn outcome(bench: &mut Bench, frames: Vec<Vec<u8>>) -> Outcome {
    let drops = |bench: &Bench| -> Vec<_> {
        LinkDrop::ALL.iter().map(|&reason| (reason.name(), bench.dropped(reason))).collect()
    };
    let before = drops(bench);
    bench.wire().incoming.extend(frames);
    let mut received = Vec::new();
    bench.set.receive(bench.now, &mut received, &mut bench.records, &bench.pool);
    let taken = received.iter().map(|frame| (frame.face, frame.buffer.bytes().to_vec())).collect();
    let dropped = drops(bench).into_iter().zip(before).map(|((name, now), (_, before))| (name, now - before));
    (taken, dropped.filter(|(_, count)| *count > 0).collect())
}

#[test]
fn the_source_port_counts_where_another_face_has_one() {
    let mut bench = bench_with_faces();
    let from = |host, port| datagram(Ipv4Addr::new(192, 0, 2, host), port, 6363, &INTEREST);
    let face_of = |remote: &str| bench.table.find_by_remote(&remote.parse().expect(remote))[0].id();
    let [any, shared, one] = ["udp4://192.0.2.3:6363", "udp4://192.0.2.4:6363", "udp4://192.0.2.4:7000"].map(face_of);
    let frames = vec![from(3, 50_000), from(3, 50_001), from(4, 50_000), from(4, 7000), from(4, 50_001), from(3, 9)];
    let (taken, dropped) = outcome(&mut bench, frames);
    let faces: Vec<_> = taken.iter().map(|(face, _)| *face).collect();
    assert_eq!(faces, [any, any, shared, one, shared, any]);
    assert!(dropped.is_empty() && taken.iter().all(|(_, packet)| *packet == INTEREST));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Header bytes may differ, and frames may be truncated. In half of the frames the checksums are repaired, so that
    /// other checks must refuse a changed frame.
    #[test]
    fn frames_of_a_burst_are_taken_as_each_alone(
        frames in prop::collection::vec(
            (
                0_usize..7,
                any::<bool>(),
                prop::collection::vec((0_usize..90, any::<u8>()), 0..2),
                0_usize..120,
                any::<bool>(),
            ),
            2..12,
        ),
    ) {
        let mut bench = bench_with_faces();
        let frames: Vec<Vec<u8>> = frames.into_iter().map(|(kind, is_tagged, changes, cut, is_mended)| {
            let mut frame = match kind {
                0 => datagram(OTHER, 6363, 6363, &INTEREST),
                1 => datagram(OTHER_V6, 6363, 6363, &INTEREST),
                2 => datagram(Ipv4Addr::new(192, 0, 2, 3), 50_000, 6363, &INTEREST),
                3 => datagram(Ipv4Addr::new(192, 0, 2, 4), 7000, 6363, &INTEREST),
                4 => datagram(Ipv4Addr::new(192, 0, 2, 4), 50_000, 6363, &INTEREST),
                5 => tunnelled(PEER, &INTEREST),
                _ => tunnelled(UNKNOWN, &INTEREST),
            };
            if is_tagged {
                frame = in_vlan(&frame);
            }
            for (at, value) in changes {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = value;
                }
            }
            let ip = if is_tagged { 18 } else { 14 };
            if is_mended && frame[ip - 2..ip] == [8, 0] {
                frame[ip + 10..ip + 12].fill(0);
                let sum = Checksum::new().bytes(&frame[ip..ip + 20]).finish();
                frame[ip + 10..ip + 12].copy_from_slice(&sum);
                frame[ip + 26..ip + 28].fill(0);
            }
            if cut > 20 {
                frame.truncate(cut);
            }
            frame
        }).collect();
        let together = outcome(&mut bench, frames.clone());
        let (mut taken, mut dropped) = (Vec::new(), BTreeMap::new());
        for frame in frames {
            let (one, reasons) = outcome(&mut bench, vec![frame]);
            taken.extend(one);
            for (name, count) in reasons {
                *dropped.entry(name).or_default() += count;
            }
        }
        prop_assert_eq!(together, (taken, dropped));
    }
}
