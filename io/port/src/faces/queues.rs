//! Ports with several queues, each owned by another worker.
//!
//! The worker with the first queue has the port: it creates faces for unknown senders, answers for the port's
//! addresses, resolves next hops, forwards the kernel's share, and keeps the state of the links.
//!
//! A worker with a further queue knows the faces of the port. It processes the frames that need no state: a whole
//! packet, with a PIT token or without, from a peer with a face. It forwards all other frames unmodified to the worker
//! with the first queue, which processes them as if received on its own queue.
//!
//! Each worker sends frames on its own queue. If the face has link reliability, or its next hop is not resolved, it
//! transfers the packets to the face's home worker instead.

use std::sync::{Arc, Weak};

use namehop_packet::{FaceId, PacketBuffer};
use namehop_wire::lp::UsualFrame;
use namehop_wire::tlv::frame_length;

use super::change::{Mailbox, PortChange};
use super::single::{Last, Owner};
use super::{FaceHeader, PortId, PortOutput, PortSet};
use crate::encapsulation::FacePeer;
use namehop_face::counters::LinkDrop;
use namehop_face::registry::{Face, FaceFlags};
use namehop_face::ring::Frame;
use namehop_face::wake::Waker;

/// A worker's share of a port.
pub(super) enum Share {
    /// The first queue and the port itself; `others` have the further queues.
    First { others: Vec<Follower> },
    /// The further queue with this number; worker `home` has the port.
    Further { queue: usize, home: usize },
}

/// A worker with a further queue, as seen by the worker with the first one.
pub(super) struct Follower {
    /// Weak, so that the control side can detect that the worker has ended.
    pub(super) mailbox: Weak<Mailbox>,
    pub(super) waker: Arc<Waker>,
}

impl Follower {
    /// Tells this worker about a face created by an unknown sender. The control side removes the face like all others,
    /// unless it is evicted first.
    pub(super) fn add_face(&self, id: PortId, face: &Arc<Face>, peer: FacePeer) {
        self.report(PortChange::AddFace(id, Arc::clone(face), peer, None));
    }

    /// Tells this worker that such a face was evicted.
    pub(super) fn remove_face(&self, face: FaceId) {
        self.report(PortChange::RemoveFace(face, None));
    }

    fn report(&self, change: PortChange) {
        if let Some(mailbox) = self.mailbox.upgrade() {
            mailbox.changes.push(change);
            self.waker.wake();
        }
    }
}

/// Counters of one queue of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCounts {
    /// The port's URI.
    pub port: String,
    /// Number of the queue on its port.
    pub queue: usize,
    /// Frames received, whether delivered or dropped.
    pub received_frames: u64,
    /// Frames that the link accepted.
    pub sent_frames: u64,
    /// Number of faces with a device rule that steers their frames into this queue.
    pub steered_faces: usize,
}

impl PortSet {
    /// Takes the packets that need no state from a burst of a further queue; the other frames go to the worker that has
    /// the port.
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

    /// Removes everything around the packet from a frame of a known face that holds a whole packet and no link field
    /// except a PIT token. Leaves other frames unchanged.
    fn take_whole_packet(&self, id: PortId, frame: &mut PacketBuffer, last: &mut Last) -> Option<Owner> {
        let port = self.ports.get(usize::from(id.0))?.as_ref()?;
        let bytes = frame.bytes();
        let (owner, payload_range) = port.known_owner(bytes, last)?;
        let payload = bytes.get(payload_range.clone())?;
        let packet = payload.get(..frame_length(payload).ok()??)?;
        UsualFrame::decode(packet)?;
        let end = payload_range.start + packet.len();
        frame.truncate(end);
        frame.trim_front(payload_range.start);
        Some(owner)
    }

    /// Removes the frames for the workers that have their ports: worker number, port, and the frame as received.
    pub fn frames_for_others(&mut self) -> impl Iterator<Item = (usize, PortId, PacketBuffer)> {
        self.for_others.drain(..)
    }

    /// Accepts a frame of this port that was received on a further queue. It is processed in the next poll iteration.
    pub fn accept(&mut self, id: PortId, frame: PacketBuffer) {
        match self.port(id) {
            Some(port) => {
                port.handed_in.push(frame);
                self.has_accepted = true;
            }
            None => self.table.link_drops().add(LinkDrop::LinkDown, 1),
        }
    }

    /// Whether this worker sends the packets of a face with this output; otherwise the face's home worker does.
    #[inline]
    pub fn sends_for(&mut self, face: &Face, output: &PortOutput) -> bool {
        match self.port(output.port) {
            Some(port) => match (&port.share, &output.header) {
                (Share::First { .. }, ..) => true,
                _ if port.params.queue.is_none() || face.flags().contains(FaceFlags::RELIABILITY) => false,
                (_, FaceHeader::Link(_)) => true,
                (_, FaceHeader::Internet { host, output_index }) => {
                    port.host(*host).is_some_and(|host| host.is_ready(*output_index))
                }
            },
            // Packets sent there are counted as lost.
            None => true,
        }
    }

    /// Returns the bytes queued on the worker's queue of this output's port; 0 unless the link is congested.
    #[inline]
    pub fn backlog_bytes(&self, output: &PortOutput) -> usize {
        let port = self.ports.get(usize::from(output.port.0)).and_then(Option::as_ref);
        port.map_or(0, |port| port.waiting.backlog_bytes())
    }

    /// Returns the counters of this worker's queues, in order of port number.
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
