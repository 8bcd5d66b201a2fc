//! Network packets between link services and the engine, with their link-layer header fields.

use namehop_wire::lp::{NackReason, PitToken};

use crate::buffer::PacketBuffer;
use crate::face::FaceId;
use crate::in_place::push_in_place;
use crate::stamp::{PacketWay, Stamp};

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
    /// For outgoing packets, and only sent on faces with local fields: the face that the packet came from.
    pub incoming_face_id: Option<FaceId>,
    /// For incoming Interests from privileged applications: the face to send to.
    pub next_hop_face_id: Option<u64>,
    /// CachePolicy NoCache on a Data.
    pub no_cache: bool,
    /// NonDiscovery on an Interest (self-learning).
    pub non_discovery: bool,
    /// PrefixAnnouncement on a Data: the complete announcement Data (self-learning).
    pub announcement: Option<PacketBuffer>,
    /// Receive time of this packet, or of the Interest it satisfies, if it is measured. Never sent.
    pub stamp: Stamp,
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
            stamp: Stamp::NONE,
        }
    }
}

/// A network-layer packet from a link service. `buffer` holds exactly one Interest or Data element.
#[derive(Debug)]
pub struct Incoming {
    /// The face that the packet was received on.
    pub face: FaceId,
    /// The Interest or Data (for a Nack, the Interest inside).
    pub buffer: PacketBuffer,
    /// Link-layer header fields.
    pub fields: LinkFields,
}

/// Network-layer packets that were received together.
///
/// Data and Nacks are processed before Interests; packets of one kind stay in the order of their arrival. A packet
/// cannot depend on another packet of the same burst, but packets of one kind take the same path through the engine:
/// its instructions stay in the first-level cache and its branches are predicted, which is not so when kinds
/// alternate.
#[derive(Debug, Default)]
pub struct IncomingBurst {
    /// Data and Nacks.
    answers: Vec<Incoming>,
    interests: Vec<Incoming>,
}

impl IncomingBurst {
    /// Makes an empty burst with room for `packets` packets of each kind.
    pub fn with_capacity(packets: usize) -> Self {
        IncomingBurst { answers: Vec::with_capacity(2 * packets), interests: Vec::with_capacity(2 * packets) }
    }

    /// Adds a packet of this kind. Inlined into the caller, so that the packet is built in place.
    #[inline(always)]
    pub fn push(&mut self, kind: PacketKind, make: impl FnOnce() -> Incoming) {
        let list = if kind == PacketKind::Interest { &mut self.interests } else { &mut self.answers };
        push_in_place(list, make);
    }

    /// Returns the packets of each kind, in the order in which the kinds are processed.
    #[inline]
    pub fn kinds(&mut self) -> [&mut Vec<Incoming>; 2] {
        [&mut self.answers, &mut self.interests]
    }

    /// Stamps the first packet that was added since the kinds had `before` packets each, if there is one.
    #[cold]
    pub fn stamp_added(&mut self, before: [usize; 2], stamp: Stamp) {
        for (packets, before) in self.kinds().into_iter().zip(before) {
            if let Some(packet) = packets.get_mut(before) {
                packet.fields.stamp = stamp;
            }
        }
    }

    /// Marks the packets added since the kinds had `before` packets each as congested, unless they are marked.
    /// Returns the number of packets that it marked.
    #[cold]
    pub fn mark_added(&mut self, before: [usize; 2]) -> u64 {
        let mut marked = 0;
        for (packets, before) in self.kinds().into_iter().zip(before) {
            for packet in packets.iter_mut().skip(before).filter(|packet| packet.fields.congestion_mark == 0) {
                packet.fields.congestion_mark = 1;
                marked += 1;
            }
        }
        marked
    }

    /// Returns all packets in processing order; the caller empties the list.
    #[inline]
    pub fn in_order(&mut self) -> &mut Vec<Incoming> {
        if self.answers.is_empty() {
            // Avoids a copy.
            std::mem::swap(&mut self.answers, &mut self.interests);
        }
        self.answers.append(&mut self.interests);
        &mut self.answers
    }
}

/// A network-layer packet for a link service. `buffer` holds exactly one Interest or Data element.
#[derive(Debug)]
pub struct Outgoing {
    /// The face to send the packet on.
    pub face: FaceId,
    /// Kind of the packet, for counters.
    pub kind: PacketKind,
    /// The Interest or Data (for a Nack, the Interest inside).
    pub buffer: PacketBuffer,
    /// Link-layer header fields to send.
    pub fields: LinkFields,
}

impl Outgoing {
    /// Returns the packet's stamp with the way it took. `NONE` for Nacks, and for Interests that this router
    /// generates.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        if !self.fields.stamp.is_some() {
            return Stamp::NONE;
        }
        match (self.kind, self.fields.incoming_face_id) {
            (PacketKind::Interest, _) => self.fields.stamp.on(PacketWay::CacheMiss),
            (PacketKind::Data, Some(FaceId::CONTENT_STORE)) => self.fields.stamp.on(PacketWay::CacheHit),
            (PacketKind::Data, _) => self.fields.stamp.on(PacketWay::Data),
            (PacketKind::Nack, _) => Stamp::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BufferPool;

    #[test]
    fn interests_wait_for_data_and_nacks() {
        use PacketKind::{Data, Interest, Nack};
        let pool = BufferPool::new(16, 1);
        let mut burst = IncomingBurst::with_capacity(1);
        // Kinds of packets in the order of arrival, and their numbers in processing order.
        let cases: [(&[PacketKind], &[u32]); 4] = [
            (&[Interest, Data, Interest, Nack, Data], &[1, 3, 4, 0, 2]),
            (&[Interest, Interest], &[0, 1]),
            (&[Data, Nack], &[0, 1]),
            (&[], &[]),
        ];
        for (kinds, expected) in cases.into_iter().cycle().take(2 * cases.len()) {
            for (number, &kind) in (0..).zip(kinds) {
                burst.push(kind, || {
                    let buffer = pool.copy_of(b"packet").expect("a buffer");
                    Incoming { face: FaceId(number), buffer, fields: LinkFields::default() }
                });
            }
            let faces: Vec<u32> = burst.in_order().drain(..).map(|packet| packet.face.0).collect();
            assert_eq!(faces, expected, "{kinds:?}");
        }
    }
}
