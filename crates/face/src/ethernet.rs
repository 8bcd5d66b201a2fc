//! Faces over Ethernet (ethertype 0x8624) and over links that carry bare NDN frames, such as memif.
//!
//! The worker polls these links by itself, so everything here runs on its thread: [`PortSet`] holds its ports, sorts what
//! they receive to faces, and puts headers on what it sends. What receives and sends frames is a
//! [`PortQueue`](namehop_packet::PortQueue); this module does not know what is behind it. The control side changes the set through a [`PortControl`] and gets an answer
//! when the change is in effect.
//!
//! Received frames are told apart by source address, and those to a multicast group by the group. A frame that belongs to
//! no face is dropped and counted under its reason, or makes an on-demand face where that is allowed.

mod change;
mod header;
mod port;
mod set;
#[cfg(test)]
mod tests;

use namehop_packet::LinkType;

use crate::registry::{FaceParams, FacePersistency};
use crate::uri::FaceUri;

pub use change::{PortControl, WorkerSilent};
pub use header::{ETHERTYPE_NDN, HEADER_BYTES, MIN_FRAME_BYTES, MacAddress, NDN_GROUP, is_group};
pub use port::{Framing, PortId, PortParams};
pub use set::PortSet;

/// Persistencies that a face to one Ethernet address may have.
const UNICAST_PERSISTENCIES: &[FacePersistency] =
    &[FacePersistency::OnDemand, FacePersistency::Persistent, FacePersistency::Permanent];

/// The usual parameters of a face to an Ethernet address or group on the port with this local URI, whose frames have at
/// most `mtu_bytes` behind their header.
pub fn face_params(remote: MacAddress, local: FaceUri, mtu_bytes: usize) -> FaceParams {
    let mut params = FaceParams::new(FaceUri::Ethernet(remote), local);
    params.is_datagram = true;
    params.link_mtu_bytes = mtu_bytes;
    if is_group(&remote) {
        params.link_type = LinkType::MultiAccess;
        params.persistency = FacePersistency::Permanent;
        params.allowed_persistencies = &[FacePersistency::Permanent];
    } else {
        params.allowed_persistencies = UNICAST_PERSISTENCIES;
    }
    params
}

/// The usual parameters of the one face on a link that carries bare NDN frames of at most `mtu_bytes`.
pub fn bare_face_params(uri: FaceUri, mtu_bytes: usize) -> FaceParams {
    let mut params = FaceParams::new(uri.clone(), uri);
    params.is_datagram = true;
    params.link_mtu_bytes = mtu_bytes;
    params.allowed_persistencies = &[FacePersistency::Persistent, FacePersistency::Permanent];
    params
}
