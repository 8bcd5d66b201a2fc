//! The steps of a packet trace, and their text.

use std::fmt;

use namehop_packet::{DropReason, FaceId, PacketKind};
use namehop_wire::Name;
use namehop_wire::lp::NackReason;

use crate::strategy::Trigger;

/// The part of the router that a step belongs to, for filtering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceStage {
    /// The packet itself.
    Packet,
    /// Pending Interest Table.
    Pit,
    /// Content Store.
    Cs,
    /// Forwarding Information Base.
    Fib,
    /// The strategy of the prefix.
    Strategy,
    /// A packet is sent.
    Send,
    /// A packet is dropped.
    Drop,
}

impl TraceStage {
    /// Returns the stage as a word.
    pub fn name(self) -> &'static str {
        match self {
            TraceStage::Packet => "packet",
            TraceStage::Pit => "pit",
            TraceStage::Cs => "cs",
            TraceStage::Fib => "fib",
            TraceStage::Strategy => "strategy",
            TraceStage::Send => "send",
            TraceStage::Drop => "drop",
        }
    }
}

/// A decision about a packet. Its `Display` text is for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceStep {
    /// The fields of an Interest.
    Interest {
        /// Whether Data with longer names may answer it.
        can_be_prefix: bool,
        /// Whether only fresh cached Data may answer it.
        must_be_fresh: bool,
        /// Its Nonce; without one, this router adds one.
        nonce: Option<u32>,
        /// Its HopLimit.
        hop_limit: Option<u8>,
        /// Its InterestLifetime in milliseconds.
        lifetime_ms: Option<u64>,
    },
    /// The reason of a Nack.
    Nack(NackReason),
    /// The fields of Data.
    Data {
        /// FreshnessPeriod in milliseconds.
        freshness_ms: u64,
        /// Whether the upstream forbids caching.
        no_cache: bool,
    },
    /// The Interest is forwarded by this delegation of its forwarding hint.
    Delegation(Name),
    /// An equal Interest is pending.
    Pending {
        /// Number of its downstreams.
        downstreams: usize,
    },
    /// No equal Interest was pending.
    NotPending,
    /// Cached Data answers the Interest.
    CacheHit,
    /// No cached Data answers the Interest.
    CacheMiss,
    /// No Data in memory answers, but the disk may have it: the Interest waits for a read.
    AsksDisk,
    /// Data from the disk answers the Interest.
    DiskHit,
    /// Data was cached.
    Cached,
    /// Data was not cached: the Content Store does not admit it, or has no room.
    NotCached,
    /// Next hops and strategy of the Interest.
    Route {
        /// The FIB prefix of the next hops.
        prefix: Name,
        /// Lowest cost first.
        nexthops: Vec<FaceId>,
        /// The strategy of the name.
        strategy: Name,
    },
    /// An application chose the next hop.
    Chosen {
        /// Id of the face.
        face: u64,
    },
    /// The strategy was called.
    Asked(Trigger),
    /// Data satisfies pending Interests.
    Satisfies {
        /// Number of PIT entries.
        entries: usize,
        /// Whether the PIT token led to one of them.
        by_token: bool,
    },
    /// A packet is sent.
    Sent {
        /// The kind of packet.
        kind: PacketKind,
        /// The outgoing face.
        face: FaceId,
    },
    /// A packet was dropped, and counted under this reason.
    Dropped(DropReason),
    /// A pending Interest ended without an answer.
    Unanswered {
        /// Number of upstreams that have not answered.
        upstreams: usize,
    },
    /// The packet belongs to another worker, and is transferred there.
    OtherWorker,
}

impl TraceStep {
    /// Returns the stage that the step belongs to.
    pub fn stage(&self) -> TraceStage {
        match self {
            TraceStep::Interest { .. } | TraceStep::Nack(_) | TraceStep::Data { .. } => TraceStage::Packet,
            TraceStep::OtherWorker => TraceStage::Packet,
            TraceStep::Pending { .. } | TraceStep::NotPending => TraceStage::Pit,
            TraceStep::Satisfies { .. } | TraceStep::Unanswered { .. } => TraceStage::Pit,
            TraceStep::CacheHit | TraceStep::CacheMiss | TraceStep::Cached | TraceStep::NotCached => TraceStage::Cs,
            TraceStep::AsksDisk | TraceStep::DiskHit => TraceStage::Cs,
            TraceStep::Delegation(_) | TraceStep::Route { .. } => TraceStage::Fib,
            TraceStep::Chosen { .. } | TraceStep::Asked(_) => TraceStage::Strategy,
            TraceStep::Sent { .. } => TraceStage::Send,
            TraceStep::Dropped(_) => TraceStage::Drop,
        }
    }
}

impl fmt::Display for TraceStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceStep::Interest { can_be_prefix, must_be_fresh, nonce, hop_limit, lifetime_ms } => {
                match nonce {
                    Some(nonce) => write!(f, "nonce {nonce:08x}")?,
                    None => f.write_str("no nonce")?,
                }
                if let Some(lifetime_ms) = lifetime_ms {
                    write!(f, ", lifetime {lifetime_ms} ms")?;
                }
                if let Some(hop_limit) = hop_limit {
                    write!(f, ", hop limit {hop_limit}")?;
                }
                f.write_str(if *can_be_prefix { ", can be prefix" } else { "" })?;
                f.write_str(if *must_be_fresh { ", must be fresh" } else { "" })
            }
            TraceStep::Nack(reason) => write!(f, "{reason}"),
            TraceStep::Data { freshness_ms, no_cache } => {
                write!(f, "fresh for {freshness_ms} ms")?;
                f.write_str(if *no_cache { ", not to be cached" } else { "" })
            }
            TraceStep::OtherWorker => f.write_str("belongs to another worker"),
            TraceStep::Delegation(name) => write!(f, "uses delegation {name} of its forwarding hint"),
            TraceStep::Pending { downstreams } => write!(f, "already pending for {downstreams} face(s)"),
            TraceStep::NotPending => f.write_str("not pending: new entry"),
            TraceStep::Satisfies { entries: 0, .. } => f.write_str("matches no pending Interest"),
            TraceStep::Satisfies { entries, by_token } => {
                let how = if *by_token { "found by PIT token" } else { "found by name" };
                write!(f, "satisfies {entries} pending Interest(s), {how}")
            }
            TraceStep::Unanswered { upstreams } => {
                write!(f, "ends unanswered; {upstreams} face(s) had not replied")
            }
            TraceStep::CacheHit => f.write_str("hit"),
            TraceStep::CacheMiss => f.write_str("miss"),
            TraceStep::AsksDisk => f.write_str("not in memory; waits for a read from the disk"),
            TraceStep::DiskHit => f.write_str("hit on the disk"),
            TraceStep::Cached => f.write_str("cached"),
            TraceStep::NotCached => f.write_str("not cached: not admitted, or no room"),
            TraceStep::Route { prefix, nexthops, strategy } => {
                if nexthops.is_empty() {
                    f.write_str("no route")?;
                } else {
                    let faces: Vec<String> = nexthops.iter().map(ToString::to_string).collect();
                    write!(f, "{prefix} to face(s) {}", faces.join(", "))?;
                }
                write!(f, "; strategy {strategy}")
            }
            TraceStep::Chosen { face } => write!(f, "the application chose face {face}"),
            TraceStep::Asked(trigger) => f.write_str(words(trigger)),
            TraceStep::Sent { kind, face } => write!(f, "{kind:?} to face {face}"),
            TraceStep::Dropped(reason) => write!(f, "{reason}"),
        }
    }
}

/// Returns the name of a strategy trigger in the NFD developer's guide.
fn words(trigger: &Trigger) -> &'static str {
    match trigger {
        Trigger::AfterReceiveInterest => "after receive Interest",
        Trigger::AfterReceiveData => "after receive Data",
        Trigger::BeforeSatisfyInterest => "before satisfy Interest",
        Trigger::AfterReceiveNack(_) => "after receive Nack",
        Trigger::OnDroppedInterest(_) => "on dropped Interest",
        Trigger::AfterNewNextHop(_) => "after new next hop",
        Trigger::Timer => "timer",
        Trigger::BeforeExpirePendingInterest => "before expire pending Interest",
    }
}
