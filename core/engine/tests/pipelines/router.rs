//! The test fixture: an engine with a few faces, builders for packets, and sent packets as short lines of text.
//!
//! A line is the kind of packet (`I`, `D`, `N`) with its face, the name, and other relevant fields: `I300 /A n1 h2` is
//! an Interest to face 300 with Nonce 1 and HopLimit 2, `D256 /A t:0102 m1` is Data with PIT token and congestion mark,
//! `N256 /A NoRoute n1` is a Nack.

use std::fmt::Write;

use namehop_engine::fib::{FibWriter, NextHop};
use namehop_engine::strategy::{StrategyInstance, registry};
use namehop_engine::{CsErasure, Engine, EngineConfig, EngineEvent};
use namehop_hash::HashKey;
use namehop_packet::{
    BufferPool, DropReason, FaceId, FaceInfo, FaceScope, Incoming, LinkFields, LinkType, Outgoing, PacketBuffer,
    PacketKind, Stamp, Timestamp,
};
use namehop_wire::lp::PitToken;
use namehop_wire::{DataHeader, Interest};

pub use crate::packets::*;

/// Point-to-point faces to other hosts.
pub const CONSUMER: u32 = 256;
pub const CONSUMER2: u32 = 257;
pub const PRODUCER: u32 = 300;
pub const PRODUCER2: u32 = 301;
/// Faces to processes on this host.
pub const APP: u32 = 260;
pub const APP2: u32 = 261;
/// Faces with several peers.
pub const MULTI: u32 = 270;
pub const ADHOC: u32 = 271;

const STANDARD_FACES: [(u32, FaceScope, LinkType); 8] = [
    (CONSUMER, FaceScope::NonLocal, LinkType::PointToPoint),
    (CONSUMER2, FaceScope::NonLocal, LinkType::PointToPoint),
    (PRODUCER, FaceScope::NonLocal, LinkType::PointToPoint),
    (PRODUCER2, FaceScope::NonLocal, LinkType::PointToPoint),
    (APP, FaceScope::Local, LinkType::PointToPoint),
    (APP2, FaceScope::Local, LinkType::PointToPoint),
    (MULTI, FaceScope::NonLocal, LinkType::MultiAccess),
    (ADHOC, FaceScope::NonLocal, LinkType::AdHoc),
];

/// A packet that the engine sent.
pub struct Sent {
    pub face: u32,
    pub kind: PacketKind,
    pub bytes: Vec<u8>,
    pub fields: LinkFields,
    /// Time of reception of the packet that caused this one, and its way through the router.
    pub stamp: Stamp,
}

impl Sent {
    /// Returns the prefix announcement that was sent with it.
    pub fn announcement(&self) -> Option<&[u8]> {
        self.fields.announcement.as_ref().map(PacketBuffer::bytes)
    }

    /// Returns the packet as a line of text.
    pub fn line(&self) -> String {
        let mut line = match self.kind {
            PacketKind::Data => {
                let header = DataHeader::decode(&self.bytes).expect("the engine sends valid Data");
                format!("D{} {}", self.face, header.name)
            }
            PacketKind::Interest | PacketKind::Nack => {
                let interest = Interest::decode(&self.bytes).expect("the engine sends valid Interests");
                let kind = if self.kind == PacketKind::Nack { 'N' } else { 'I' };
                let mut line = format!("{kind}{} {}", self.face, interest.name);
                if let Some(reason) = self.fields.nack {
                    write!(line, " {reason}").expect("text");
                }
                for (flag, word) in [(interest.can_be_prefix, " CBP"), (interest.must_be_fresh, " MBF")] {
                    line.push_str(if flag { word } else { "" });
                }
                for delegation in interest.forwarding_hint.into_iter().flatten() {
                    write!(line, " hint:{delegation}").expect("text");
                }
                match interest.nonce {
                    Some(nonce) => write!(line, " n{nonce}").expect("text"),
                    // A Nack returns an Interest as it was received.
                    None => assert_eq!(self.kind, PacketKind::Nack, "every forwarded Interest has a Nonce"),
                }
                if let Some(hop_limit) = interest.hop_limit {
                    write!(line, " h{hop_limit}").expect("text");
                }
                line
            }
        };
        if self.kind != PacketKind::Interest && !self.fields.pit_token.is_empty() {
            line.push_str(" t:");
            for byte in self.fields.pit_token.as_slice() {
                write!(line, "{byte:02x}").expect("text");
            }
        }
        if self.fields.congestion_mark > 0 {
            write!(line, " m{}", self.fields.congestion_mark).expect("text");
        }
        if self.fields.non_discovery {
            line.push_str(" ND");
        }
        line
    }

    pub fn token(&self) -> Vec<u8> {
        self.fields.pit_token.as_slice().to_vec()
    }
}

/// An engine with faces, routes and a clock.
pub struct Router {
    pub engine: Engine,
    pub fib: FibWriter<StrategyInstance>,
    pub pool: BufferPool,
    pub now: Timestamp,
    out: Vec<Outgoing>,
}

impl Router {
    pub fn new() -> Self {
        Router::with(EngineConfig::default())
    }

    pub fn with(config: EngineConfig) -> Self {
        let key = HashKey::new(1, 2);
        let pool = BufferPool::new(100_000, 10_000);
        let fib = FibWriter::new(key, StrategyInstance::default()).expect("memory");
        let engine = Engine::new(config, fib.reader(), pool.clone(), key).expect("memory");
        let mut router = Router { engine, fib, pool, now: Timestamp(1_000_000_000), out: Vec::new() };
        for (id, scope, link_type) in STANDARD_FACES {
            router.face(id, scope, link_type);
        }
        router
    }

    /// Creates a router with a route for `/` to [`PRODUCER`].
    pub fn with_default_route() -> Self {
        Router::with_default_route_and(EngineConfig::default())
    }

    /// The same, with other settings.
    pub fn with_default_route_and(config: EngineConfig) -> Self {
        let mut router = Router::with(config);
        router.route("/", PRODUCER, 1);
        router
    }

    pub fn face(&mut self, id: u32, scope: FaceScope, link_type: LinkType) {
        self.engine.set_face(FaceInfo { id: FaceId(id), scope, link_type, is_up: true });
    }

    /// Changes the link state of a face to another host, and completes the resulting work.
    pub fn link(&mut self, id: u32, is_up: bool) -> &mut Self {
        let link_type = STANDARD_FACES.iter().find(|face| face.0 == id).map_or(LinkType::PointToPoint, |face| face.2);
        self.engine.set_face(FaceInfo { id: FaceId(id), scope: FaceScope::NonLocal, link_type, is_up });
        self.finish_walks()
    }

    /// Removes a face, and completes the resulting work.
    pub fn remove_face(&mut self, id: u32) -> &mut Self {
        self.engine.remove_face(FaceId(id));
        self.finish_walks()
    }

    fn finish_walks(&mut self) -> &mut Self {
        while self.engine.next_deadline().is_some_and(|deadline| deadline <= self.now) {
            self.engine.advance(self.now, &mut self.out);
        }
        self
    }

    pub fn route(&mut self, prefix: &str, face: u32, cost: u64) {
        self.fib.add_nexthop(name(prefix).as_ref(), FaceId(face), cost).expect("route");
    }

    /// Adds a next hop and notifies the engine.
    pub fn new_route(&mut self, prefix: &str, face: u32, cost: u64) {
        self.route(prefix, face, cost);
        self.tell_new_nexthop(prefix, NextHop { face: FaceId(face), cost });
    }

    /// Notifies the engine of a next hop in the FIB.
    pub fn tell_new_nexthop(&mut self, prefix: &str, nexthop: NextHop) {
        self.engine.new_nexthop(self.now, name(prefix).as_ref(), nexthop, &mut self.out);
    }

    pub fn strategy(&mut self, prefix: &str, strategy: &str) {
        let strategy = registry::full_name(strategy).expect("a name");
        self.choose(prefix, StrategyInstance::parse(strategy.as_ref()).expect("strategy"));
    }

    /// Chooses a strategy that may be a loaded program.
    pub fn choose(&mut self, prefix: &str, strategy: StrategyInstance) {
        self.fib.set_strategy(name(prefix).as_ref(), strategy).expect("strategy");
    }

    /// Receives a packet.
    pub fn recv(&mut self, face: u32, packet: impl Into<Packet>) -> &mut Self {
        self.recv_together([(face, packet)])
    }

    /// Receives packets in one burst.
    pub fn recv_together(&mut self, packets: impl IntoIterator<Item = (u32, impl Into<Packet>)>) -> &mut Self {
        let mut burst = packets.into_iter().map(|(face, packet)| self.incoming(face, packet.into())).collect();
        self.engine.process(self.now, &mut burst, &mut self.out);
        self
    }

    fn incoming(&self, face: u32, packet: Packet) -> Incoming {
        let fields = LinkFields {
            pit_token: PitToken::from_slice(&packet.token).expect("token of at most 32 bytes"),
            nack: packet.nack,
            congestion_mark: packet.mark,
            next_hop_face_id: packet.next_hop,
            no_cache: packet.no_cache,
            non_discovery: packet.non_discovery,
            announcement: packet.announcement.map(|bytes| self.pool.copy_of(&bytes).expect("buffer")),
            stamp: packet.stamp,
            ..LinkFields::default()
        };
        let buffer = self.pool.copy_of(&packet.bytes).expect("buffer");
        Incoming { face: FaceId(face), buffer, fields }
    }

    /// Lets time pass; timers fire when they are due.
    pub fn wait(&mut self, milliseconds: u64) -> &mut Self {
        let end = self.now.plus_ms(milliseconds);
        while let Some(deadline) = self.engine.next_deadline().filter(|&deadline| deadline <= end) {
            self.now = self.now.max(deadline);
            self.engine.advance(self.now, &mut self.out);
        }
        self.now = end;
        self.engine.advance(self.now, &mut self.out);
        self
    }

    /// Calls `advance` once, without time passing.
    pub fn wait_one_step(&mut self) {
        // A whole poll iteration, as in a worker: disk operations are submitted at its end.
        self.engine.process(self.now, &mut Vec::new(), &mut self.out);
    }

    pub fn announcement_reply(&mut self, request: u64, announcement: Option<&[u8]>) {
        self.engine.announcement_reply(request, announcement, &mut self.out);
    }

    /// Receives Data. If the strategy asks the control plane for a prefix announcement first, there is none.
    pub fn recv_unannounced(&mut self, face: u32, packet: impl Into<Packet>) -> &mut Self {
        self.recv(face, packet);
        for event in self.engine.take_events() {
            if let EngineEvent::AnnouncementWanted { request, .. } = event {
                self.announcement_reply(request, None);
            }
        }
        self
    }

    pub fn dropped(&mut self, face: u32, interest: &Packet) {
        self.engine.dropped_interest(self.now, FaceId(face), &interest.bytes, &mut self.out);
    }

    /// Erases cached Data, in as many steps as it takes.
    pub fn erase(&mut self, prefix: &str, limit: usize) -> usize {
        let (mut erased, mut erasure) = (0, CsErasure::default());
        while erased < limit && !erasure.is_complete() {
            erased += self.engine.cs_erase(name(prefix).as_ref(), limit - erased, &mut erasure);
        }
        erased
    }

    /// Returns the packets sent since the last call, and checks the engine's invariants.
    pub fn sent(&mut self) -> Vec<Sent> {
        self.engine.check_invariants().expect("invariants");
        self.sent_unchecked()
    }

    /// Returns the packets sent since the last call.
    pub fn sent_unchecked(&mut self) -> Vec<Sent> {
        let convert = |packet: Outgoing| {
            let stamp = packet.stamp();
            let Outgoing { face, kind, buffer, fields } = packet;
            Sent { face: face.0, kind, bytes: buffer.bytes().to_vec(), fields, stamp }
        };
        self.out.drain(..).map(convert).collect()
    }

    /// Returns the packets sent since the last call, as sorted lines.
    pub fn lines(&mut self) -> Vec<String> {
        let mut lines: Vec<String> = self.sent().iter().map(Sent::line).collect();
        lines.sort();
        lines
    }

    /// Returns the same as [`lines`](Self::lines), without the NonDiscovery mark of self-learning.
    pub fn unmarked_lines(&mut self) -> Vec<String> {
        self.lines().iter().map(|line| line.trim_end_matches(" ND").to_owned()).collect()
    }

    /// Checks that exactly these packets were sent since the last call, in any order.
    #[track_caller]
    pub fn expect(&mut self, expected: &[&str]) -> &mut Self {
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(self.lines(), expected);
        self
    }

    /// Returns the only packet sent since the last call.
    #[track_caller]
    pub fn only(&mut self) -> Sent {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "{:?}", sent.iter().map(Sent::line).collect::<Vec<_>>());
        sent.remove(0)
    }

    /// Returns the number of packets dropped for this reason so far.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.engine.counters().drops[reason]
    }

    /// Returns the number of packets dropped so far, without evicted PIT entries.
    pub fn all_drops(&self) -> u64 {
        self.engine.counters().drops.total() - self.drops(DropReason::PitEvicted)
    }

    pub fn pit_len(&self) -> usize {
        self.engine.table_sizes().pit
    }

    pub fn cs_len(&self) -> usize {
        self.engine.table_sizes().cs
    }
}
