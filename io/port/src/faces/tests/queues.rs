//! Tests of a port with two queues of two workers.

use namehop_wire::lp::{LpHeader, PitToken, encode_packet};

use super::*;
use crate::encapsulation::neighbour_discovery;
use crate::encapsulation::udp::{Ends, Header as UdpHeader};
use namehop_face::registry::FaceUpdate;

const OWN: std::net::Ipv4Addr = std::net::Ipv4Addr::new(192, 0, 2, 1);
const OTHER: std::net::Ipv4Addr = std::net::Ipv4Addr::new(192, 0, 2, 2);

/// Two workers; number 0 has the port.
struct Pair {
    sets: [PortSet; 2],
    records: [Records; 2],
    controls: Arc<PortControls>,
    table: Arc<FaceTable>,
    pool: BufferPool,
    wires: [Arc<Mutex<Wire>>; 2],
    _events: [UnboundedReceiver<FaceEvent>; 2],
    now: Timestamp,
}

impl Pair {
    fn new() -> Pair {
        let (table, pool) = (Arc::new(FaceTable::new()), BufferPool::new(1024, 16));
        table.set_workers(2);
        let make = |worker| {
            let (sender, events) = unbounded_channel();
            let waker = Arc::new(Waker::new());
            let (mut set, control) = PortSet::new(Arc::clone(&table), sender, waker, FaceFlags::default(), false, IDLE);
            set.set_worker(worker);
            (set, control, events)
        };
        let ((first, first_control, one), (second, second_control, other)) = (make(0), make(1));
        let wires = [(); 2].map(|()| Arc::new(Mutex::new(Wire { room: usize::MAX, ..Wire::default() })));
        let queues: PortQueues =
            wires.iter().map(|wire| Box::new(TestPort(Arc::clone(wire), pool.clone())) as Box<dyn PortQueue>).collect();
        let mut pair = Pair {
            sets: [first, second],
            records: Default::default(),
            controls: Arc::new(PortControls::new(vec![first_control, second_control])),
            table,
            pool,
            wires,
            _events: [one, other],
            now: Timestamp(1_000_000_000),
        };
        let params = PortParams {
            queue: None,
            framing: Framing::Ethernet,
            address: HERE,
            networks: vec![PortNetwork {
                on_demand: true,
                addresses: vec!["192.0.2.1/24".parse().expect("address")],
                ..PortNetwork::default()
            }],
            uri: parse_uri("dev://test0").expect("URI"),
            mtu_bytes: 1500,
            max_on_demand_faces: 4,
            max_unsolicited_per_address: 4,
            is_up: true,
        };
        pair.ask(move |controls| controls.add(PortId(0), params, queues).expect("added"));
        pair
    }

    fn ask<T: Send + 'static>(&mut self, question: impl FnOnce(&PortControls) -> T + Send + 'static) -> T {
        let controls = Arc::clone(&self.controls);
        let asking = thread::spawn(move || question(&controls));
        while !asking.is_finished() {
            self.apply_changes();
            thread::yield_now();
        }
        asking.join().expect("the command ends without a panic")
    }

    fn apply_changes(&mut self) {
        for (set, records) in self.sets.iter_mut().zip(&mut self.records) {
            set.apply_changes(records);
        }
    }

    fn face(&mut self, peer: impl Into<FacePeer>) -> Arc<Face> {
        let peer = peer.into();
        let params = face_params(peer, &parse_uri("dev://test0").expect("URI"), 1500);
        let face =
            self.table.insert(namehop_face::registry::FaceParams { home_worker: Some(0), ..params }).expect("room");
        let added = Arc::clone(&face);
        self.ask(move |controls| controls.add_face(PortId(0), 2, &added, peer).expect("added"));
        face
    }

    fn udp_face(&mut self) -> Arc<Face> {
        let (remote, local) = ("udp4://192.0.2.2:6363", "dev://test0?ip=192.0.2.1&port=6363");
        let peer = FacePeer::of(&parse_uri(remote).expect("URI"), &parse_uri(local).expect("URI"));
        self.face(peer.expect("a peer"))
    }

    /// Receives a frame on this queue. Returns what each worker has received after frames were handed over.
    fn receive(&mut self, queue: usize, frame: &[u8]) -> [Vec<(FaceId, Vec<u8>)>; 2] {
        self.wires[queue].lock().expect("wire").incoming.push(frame.to_vec());
        let mut frames = [Vec::new(), Vec::new()];
        for worker in [1, 0] {
            let (set, records) = (&mut self.sets[worker], &mut self.records[worker]);
            set.receive(self.now, &mut frames[worker], records, &self.pool);
            let others: Vec<_> = set.frames_for_others().collect();
            for (home, port, frame) in others {
                assert_eq!((worker, home), (1, 0));
                self.sets[home].accept(port, frame);
                assert!(self.sets[home].has_work());
            }
        }
        assert!(!self.sets[0].has_work());
        frames.map(|frames| frames.into_iter().map(|frame| (frame.face, frame.buffer.bytes().to_vec())).collect())
    }

    fn sends_for(&mut self, worker: usize, face: &Face) -> bool {
        let (_, output) = self.records[worker].get(face.id()).expect("a face of both workers");
        self.sets[worker].sends_for(face, output)
    }

    /// Returns the frames on this worker's queue after it sends a packet.
    fn send(&mut self, worker: usize, face: &Face) -> Vec<Vec<u8>> {
        let mut frames = vec![self.pool.copy_of(&INTEREST).expect("buffer")];
        let (_, output) = self.records[worker].get(face.id()).expect("a face of both workers");
        self.sets[worker].send(face, output, &mut frames, &self.pool);
        self.sets[worker].flush(&mut self.records[worker]);
        std::mem::take(&mut self.wires[worker].lock().expect("wire").sent)
    }

    fn drops(&self) -> u64 {
        LinkDrop::ALL.iter().map(|&reason| self.table.link_drops().get(reason)).sum()
    }
}

fn datagram(source_port: u16, payload: &[u8]) -> Vec<u8> {
    let ends = Ends { source: OTHER.into(), destination: OWN.into(), source_port, destination_port: 6363 };
    let pool = BufferPool::new(1, 1);
    let mut frame = pool.copy_of(payload).expect("buffer");
    assert!(UdpHeader::new(&ends, &PEER, None, &[], None).put_on(None, &mut frame, &pool));
    let mut frame = frame.bytes().to_vec();
    frame[..6].copy_from_slice(&HERE);
    frame
}

fn arp_answer() -> Vec<u8> {
    let arp =
        crate::encapsulation::arp::Arp { is_reply: true, sender: PEER, sender_ip: OTHER, target: HERE, target_ip: OWN };
    arp.to_frame(&HERE).to_vec()
}

/// An LpPacket with this header around the Interest.
fn link_packet(header: LpHeader) -> Vec<u8> {
    encode_packet(&header, Some(&INTEREST))
}

#[test]
fn whole_packets_of_known_peers_stay_with_the_worker_of_their_queue() {
    let mut pair = Pair::new();
    let (ethernet, udp) = (pair.face(Peer::Ethernet(PEER)), pair.udp_face());
    let with_token =
        link_packet(LpHeader { pit_token: PitToken::from_slice(&[1; 4]).expect("a token"), ..LpHeader::default() });
    let numbered = link_packet(LpHeader { sequence: Some(7), tx_sequence: Some(1), ..LpHeader::default() });
    for (face, packet) in [(&ethernet, &INTEREST[..]), (&ethernet, &with_token), (&udp, &INTEREST), (&udp, &with_token)]
    {
        let frame =
            if face.id() == udp.id() { datagram(6363, packet) } else { frame(HERE, PEER, ETHERTYPE_NDN, packet) };
        assert_eq!(pair.receive(1, &frame), [vec![], vec![(face.id(), packet.to_vec())]]);
        assert_eq!(pair.receive(0, &frame), [vec![(face.id(), packet.to_vec())], vec![]]);
    }
    // The state of a link is in its home worker.
    let protected = frame(HERE, PEER, ETHERTYPE_NDN, &numbered);
    assert_eq!(pair.receive(1, &protected), [vec![(ethernet.id(), numbered)], vec![]]);
    pair.sets[0].flush(&mut pair.records[0]);
    let counts = pair.sets.each_ref().map(|set| set.queue_counts());
    assert_eq!(counts.map(|counts| (counts[0].queue, counts[0].received_frames)), [(0, 4), (1, 5)]);
    assert_eq!((pair.drops(), pair.pool.in_use()), (0, 0));
}

/// Frames on the further queue, whole or damaged, have the same effect as on the first.
#[test]
fn it_does_not_matter_which_queue_a_frame_comes_to() {
    let good = [
        frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST),
        frame(HERE, UNKNOWN, ETHERTYPE_NDN, &INTEREST),
        frame(NDN_GROUP, PEER, ETHERTYPE_NDN, &INTEREST),
        tagged(HERE, PEER, 7, &INTEREST),
        datagram(6363, &INTEREST),
        datagram(7000, &INTEREST),
        arp_answer(),
        neighbour_discovery::question((PEER, std::net::Ipv6Addr::LOCALHOST), std::net::Ipv6Addr::UNSPECIFIED, None)
            .to_vec(),
    ];
    let mut frames = good.to_vec();
    for frame in &good {
        for at in 0..frame.len() {
            let mut damaged = frame.clone();
            damaged[at] ^= 0x41;
            frames.push(damaged);
            frames.push(frame[..at].to_vec());
        }
    }
    let outcomes = [0, 1].map(|queue| {
        let mut pair = Pair::new();
        pair.face(Peer::Ethernet(PEER));
        pair.udp_face();
        let mut found = Vec::new();
        for frame in &frames {
            let [first, second] = pair.receive(queue, frame);
            let [first, second] = [first, second].map(|packets| {
                let uri = |id| pair.table.get(id).expect("a face").remote_uri().to_string();
                packets.into_iter().map(|(id, packet)| (uri(id), packet)).collect::<Vec<_>>()
            });
            let drops: Vec<_> = LinkDrop::ALL.iter().map(|&reason| pair.table.link_drops().get(reason)).collect();
            found.push((frame.clone(), [first, second].concat(), drops));
        }
        found
    });
    assert!(outcomes[0] == outcomes[1]);
}

#[test]
fn a_face_that_a_sender_has_made_is_known_to_the_other_worker_until_it_is_removed() {
    let mut pair = Pair::new();
    let greeting = frame(HERE, UNKNOWN, ETHERTYPE_NDN, &INTEREST);
    let [first, second] = pair.receive(1, &greeting);
    assert_eq!((first.len(), second.len()), (1, 0), "the worker with the port must create the face");
    let id = first[0].0;
    pair.apply_changes();
    assert_eq!(pair.receive(1, &greeting), [vec![], vec![(id, INTEREST.to_vec())]]);
    let face = pair.table.get(id).expect("a face");
    assert!(pair.sends_for(1, &face));
    pair.ask(move |controls| controls.remove_face(PortId(0), 2, id).expect("removed"));
    pair.table.remove(id);
    assert!(pair.records.iter_mut().all(|records| records.get(id).is_none()));
    let [first, second] = pair.receive(1, &greeting);
    assert!(first[0].0 != id && second.is_empty());
}

#[test]
fn an_evicted_face_is_removed_from_the_other_worker_too() {
    let mut pair = Pair::new();
    let senders = [1, 2, 3, 4, 5].map(|number| [0x02, 9, 9, 9, 9, number]);
    let ids = senders.map(|sender| {
        // The receiving queue does not matter for the creation of faces.
        let [first, _] = pair.receive(1, &frame(HERE, sender, ETHERTYPE_NDN, &INTEREST));
        first[0].0
    });
    pair.apply_changes();
    assert_eq!(pair.table.link_drops().get(LinkDrop::FaceEvicted), 1);
    for (number, id) in ids.into_iter().enumerate() {
        let is_there = number > 0;
        assert_eq!(pair.table.get(id).is_some(), is_there, "face {number}");
        assert!(pair.records.iter_mut().all(|records| records.get(id).is_some() == is_there), "face {number}");
    }
    let known = frame(HERE, senders[4], ETHERTYPE_NDN, &INTEREST);
    assert_eq!(pair.receive(1, &known), [vec![], vec![(ids[4], INTEREST.to_vec())]]);
}

#[test]
fn frames_leave_by_the_queue_of_their_worker() {
    let mut pair = Pair::new();
    let face = pair.face(Peer::Ethernet(PEER));
    for worker in [0, 1] {
        assert!(pair.sends_for(worker, &face));
        assert_eq!(pair.send(worker, &face), [frame(PEER, HERE, ETHERTYPE_NDN, &INTEREST)]);
    }
    let reliability = FaceFlags::RELIABILITY;
    let update = FaceUpdate { flags: reliability, flags_mask: reliability.0, ..FaceUpdate::default() };
    face.update(&update).expect("allowed");
    assert!(pair.sends_for(0, &face) && !pair.sends_for(1, &face), "only one worker may send on a reliable face");
    // Without a queue of its own, the worker lets the other one send, and keeps no frame.
    let open = pair.face(Peer::Ethernet(UNKNOWN));
    pair.wires[1].lock().expect("wire").room = 0;
    assert!(pair.send(1, &open).is_empty());
    assert!(pair.sets[1].flush(&mut pair.records[1]).is_some(), "a frame must be waiting");
    let only: PortQueues = vec![Box::new(TestPort(Arc::clone(&pair.wires[0]), pair.pool.clone()))];
    pair.ask(move |controls| {
        controls.take_queues(PortId(0), 2).expect("taken");
        controls.give_queues(PortId(0), 2, only, HERE, 1500).expect("the worker takes the queues");
    });
    assert!(pair.sends_for(0, &open) && !pair.sends_for(1, &open));
    assert!(pair.sets[1].flush(&mut pair.records[1]).is_none(), "no frame may be waiting");
    assert_eq!(pair.table.link_drops().get(LinkDrop::LinkDown), 1);
}

#[test]
fn the_next_hop_that_one_worker_has_found_is_known_to_all() {
    let mut pair = Pair::new();
    let face = pair.udp_face();
    assert!(pair.sends_for(0, &face) && !pair.sends_for(1, &face), "the next hop is unknown at first");
    // The answer arrives on the further queue, after the request was sent on the first.
    pair.now = pair.now.plus_ms(1_000);
    pair.sets[0].receive(pair.now, &mut Vec::new(), &mut pair.records[0], &pair.pool);
    pair.receive(1, &arp_answer());
    assert!(pair.sends_for(1, &face));
    let [by_first, by_second] = [0, 1].map(|worker| pair.send(worker, &face));
    let datagrams =
        |frames: Vec<Vec<u8>>| frames.into_iter().filter(|frame| frame[12..14] == [8, 0]).collect::<Vec<_>>();
    let [by_first, by_second] = [by_first, by_second].map(datagrams);
    assert_eq!(by_first, by_second);
    assert_eq!((by_second.len(), &by_second[0][..6]), (1, &PEER[..]));
    // The link was interrupted.
    pair.controls.set_state(PortId(0), 2, false);
    pair.controls.set_state(PortId(0), 2, true);
    pair.apply_changes();
    assert!(!pair.sends_for(1, &face));
    // A removed port leaves nothing behind.
    let id = face.id();
    pair.ask(move |controls| {
        controls.remove_face(PortId(0), 2, id).expect("removed");
        controls.remove(PortId(0), 2).expect("removed");
    });
    assert!(pair.sets.iter().all(PortSet::is_empty));
    assert_eq!(pair.pool.in_use(), 0);
}
