//! The fixed load: the same names, packets and times in every run, and no clock.
//!
//! It consists of parts, and a run ends after a given number of them. What comes before the first brings the tables into
//! the state in which they stay: as many pending Interests as there always are, a full cache, timers that come due. Then
//! parts come in pairs for each kind of packet: in the odd one the packets are made, in the even one they are handled.

use std::collections::VecDeque;

use namehop_bench::Permutation;
use namehop_bench::workload::{Workload, WorkloadParameters};
use namehop_engine::fib::{FibWriter, NextHop};
use namehop_engine::schedule::{Burst, Naive, Schedule};
use namehop_engine::strategy::StrategyInstance;
use namehop_engine::{CsConfig, Engine, EngineConfig};
use namehop_face::link_service::Reassembler;
use namehop_face::{FaceFlags, FaceParams, FaceTable, FaceUri, LinkService};
use namehop_hash::HashKey;
use namehop_packet::{
    BufferPool, FaceId, Incoming, IncomingBurst, LinkFields, Outgoing, PacketBuffer, PacketKind, Timestamp,
};
use namehop_store::PolicyKind;
use namehop_wire::NameRef;
use namehop_wire::lp::{LpPacket, PitToken};

use crate::{Failure, packets};

/// Packets of each kind that are handled: a power of two, and as many as the cache holds. Together with the tables'
/// other memory that is several times the simulated last-level cache.
pub const PACKETS: usize = 4_096;
const FIB_PREFIXES: u64 = 4_096;
const PIT_CAPACITY: usize = 4 * PACKETS;
const CACHE_BYTES: usize = PACKETS * 2_048;
/// Interests and Data that are exchanged before anything is counted. More than the cache holds.
const EXCHANGES: usize = 2 * PACKETS;
/// Packets of a burst.
const BURST: usize = 64;
/// Time from one burst to the next: so long that timers of Interests long answered come due all the time, and so short
/// that no Interest waits for longer than its lifetime of 4 s.
const BURST_INTERVAL_NS: u64 = 15_000_000;
/// The first exchange starts what runs for a minute after the start of a router; the others come after that.
const SETTLED: Timestamp = Timestamp(70_000_000_000);
const TOKEN_BYTES: usize = 8;
const MTU_BYTES: usize = 1_500;

/// A load, by what handles it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// The engine, nothing fetched ahead.
    Naive,
    /// The same without a cache.
    NaiveUncached,
    /// The engine as the router has it, with a cache that lets everything in.
    Burst,
    /// The same with the cache policy that the router has by default. It refuses the Data, as it does most that comes to a full cache.
    BurstDefault,
    /// The same without a cache.
    BurstUncached,
    /// The engine as the router has it, between the link services of two datagram faces: from frame to frame.
    BurstFrames,
}

/// Kind of packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An Interest that is forwarded.
    InterestMiss,
    /// A Data that answers a pending Interest.
    Data,
    /// An Interest that the cache answers.
    InterestHit,
}

impl Kind {
    /// How it is written in the record.
    pub fn name(self) -> &'static str {
        match self {
            Kind::InterestMiss => "interest-miss",
            Kind::Data => "data",
            Kind::InterestHit => "interest-hit",
        }
    }
}

impl Load {
    /// All.
    pub const ALL: [Load; 6] =
        [Load::Naive, Load::NaiveUncached, Load::Burst, Load::BurstDefault, Load::BurstUncached, Load::BurstFrames];

    /// How it is written in the record.
    pub fn name(self) -> &'static str {
        match self {
            Load::Naive => "naive",
            Load::NaiveUncached => "naive-uncached",
            Load::Burst => "burst",
            Load::BurstDefault => "burst-default",
            Load::BurstUncached => "burst-uncached",
            Load::BurstFrames => "burst-frames",
        }
    }

    /// The packets that it handles, in this order.
    pub fn kinds(self) -> &'static [Kind] {
        if self.has_cache() {
            &[Kind::InterestMiss, Kind::Data, Kind::InterestHit]
        } else {
            &[Kind::InterestMiss, Kind::Data]
        }
    }

    fn policy(self) -> PolicyKind {
        match self {
            Load::BurstDefault => PolicyKind::default(),
            // One that lets everything in.
            _ => PolicyKind::Lru,
        }
    }

    fn has_cache(self) -> bool {
        !matches!(self, Load::NaiveUncached | Load::BurstUncached)
    }

    /// The first `parts` parts of it.
    pub fn run(self, parts: usize) -> Result<(), Failure> {
        match self {
            Load::Naive | Load::NaiveUncached => Rig::<Naive>::new(self)?.run(self.kinds(), parts),
            Load::Burst | Load::BurstDefault | Load::BurstUncached | Load::BurstFrames => {
                Rig::<Burst>::new(self)?.run(self.kinds(), parts)
            }
        }
    }
}

/// A packet on its way in: with frames, the token is in the buffer.
struct Packet {
    buffer: PacketBuffer,
    token: PitToken,
}

/// The side that a packet comes from.
#[derive(Clone, Copy)]
enum Side {
    Downstream = 0,
    Upstream = 1,
}

/// An engine between two faces, with what was sent to it and by it.
struct Rig<S: Schedule> {
    workload: Workload,
    pool: BufferPool,
    engine: Engine<S>,
    faces: [FaceId; 2],
    links: Option<[LinkService; 2]>,
    /// Does the cache's policy refuse what was asked for once?
    refuses: bool,
    reassembler: Reassembler,
    now: Timestamp,
    next_name: u64,
    /// Pending Interests with the router's tokens for them, oldest first.
    pending: VecDeque<(u64, PitToken)>,
    /// Names of Data, oldest first.
    answered: VecDeque<u64>,
    /// Reused lists.
    burst: IncomingBurst,
    out: Vec<Outgoing>,
    frames: Vec<PacketBuffer>,
    /// What has come out: with frames, the token is in the buffer.
    sent: Vec<Packet>,
}

impl<S: Schedule> Rig<S> {
    fn new(load: Load) -> Result<Self, Failure> {
        let workload = Workload::new(WorkloadParameters { prefixes: FIB_PREFIXES, ..WorkloadParameters::default() })?;
        let pool = BufferPool::new(4 * PACKETS, 1);
        let table = FaceTable::new();
        let parameters = || FaceParams {
            is_datagram: true,
            link_mtu_bytes: MTU_BYTES,
            flags: FaceFlags::PIT_TOKENS_ON,
            ..FaceParams::new(FaceUri::Null, FaceUri::Null)
        };
        let faces = [table.insert(parameters())?, table.insert(parameters())?];
        let key = HashKey::new(0x7061_636b_6574_2031, 0x636f_7374_7320_3032);
        let mut fib = FibWriter::new(key, StrategyInstance::default())?;
        let mut prefix = vec![0; workload.prefix_bytes()];
        for number in 0..FIB_PREFIXES {
            workload.write_prefix(number, &mut prefix);
            fib.set_nexthops(NameRef::from_value(&prefix)?, &[NextHop { face: faces[1].id(), cost: 1 }])?;
        }
        let capacity = if load.has_cache() { PACKETS } else { 0 };
        let config = EngineConfig {
            pit_capacity: PIT_CAPACITY,
            cs: CsConfig {
                capacity_packets: capacity,
                capacity_bytes: CACHE_BYTES,
                policy: load.policy().into(),
                ..CsConfig::default()
            },
            dead_nonce_capacity: PIT_CAPACITY,
            ..EngineConfig::default()
        };
        let mut engine = Engine::new(config, fib.reader(), pool.clone(), key)?;
        for face in &faces {
            engine.set_face(face.to_face_info());
        }
        let ids = [faces[0].id(), faces[1].id()];
        let links = (load == Load::BurstFrames).then(|| faces.map(|face| LinkService::with_first_sequence(face, 0, 1)));
        Ok(Rig {
            workload,
            pool,
            engine,
            faces: ids,
            links,
            refuses: load == Load::BurstDefault,
            reassembler: Reassembler::new(0, 1),
            now: Timestamp(1_000_000_000),
            next_name: 0,
            pending: VecDeque::new(),
            answered: VecDeque::new(),
            burst: IncomingBurst::with_capacity(BURST),
            out: Vec::with_capacity(2 * BURST),
            frames: Vec::with_capacity(BURST),
            sent: Vec::with_capacity(PACKETS),
        })
    }

    fn run(mut self, kinds: &[Kind], parts: usize) -> Result<(), Failure> {
        self.exchange(1)?;
        self.now = SETTLED;
        self.interests(PACKETS)?;
        for _ in 0..EXCHANGES / BURST {
            self.exchange(BURST)?;
        }
        for (index, kind) in kinds.iter().enumerate() {
            if 2 * index >= parts {
                break;
            }
            let (from, packets) = match kind {
                Kind::InterestMiss => (Side::Downstream, self.make_interests(PACKETS)?),
                Kind::Data => (Side::Upstream, self.make_data(PACKETS)?),
                Kind::InterestHit => (Side::Downstream, self.make_repeated_interests()?),
            };
            if 2 * index + 1 >= parts {
                break;
            }
            self.forward(from, packets)?;
            if 2 * index + 2 >= parts {
                break;
            }
            self.take_sent(*kind, PACKETS)?;
        }
        Ok(())
    }

    /// So many Interests, and the Data for the oldest ones.
    fn exchange(&mut self, count: usize) -> Result<(), Failure> {
        self.interests(count)?;
        let data = self.make_data(count)?;
        self.forward(Side::Upstream, data)?;
        self.take_sent(Kind::Data, count)
    }

    fn interests(&mut self, count: usize) -> Result<(), Failure> {
        let interests = self.make_interests(count)?;
        self.forward(Side::Downstream, interests)?;
        self.take_sent(Kind::InterestMiss, count)
    }

    /// Interests for names that were never asked for.
    fn make_interests(&mut self, count: usize) -> Result<Vec<Packet>, Failure> {
        let first = self.next_name;
        self.next_name += count as u64;
        (first..self.next_name).map(|name| self.interest(name)).collect()
    }

    /// Interests for the names whose Data is cached, in random order: those that were last answered, or, where the policy refuses what
    /// comes when the cache is full, those that were first.
    fn make_repeated_interests(&self) -> Result<Vec<Packet>, Failure> {
        let order = Permutation::new(PACKETS.ilog2(), 3);
        let first = if self.refuses { 0 } else { self.answered.len() - PACKETS };
        (0..PACKETS as u64).map(|index| self.interest(self.answered[first + order.apply(index) as usize])).collect()
    }

    fn interest(&self, name: u64) -> Result<Packet, Failure> {
        // Every Interest for a name has another Nonce, as the time goes on.
        let nonce = Permutation::new(32, self.now.0).apply(name) as u32;
        let token = PitToken::from_slice(&name.to_be_bytes()).unwrap_or_default();
        self.packet(&packets::interest(&self.workload, name, nonce), token)
    }

    /// Data for the oldest pending Interests.
    fn make_data(&mut self, count: usize) -> Result<Vec<Packet>, Failure> {
        let pending: Vec<_> = self.pending.drain(..count).collect();
        self.answered.extend(pending.iter().map(|&(name, _)| name));
        pending.into_iter().map(|(name, token)| self.packet(&packets::data(&self.workload, name), token)).collect()
    }

    fn packet(&self, packet: &[u8], token: PitToken) -> Result<Packet, Failure> {
        let buffer = match &self.links {
            None => self.pool.copy_of(packet),
            Some(_) => self.pool.copy_of(&packets::frame(packet, token)),
        };
        Ok(Packet { buffer: buffer.ok_or("no buffers left")?, token })
    }

    /// Handles packets burst by burst. This is what is counted, and so it does little else.
    #[inline(never)]
    fn forward(&mut self, from: Side, packets: Vec<Packet>) -> Result<(), Failure> {
        let (face, to) = (self.faces[from as usize], 1 - from as usize);
        let mut packets = packets.into_iter();
        while !packets.as_slice().is_empty() {
            self.now.0 += BURST_INTERVAL_NS;
            for Packet { buffer, token } in packets.by_ref().take(BURST) {
                match &mut self.links {
                    None => {
                        let fields = LinkFields { pit_token: token, ..LinkFields::default() };
                        // A part has packets of one kind, so they keep their order whichever it is.
                        self.burst.push(PacketKind::Interest, || Incoming { face, buffer, fields });
                    }
                    Some(links) => {
                        let link = &mut links[from as usize];
                        let received =
                            link.receive(self.now, buffer, 0, &self.pool, &mut self.reassembler, &mut self.burst);
                        received.map_err(|reason| format!("a frame was dropped: {reason:?}"))?;
                    }
                }
            }
            self.engine.process(self.now, self.burst.in_order(), &mut self.out);
            for packet in self.out.drain(..) {
                match &mut self.links {
                    None => self.sent.push(Packet { buffer: packet.buffer, token: packet.fields.pit_token }),
                    Some(links) => {
                        let link = &mut links[if packet.face == face { from as usize } else { to }];
                        let sent = link.send(self.now, packet, 0, &self.pool, &mut self.frames);
                        sent.map_err(|reason| format!("a packet was dropped: {reason:?}"))?;
                        self.sent
                            .extend(self.frames.drain(..).map(|buffer| Packet { buffer, token: PitToken::empty() }));
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes what was sent, checks that all was handled as planned, and notes pending Interests.
    fn take_sent(&mut self, kind: Kind, count: usize) -> Result<(), Failure> {
        let in_buffer = self.links.is_some();
        let hits = self.engine.cs_info().hits;
        let expected_hits = if kind == Kind::InterestHit { count as u64 } else { 0 };
        if self.sent.len() != count || hits != expected_hits {
            return Err(format!(
                "of {count} packets ({}) {} came out, {hits} from the cache",
                kind.name(),
                self.sent.len()
            )
            .into());
        }
        let first = self.next_name - count as u64;
        for (name, Packet { buffer, token }) in (first..).zip(self.sent.drain(..)) {
            if kind == Kind::InterestMiss {
                let token = if in_buffer { LpPacket::decode(buffer.bytes())?.pit_token } else { token };
                if token.len() != TOKEN_BYTES {
                    return Err("an Interest came out without a token".into());
                }
                self.pending.push_back((name, token));
            }
        }
        Ok(())
    }
}
