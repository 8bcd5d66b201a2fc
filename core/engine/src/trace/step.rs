//! The steps that a packet trace shows, and their words.

use std::fmt;

use namehop_packet::{DropReason, FaceId, PacketKind};
use namehop_wire::Name;
use namehop_wire::lp::NackReason;

use crate::strategy::Trigger;

/// What a step has to do with, for whoever looks for one kind of them.
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
    /// Something is sent.
    Send,
    /// Something is discarded.
    Drop,
}

impl TraceStage {
    /// In one word.
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

/// Something that was decided about a packet. Its words say what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceStep {
    /// What an Interest brings.
    Interest {
        /// Data with longer names may answer it.
        can_be_prefix: bool,
        /// Only fresh cached Data may.
        must_be_fresh: bool,
        /// If it has one; else this router gives it one.
        nonce: Option<u32>,
        /// Hops that it may go on, if it says so.
        hop_limit: Option<u8>,
        /// Milliseconds, if it says so.
        lifetime_ms: Option<u64>,
    },
    /// What a Nack says.
    Nack(NackReason),
    /// What Data brings.
    Data {
        /// Milliseconds for which it is fresh.
        freshness_ms: u64,
        /// The upstream wants it not to be cached.
        no_cache: bool,
    },
    /// The Interest goes by this name of its forwarding hint.
    Delegation(Name),
    /// An Interest like this one is pending, for so many downstreams.
    Pending {
        /// Faces that have asked.
        downstreams: usize,
    },
    /// No Interest like this one was pending.
    NotPending,
    /// Cached Data answers.
    CacheHit,
    /// No cached Data answers.
    CacheMiss,
    /// No Data in memory answers, but the disk may have it: the Interest waits for that.
    AsksDisk,
    /// Data from the disk answers.
    DiskHit,
    /// Data was cached.
    Cached,
    /// Data was not cached: the Content Store takes nothing in, or had no room.
    NotCached,
    /// Next hops and strategy.
    Route {
        /// The prefix that the next hops are from.
        prefix: Name,
        /// Lowest cost first.
        nexthops: Vec<FaceId>,
        /// The strategy that counts for the name.
        strategy: Name,
    },
    /// An application has chosen the next hop.
    Chosen {
        /// Its number.
        face: u64,
    },
    /// The strategy was asked what to do.
    Asked(Trigger),
    /// Data answers so many pending Interests.
    Satisfies {
        /// PIT entries.
        entries: usize,
        /// The PIT token led to one of them.
        by_token: bool,
    },
    /// A packet goes out.
    Sent {
        /// What.
        kind: PacketKind,
        /// Where.
        face: FaceId,
    },
    /// Something was discarded, and counted as this.
    Dropped(DropReason),
    /// A pending Interest ended without an answer.
    Unanswered {
        /// Faces that it was sent to and that have not answered.
        upstreams: usize,
    },
    /// The packet belongs to another worker, and goes there.
    OtherWorker,
}

impl TraceStep {
    /// What it has to do with.
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
            TraceStep::Delegation(name) => write!(f, "goes by {name} of its forwarding hint"),
            TraceStep::Pending { downstreams } => write!(f, "pending already, for {downstreams} face(s)"),
            TraceStep::NotPending => f.write_str("not pending: new entry"),
            TraceStep::Satisfies { entries: 0, .. } => f.write_str("nobody waits for it"),
            TraceStep::Satisfies { entries, by_token } => {
                let how = if *by_token { "found by PIT token" } else { "found by name" };
                write!(f, "satisfies {entries} pending Interest(s), {how}")
            }
            TraceStep::Unanswered { upstreams } => {
                write!(f, "ends unanswered; {upstreams} face(s) were still waited for")
            }
            TraceStep::CacheHit => f.write_str("hit"),
            TraceStep::CacheMiss => f.write_str("miss"),
            TraceStep::AsksDisk => f.write_str("not in memory; waits for the disk"),
            TraceStep::DiskHit => f.write_str("hit on the disk"),
            TraceStep::Cached => f.write_str("cached"),
            TraceStep::NotCached => f.write_str("not cached: nothing is taken in, or there is no room"),
            TraceStep::Route { prefix, nexthops, strategy } => {
                if nexthops.is_empty() {
                    f.write_str("no route")?;
                } else {
                    let faces: Vec<String> = nexthops.iter().map(ToString::to_string).collect();
                    write!(f, "{prefix} to face(s) {}", faces.join(", "))?;
                }
                write!(f, "; strategy {strategy}")
            }
            TraceStep::Chosen { face } => write!(f, "the application has chosen face {face}"),
            TraceStep::Asked(trigger) => f.write_str(words(trigger)),
            TraceStep::Sent { kind, face } => write!(f, "{kind:?} to face {face}"),
            TraceStep::Dropped(reason) => write!(f, "{reason}"),
        }
    }
}

/// What a strategy is asked for, as the NFD developer's guide has it.
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
