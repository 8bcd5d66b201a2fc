//! Tests of a set of ports on a link with its other end in the test.

mod bypass;
mod control;
mod internet;
mod queues;
mod receive;
mod send;
mod unsolicited;

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use namehop_packet::port::RETRY_PAUSE;
use namehop_packet::{BufferPool, PacketBuffer, PortQueue, Timestamp};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::drivers::parse_uri;
use crate::encapsulation::{ETHERTYPE_NDN, FacePeer, Framing, MIN_FRAME_BYTES, NDN_GROUP, Peer};
use namehop_face::address::{MacAddress, VlanId};
use namehop_face::counters::LinkDrop;
use namehop_face::registry::{Face, FaceFlags, FaceTable};
use namehop_face::ring::Frame;
use namehop_face::socket::FaceEvent;
use namehop_face::wake::Waker;

const HERE: MacAddress = [0x02, 0, 0, 0, 0, 0x01];
const PEER: MacAddress = [0x02, 0, 0, 0, 0, 0x02];
const UNKNOWN: MacAddress = [0x02, 0, 0, 0, 0, 0x03];
/// Interest `/A`.
const INTEREST: [u8; 13] = [0x05, 0x0B, 0x07, 0x03, 0x08, 0x01, 0x41, 0x0A, 0x04, 1, 2, 3, 4];

/// Both directions of a link; `room` frames can be sent before it is emptied.
#[derive(Default)]
struct Wire {
    incoming: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    room: usize,
}

struct TestPort(Arc<Mutex<Wire>>, BufferPool);

impl PortQueue for TestPort {
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        let incoming = std::mem::take(&mut self.0.lock().expect("wire").incoming);
        frames.extend(incoming.iter().map(|frame| self.1.copy_of(frame).expect("buffer")));
    }

    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        let mut wire = self.0.lock().expect("wire");
        let count = frames.len().min(wire.room);
        wire.room -= count;
        wire.sent.extend(frames.drain(..count).map(|frame| frame.bytes().to_vec()));
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

const IDLE: Duration = Duration::from_secs(600);

/// Records of a worker that does nothing else with its faces.
#[derive(Default)]
struct Records(HashMap<FaceId, (Arc<Face>, PortOutput)>);

impl FaceRecords for Records {
    fn add(&mut self, face: &Arc<Face>, output: PortOutput) {
        self.0.insert(face.id(), (Arc::clone(face), output));
    }

    fn remove(&mut self, id: FaceId) -> Option<PortOutput> {
        self.0.remove(&id).map(|(_, output)| output)
    }

    fn get(&mut self, id: FaceId) -> Option<(&Face, &mut PortOutput)> {
        self.0.get_mut(&id).map(|(face, output)| (&**face, output))
    }
}

struct Bench {
    set: PortSet,
    records: Records,
    control: Arc<PortControl>,
    table: Arc<FaceTable>,
    events: UnboundedReceiver<FaceEvent>,
    pool: BufferPool,
    wire: Arc<Mutex<Wire>>,
    now: Timestamp,
}

impl Bench {
    fn new(framing: Framing, max_on_demand_faces: usize) -> Bench {
        Bench::with_addresses(framing, max_on_demand_faces, PortNetwork::default())
    }

    fn with_addresses(framing: Framing, max_on_demand_faces: usize, network: PortNetwork) -> Bench {
        let (table, (sender, events)) = (Arc::new(FaceTable::new()), unbounded_channel());
        let waker = Arc::new(Waker::new());
        let (set, control) = PortSet::new(Arc::clone(&table), sender, waker, FaceFlags::CONGESTION_MARKING, true, IDLE);
        let pool = BufferPool::new(8192, 64);
        let wire = Arc::new(Mutex::new(Wire { room: usize::MAX, ..Wire::default() }));
        let (records, control, now) = (Records::default(), Arc::new(control), Timestamp(1_000_000_000));
        let mut bench = Bench { set, records, control, table, events, pool, wire, now };
        let params = PortParams { framing, ..bench.params(max_on_demand_faces, network) };
        bench.ask(move |control| control.add(PortId(0), params).expect("added"));
        bench
    }

    /// Returns the parameters of the port `dev://test0` with Ethernet frames on the link of this bench. Unknown senders
    /// are admitted if untagged.
    fn params(&self, max_on_demand_faces: usize, network: PortNetwork) -> PortParams {
        PortParams {
            queue: Some(Box::new(TestPort(Arc::clone(&self.wire), self.pool.clone()))),
            framing: Framing::Ethernet,
            address: HERE,
            networks: vec![PortNetwork { on_demand: max_on_demand_faces > 0, ..network }],
            uri: parse_uri("dev://test0").expect("URI"),
            mtu_bytes: 1500,
            max_on_demand_faces,
            max_unsolicited_per_address: usize::MAX,
            is_up: true,
        }
    }

    /// Runs `question` on a thread as the control side, while this thread is the worker.
    fn ask<T: Send + 'static>(&mut self, question: impl FnOnce(&PortControl) -> T + Send + 'static) -> T {
        let control = Arc::clone(&self.control);
        let asking = thread::spawn(move || question(&control));
        while !asking.is_finished() {
            self.set.apply_changes(&mut self.records);
            thread::yield_now();
        }
        asking.join().expect("the command ends without a panic")
    }

    fn face(&mut self, remote: MacAddress) -> Arc<Face> {
        self.face_on(0, "dev://test0", Peer::Ethernet(remote))
    }

    /// Creates a face on the port with this number and URI.
    fn face_on(&mut self, port: u16, uri: &str, peer: impl Into<FacePeer>) -> Arc<Face> {
        let peer = peer.into();
        let face = self.table.insert(face_params(peer, &parse_uri(uri).expect("URI"), 1500)).expect("room");
        let added = Arc::clone(&face);
        self.ask(move |control| control.add_face(PortId(port), added, peer).expect("added"));
        face
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().expect("wire")
    }

    fn receive(&mut self, frame: Vec<u8>) -> Vec<Frame> {
        self.wire().incoming.push(frame);
        let mut frames = Vec::new();
        assert!(self.set.receive(self.now, &mut frames, &mut self.records, &self.pool));
        frames
    }

    fn send(&mut self, face: &Face, packet: &[u8]) {
        let mut frames = vec![self.pool.copy_of(packet).expect("buffer")];
        self.send_frames(face, &mut frames);
        assert!(frames.is_empty());
    }

    fn send_frames(&mut self, face: &Face, frames: &mut Vec<PacketBuffer>) {
        let (_, output) = self.records.get(face.id()).expect("a face of a port");
        self.set.send(face, output, frames, &self.pool);
    }

    fn flush(&mut self) -> Option<Duration> {
        self.set.flush(&mut self.records)
    }

    fn dropped(&self, reason: LinkDrop) -> u64 {
        self.table.link_drops().get(reason)
    }
}

fn vlan(identifier: u16) -> VlanId {
    VlanId::new(identifier).expect("a VLAN")
}

/// Builds a frame with the tag of a VLAN: 64 bytes at least.
fn tagged(destination: MacAddress, source: MacAddress, tag: u16, payload: &[u8]) -> Vec<u8> {
    let mut tagged = frame(destination, source, ETHERTYPE_NDN, payload);
    tagged.splice(12..12, [0x81, 0x00, (tag >> 8) as u8, tag as u8]);
    tagged
}

fn frame(destination: MacAddress, source: MacAddress, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [destination, source].concat();
    frame.extend_from_slice(&ethertype.to_be_bytes());
    frame.extend_from_slice(payload);
    frame.resize(frame.len().max(MIN_FRAME_BYTES), 0);
    frame
}
