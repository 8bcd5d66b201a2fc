//! Steering: tells a network card with several queues which frames belong to a face, so that it puts them into one
//! queue.

use namehop_face::address::VlanId;
use namehop_face::registry::Face;
use namehop_port::drivers::Device;
use namehop_port::encapsulation::{FacePeer, InternetPeer, Peer, SourcePort, Tunnel};
use namehop_port::steering::{Flow, Origin};
use tracing::{debug, info};

/// Returns the fields that all frames of the face to this peer share. `None` for groups, to which any host may send,
/// and for links with one peer.
fn flow_of(peer: &FacePeer) -> Option<Flow> {
    let origin = match peer {
        peer if peer.is_group() => return None,
        FacePeer::Link(Peer::Ethernet(address) | Peer::Vlan(address, _)) => Origin::Ethernet(*address),
        FacePeer::Link(Peer::Bare) => return None,
        FacePeer::Internet(InternetPeer { local, remote, tunnel, .. }) => {
            let (source_port, destination_port) = match *tunnel {
                Tunnel::Udp { local_port, remote_port, source_port: SourcePort::Fixed } => {
                    (Some(remote_port), local_port)
                }
                Tunnel::Udp { local_port, .. } => (None, local_port),
                Tunnel::Inside(peer) => (None, peer.kind.port),
            };
            Origin::Udp { source: *remote, destination: *local, source_port, destination_port }
        }
    };
    Some(Flow { vlan: peer.vlan().map(VlanId::get), origin })
}

/// The steering state of a port: whether a refusal was logged.
#[derive(Debug, Default)]
pub(super) struct Steering {
    was_refused: bool,
}

impl Steering {
    /// Steers the frames of a face. Without steering they arrive on all queues; the first refusal is logged.
    pub(super) fn add(&mut self, device: &dyn Device, face: &Face) {
        let Some(flow) = flow_of_face(face) else { return };
        match device.steer(flow) {
            Ok(Some(queue)) => {
                info!(face = %face.id(), remote = %face.remote_uri(), queue, "the network card steers a face")
            }
            Ok(None) => {}
            Err(error) if self.was_refused => debug!(face = %face.id(), %error, "the frames of a face are not steered"),
            Err(error) => {
                self.was_refused = true;
                info!(face = %face.id(), %error, "the card does not steer a face: workers dispatch its packets");
            }
        }
    }

    /// Stops steering the frames of a face.
    pub(super) fn remove(&self, device: &dyn Device, face: &Face) {
        if let Some(Err(error)) = flow_of_face(face).map(|flow| device.release(&flow)) {
            debug!(face = %face.id(), %error, "cannot stop steering the frames of a face");
        }
    }
}

fn flow_of_face(face: &Face) -> Option<Flow> {
    flow_of(&FacePeer::of(face.remote_uri(), &face.local_uri())?)
}

#[cfg(test)]
mod tests {
    use namehop_port::drivers::parse_uri;

    use super::*;

    #[test]
    fn a_flow_is_what_the_frames_of_a_face_have_in_common() {
        let udp = |source: &str, destination: &str, source_port, destination_port| {
            let [source, destination] = [source, destination].map(|text| text.parse().expect("an address"));
            Some(Origin::Udp { source, destination, source_port, destination_port })
        };
        let v4 = "pci://0000:03:00.0?ip=192.0.2.1";
        let hardware = Some(Origin::Ethernet([2, 0, 0, 0, 0, 1]));
        for (remote, local, vlan, origin) in [
            ("ether://[02:00:00:00:00:01]", "pci://0000:03:00.0", None, hardware),
            ("ether://[02:00:00:00:00:01]", "pci://0000:03:00.0?vlan=7", Some(7), hardware),
            ("ether://[01:00:5e:00:17:aa]", "pci://0000:03:00.0", None, None),
            ("memif:///x?id=1", "memif:///x?id=1", None, None),
            (
                "udp4://192.0.2.2:7000",
                &format!("{v4}&port=6363"),
                None,
                udp("192.0.2.2", "192.0.2.1", Some(7000), 6363),
            ),
            (
                "udp4://192.0.2.2:7000",
                &format!("{v4}&port=1&source_port=name"),
                None,
                udp("192.0.2.2", "192.0.2.1", None, 1),
            ),
            (
                "vxlan6://[2001:db8::2]?vni=5",
                "pci://0000:03:00.0?vlan=7&ip=2001:db8::1",
                Some(7),
                udp("2001:db8::2", "2001:db8::1", None, 4789),
            ),
        ] {
            let peer =
                FacePeer::of(&parse_uri(remote).expect(remote), &parse_uri(local).expect(local)).expect("a face");
            assert_eq!(flow_of(&peer), origin.map(|origin| Flow { vlan, origin }), "{remote} {local}");
        }
    }
}
