//! One port of the worker: whom its frames belong to, and what waits to be sent.

use std::collections::VecDeque;
use std::fmt;

use namehop_packet::{FaceId, PacketBuffer, PortQueue};

use super::header::{self, HEADER_BYTES, MacAddress, is_group};
use crate::counters::LinkDrop;
use crate::peers::{PeerTable, endpoint_number};
use crate::uri::FaceUri;

/// Number of a port in its [`PortSet`](super::PortSet); small, given out by the control side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortId(pub u16);

/// What stands around NDN packets on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// An Ethernet header; any number of faces.
    Ethernet,
    /// Nothing; one face.
    Bare,
}

/// What a new port is.
pub struct PortParams {
    /// The link; `None` while it is being restarted.
    pub link: Option<Box<dyn PortQueue>>,
    /// What its frames look like.
    pub framing: Framing,
    /// Its hardware address, the source of what it sends.
    pub address: MacAddress,
    /// Local URI of its faces.
    pub local_uri: FaceUri,
    /// Largest NDN frame it carries, in bytes, without Ethernet header.
    pub mtu_bytes: usize,
    /// How many faces unknown senders may make by sending a packet; 0 = they are dropped.
    pub max_on_demand_faces: usize,
    /// Whether the link works.
    pub is_up: bool,
}

impl fmt::Debug for PortParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortParams").field("local_uri", &self.local_uri).field("framing", &self.framing).finish()
    }
}

/// Whom a received frame belongs to.
pub(super) enum Owner {
    /// This face; the number tells the senders of a multicast face apart.
    Face(FaceId, u64),
    /// Nobody yet: an NDN frame to this port from an unknown sender.
    Stranger(MacAddress),
}

/// A port in use.
pub(super) struct Port {
    pub(super) params: PortParams,
    /// By source address, those of multicast groups by group: the two never meet.
    by_address: PeerTable<FaceId, MacAddress>,
    /// The face of a bare link.
    only_face: Option<FaceId>,
    /// Faces that senders made.
    pub(super) on_demand_faces: usize,
    /// Frames to send, oldest first.
    pub(super) waiting: Vec<PacketBuffer>,
    /// While the port is congested, the lengths of the frames that wait; empty otherwise, because the link mostly takes
    /// all at once.
    lengths: VecDeque<u32>,
    /// Their sum.
    waiting_bytes: usize,
}

impl Port {
    pub(super) fn new(params: PortParams) -> Self {
        Port {
            params,
            by_address: PeerTable::new(),
            only_face: None,
            on_demand_faces: 0,
            waiting: Vec::new(),
            lengths: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// Enters a face. `remote` does not count on a bare link.
    pub(super) fn attach(&mut self, face: FaceId, remote: MacAddress) {
        match self.params.framing {
            Framing::Ethernet => self.by_address.insert(remote, face),
            Framing::Bare => self.only_face = Some(face),
        }
    }

    /// Forgets a face.
    pub(super) fn detach(&mut self, face: FaceId, remote: &MacAddress) {
        if self.by_address.get(remote) == Some(&face) {
            self.by_address.remove(remote);
        }
        if self.only_face == Some(face) {
            self.only_face = None;
        }
    }

    /// Takes the header and padding off a received frame and finds whose it is.
    pub(super) fn sort(&self, frame: &mut PacketBuffer) -> Result<Owner, LinkDrop> {
        let owner = match self.params.framing {
            Framing::Bare => Owner::Face(self.only_face.ok_or(LinkDrop::LinkDown)?, 0),
            Framing::Ethernet => {
                let (destination, source) = header::decode(frame.bytes()).ok_or(LinkDrop::NotNdnFrame)?;
                frame.trim_front(HEADER_BYTES);
                if is_group(&destination) {
                    let face = self.by_address.get(&destination).ok_or(LinkDrop::UnknownGroup)?;
                    Owner::Face(*face, endpoint_number(&source))
                } else if destination != self.params.address || is_group(&source) {
                    return Err(LinkDrop::ForeignFrame);
                } else {
                    self.by_address.get(&source).map_or(Owner::Stranger(source), |face| Owner::Face(*face, 0))
                }
            }
        };
        header::cut_padding(frame).map(|()| owner)
    }

    /// Frames were left over when the port last sent.
    pub(super) fn is_congested(&self) -> bool {
        !self.lengths.is_empty()
    }

    /// Bytes that were left over when the port last sent, and those queued since; 0 when none were left.
    pub(super) fn backlog_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Adds complete frames to those that wait.
    #[inline]
    pub(super) fn queue(&mut self, frames: &mut Vec<PacketBuffer>) {
        if self.is_congested() {
            self.note_lengths(frames);
        }
        self.waiting.append(frames);
    }

    #[cold]
    fn note_lengths(&mut self, frames: &[PacketBuffer]) {
        for frame in frames {
            let bytes = frame.bytes().len();
            self.waiting_bytes += bytes;
            self.lengths.push_back(bytes as u32);
        }
    }

    /// Sends what waits, as far as the link takes it.
    pub(super) fn flush(&mut self) {
        let Some(link) = &mut self.params.link else { return };
        link.transmit(&mut self.waiting);
        if self.waiting.is_empty() {
            self.lengths.clear();
            self.waiting_bytes = 0;
        } else if self.is_congested() {
            for sent in self.lengths.drain(..self.lengths.len() - self.waiting.len()) {
                self.waiting_bytes -= sent as usize;
            }
        } else {
            let left = std::mem::take(&mut self.waiting);
            self.note_lengths(&left);
            self.waiting = left;
        }
    }

    /// Gives up what waits; returns how many frames that were.
    pub(super) fn discard(&mut self) -> usize {
        let count = self.waiting.len();
        self.waiting.clear();
        self.lengths.clear();
        self.waiting_bytes = 0;
        count
    }
}
