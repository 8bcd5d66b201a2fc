//! Network packets between link services and the engine, with their link-layer header fields.

use namehop_wire::lp::{NackReason, PitToken};

use crate::buffer::PacketBuffer;
use crate::face::FaceId;

/// Kind of a network-layer packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketKind {
    /// An Interest.
    Interest,
    /// A Data.
    Data,
    /// An Interest inside a link-layer packet with a Nack header.
    Nack,
}

/// NDNLPv2 header fields that concern the network layer (NDNLPv2 "network-layer headers").
#[derive(Debug)]
pub struct LinkFields {
    /// Opaque token of the downstream; empty when absent.
    pub pit_token: PitToken,
    /// Present on a Nack only.
    pub nack: Option<NackReason>,
    /// 0 = not congested.
    pub congestion_mark: u64,
    /// Outgoing only, and only kept on faces with local fields: where the packet came from.
    pub incoming_face_id: Option<FaceId>,
    /// Incoming Interests from privileged applications: the face to send to.
    pub next_hop_face_id: Option<u64>,
    /// CachePolicy NoCache on a Data.
    pub no_cache: bool,
    /// NonDiscovery on an Interest (self-learning).
    pub non_discovery: bool,
    /// PrefixAnnouncement on a Data: the complete announcement Data (self-learning).
    pub announcement: Option<PacketBuffer>,
}

impl Default for LinkFields {
    fn default() -> Self {
        LinkFields {
            pit_token: PitToken::empty(),
            nack: None,
            congestion_mark: 0,
            incoming_face_id: None,
            next_hop_face_id: None,
            no_cache: false,
            non_discovery: false,
            announcement: None,
        }
    }
}

/// A network-layer packet from a link service. `buffer` holds exactly one Interest or Data element.
#[derive(Debug)]
pub struct Incoming {
    /// Face it came in on.
    pub face: FaceId,
    /// The Interest or Data (for a Nack, the Interest inside).
    pub buffer: PacketBuffer,
    /// Its link-layer headers.
    pub fields: LinkFields,
}

/// A network-layer packet for a link service. `buffer` holds exactly one Interest or Data element.
#[derive(Debug)]
pub struct Outgoing {
    /// Face to send it on.
    pub face: FaceId,
    /// What it is, for counters.
    pub kind: PacketKind,
    /// The Interest or Data (for a Nack, the Interest inside).
    pub buffer: PacketBuffer,
    /// The link-layer headers to put on.
    pub fields: LinkFields,
}
