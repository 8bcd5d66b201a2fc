//! Tests of the link service, and the bench that they share.

mod fragmentation;
mod path_mtu;
mod pit_tokens;
mod properties;
mod receive;
mod reliability;
mod send;
mod shorter_way;

use namehop_packet::{
    BufferPool, FaceId, Incoming, IncomingBurst, LinkFields, Outgoing, PacketBuffer, PacketKind, Timestamp,
};
use namehop_wire::lp::{LpHeader, LpPacket, PitToken, encode_packet};

use super::*;
use crate::counters::{LinkDrop, WorkerCounters};
use crate::registry::{DEFAULT_PARTIAL_PACKETS_OF_ALL_FACES, FaceFlags, FaceParams, FaceTable};
use crate::uri::FaceUri;

/// Interest `/A`, nonce 01020304.
const INTEREST: &str = "050B 0703080141 0A0401020304";
/// A minimal Data: the link service checks no more of it.
const DATA: &str = "0605 0703080141";

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    assert!(digits.len().is_multiple_of(2), "{text}");
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal")).collect()
}

/// Returns a Data element with this many content bytes.
fn data_with(content_bytes: usize, seed: u8) -> Vec<u8> {
    let mut packet = match content_bytes {
        0..=252 => vec![6, content_bytes as u8],
        _ => vec![6, 253, (content_bytes >> 8) as u8, content_bytes as u8],
    };
    packet.extend((0..content_bytes).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)));
    packet
}

/// All options disabled, on a stream link.
const PLAIN: LinkOptions = LinkOptions {
    mtu_bytes: 8800,
    is_datagram: false,
    local_fields: false,
    reliability: false,
    congestion_marking: false,
    self_learning: false,
    base_congestion_marking_interval_ns: 100_000_000,
    default_congestion_threshold_bytes: 65_536,
};

const DATAGRAM: LinkOptions = LinkOptions { is_datagram: true, ..PLAIN };

const RELIABLE: LinkOptions = LinkOptions { reliability: true, ..DATAGRAM };

/// One link service with its pool and clock.
struct Bench {
    pool: BufferPool,
    now: Timestamp,
    service: LinkService,
    reassembler: Reassembler,
    dropped: Vec<DroppedInterest>,
}

impl Bench {
    fn new(options: LinkOptions) -> Self {
        Bench::with_pool(options, BufferPool::new(10_000, 2_000))
    }

    fn with_pool(options: LinkOptions, pool: BufferPool) -> Self {
        Bench::on(&FaceTable::new(), options, pool)
    }

    /// PIT tokens are always sent on this face; other tests cover what the peer knows.
    fn on(faces: &FaceTable, options: LinkOptions, pool: BufferPool) -> Self {
        let flags = FaceFlags::PIT_TOKENS_ON;
        Bench::of_face(faces, FaceParams { flags, ..FaceParams::new(FaceUri::Null, FaceUri::Null) }, options, pool)
    }

    fn of_face(faces: &FaceTable, params: FaceParams, options: LinkOptions, pool: BufferPool) -> Self {
        let face = faces.insert(params).expect("face");
        let mut service = LinkService::with_first_sequence(face, 0, 0x1000);
        service.update(options);
        let reassembler = Reassembler::new(0, DEFAULT_PARTIAL_PACKETS_OF_ALL_FACES);
        Bench { pool, now: Timestamp(0), service, reassembler, dropped: Vec::new() }
    }

    fn buffer(&self, bytes: &[u8]) -> PacketBuffer {
        self.pool.copy_of(bytes).expect("buffer")
    }

    fn counters(&self) -> &WorkerCounters {
        self.service.counters()
    }

    fn drops(&self, reason: LinkDrop) -> u64 {
        self.counters().link_drops.get(reason)
    }

    fn receive_from(&mut self, endpoint: u64, frame: &[u8]) -> Result<Vec<Incoming>, LinkDrop> {
        let mut out = IncomingBurst::default();
        let frame = self.buffer(frame);
        let Bench { pool, now, service, reassembler, .. } = self;
        service.receive(*now, frame, endpoint, pool, reassembler, &mut out)?;
        Ok(std::mem::take(out.in_order()))
    }

    fn receive(&mut self, frame: &[u8]) -> Result<Vec<Incoming>, LinkDrop> {
        self.receive_from(0, frame)
    }

    fn send_with(
        &mut self,
        kind: PacketKind,
        packet: &[u8],
        fields: LinkFields,
        queue_bytes: usize,
    ) -> Result<Vec<Vec<u8>>, LinkDrop> {
        let mut frames = Vec::new();
        let packet = Outgoing { face: FaceId(256), kind, buffer: self.buffer(packet), fields };
        self.service.send(self.now, packet, queue_bytes, &self.pool, &mut frames)?;
        Ok(frames.iter().map(|frame| frame.bytes().to_vec()).collect())
    }

    fn send(&mut self, kind: PacketKind, packet: &[u8]) -> Result<Vec<Vec<u8>>, LinkDrop> {
        self.send_with(kind, packet, LinkFields::default(), 0)
    }

    fn tick(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        self.reassembler.expire(self.now);
        self.service.tick(self.now, &self.pool, &mut frames, &mut self.dropped);
        frames.iter().map(|frame| frame.bytes().to_vec()).collect()
    }

    fn next_deadline(&self) -> Timestamp {
        self.service.next_deadline().min(self.reassembler.next_deadline())
    }

    fn partial_packets(&self) -> usize {
        self.reassembler.waiting()
    }

    /// Sets the clock and performs the actions that are due then.
    fn tick_at_ms(&mut self, ms: u64) -> Vec<Vec<u8>> {
        self.now = Timestamp(0).plus_ms(ms);
        self.tick()
    }
}
