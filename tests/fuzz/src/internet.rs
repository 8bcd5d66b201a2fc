//! A port with IP addresses and Ethernet faces, with and without a VLAN: for any frames at any time, it creates at most
//! the permitted number of faces and leaks no buffers.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use namehop_face::address::VlanId;
use namehop_face::registry::{Face, FaceFlags, FaceTable};
use namehop_face::wake::Waker;
use namehop_packet::{BufferPool, Checksum, FaceId, PacketBuffer, PortQueue, Timestamp};
use namehop_port::drivers::parse_uri;
use namehop_port::encapsulation::{FacePeer, Framing};
use namehop_port::faces::{FaceRecords, PortId, PortNetwork, PortOutput, PortParams, PortSet, face_params};
use namehop_wire::tlv::read_single_element;
use tokio::sync::mpsc::unbounded_channel;

use crate::script::Events;

const PORT: &str = "dev://port";
const ADDRESSES: [&str; 2] = ["192.0.2.1/24", "2001:db8::1/64"];
const GATEWAY: &str = "192.0.2.254";
const HARDWARE_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Faces of all kinds of sender addresses.
const FACES: [(&str, &str); 9] = [
    ("udp4://192.0.2.2:6363", "dev://port?ip=192.0.2.1&port=6363"),
    ("udp4://198.51.100.2:6363", "dev://port?ip=192.0.2.1&port=6363&source_port=name"),
    ("udp6://[2001:db8::2]:6363", "dev://port?ip=2001:db8::1&port=6363"),
    ("vxlan4://192.0.2.3?vni=7", "dev://port?ip=192.0.2.1"),
    ("udp4://192.0.2.2:6363", "dev://port?vlan=7&ip=192.0.2.1&port=6363"),
    ("vxlan6://[2001:db8::2]?vni=7", "dev://port?vlan=7&ip=2001:db8::1"),
    ("ether://[02:00:00:00:00:02]", "dev://port"),
    ("ether://[02:00:00:00:00:02]", "dev://port?vlan=7"),
    ("ether://[01:00:5e:00:17:aa]", "dev://port?vlan=7"),
];
/// Maximum number of faces that senders can create.
const MAX_ON_DEMAND_FACES: usize = 4;
/// Bit of an event's kind: the frame gets valid checksums before it is received.
const RIGHT_CHECKSUMS: u8 = 0x80;
/// Valid frame lengths on the link, in bytes, up to 1500 bytes behind an Ethernet header with a VLAN tag.
const FRAME_BYTES: RangeInclusive<usize> = 60..=1518;

/// One end of a link: holds frames to receive, and discards sent frames.
struct Link(Arc<Mutex<Vec<PacketBuffer>>>);

impl PortQueue for Link {
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        frames.append(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        assert!(frames.iter().all(|frame| FRAME_BYTES.contains(&frame.bytes().len())), "a frame that no link carries");
        frames.clear();
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Returns the settings of the port in a VLAN, or without a tag.
fn network(vlan: Option<VlanId>) -> PortNetwork {
    PortNetwork {
        vlan,
        on_demand: true,
        addresses: ADDRESSES.map(|text| text.parse().expect("an address")).to_vec(),
        gateways: vec![GATEWAY.parse().expect("an address")],
    }
}

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

/// Each event is a received frame, a packet sent by a face, or passing time.
pub fn internet_frames(bytes: &[u8]) {
    let (pool, table, incoming) = (BufferPool::new(1024, 64), Arc::new(FaceTable::new()), Arc::default());
    let (events, _listener) = unbounded_channel();
    let waker = Arc::new(Waker::new());
    let idle = Duration::from_secs(600);
    let (mut set, control) = PortSet::new(Arc::clone(&table), events, waker, FaceFlags::default(), false, idle);
    let mut records = Records::default();
    let faces: Vec<Arc<Face>> = thread::scope(|scope| {
        let making = scope.spawn(|| {
            let params = PortParams {
                queue: Some(Box::new(Link(Arc::clone(&incoming)))),
                framing: Framing::Ethernet,
                address: HARDWARE_ADDRESS,
                networks: [None, VlanId::new(7)].map(network).to_vec(),
                uri: parse_uri(PORT).expect("a URI"),
                mtu_bytes: 1500,
                max_on_demand_faces: MAX_ON_DEMAND_FACES,
                max_unsolicited_per_address: 4,
                is_up: true,
            };
            control.add(PortId(0), params).expect("the worker answers");
            let make = |(remote, local): &(&str, &str)| {
                let peer = FacePeer::of(&parse_uri(remote).expect("a URI"), &parse_uri(local).expect("a URI"));
                let peer = peer.expect("a face of a port");
                let face = table.insert(face_params(peer, &parse_uri(PORT).expect("a URI"), 1500)).expect("room");
                control.add_face(PortId(0), Arc::clone(&face), peer).expect("the worker answers");
                face
            };
            FACES.iter().map(make).collect()
        });
        while !making.is_finished() {
            set.apply_changes(&mut records);
            thread::yield_now();
        }
        making.join().expect("faces were made")
    });
    let mut now = Timestamp(0);
    let mut frames = Vec::new();
    for (kind, bytes) in Events(bytes) {
        match kind & 7 {
            0..=4 => {
                let Some(mut frame) = pool.copy_of(bytes) else { continue };
                if kind & RIGHT_CHECKSUMS != 0 {
                    set_checksums(frame.bytes_mut());
                }
                incoming.lock().unwrap_or_else(PoisonError::into_inner).push(frame);
            }
            5 | 6 => {
                let face = &faces[usize::from(kind >> 3) % faces.len()];
                let mut packets: Vec<_> = pool.copy_of(&bytes[..bytes.len().min(1400)]).into_iter().collect();
                if let Some((_, output)) = records.0.get(&face.id()) {
                    set.send(face, output, &mut packets, &pool);
                }
            }
            _ => now = now.plus_ms(bytes.len() as u64 * 100),
        }
        set.receive(now, &mut frames, &mut records, &pool);
        assert!(set.next_deadline() > now, "a turn does what is due");
        set.flush(&mut records);
        for frame in frames.drain(..) {
            assert!(read_single_element(frame.buffer.bytes()).is_ok(), "a packet is one element");
        }
        assert!(records.0.len() <= FACES.len() + MAX_ON_DEMAND_FACES);
        assert!(pool.in_use() <= 256, "{} packets wait", pool.in_use());
    }
    drop((set, frames));
    assert_eq!(pool.in_use(), 0, "buffers leaked");
}

/// Sets valid checksums in a packet as far as it has any, so that inputs reach the code behind the checks.
fn set_checksums(frame: &mut [u8]) {
    let header_bytes = if frame.get(12..14) == Some(&[0x81, 0x00]) { 18 } else { 14 };
    let Some((ethernet, packet)) = frame.split_at_mut_checked(header_bytes) else { return };
    let (addresses, header_bytes, protocol) = match ethernet[header_bytes - 2..] {
        [0x08, 0x00] if packet.len() > 28 => {
            packet[10..12].fill(0);
            let header_bytes = (usize::from(packet[0] & 0xF) * 4).clamp(20, packet.len());
            let checksum = Checksum::new().bytes(&packet[..header_bytes]).finish();
            packet[10..12].copy_from_slice(&checksum);
            (12..20, header_bytes, packet[9])
        }
        [0x86, 0xDD] if packet.len() > 48 => (8..40, 40, packet[6]),
        _ => return,
    };
    let length = if header_bytes == 40 && addresses.start == 8 {
        u16::from_be_bytes([packet[4], packet[5]])
    } else {
        u16::from_be_bytes([packet[2], packet[3]]).saturating_sub(header_bytes as u16)
    };
    let pseudo = Checksum::new().bytes(&packet[addresses]).number(protocol.into()).number(length);
    let Some(payload) = packet.get_mut(header_bytes..header_bytes + usize::from(length)) else { return };
    let (sum, at) = match protocol {
        17 => (pseudo, 6),
        58 => (pseudo, 2),
        1 => (Checksum::new(), 2),
        _ => return,
    };
    if let Some(field) = payload.get_mut(at..at + 2) {
        field.fill(0);
        let checksum = sum.bytes(payload).finish_udp();
        payload[at..at + 2].copy_from_slice(&checksum);
    }
}
