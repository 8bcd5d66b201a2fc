//! Faces over ports: links that the worker polls by itself, over Ethernet or with bare NDN frames, such as memif.
//!
//! Everything here but the control side's ends runs on the worker's thread. [`PortSet`] holds the worker's ports, finds out whose the frames are that they
//! receive, and puts headers on what it sends. What receives and sends frames is a
//! [`PortQueue`](namehop_packet::PortQueue), and what headers look like is known to [`encapsulation`](crate::encapsulation)
//! alone. What the set needs of a face it gets with the worker's record of that face: see [`PortOutput`] and [`FaceRecords`].
//! The control side changes the set through a [`PortControl`] and gets an answer when the change is in effect.
//!
//! A port with Internet addresses also answers who asks for them, and has faces over UDP and VXLAN: `internet` does that, and asks for
//! the hardware addresses of their next hops, with a `neighbour` for each. In each VLAN with addresses it is a host of its own.
//!
//! A port can have several queues, each of another worker: `queues`.
//!
//! A frame that belongs to no face is dropped and counted under its reason, or makes an on-demand face where that is allowed, if need be
//! in place of another one: `strangers`. The
//! kernel may have a share of a link, and then gets what is not NDN: `bypass`.

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
mod strangers;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use namehop_packet::FaceId;

use crate::encapsulation::Header;
use crate::registry::Face;

pub use change::{PortControl, WorkerSilent};
pub use controls::{PortControls, PortQueues};
pub use network::{PortAddress, PortNetwork};
pub use params::{PortId, PortParams, face_params};
pub use queues::QueueCounts;
pub use set::PortSet;

/// How the frames of a face leave through a port. It is part of the worker's record of the face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortOutput {
    /// The port.
    port: PortId,
    /// What is put in front of each frame.
    header: FaceHeader,
}

/// Where the header of a face's frames is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FaceHeader {
    /// In this record.
    Link(Header),
    /// Too long for a worker's record of a face: with its port, which is a host in several networks, at this place among the outputs
    /// of one of them.
    Internet {
        /// Which of the hosts.
        host: u16,
        /// Which of its outputs.
        place: u32,
    },
}

/// The worker's records of faces, as ports use them. There is no other place that says which faces are on which port.
pub trait FaceRecords {
    /// Adds a face that is on a port. One that is there already leaves through the port from now on.
    fn add(&mut self, face: &Arc<Face>, output: PortOutput);

    /// Removes a face. Gives what it was added with; `None` when there is none on a port with this number.
    fn remove(&mut self, id: FaceId) -> Option<PortOutput>;

    /// The face with this number and what it was added with, if it is on a port.
    fn get(&mut self, id: FaceId) -> Option<(&Face, &mut PortOutput)>;
}
