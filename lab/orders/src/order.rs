//! An order on a path, which takes the place of [`Engine::process`].

use namehop_engine::Engine;
use namehop_engine::schedule::{BurstState, part_of};
use namehop_hash::Lanes;
use namehop_packet::{Incoming, Outgoing, Timestamp};

use crate::ScheduleKind;
use crate::arrangement::{AllTags, BucketsOnly, Burst, FirstTag, bucket_prefetch, naive, one_ahead, pairs, staged};
use crate::clock::{BlockTicks, Untimed};
use crate::path::{Path, Whole};
use crate::stripped::Stripped;

/// The path that packets take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// The router's path, with the whole protocol.
    Whole,
    /// The path that the publications measured (Takemasa, Koizumi and Hasegawa, ICN 2017, section 6.1): Content Store,
    /// PIT and FIB by name, and nothing else.
    ///
    /// This is no router: nothing stops a looping Interest, and an unanswered one stays pending. It exists for
    /// comparison, to measure the cost of the whole protocol.
    Stripped,
    /// The stripped path, timed block by block: see [`Order::block_ticks`].
    ///
    /// Names that an order hashes ahead are hashed outside the blocks; with [`ScheduleKind::Naive`] all work is inside.
    Timed,
}

/// A path with its state.
enum AnyPath {
    Whole(Whole),
    Stripped(Stripped<Untimed>),
    Timed(Box<Stripped<BlockTicks>>),
}

/// A way to handle bursts, in place of [`Engine::process`]. It keeps nothing of an engine between bursts, so orders may
/// take turns on one engine, as long as they have the same path.
pub struct Order {
    kind: ScheduleKind,
    path: AnyPath,
    state: BurstState,
    lanes: Lanes,
}

impl Order {
    /// Creates an order.
    pub fn new(kind: ScheduleKind, path: PathKind) -> Self {
        let path = match path {
            PathKind::Whole => AnyPath::Whole(Whole),
            PathKind::Stripped => AnyPath::Stripped(Stripped::new(Untimed)),
            PathKind::Timed => AnyPath::Timed(Box::new(Stripped::new(BlockTicks::default()))),
        };
        Order { kind, path, state: BurstState::new(), lanes: Lanes::best() }
    }

    /// Returns which order it is.
    pub fn kind(&self) -> ScheduleKind {
        self.kind
    }

    /// Changes to another order on the same path.
    pub fn change(&mut self, kind: ScheduleKind) {
        self.kind = kind;
    }

    /// Returns whether most of the protocol is omitted.
    pub fn is_stripped(&self) -> bool {
        !matches!(self.path, AnyPath::Whole(_))
    }

    /// Returns the time of each block; `None` unless the path is timed.
    pub fn block_ticks(&self) -> Option<&BlockTicks> {
        match &self.path {
            AnyPath::Timed(path) => Some(path.clock()),
            AnyPath::Whole(_) | AnyPath::Stripped(_) => None,
        }
    }

    /// Handles due timers and then a burst of packets, with the contract of [`Engine::process`].
    pub fn process(&mut self, engine: &mut Engine, now: Timestamp, burst: &mut Vec<Incoming>, out: &mut Vec<Outgoing>) {
        let Order { kind, path, state, lanes } = self;
        let work = Work { now, burst, state, lanes: *lanes, out };
        match path {
            // The router's own code.
            AnyPath::Whole(_) if *kind == ScheduleKind::Burst => engine.process(work.now, work.burst, work.out),
            AnyPath::Whole(path) => process(*kind, path, engine, work),
            AnyPath::Stripped(path) => process(*kind, path, engine, work),
            AnyPath::Timed(path) => process(*kind, &mut **path, engine, work),
        }
    }
}

/// A burst to be handled.
struct Work<'a> {
    now: Timestamp,
    burst: &'a mut Vec<Incoming>,
    state: &'a mut BurstState,
    /// The SIMD lanes that hash the names of a group.
    lanes: Lanes,
    out: &'a mut Vec<Outgoing>,
}

/// Handles a burst in this order on this path.
#[inline(never)]
fn process<P: Path>(kind: ScheduleKind, path: &mut P, engine: &mut Engine, work: Work<'_>) {
    let Work { now, burst, state, lanes, out } = work;
    engine.begin_burst(now, burst.len(), kind.fetches_entries(), out);
    while !burst.is_empty() {
        let count = part_of(burst.len());
        path.parse(engine, &burst[..count], state);
        let part = Burst { now, packets: burst.drain(..count), state, out };
        match kind {
            ScheduleKind::Naive => naive(path, engine, part),
            ScheduleKind::BucketPrefetch => bucket_prefetch(path, engine, part),
            ScheduleKind::PreHash => one_ahead::<P, BucketsOnly>(path, engine, part),
            ScheduleKind::Speculative => one_ahead::<P, AllTags<false>>(path, engine, part),
            ScheduleKind::SpeculativeFirst => one_ahead::<P, FirstTag<false>>(path, engine, part),
            ScheduleKind::SpeculativePairs => pairs(path, engine, part),
            ScheduleKind::SpeculativeContents => one_ahead::<P, AllTags<true>>(path, engine, part),
            ScheduleKind::SpeculativeFirstContents => one_ahead::<P, FirstTag<true>>(path, engine, part),
            ScheduleKind::BurstScalar => staged(path, engine, part, Lanes::SCALAR),
            ScheduleKind::Burst => staged(path, engine, part, lanes),
        }
    }
    engine.end_burst();
}
