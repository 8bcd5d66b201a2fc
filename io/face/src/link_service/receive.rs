//! From frames to network-layer packets: decoding, the rules for each header field, reassembly, acknowledgements.
//!
//! The rules which fields are allowed on which packet follow NFD's generic link service. A packet that breaks a rule is
//! dropped with the name of the rule. Nearly all frames have none of these fields; they take a fast path with the same
//! result.

use namehop_packet::{BufferPool, Incoming, IncomingBurst, LinkFields, PacketBuffer, PacketKind, Timestamp};
use namehop_wire::lp::{LpPacket, UsualFrame};
use namehop_wire::tlv::{read_single_element, types};

use super::LinkService;
use super::reassembler::{Fragment, Reassembler};
use crate::counters::LinkDrop;
use crate::registry::LinkOptions;

/// A received Sequence is remembered for this multiple of this side's own time-out. That is long enough for the peer's
/// last retransmission, and short enough that a peer that restarts with old numbers is accepted again soon.
const DUPLICATE_MEMORY_TIMEOUTS: u64 = 4;
/// Network-layer headers of a packet of unknown kind.
#[derive(Debug, Default)]
pub struct NetworkHeader {
    fields: LinkFields,
    /// The frame has a PrefixAnnouncement, whether or not it was kept.
    has_announcement: bool,
}

impl NetworkHeader {
    /// Copies the fields of a decoded LpPacket. The announcement is copied too, because the frame becomes the packet.
    fn copy_from(packet: &LpPacket<'_>, options: &LinkOptions, pool: &BufferPool) -> Self {
        let announcement = packet.prefix_announcement;
        NetworkHeader {
            fields: LinkFields {
                pit_token: packet.pit_token,
                nack: packet.nack,
                congestion_mark: packet.congestion_mark.unwrap_or(0),
                // The peer's own face ids have no meaning here.
                incoming_face_id: None,
                next_hop_face_id: packet.next_hop_face_id,
                no_cache: packet.cache_policy.is_some(),
                non_discovery: packet.non_discovery,
                // If there is no buffer for the announcement, the Data is still delivered.
                announcement: announcement
                    .filter(|_| options.self_learning)
                    .and_then(|announcement| pool.copy_of(announcement)),
                ..LinkFields::default()
            },
            has_announcement: announcement.is_some(),
        }
    }

    /// Checks that each field is allowed on a packet of this kind from this face, and clears the fields to be ignored.
    fn into_fields(mut self, kind: PacketKind, options: &LinkOptions) -> Result<LinkFields, LinkDrop> {
        let fields = &mut self.fields;
        if fields.next_hop_face_id.is_some() {
            if kind != PacketKind::Interest {
                return Err(LinkDrop::NextHopOnWrongPacket);
            }
            if !options.local_fields {
                return Err(LinkDrop::NextHopNotAllowed);
            }
        }
        if fields.no_cache && kind != PacketKind::Data {
            return Err(LinkDrop::CachePolicyOnWrongPacket);
        }
        if fields.non_discovery && kind != PacketKind::Interest {
            return Err(LinkDrop::NonDiscoveryOnWrongPacket);
        }
        if self.has_announcement && kind != PacketKind::Data {
            return Err(LinkDrop::AnnouncementOnWrongPacket);
        }
        fields.non_discovery &= options.self_learning;
        Ok(self.fields)
    }
}

impl LinkService {
    /// Processes one received frame: exactly one LpPacket, Interest or Data element. `endpoint` distinguishes the peers
    /// of a multi-access face and is 0 on other faces; `reassembler` is shared by all faces. A complete network-layer
    /// packet is added to `out`; a fragment or a frame with only acknowledgements adds nothing.
    ///
    /// # Errors
    /// The reason why the frame or its packet was dropped; it is already counted.
    // Inlined into its callers, so that the packet is built in its final place.
    #[inline(always)]
    pub fn receive(
        &mut self,
        now: Timestamp,
        mut frame: PacketBuffer,
        endpoint: u64,
        pool: &BufferPool,
        reassembler: &mut Reassembler,
        out: &mut IncomingBurst,
    ) -> Result<(), LinkDrop> {
        let Some(usual) = UsualFrame::decode(frame.bytes()) else {
            return self.receive_other(now, frame, endpoint, pool, reassembler, out);
        };
        self.note_token(&usual.pit_token);
        let received = &self.counters.received;
        received.count_frame(frame.bytes().len());
        frame.trim_front(usual.header_len);
        let kind = if usual.is_data { PacketKind::Data } else { PacketKind::Interest };
        received.count_packet(kind, frame.bytes().len());
        let face = self.face.id();
        out.push(kind, move || {
            let fields = LinkFields { pit_token: usual.pit_token, ..LinkFields::default() };
            Incoming { face, buffer: frame, fields }
        });
        Ok(())
    }

    /// Processes a frame of any shape.
    #[inline(never)]
    pub(super) fn receive_other(
        &mut self,
        now: Timestamp,
        frame: PacketBuffer,
        endpoint: u64,
        pool: &BufferPool,
        reassembler: &mut Reassembler,
        out: &mut IncomingBurst,
    ) -> Result<(), LinkDrop> {
        let counters = &self.counters;
        counters.received.count_frame(frame.bytes().len());
        let is_bare = matches!(frame.bytes(), [first, ..]
            if [types::INTEREST, types::DATA].contains(&u32::from(*first)));
        let result = if is_bare {
            self.deliver(frame, NetworkHeader::default(), out)
        } else {
            self.receive_link_packet(now, frame, endpoint, pool, reassembler, out)
        };
        result.inspect_err(|&reason| self.counters.link_drops.add(reason, 1))
    }

    fn receive_link_packet(
        &mut self,
        now: Timestamp,
        mut frame: PacketBuffer,
        endpoint: u64,
        pool: &BufferPool,
        reassembler: &mut Reassembler,
        out: &mut IncomingBurst,
    ) -> Result<(), LinkDrop> {
        let packet = LpPacket::decode(frame.bytes()).map_err(|_| LinkDrop::MalformedHeader)?;
        self.note_token(&packet.pit_token);
        self.receive_reliability(now, &packet)?;
        if let Some(field) = packet.knows_pit_tokens {
            self.receive_knows_tokens(field);
        }
        if let Some(field) = packet.path_mtu_probe {
            self.receive_path_probe(now, field);
        }
        let Some(payload) = packet.fragment else {
            return Ok(());
        };
        let index = packet.frag_index.unwrap_or(0);
        let count = packet.frag_count.unwrap_or(1);
        let is_whole = index == 0 && count == 1;
        if !is_whole && !self.options.is_datagram {
            return Err(LinkDrop::FragmentOnStreamLink);
        }
        let header =
            if index == 0 { NetworkHeader::copy_from(&packet, &self.options, pool) } else { NetworkHeader::default() };
        if is_whole {
            // Fragment is the last element, so everything before it is header.
            let header_bytes = frame.bytes().len() - payload.len();
            frame.trim_front(header_bytes);
            return self.deliver(frame, header, out);
        }
        let fragment = Fragment { endpoint, sequence: packet.sequence, index, count, payload };
        match reassembler.accept(now, &self.face, fragment, header, pool)? {
            None => Ok(()),
            Some(whole) => self.deliver(whole.buffer, whole.header, out),
        }
    }

    /// Processes Acks, and queues the acknowledgement of this frame. Without reliability on this face both are ignored.
    fn receive_reliability(&mut self, now: Timestamp, packet: &LpPacket<'_>) -> Result<(), LinkDrop> {
        let Some(reliability) = self.reliability.as_deref_mut() else {
            return Ok(());
        };
        let acknowledged = packet.acks().filter(|&ack| reliability.window.acknowledge(now, ack)).count();
        let counters = &self.counters;
        counters.acknowledged.add(acknowledged as u64);
        let (Some(tx_sequence), Some(_)) = (packet.tx_sequence, packet.fragment) else {
            return Ok(());
        };
        // A duplicate is acknowledged too: it was sent because the first acknowledgement was lost.
        reliability.acks.push(now, tx_sequence);
        let memory_ns = DUPLICATE_MEMORY_TIMEOUTS.saturating_mul(reliability.window.rto_ns());
        match packet.sequence {
            Some(sequence) if reliability.received.is_duplicate(now, sequence, memory_ns) => {
                Err(LinkDrop::DuplicateSequence)
            }
            _ => Ok(()),
        }
    }

    /// Passes a complete packet to the network layer.
    fn deliver(&self, buffer: PacketBuffer, header: NetworkHeader, out: &mut IncomingBurst) -> Result<(), LinkDrop> {
        let element = read_single_element(buffer.bytes()).map_err(|_| LinkDrop::NotInterestOrData)?;
        let kind = match (element.typ, header.fields.nack) {
            (types::INTEREST, None) => PacketKind::Interest,
            (types::INTEREST, Some(_)) if self.note_nacked_probe(buffer.bytes()) => return Ok(()),
            (types::INTEREST, Some(_)) => PacketKind::Nack,
            (types::DATA, None) => PacketKind::Data,
            (types::DATA, Some(_)) => return Err(LinkDrop::NackOnData),
            _ => return Err(LinkDrop::NotInterestOrData),
        };
        let fields = header.into_fields(kind, &self.options)?;
        let received = &self.counters.received;
        received.count_packet(kind, buffer.bytes().len());
        let face = self.face.id();
        out.push(kind, move || Incoming { face, buffer, fields });
        Ok(())
    }
}
