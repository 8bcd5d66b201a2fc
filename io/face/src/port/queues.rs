//! A port with several queues: each belongs to another worker.
//!
//! The worker with the first queue has the port: it makes faces for unknown senders, answers for the port's addresses, finds the way to
//! next hops, carries the kernel's share, and keeps the state of links. A worker with a further queue knows the faces of the port, and
//! takes from its queue the frames that need no state: a whole packet, with a PIT token or without, from a peer with a face. All
//! others it hands over as they are to the first worker, for whom it is as if they had come to its own queue. Frames are sent by
//! whoever has them, on the worker's own queue, unless the face has link reliability, or its next hop is not known: then the
//! packets are handed over.

use std::sync::{Arc, Weak};

use namehop_packet::{FaceId, PacketBuffer};
use namehop_wire::lp::UsualFrame;
use namehop_wire::tlv::frame_length;

use super::change::{Mailbox, PortChange};
use super::single::{Last, Owner};
use super::{FaceHeader, PortId, PortOutput, PortSet};
use crate::counters::LinkDrop;
use crate::encapsulation::FacePeer;
use crate::registry::{Face, FaceFlags};
use crate::ring::Frame;
use crate::wake::Waker;

/// What a worker has of a port.
pub(super) enum Share {
    /// The first queue and the port itself; the others have the further queues.
    First { others: Vec<Follower> },
    /// The queue with this number; the worker with the number `home` has the port.
    Further { queue: usize, home: usize },
}

/// A worker with a further queue, as the one with the first knows it.
pub(super) struct Follower {
    /// Weak, so that a worker that ends is found out.
    pub(super) mailbox: Weak<Mailbox>,
    pub(super) waker: Arc<Waker>,
}

impl Follower {
    /// Tells it of a face that a sender has made. It is removed by the control side like all others, unless it has to give way.
    pub(super) fn add_face(&self, id: PortId, face: &Arc<Face>, peer: FacePeer) {
        self.tell(PortChange::AddFace(id, Arc::clone(face), peer, None));
    }

    /// Tells it of such a face that had to give way to another.
    pub(super) fn remove_face(&self, face: FaceId) {
        self.tell(PortChange::RemoveFace(face, None));
    }

    fn tell(&self, change: PortChange) {
        if let Some(mailbox) = self.mailbox.upgrade() {
            mailbox.changes.push(change);
            self.waker.wake();
        }
    }
}

/// What went through one queue of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCounts {
    /// The port's URI.
    pub port: String,
    /// Number of the queue on its port.
    pub queue: usize,
    /// Frames received, whatever became of them.
    pub received_frames: u64,
    /// Frames that the link has taken.
    pub sent_frames: u64,
    /// Faces whose frames the device puts into this queue by a rule.
    pub steered_faces: usize,
}

impl PortSet {
    /// Takes what needs no state from the burst of a further queue; the rest is for the worker that has the port.
    pub(super) fn receive_further(
        &mut self,
        id: PortId,
        home: usize,
        received: &mut Vec<PacketBuffer>,
        frames: &mut Vec<Frame>,
    ) {
        let mut last = Last::None;
        for mut buffer in received.drain(..) {
            match self.take_whole_packet(id, &mut buffer, &mut last) {
                Some((face, endpoint)) => frames.push(Frame::new(face, endpoint, buffer)),
                None => self.for_others.push((home, id, buffer)),
            }
        }
    }

    /// Takes everything around the packet off a frame of a known face that holds a whole one and no link field but a PIT token. Other
    /// frames stay as they are.
    fn take_whole_packet(&self, id: PortId, frame: &mut PacketBuffer, last: &mut Last) -> Option<Owner> {
        let port = self.ports.get(usize::from(id.0))?.as_ref()?;
        let bytes = frame.bytes();
        let (owner, place) = port.known_owner(bytes, last)?;
        let payload = bytes.get(place.clone())?;
        let packet = payload.get(..frame_length(payload).ok()??)?;
        UsualFrame::decode(packet)?;
        let end = place.start + packet.len();
        frame.truncate(end);
        frame.trim_front(place.start);
        Some(owner)
    }

    /// The frames for the workers that have their ports: number of the worker, port, and the frame as it was received.
    pub fn frames_for_others(&mut self) -> impl Iterator<Item = (usize, PortId, PacketBuffer)> {
        self.for_others.drain(..)
    }

    /// Takes a frame of this port that has come to a further queue. It is received with the next turn.
    pub fn accept(&mut self, id: PortId, frame: PacketBuffer) {
        match self.port(id) {
            Some(port) => {
                port.handed_in.push(frame);
                self.has_accepted = true;
            }
            None => self.table.link_drops().add(LinkDrop::LinkDown, 1),
        }
    }

    /// Whether this worker sends what leaves by a face with this output; otherwise the face's home worker does.
    #[inline]
    pub fn sends_for(&mut self, face: &Face, output: &PortOutput) -> bool {
        match self.port(output.port) {
            Some(port) => match (&port.share, &output.header) {
                (Share::First { .. }, ..) => true,
                _ if port.params.queue.is_none() || face.flags().contains(FaceFlags::RELIABILITY) => false,
                (_, FaceHeader::Link(_)) => true,
                (_, FaceHeader::Internet { host, place }) => port.host(*host).is_some_and(|host| host.is_ready(*place)),
            },
            // What is sent there is counted as lost.
            None => true,
        }
    }

    /// Bytes that wait on the worker's queue of the port of this output, if the link does not take all at once.
    #[inline]
    pub fn backlog_bytes(&self, output: &PortOutput) -> usize {
        let port = self.ports.get(usize::from(output.port.0)).and_then(Option::as_ref);
        port.map_or(0, |port| port.waiting.backlog_bytes())
    }

    /// What went through the queues of this worker, by number of the port.
    pub fn queue_counts(&self) -> Vec<QueueCounts> {
        let counts = self.ports.iter().flatten().map(|port| QueueCounts {
            port: port.params.uri.to_string(),
            queue: match port.share {
                Share::First { .. } => 0,
                Share::Further { queue, .. } => queue,
            },
            received_frames: port.received_frames,
            sent_frames: port.sent_frames,
            steered_faces: port.params.queue.as_ref().map_or(0, |queue| queue.steered_flows()),
        });
        counts.collect()
    }
}
