//! Tests of faces created by unknown senders, and of their eviction.

use std::net::Ipv4Addr;

use super::internet::datagram;
use super::*;
use namehop_face::registry::{FacePersistency, FaceUpdate};

const SECOND_NS: u64 = 1_000_000_000;

fn sender(number: u32) -> MacAddress {
    let [a, b, c, d] = number.to_be_bytes();
    [0x02, 1, a, b, c, d]
}

impl Bench {
    /// Returns the face of this sender's frame, after counting the frame as received, as link services do.
    fn packet_from(&mut self, source: MacAddress) -> Option<Arc<Face>> {
        self.packet_in(frame(HERE, source, ETHERTYPE_NDN, &INTEREST))
    }

    fn packet_in(&mut self, frame: Vec<u8>) -> Option<Arc<Face>> {
        let id = self.receive(frame).first()?.face;
        let face = self.table.get(id).expect("the face exists");
        face.counters.worker(0).received.frames.add(1);
        Some(face)
    }

    fn is_there(&self, face: &Face) -> bool {
        let in_table = self.table.get(face.id()).is_some();
        assert_eq!(self.records.0.contains_key(&face.id()), in_table);
        in_table
    }
}

fn set_persistency(face: &Face, persistency: FacePersistency) {
    face.update(&FaceUpdate { persistency: Some(persistency), ..FaceUpdate::default() }).expect("allowed");
}

#[test]
fn unsolicited_peers_create_faces_where_allowed() {
    let mut bench = Bench::new(Framing::Ethernet, 1);
    let face = bench.packet_from(UNKNOWN).expect("made");
    assert_eq!(face.remote_uri().to_string(), "ether://[02:00:00:00:00:03]");
    assert_eq!(face.local_uri().to_string(), "dev://test0");
    assert_eq!(face.persistency(), FacePersistency::OnDemand);
    assert!(face.flags().contains(FaceFlags::CONGESTION_MARKING) && face.self_learning());
    assert!(face.expiration_period_ms().is_some());
    assert!(matches!(bench.events.try_recv(), Ok(FaceEvent::Created(created)) if created.id() == face.id()));
    assert_eq!(bench.packet_from(UNKNOWN).expect("known").id(), face.id());
    let id = face.id();
    bench.ask(move |control| control.remove_face(id).expect("removed"));
    bench.table.remove(id);
    assert!(bench.packet_from(PEER).is_some(), "the slot must be free again");
    assert_eq!(bench.dropped(LinkDrop::FaceEvicted), 0);
    for noise in [&[1, 0][..], &[0x64, 3, 0x50, 1, 1]] {
        assert!(
            bench.receive(frame(HERE, sender(7), ETHERTYPE_NDN, noise)).is_empty(),
            "an invalid packet must not create a face"
        );
    }
    assert_eq!((bench.dropped(LinkDrop::NotNdnFrame), bench.dropped(LinkDrop::FaceEvicted)), (2, 0));

    let mut closed = Bench::new(Framing::Ethernet, 0);
    assert!(closed.packet_from(UNKNOWN).is_none());
    assert_eq!(closed.dropped(LinkDrop::UnknownSender), 1);
}

#[test]
fn a_new_peer_evicts_the_one_idle_longest() {
    let mut bench = Bench::new(Framing::Ethernet, 8);
    let old: Vec<_> = (0..8).map(|number| bench.packet_from(sender(number)).expect("room")).collect();
    // All but one continue to send.
    (0..8).filter(|&number| number != 5).for_each(|number| drop(bench.packet_from(sender(number)).expect("a face")));
    while bench.events.try_recv().is_ok() {}
    let newcomer = bench.packet_from(UNKNOWN).expect("an idle face must be evicted");
    let left: Vec<_> = (0..8).filter(|&number| bench.is_there(&old[number])).collect();
    assert_eq!(left, [0, 1, 2, 3, 4, 6, 7]);
    assert_eq!((bench.dropped(LinkDrop::FaceEvicted), bench.table.len()), (1, 8));
    assert!(!old[5].is_up());
    assert!(matches!(bench.events.try_recv(), Ok(FaceEvent::Destroyed(face)) if face.id() == old[5].id()));
    assert!(matches!(bench.events.try_recv(), Ok(FaceEvent::Created(face)) if face.id() == newcomer.id()));
}

#[test]
fn a_flood_of_new_addresses_evicts_no_active_peer_and_excludes_no_new_peer() {
    let mut bench = Bench::new(Framing::Ethernet, 40);
    let permanent = bench.face(PEER);
    let made_persistent = bench.packet_from(sender(1)).expect("room");
    set_persistency(&made_persistent, FacePersistency::Permanent);
    let steady: Vec<_> = (10..20).map(|number| bench.packet_from(sender(number)).expect("room")).collect();
    let began = bench.now.0;
    let mut made = 0;
    // Ten seconds with a thousand forged frames each. The steady peers send every second.
    for number in 0..10_000 {
        bench.now = Timestamp(began + number * SECOND_NS / 1000);
        if number % 1000 == 0 {
            for steady in 10..20 {
                bench.packet_from(sender(steady)).expect("a face");
            }
        }
        made += usize::from(bench.packet_from(sender(1_000_000 + number as u32)).is_some());
    }
    assert!(steady.iter().all(|face| bench.is_there(face)));
    assert!(bench.is_there(&permanent) && bench.is_there(&made_persistent));
    // 30 slots were free, one of them because its face was made persistent, and a quarter of 40 changes owner in a
    // second.
    assert_eq!(made, 30 + 10 * 10);
    assert_eq!(bench.dropped(LinkDrop::FaceEvicted), 10 * 10);
    assert_eq!(bench.dropped(LinkDrop::TooManyFaces), 10_000 - 30 - 10 * 10);
    assert_eq!(bench.table.len(), 40 + 2, "the two configured faces must be kept");
    // After the flood, the next part of a second has free evictions again, and a new peer keeps its slot by continuing
    // to send.
    bench.now = Timestamp(began + 10 * SECOND_NS);
    let newcomer = bench.packet_from(UNKNOWN).expect("a free or evicted slot");
    for number in 0..1000 {
        bench.now = Timestamp(began + 10 * SECOND_NS + number * SECOND_NS / 1000);
        bench.packet_from(sender(2_000_000 + number as u32));
        if number % 500 == 0 {
            bench.packet_from(UNKNOWN);
        }
    }
    assert!(bench.is_there(&newcomer));
}

#[test]
fn faces_made_persistent_free_their_slots() {
    let mut bench = Bench::new(Framing::Ethernet, 1);
    for number in 0..3 {
        let face = bench.packet_from(sender(number)).expect("a free or evicted slot");
        set_persistency(&face, FacePersistency::Persistent);
        assert_eq!(face.expiration_period_ms(), None, "a persistent face must not expire");
        if number == 1 {
            // A face that is removed has no slot to free.
            let id = face.id();
            bench.ask(move |control| control.remove_face(id).expect("removed"));
            bench.table.remove(id);
        }
    }
    assert_eq!((bench.dropped(LinkDrop::FaceEvicted), bench.table.len()), (0, 2));
    // A face created by command never counts as one of an unknown sender, even when it becomes on-demand.
    let made = bench.face(PEER);
    set_persistency(&made, FacePersistency::OnDemand);
    bench.packet_from(UNKNOWN).expect("a free or evicted slot");
    bench.packet_from(sender(9)).expect("the slot of the other face");
    assert!(bench.is_there(&made));
}

#[test]
fn frames_of_a_burst_find_their_faces_after_evictions() {
    let mut bench = Bench::new(Framing::Ethernet, 1);
    let first = bench.receive(frame(HERE, sender(1), ETHERTYPE_NDN, &INTEREST))[0].face;
    // The second sender evicts the first, which then has no slot: only one changes owner in a second.
    let burst = [1, 2, 1].map(|number| frame(HERE, sender(number), ETHERTYPE_NDN, &INTEREST));
    bench.wire().incoming.extend(burst);
    let mut frames = Vec::new();
    assert!(bench.set.receive(bench.now, &mut frames, &mut bench.records, &bench.pool));
    let owners: Vec<_> = frames.iter().map(|frame| frame.face).collect();
    assert_eq!((owners.len(), owners[0]), (2, first));
    assert!(bench.table.get(first).is_none() && bench.table.get(owners[1]).is_some());
    assert_eq!((bench.dropped(LinkDrop::FaceEvicted), bench.dropped(LinkDrop::TooManyFaces)), (1, 1));
}

#[test]
fn senders_of_one_internet_address_replace_each_other() {
    let addresses = vec!["192.0.2.1/24".parse().expect("address")];
    let networks = vec![PortNetwork { on_demand: true, addresses, ..PortNetwork::default() }];
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let params = bench.params(0, PortNetwork::default());
    let params = PortParams { networks, max_on_demand_faces: 100, max_unsolicited_per_address: 8, ..params };
    bench.ask(move |control| control.add(PortId(0), params).expect("added"));
    let from = |number: u8, port: u16| datagram(Ipv4Addr::new(192, 0, 2, number), port, 6363, &INTEREST);
    let other = bench.packet_in(from(8, 7)).expect("room");
    for port in 1..=20 {
        bench.packet_in(from(9, port));
    }
    let all = bench.table.snapshot();
    let of_one = all.iter().filter(|face| face.remote_uri().to_string().contains("//192.0.2.9:")).count();
    assert_eq!(of_one, 8);
    assert!(bench.is_there(&other));
    assert!(bench.dropped(LinkDrop::FaceEvicted) >= 1 && bench.dropped(LinkDrop::TooManyFaces) >= 1);
}
