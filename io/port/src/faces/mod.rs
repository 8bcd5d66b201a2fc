//! Faces over ports: links that the worker polls by itself, over Ethernet or with bare NDN frames, such as memif.
//!
//! All code here runs on the worker's thread, except the handles of the control side. [`PortSet`] holds the worker's
//! ports, finds the faces of the received frames, and puts headers on sent frames. A
//! [`PortQueue`](namehop_packet::PortQueue) receives and sends frames; only [`encapsulation`](crate::encapsulation)
//! knows the formats of headers. The set's data about a face is in the worker's record of that face: see [`PortOutput`]
//! and [`FaceRecords`]. The control side changes the set through a [`PortControl`], which returns when the change is in
//! effect.
//!
//! A port with Internet addresses also answers requests for them, and has faces over UDP and VXLAN. `internet` does
//! this, and resolves the hardware addresses of their next hops, with one `neighbour` for each. In each VLAN with
//! addresses the port is a separate host.
//!
//! A port can have several queues, each owned by another worker: `queues`.
//!
//! A frame that belongs to no face is dropped and counted under its reason. Where that is allowed, it creates an
//! on-demand face instead, if necessary by evicting another one: `unsolicited`. If the kernel has a share of the link,
//! it gets the frames that are not NDN: `bypass`.

#![forbid(unsafe_code)]

mod bypass;
mod change;
mod controls;
mod hosts;
mod internet;
mod neighbour;
mod network;
mod params;
mod queues;
mod send_queue;
mod set;
mod single;
#[cfg(test)]
mod tests;
mod unsolicited;

use std::sync::Arc;

use namehop_packet::FaceId;

use crate::encapsulation::Header;
use namehop_face::registry::Face;

pub use change::{PortControl, WorkerSilent};
pub use controls::{PortControls, PortQueues};
pub use network::{PortAddress, PortNetwork};
pub use params::{PortId, PortParams, face_params};
pub use queues::QueueCounts;
pub use set::PortSet;

/// How frames of a face leave through a port. Part of the worker's record of the face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortOutput {
    /// The port.
    port: PortId,
    /// The header in front of each frame.
    header: FaceHeader,
}

/// Location of the header of a face's frames.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FaceHeader {
    /// In this record.
    Link(Header),
    /// In the port, because it is too long for a worker's record of a face. The port is a host in several networks; the
    /// header is in the outputs of one of them.
    Internet {
        /// Index of the host.
        host: u16,
        /// Index in its outputs.
        output_index: u32,
    },
}

/// The worker's records of faces, as ports use them. Only these records say which faces are on which port.
pub trait FaceRecords {
    /// Adds a face on a port. If the face is there already, it leaves through the given port from now on.
    fn add(&mut self, face: &Arc<Face>, output: PortOutput);

    /// Removes a face. Returns its output; `None` if no face with this id is on a port.
    fn remove(&mut self, id: FaceId) -> Option<PortOutput>;

    /// Returns the face with this id and its output, if it is on a port.
    fn get(&mut self, id: FaceId) -> Option<(&Face, &mut PortOutput)>;
}
