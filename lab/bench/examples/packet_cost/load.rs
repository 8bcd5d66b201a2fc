//! The fixed load: the same names, packets and times in every run, and no clock.
//!
//! It consists of parts, and a run ends after a given number of them. The preparation before the first part brings the
//! tables into a stationary state: the usual number of pending Interests, a full cache, expiring timers. Then there are
//! two parts per kind of packet: the odd one makes the packets, the even one handles them.

use std::collections::VecDeque;

use namehop_bench::Permutation;
use namehop_bench::workload::{Workload, WorkloadParameters};
use namehop_engine::fib::{FibWriter, NextHop};
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

/// Number of packets of each kind: a power of two, and the capacity of the cache. They and the tables take several
/// times the size of the simulated last-level cache.
pub const PACKETS: usize = 4_096;
const FIB_PREFIXES: u64 = 4_096;
const PIT_CAPACITY: usize = 4 * PACKETS;
const CACHE_BYTES: usize = PACKETS * 2_048;
/// Interests and Data exchanged before counting; more than the cache holds.
const EXCHANGES: usize = 2 * PACKETS;
/// Packets per burst.
const BURST: usize = 64;
/// Time between two bursts. Long enough for timers of answered Interests to expire all the time; short enough that no
/// Interest waits longer than its lifetime of 4 s.
const BURST_INTERVAL_NS: u64 = 15_000_000;
/// Time of the second exchange. The first exchange starts actions that run for a minute after the start of a router.
const SETTLED: Timestamp = Timestamp(70_000_000_000);
const TOKEN_BYTES: usize = 8;
const MTU_BYTES: usize = 1_500;

/// A load, named by the configuration that handles it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// The engine without prefetching.
    Naive,
    /// As `Naive`, without a cache.
    NaiveUncached,
    /// The router's engine, with a cache policy that admits all Data.
    Burst,
    /// As `Burst`, with the router's default cache policy. It rejects the Data, as it rejects most Data when the cache
    /// is full.
    BurstDefault,
    /// As `Burst`, without a cache.
    BurstUncached,
    /// The router's engine between the link services of two datagram faces: from frame to frame.
    BurstFrames,
}

/// Kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A forwarded Interest.
    InterestMiss,
    /// A Data packet that answers a pending Interest.
    Data,
    /// An Interest that the cache answers.
    InterestHit,
}

impl Kind {
    /// Name in the record.
    pub fn name(self) -> &'static str {
        match self {
            Kind::InterestMiss => "interest-miss",
            Kind::Data => "data",
            Kind::InterestHit => "interest-hit",
        }
    }
}

impl Load {
    /// All loads.
    pub const ALL: [Load; 6] =
        [Load::Naive, Load::NaiveUncached, Load::Burst, Load::BurstDefault, Load::BurstUncached, Load::BurstFrames];

    /// Name in the record.
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

    /// Kinds of packets that the load handles, in this order.
    pub fn kinds(self) -> &'static [Kind] {
        if self.has_cache() {
            &[Kind::InterestMiss, Kind::Data, Kind::InterestHit]
        } else {
            &[Kind::InterestMiss, Kind::Data]
        }
    }

    /// True if another order of the engine's steps handles the load than the router's.
    pub fn is_naive(self) -> bool {
        matches!(self, Load::Naive | Load::NaiveUncached)
    }

    fn policy(self) -> PolicyKind {
        match self {
            Load::BurstDefault => PolicyKind::default(),
            // This policy admits all Data.
            _ => PolicyKind::Lru,
        }
    }

    fn has_cache(self) -> bool {
        !matches!(self, Load::NaiveUncached | Load::BurstUncached)
    }

    /// Runs the first `parts` parts of the load with this name. `process` handles the bursts, with the contract of
    /// [`Engine::process`].
    pub fn run(name: &str, parts: &str, process: impl Process) -> Result<(), Failure> {
        let load = Load::ALL.into_iter().find(|load| load.name() == name).ok_or("there is no such load")?;
        Rig::new(load, process)?.run(load.kinds(), parts.parse()?)?;
        println!("{}", namehop_hash::Lanes::best());
        // Exits without freeing memory: that takes time in proportion to the packets left, and is no part of their
        // cost.
        std::process::exit(0)
    }
}

/// A received packet. In loads with frames, the token is in the buffer.
struct Packet {
    buffer: PacketBuffer,
    token: PitToken,
}

/// The side from which a packet is received.
#[derive(Clone, Copy)]
enum Side {
    Downstream = 0,
    Upstream = 1,
}

/// A way to handle bursts.
pub trait Process: FnMut(&mut Engine, Timestamp, &mut Vec<Incoming>, &mut Vec<Outgoing>) {}

impl<P: FnMut(&mut Engine, Timestamp, &mut Vec<Incoming>, &mut Vec<Outgoing>)> Process for P {}

/// An engine between two faces, and its traffic.
struct Rig<P> {
    workload: Workload,
    pool: BufferPool,
    engine: Engine,
    process: P,
    faces: [FaceId; 2],
    links: Option<[LinkService; 2]>,
    /// True if the cache policy rejects Data requested only once.
    refuses: bool,
    reassembler: Reassembler,
    now: Timestamp,
    next_name: u64,
    /// Pending Interests with the router's tokens, oldest first.
    pending: VecDeque<(u64, PitToken)>,
    /// Names of sent Data, oldest first.
    answered: VecDeque<u64>,
    /// Lists that are reused.
    burst: IncomingBurst,
    out: Vec<Outgoing>,
    frames: Vec<PacketBuffer>,
    /// Sent packets. In loads with frames, the token is in the buffer.
    sent: Vec<Packet>,
}

impl<P: Process> Rig<P> {
    fn new(load: Load, process: P) -> Result<Self, Failure> {
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
            process,
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

    /// Sends `count` Interests, and Data for the `count` oldest ones.
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

    /// Makes Interests for new names.
    fn make_interests(&mut self, count: usize) -> Result<Vec<Packet>, Failure> {
        let first = self.next_name;
        self.next_name += count as u64;
        (first..self.next_name).map(|name| self.interest(name)).collect()
    }

    /// Makes Interests for cached names, in random order: the last ones answered, or, if the policy rejects Data when
    /// the cache is full, the first ones.
    fn make_repeated_interests(&self) -> Result<Vec<Packet>, Failure> {
        let order = Permutation::new(PACKETS.ilog2(), 3);
        let first = if self.refuses { 0 } else { self.answered.len() - PACKETS };
        (0..PACKETS as u64).map(|index| self.interest(self.answered[first + order.apply(index) as usize])).collect()
    }

    fn interest(&self, name: u64) -> Result<Packet, Failure> {
        // Interests for the same name have different Nonces, because the time advances.
        let nonce = Permutation::new(32, self.now.0).apply(name) as u32;
        let token = PitToken::from_slice(&name.to_be_bytes()).unwrap_or_default();
        self.packet(&packets::interest(&self.workload, name, nonce), token)
    }

    /// Makes Data for the oldest pending Interests.
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
        Ok(Packet { buffer: buffer.ok_or("no packet buffer is free")?, token })
    }

    /// Handles packets burst by burst. This part is counted, so it does little else.
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
                        // All packets of a part are of one kind, so this kind does not change their order.
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
            (self.process)(&mut self.engine, self.now, self.burst.in_order(), &mut self.out);
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

    /// Takes the sent packets, checks that all were handled as planned, and records pending Interests.
    fn take_sent(&mut self, kind: Kind, count: usize) -> Result<(), Failure> {
        let in_buffer = self.links.is_some();
        let hits = self.engine.cs_info().hits;
        let expected_hits = if kind == Kind::InterestHit { count as u64 } else { 0 };
        if self.sent.len() != count || hits != expected_hits {
            return Err(format!(
                "of {count} packets ({}), {} were forwarded, {hits} cache hits",
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
                    return Err("an Interest was forwarded without a PIT token".into());
                }
                self.pending.push_back((name, token));
            }
        }
        Ok(())
    }
}
