//! Tests of granting and evicting permits.

use std::net::{Ipv4Addr, SocketAddr};

use namehop_packet::FaceScope;

use super::*;
use crate::registry::{FaceParams, FaceTable, FaceUpdate};
use crate::uri::FaceUri;

fn permits(limit: usize, change: impl FnOnce(&mut SocketConfig)) -> Rc<Permits> {
    let mut config = SocketConfig::without_listeners();
    config.max_faces = limit;
    change(&mut config);
    Permits::new(&config)
}

fn address(number: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from_bits(0x0A00_0000 + number), 6363))
}

fn datagram(number: u32) -> PermitRequest {
    PermitRequest::of_datagram(address(number))
}

fn connection(number: u32) -> PermitRequest {
    PermitRequest::of_connection(FaceScope::NonLocal, address(number))
}

/// Takes a permit, evicting another unsolicited peer if necessary.
fn force(permits: &Rc<Permits>, request: &PermitRequest) -> Option<Permit> {
    if !permits.has_room(request) {
        permits.take_back(request)?;
    }
    permits.take(request)
}

fn fill(permits: &Rc<Permits>, request: impl Fn(u32) -> PermitRequest) -> Vec<Permit> {
    (0..).map_while(|number| permits.take(&request(number))).collect()
}

fn is_there(permit: &Permit) -> bool {
    !permit.activity.has_ended()
}

#[test]
fn unsolicited_peers_leave_a_reserve_and_divide_the_rest_by_transport() {
    for (limit, datagrams, connections) in
        [(0, 0, 0), (1, 1, 0), (4, 1, 1), (20, 5, 5), (40, 12, 12), (64, 24, 24), (16_384, 6144, 6144)]
    {
        let permits = permits(limit, |_| {});
        let unsolicited = [fill(&permits, datagram), fill(&permits, connection)];
        assert_eq!(unsolicited.each_ref().map(Vec::len), [datagrams, connections], "a limit of {limit}");
        let known = fill(&permits, |_| PermitRequest::known(Transport::Datagram));
        assert_eq!(known.len(), limit - datagrams - connections, "a limit of {limit}");
        drop((unsolicited, known));
        assert_eq!(fill(&permits, |_| PermitRequest::known(Transport::Connection)).len(), limit);
    }
}

#[test]
fn sockets_leave_slots_to_unsolicited_peers_on_ports() {
    let permits = permits(100, |config| config.max_unsolicited_on_ports = 25);
    let unsolicited = [fill(&permits, datagram), fill(&permits, connection)];
    assert_eq!(
        unsolicited.each_ref().map(Vec::len),
        [25, 25],
        "a quarter is reserved, and a third of the rest is for ports"
    );
    assert_eq!(fill(&permits, |_| PermitRequest::known(Transport::Datagram)).len(), 25);
}

#[test]
fn connections_are_bounded_by_the_descriptors() {
    let permits = permits(1000, |config| config.max_connections = 20);
    let unsolicited = fill(&permits, connection);
    assert_eq!(unsolicited.len(), 10);
    let known = fill(&permits, |_| PermitRequest::known(Transport::Connection));
    assert_eq!(known.len(), 10);
    assert!(!fill(&permits, datagram).is_empty(), "datagram peers must need no permit of a connection");
    // An application evicts the connection of an unsolicited peer.
    assert!(force(&permits, &PermitRequest::known(Transport::Connection)).is_some());
    assert!(!is_there(&unsolicited[0]) && is_there(&unsolicited[1]));
}

#[test]
fn a_flood_from_forged_addresses_replaces_itself_only() {
    let permits = permits(64, |_| {});
    let quarter = 24 / 4;
    let used: Vec<Permit> = (0..10).map(|number| permits.take(&datagram(number)).expect("room")).collect();
    for permit in &used {
        permit.activity.note_received();
    }
    let mut flood = Vec::new();
    let mut taken = 0;
    for number in 100..12_546 {
        let permit = force(&permits, &datagram(number));
        taken += usize::from(permit.is_some());
        // The answer to a forged datagram does not prove its origin.
        permit.iter().for_each(|permit| permit.activity.note_use());
        flood.extend(permit);
    }
    assert!(used.iter().all(is_there), "faces in use must be kept");
    let began = permits.0.borrow().started.elapsed().as_secs() + 1;
    assert!(taken <= 14 + quarter * began as usize, "{taken} permits were reassigned within {began} s");
    assert!(fill(&permits, connection).len() == 24, "connections must have a share of their own");
}

#[test]
fn active_peers_stay_and_new_peers_are_admitted() {
    let permits = permits(64, |_| {});
    let mut now = Duration::ZERO;
    let mut take = |request: &PermitRequest| {
        if !permits.has_room(request) {
            // A permit each second is always allowed.
            now += Duration::from_secs(1);
            permits.0.borrow_mut().take_back(request, now)?;
        }
        permits.take(request)
    };
    let all: Vec<Permit> = (0..24).filter_map(|number| take(&datagram(number))).collect();
    all.iter().for_each(|permit| permit.activity.note_received());
    let mut newcomers = Vec::new();
    for number in 100..200 {
        newcomers.push(take(&datagram(number)).expect("a new peer must get a permit"));
        // All but the first continue to send.
        all[1..].iter().for_each(|permit| permit.activity.note_received());
    }
    assert!(!is_there(&all[0]), "the face that was idle longest must be evicted");
    let quarter = 24 / 4;
    let left = all.iter().filter(|permit| is_there(permit)).count();
    assert_eq!(left, 24 - quarter, "new peers must get a quarter");
    assert_eq!(newcomers.iter().filter(|permit| is_there(permit)).count(), quarter);
    // A new unsolicited peer that continues to send is safe from later ones.
    let steady = newcomers.pop().expect("a permit");
    steady.activity.note_received();
    for number in 200..300 {
        newcomers.push(take(&datagram(number)).expect("a new peer must get a permit"));
        steady.activity.note_received();
        all[1..].iter().for_each(|permit| permit.activity.note_received());
    }
    assert!(is_there(&steady));
}

#[test]
fn unsolicited_peers_of_one_address_evict_each_other() {
    let permits = permits(1000, |config| config.max_unsolicited_per_address = 8);
    let one = |port: u16| PermitRequest::of_datagram(SocketAddr::from((Ipv4Addr::new(10, 1, 1, 1), port)));
    let first: Vec<Permit> = (0..8).map(|port| permits.take(&one(port)).expect("room")).collect();
    first[0].activity.note_received();
    assert!(permits.take(&one(8)).is_none());
    let second: Vec<Permit> = (8..100).filter_map(|port| force(&permits, &one(port))).collect();
    assert_eq!(permits.0.borrow().unsolicited.len(Transport::Datagram as usize), 8);
    assert!(
        !second.is_empty() && second.len() <= 4,
        "at most a quarter may be reassigned per second: {}",
        second.len()
    );
    assert!(is_there(&first[0]) && !is_there(&first[1]));
    assert!(permits.take(&datagram(5)).is_some(), "other addresses must have their own share");
    // IPv6: a peer with a network can use all its addresses.
    let v6 = |text: &str| PermitRequest::of_connection(FaceScope::NonLocal, text.parse().expect("address"));
    let near: Vec<Permit> = (0..8).filter_map(|n| permits.take(&v6(&format!("[2001:db8::{n}]:6363")))).collect();
    assert_eq!(near.len(), 8);
    assert!(!permits.has_room(&v6("[2001:db8::ffff:1]:6363")));
    assert!(permits.has_room(&v6("[2001:db8:0:1::1]:6363")));
}

#[test]
fn silent_connections_are_closed_when_half_of_the_permits_are_in_use() {
    let permits = permits(64, |config| config.silent_timeout_ms = 10_000);
    let now = Instant::now();
    let later = now + Duration::from_secs(11);
    let mut all: Vec<Permit> = (0..12).filter_map(|number| permits.take(&connection(number))).collect();
    assert!(permits.take_back_silent(later).is_none(), "enough permits are free");
    all.extend((12..14).filter_map(|number| permits.take(&connection(number))));
    all[0].activity.note_received();
    assert!(permits.take_back_silent(now + Duration::from_secs(9)).is_none());
    assert!(permits.take_back_silent(later).is_some());
    assert!(permits.take_back_silent(later).is_some());
    assert!(permits.take_back_silent(later).is_none(), "half of the permits must be free again");
    assert_eq!(all.iter().map(is_there).collect::<Vec<_>>()[..4], [true, false, false, true]);
}

#[test]
fn a_peer_made_persistent_is_not_evicted() {
    let permits = permits(4, |_| {});
    let table = FaceTable::new();
    let mut params = FaceParams::new(FaceUri::udp(address(1)), FaceUri::udp(address(0)));
    params.persistency = FacePersistency::OnDemand;
    params.is_datagram = true;
    params.allowed_persistencies = &[FacePersistency::OnDemand, FacePersistency::Persistent];
    assert_eq!(PermitRequest::of_face(&params, Transport::Datagram), datagram(1));
    let face = table.insert(params).expect("face");
    let permit = permits.take(&datagram(1)).expect("room");
    permit.set_holder(Holder::Face(Arc::clone(&face)));
    let update = FaceUpdate { persistency: Some(FacePersistency::Persistent), ..FaceUpdate::default() };
    face.update(&update).expect("allowed");
    assert!(permits.take_back(&datagram(2)).is_none(), "a persistent face must not be evicted");
    assert!(is_there(&permit));
    // It now counts as a configured peer, so a permit is free for another unsolicited peer.
    let unsolicited = permits.take(&datagram(2)).expect("room");
    drop((permit, unsolicited));
    assert_eq!(permits.0.borrow().taken, 0);
    assert_eq!(fill(&permits, |_| PermitRequest::known(Transport::Datagram)).len(), 4);
}

#[test]
fn permits_are_freed_by_their_holder_and_by_eviction() {
    let permits = permits(40, |_| {});
    for round in 0..50_u32 {
        let held: Vec<Permit> = (0..30).filter_map(|n| force(&permits, &connection(n % (round + 1)))).collect();
        drop(held);
        let state = permits.0.borrow();
        assert_eq!((state.taken, state.connections), (0, 0));
        assert!(state.unsolicited.is_empty(), "no entry may be left");
    }
}

/// Many random floods: the counts always agree with the permits in use.
#[test]
fn counts_agree_with_the_permits_in_use() {
    let permits = permits(32, |config| config.max_unsolicited_per_address = 5);
    let mut held: Vec<Permit> = Vec::new();
    let mut state = 3_u64;
    for _ in 0..20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = (state >> 40) as u32;
        match (state >> 33) % 8 {
            0 if !held.is_empty() => drop(held.swap_remove(number as usize % held.len())),
            1 if !held.is_empty() => held[number as usize % held.len()].activity.note_received(),
            2 => held.extend(force(&permits, &PermitRequest::known(Transport::Connection))),
            3 | 4 => held.extend(force(&permits, &datagram(number % 9))),
            _ => held.extend(force(&permits, &connection(number % 50))),
        }
        let there = held.iter().filter(|permit| is_there(permit));
        let (all, connections) = there.fold((0, 0), |(all, connections), permit| {
            (all + 1, connections + usize::from(permit.transport == Transport::Connection))
        });
        let counted = permits.0.borrow();
        assert_eq!((counted.taken, counted.connections), (all, connections));
        assert!(all <= 32);
    }
}
