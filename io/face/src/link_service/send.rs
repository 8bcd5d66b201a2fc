//! From network-layer packets to frames: headers in the headroom of the packet, fragmentation, protection by link
//! reliability, congestion marks, acknowledgements.
//!
//! Nearly all packets are sent whole and with at most a PIT token. They take a fast path, which writes the header
//! directly; the result is the same.

use namehop_packet::{BufferPool, HEADROOM_BYTES, LinkFields, Outgoing, PacketBuffer, PacketKind, Timestamp};
use namehop_wire::MAX_PACKET_SIZE;
use namehop_wire::lp::{
    CACHE_POLICY_NO_CACHE, LpHeader, NackReason, PitToken, encode_header, encode_idle, encode_token_header, header_len,
    idle_len, token_header_len,
};
use namehop_wire::tlv::{Reader, read_single_element, types};

use super::LinkService;
use super::fragmenter::FragmentPlan;
use super::reliability::{Carried, ProtectedFrame};
use crate::counters::LinkDrop;
use crate::registry::LinkOptions;

/// Length of an Ack on the wire.
const ACK_BYTES: usize = 12;
/// Maximum growth of headers besides the Acks themselves: a bare packet gets an LpPacket around it, or a LENGTH gets
/// longer.
const ACK_MARGIN_BYTES: usize = 8;
/// Length of TYPE and LENGTH of the largest IDLE packet.
const IDLE_OVERHEAD_BYTES: usize = 4;

impl LinkService {
    /// Turns a packet into frames and adds them to `frames`. `queue_bytes` is the length of the link's send queue, for
    /// congestion marking. A packet that fits keeps its buffer and gets its header in the headroom.
    ///
    /// # Errors
    /// The reason why the packet was dropped; it is already counted. No frame of the packet is in `frames`.
    // Inlined into its callers, so that the packet is not copied.
    #[inline(always)]
    pub fn send(
        &mut self,
        now: Timestamp,
        mut packet: Outgoing,
        queue_bytes: usize,
        pool: &BufferPool,
        frames: &mut Vec<PacketBuffer>,
    ) -> Result<(), LinkDrop> {
        self.mark(now, &mut packet.fields, queue_bytes);
        if packet.kind == PacketKind::Interest && !self.face.pit_tokens.are_sent() {
            self.withhold_token(now, &mut packet.fields, pool, frames);
        }
        let packet_bytes = packet.buffer.bytes().len();
        let header_bytes = token_header_len(&packet.fields.pit_token, packet_bytes);
        if header_bytes + packet_bytes > self.large_above_bytes.into() && !self.face.path_mtu.has_large() {
            self.note_large_frame();
        }
        if self.is_usual(&packet)
            && header_bytes + packet_bytes <= self.frame_limit_bytes()
            && let Some(room) = packet.buffer.prepend(header_bytes)
        {
            if header_bytes > 0 {
                encode_token_header(&packet.fields.pit_token, packet_bytes, room);
            }
            let sent = &self.counters.sent;
            sent.count_packet(packet.kind, packet_bytes);
            sent.count_frame(header_bytes + packet_bytes);
            frames.push(packet.buffer);
            return Ok(());
        }
        self.send_other(now, packet, pool, frames)
    }

    /// Whether the packet needs no header except its PIT token, if it has one.
    #[inline]
    fn is_usual(&self, packet: &Outgoing) -> bool {
        // All fields are listed by name, so that a new one cannot be forgotten: it would never be sent. The token and
        // the Nack reason need no check: the fast path writes the token, and the packet kind tells whether there is a
        // reason.
        let LinkFields {
            pit_token: _,
            nack: _,
            congestion_mark,
            incoming_face_id,
            // On received Interests only; routers do not send it.
            next_hop_face_id: _,
            no_cache,
            non_discovery,
            announcement,
            // Never sent.
            stamp: _,
        } = &packet.fields;
        self.reliability.is_none()
            && packet.kind != PacketKind::Nack
            && *congestion_mark == 0
            && !no_cache
            && !non_discovery
            && announcement.is_none()
            && (incoming_face_id.is_none() || !self.options.local_fields)
    }

    /// Returns the size of the largest frame that the link carries.
    #[inline]
    fn frame_limit_bytes(&self) -> usize {
        if self.options.is_datagram { self.options.mtu_bytes.into() } else { MAX_PACKET_SIZE }
    }

    /// Marks the packet as congested if a mark is due.
    #[inline]
    pub(super) fn mark(&mut self, now: Timestamp, fields: &mut LinkFields, queue_bytes: usize) {
        let options = &self.options;
        if !options.congestion_marking {
            return;
        }
        let marked = self.marker.should_mark(
            now,
            queue_bytes as u64,
            options.default_congestion_threshold_bytes,
            options.base_congestion_marking_interval_ns,
        );
        if marked && fields.congestion_mark == 0 {
            fields.congestion_mark = 1;
            self.counters.congestion_marks.add(1);
        }
    }

    /// Sends a packet of any shape; congestion marking is already done.
    #[inline(never)]
    pub(super) fn send_other(
        &mut self,
        now: Timestamp,
        packet: Outgoing,
        pool: &BufferPool,
        frames: &mut Vec<PacketBuffer>,
    ) -> Result<(), LinkDrop> {
        let (kind, packet_bytes, before) = (packet.kind, packet.buffer.bytes().len(), frames.len());
        let result = self.send_packet(now, packet, pool, frames);
        let counters = &self.counters;
        match result {
            Ok(()) => {
                counters.sent.count_packet(kind, packet_bytes);
                for frame in &frames[before..] {
                    counters.sent.count_frame(frame.bytes().len());
                }
            }
            Err(reason) => {
                frames.truncate(before);
                counters.link_drops.add(reason, 1);
            }
        }
        result
    }

    fn send_packet(
        &mut self,
        now: Timestamp,
        packet: Outgoing,
        pool: &BufferPool,
        frames: &mut Vec<PacketBuffer>,
    ) -> Result<(), LinkDrop> {
        let Outgoing { kind, buffer, fields, .. } = packet;
        let network = network_header(&self.options, kind, &fields);
        let limit = self.frame_limit_bytes();
        let protection = self.reliability.as_deref().map(|r| &r.window);
        let tx_sequence = protection.filter(|window| window.has_room(1)).map(|window| window.next_tx_sequence());
        let header = LpHeader { sequence: tx_sequence.map(|_| self.next_sequence), tx_sequence, ..network };
        let packet_bytes = buffer.bytes().len();
        let frame_bytes = frame_len(&header, packet_bytes);
        if frame_bytes <= limit {
            return self.send_whole(now, kind, buffer, &header, limit - frame_bytes, pool, frames);
        }
        if self.options.is_datagram {
            return self.send_fragments(now, kind, &buffer, &network, pool, frames);
        }
        // The token on an Interest is this router's own, and the returned Data can be matched without it.
        let tokenless = LpHeader { pit_token: PitToken::empty(), ..header };
        let frame_bytes = frame_len(&tokenless, packet_bytes);
        if kind == PacketKind::Interest && frame_bytes <= limit {
            return self.send_whole(now, kind, buffer, &tokenless, limit - frame_bytes, pool, frames);
        }
        Err(LinkDrop::PacketTooLong)
    }

    /// Sends a packet in one frame; `spare_bytes` is the unused part of the frame limit.
    #[allow(clippy::too_many_arguments)]
    fn send_whole(
        &mut self,
        now: Timestamp,
        kind: PacketKind,
        buffer: PacketBuffer,
        header: &LpHeader<'_>,
        spare_bytes: usize,
        pool: &BufferPool,
        frames: &mut Vec<PacketBuffer>,
    ) -> Result<(), LinkDrop> {
        let Some(reliability) = self.reliability.as_deref_mut() else {
            let frame =
                if header.is_empty() { buffer } else { prepend(buffer, header, pool).ok_or(LinkDrop::NoBuffer)? };
            frames.push(frame);
            return Ok(());
        };
        let packet_bytes = buffer.bytes().len();
        let own_header_bytes = header_len(header, packet_bytes);
        // More Acks than the headroom takes would require a copy of the packet; the others can be sent alone.
        let headroom_bytes = HEADROOM_BYTES.saturating_sub(own_header_bytes);
        let acks = reliability.acks.oldest(ack_room(spare_bytes.min(headroom_bytes)));
        let ack_count = acks.len();
        let full_header = LpHeader { acks, ..*header };
        let frame = if full_header.is_empty() {
            buffer
        } else {
            prepend(buffer, &full_header, pool).ok_or(LinkDrop::NoBuffer)?
        };
        reliability.acks.consume(ack_count);
        let counters = &self.counters;
        if header.tx_sequence.is_some() {
            self.next_sequence = self.next_sequence.wrapping_add(1);
            let sent = frame.bytes();
            let copy = if ack_count == 0 {
                pool.copy_of(sent)
            } else {
                build_frame(pool, header, &sent[sent.len() - packet_bytes..])
            };
            let carried = match kind {
                PacketKind::Interest => Carried::Interest,
                PacketKind::Data | PacketKind::Nack => Carried::Other,
            };
            let entry = copy.and_then(|copy| protect(copy, own_header_bytes, carried));
            counters.unprotected.add(u64::from(entry.is_none()));
            reliability.window.push(now, entry);
        } else {
            counters.unprotected.add(1);
        }
        frames.push(frame);
        Ok(())
    }

    fn send_fragments(
        &mut self,
        now: Timestamp,
        kind: PacketKind,
        buffer: &PacketBuffer,
        network: &LpHeader<'_>,
        pool: &BufferPool,
        frames: &mut Vec<PacketBuffer>,
    ) -> Result<(), LinkDrop> {
        let packet = buffer.bytes();
        let mtu_bytes = usize::from(self.options.mtu_bytes);
        let mut plan = FragmentPlan::new(network, self.reliability.is_some(), packet.len(), mtu_bytes)?;
        let mut first_tx_sequence = None;
        if let Some(reliability) = self.reliability.as_deref() {
            if reliability.window.has_room(plan.count) {
                first_tx_sequence = Some(reliability.window.next_tx_sequence());
            } else {
                plan = FragmentPlan::new(network, false, packet.len(), mtu_bytes)?;
            }
        }
        let before = frames.len();
        let first_sequence = self.next_sequence;
        let header = |index| plan.header(network, first_sequence, first_tx_sequence, index);
        for index in 0..plan.count - 1 {
            let piece = plan.piece(packet, index);
            let frame = build_frame(pool, &header(index), piece).ok_or(LinkDrop::NoBuffer)?;
            frames.push(frame);
        }
        let last = plan.count - 1;
        let last_header = header(last);
        let last_piece = plan.piece(packet, last);
        let last_bytes = header_len(&last_header, last_piece.len()) + last_piece.len();
        let spare_bytes = mtu_bytes.saturating_sub(last_bytes);
        let pending = self.reliability.as_deref_mut().map(|r| &mut r.acks);
        let acks = pending.map_or(&[][..], |acks| acks.oldest(ack_room(spare_bytes)));
        let ack_count = acks.len();
        let full_header = LpHeader { acks, ..last_header };
        frames.push(build_frame(pool, &full_header, last_piece).ok_or(LinkDrop::NoBuffer)?);
        self.next_sequence = first_sequence.wrapping_add(plan.count as u64);

        let Some(reliability) = self.reliability.as_deref_mut() else {
            return Ok(());
        };
        reliability.acks.consume(ack_count);
        let counters = &self.counters;
        if first_tx_sequence.is_none() {
            counters.unprotected.add(plan.count as u64);
            return Ok(());
        }
        let is_interest = kind == PacketKind::Interest;
        let interest = is_interest.then(|| pool.copy_of(packet)).flatten();
        let handle = reliability.window.begin_fragmented(interest);
        for (index, sent) in frames[before..].iter().enumerate() {
            let header = header(index);
            let piece = plan.piece(packet, index);
            let copy = if index == last && ack_count > 0 {
                build_frame(pool, &header, piece)
            } else {
                pool.copy_of(sent.bytes())
            };
            let header_bytes = header_len(&header, piece.len());
            let carried = Carried::FragmentOf(handle);
            let entry = copy.and_then(|copy| protect(copy, header_bytes, carried));
            counters.unprotected.add(u64::from(entry.is_none()));
            reliability.window.push(now, entry);
        }
        reliability.window.end_fragmented(handle);
        Ok(())
    }

    /// Sends all waiting acknowledgements in frames of their own.
    pub(super) fn send_idle_acks(&mut self, now: Timestamp, pool: &BufferPool, frames: &mut Vec<PacketBuffer>) {
        let Some(reliability) = self.reliability.as_deref_mut() else {
            return;
        };
        let room_bytes = usize::from(self.options.mtu_bytes).saturating_sub(IDLE_OVERHEAD_BYTES);
        let per_frame = (room_bytes / ACK_BYTES).max(1);
        while !reliability.acks.is_empty() {
            let acks = reliability.acks.oldest(per_frame);
            let ack_count = acks.len();
            let header = LpHeader { acks, ..LpHeader::default() };
            let length = idle_len(&header);
            let Some(mut frame) = pool.allocate(length) else {
                reliability.acks.postpone(now);
                return;
            };
            let Some(room) = frame.append(length) else {
                reliability.acks.postpone(now);
                return;
            };
            encode_idle(&header, room);
            reliability.acks.consume(ack_count);
            self.counters.sent.count_frame(length);
            frames.push(frame);
        }
    }
}

/// Returns the network-layer headers to send on a face with these options.
fn network_header<'a>(options: &LinkOptions, kind: PacketKind, fields: &'a LinkFields) -> LpHeader<'a> {
    // By name, for the same reason as in `is_usual`.
    let &LinkFields {
        pit_token,
        nack,
        congestion_mark,
        incoming_face_id,
        next_hop_face_id: _,
        no_cache,
        non_discovery,
        ref announcement,
        stamp: _,
    } = fields;
    LpHeader {
        pit_token,
        nack: (kind == PacketKind::Nack).then(|| nack.unwrap_or(NackReason::NONE)),
        incoming_face_id: incoming_face_id.filter(|_| options.local_fields).map(|face| u64::from(face.0)),
        cache_policy: no_cache.then_some(CACHE_POLICY_NO_CACHE),
        congestion_mark: (congestion_mark != 0).then_some(congestion_mark),
        non_discovery: non_discovery && options.self_learning,
        prefix_announcement: announcement.as_ref().filter(|_| options.self_learning).map(PacketBuffer::bytes),
        ..LpHeader::default()
    }
}

/// Returns the length of the frame for a packet of this length with this header.
fn frame_len(header: &LpHeader<'_>, packet_bytes: usize) -> usize {
    if header.is_empty() { packet_bytes } else { header_len(header, packet_bytes) + packet_bytes }
}

/// Returns how many Acks fit into this many bytes.
fn ack_room(spare_bytes: usize) -> usize {
    spare_bytes.saturating_sub(ACK_MARGIN_BYTES) / ACK_BYTES
}

/// Writes the header into the headroom, or builds a new frame if the headroom is too short.
fn prepend(mut buffer: PacketBuffer, header: &LpHeader<'_>, pool: &BufferPool) -> Option<PacketBuffer> {
    let packet_bytes = buffer.bytes().len();
    if let Some(room) = buffer.prepend(header_len(header, packet_bytes)) {
        encode_header(header, packet_bytes, room);
        return Some(buffer);
    }
    build_frame(pool, header, buffer.bytes())
}

/// Builds a frame in a new buffer.
fn build_frame(pool: &BufferPool, header: &LpHeader<'_>, payload: &[u8]) -> Option<PacketBuffer> {
    let header_bytes = header_len(header, payload.len());
    let mut frame = pool.allocate(header_bytes + payload.len())?;
    let room = frame.append(header_bytes + payload.len())?;
    encode_header(header, payload.len(), room);
    room[header_bytes..].copy_from_slice(payload);
    Some(frame)
}

/// Records the positions of the parts of a sent frame, for retransmission.
fn protect(buffer: PacketBuffer, payload_offset: usize, carried: Carried) -> Option<ProtectedFrame> {
    let outer = read_single_element(buffer.bytes()).ok()?;
    let mut reader = Reader::new(outer.value);
    while reader.read_element().ok()?.typ != types::LP_TX_SEQUENCE {}
    let outer_header_bytes = outer.wire.len() - outer.value.len();
    let tx_sequence_offset = outer_header_bytes + reader.position() - size_of::<u64>();
    Some(ProtectedFrame { buffer, tx_sequence_offset, payload_offset, carried })
}
