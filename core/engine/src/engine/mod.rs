//! The engine of one worker: packets in, packets out.
//!
//! It owns the PIT-CS composite table, the Dead Nonce List, timers and counters, and reads the FIB that the control
//! thread writes. It reads no clock and does no input or output: the caller hands in the time and bursts of packets and
//! takes away what is to be sent. It never panics on what comes from outside, and allocates nothing per packet once its
//! lists have grown to the size of a burst.
//!
//! Everything that is discarded is counted under a [`DropReason`], in total
//! ([`Engine::counters`]) and for the face it came in on ([`Engine::face_drops`]).

pub mod config;
pub(crate) mod context;
mod control;
pub(crate) mod core;
pub mod cs_counters;
pub(crate) mod disk_reads;
pub(crate) mod faces;
pub(crate) mod interest_form;
pub mod learning;
pub(crate) mod long_names;
pub mod memory;
pub(crate) mod new_nexthop;
pub(crate) mod pit_walk;
pub(crate) mod retry;
pub(crate) mod route;
mod several;

use std::marker::PhantomData;

use namehop_hash::{HashKey, PrefixHashes};
use namehop_wire::tlv::types;

use self::core::Core;
use crate::fib::FibReader;
use crate::flow::BlockTicks;
use crate::parse::{Kind, Parsed};
use crate::schedule::{Burst, BurstState, Prepared, Schedule};
use crate::strategy::StrategyInstance;
pub use config::{CsChange, CsConfig, CsInfo, EngineConfig, EngineError, TableSizes, UnsolicitedPolicy};
pub use cs_counters::{CsCounters, CsCountersByPolicy};
pub use learning::EngineEvent;
pub use memory::EngineMemory;
use namehop_packet::{BufferPool, DropReason, Incoming, Outgoing, Timestamp};

pub use crate::pcct::erasure::CsErasure;

/// The FIB as engines use it.
pub type Fib = FibReader<StrategyInstance>;

/// The forwarding engine of one worker.
///
/// Its output does not depend on the schedule `S`, only its speed does. [`Stripped`](crate::schedule::Stripped) is the
/// exception, for measurements.
pub struct Engine<S: Schedule = Burst> {
    pub(crate) fib: Fib,
    pub(crate) core: Core,
    /// Hashes of the name, and of the delegation, of a pending Interest.
    pub(crate) hashes: PrefixHashes,
    pub(crate) delegation_hashes: PrefixHashes,
    /// What is known of the packets of a burst.
    pub(crate) burst_state: BurstState,
    /// Of no size unless blocks are timed.
    pub(crate) clock: S::Clock,
    schedule: PhantomData<S>,
}

impl<S: Schedule<Clock = BlockTicks>> Engine<S> {
    /// What the clock of blocks has measured since the engine got it.
    pub fn block_ticks(&self) -> &BlockTicks {
        &self.clock
    }
}

impl<S: Schedule> Engine<S> {
    /// An engine without faces. `key` is the one that the FIB was made with.
    ///
    /// # Errors
    /// When the memory for its tables cannot be had.
    pub fn new(config: EngineConfig, fib: Fib, pool: BufferPool, key: HashKey) -> Result<Self, EngineError> {
        let core = Core::new(config, pool, key)?;
        Ok(Engine {
            fib,
            core,
            hashes: PrefixHashes::new(),
            delegation_hashes: PrefixHashes::new(),
            burst_state: BurstState::new(),
            clock: S::Clock::default(),
            schedule: PhantomData,
        })
    }

    /// The same engine with another schedule.
    pub fn with_schedule<T: Schedule>(self) -> Engine<T> {
        let Engine { fib, core, hashes, delegation_hashes, burst_state, .. } = self;
        let clock = T::Clock::default();
        Engine { fib, core, hashes, delegation_hashes, burst_state, clock, schedule: PhantomData }
    }

    /// Handles due timers and then a burst of packets, in order. The burst is emptied; what is to be sent is appended to
    /// `out`. `now` must not go back between calls.
    pub fn process(&mut self, now: Timestamp, burst: &mut Vec<Incoming>, out: &mut Vec<Outgoing>) {
        self.advance(now, out);
        if !burst.is_empty() {
            self.core.dead_nonces.expect_use(burst.len());
        }
        self.core.note_strategies(self.fib.strategies_version());
        self.run(now, burst, out);
        self.core.end_trace_if_on();
        self.flush_disk();
        self.fib.quiescent();
    }

    /// Hands a decoded packet to its pipeline, and counts it if that discards it.
    // Left to the compiler, it is a function of its own since pipelines note steps for traces, and what it calls is inlined less:
    // 90 instructions more for an Interest and 70 for Data, counted by `make cost-test`.
    #[inline(always)]
    pub(crate) fn handle(&mut self, now: Timestamp, packet: Incoming, prepared: Prepared<'_>, out: &mut Vec<Outgoing>) {
        let face = packet.face;
        let parsed_anew;
        let prepared = match prepared.parsed.kind {
            Kind::Unread => {
                parsed_anew = self.parse_again(&packet);
                prepared.parsed_anew(&parsed_anew)
            }
            _ => prepared,
        };
        let handled = match prepared.parsed.kind {
            Kind::Interest if S::IS_STRIPPED => self.stripped_interest(now, packet, prepared, out),
            Kind::Data if S::IS_STRIPPED => self.stripped_data(now, packet, prepared, out),
            Kind::Interest => self.incoming_interest::<false>(now, packet, prepared, None, out),
            Kind::Data => self.incoming_data(now, packet, prepared, out),
            Kind::Nack(reason) => self.incoming_nack(now, packet, reason, out),
            Kind::Unread | Kind::Malformed => Err(self.malformed(&packet)),
        };
        if let Err(reason) = handled {
            self.core.count_drop(face, reason);
        }
    }

    /// Decodes an Interest that was not decoded for the length of its name, unless it has to be refused for that: more may be
    /// left for long names than was foreseen.
    #[cold]
    fn parse_again(&self, packet: &Incoming) -> Parsed {
        let mut parsed = Parsed::default();
        parsed.parse(packet, |bytes| self.core.check_unread(packet.face, bytes, &self.core.long_names.total()).is_ok());
        parsed
    }

    /// Counts a packet that could not be decoded, or was not. Returns why it is discarded.
    #[cold]
    fn malformed(&mut self, packet: &Incoming) -> DropReason {
        // Without a name it is not traced, and what becomes of it is no step of the packet before it.
        self.core.end_trace_if_on();
        let counters = &mut self.core.counters;
        let bytes = packet.buffer.bytes();
        let mut refused = Ok(());
        match (bytes.first().copied().map(u32::from), packet.fields.nack) {
            (Some(types::INTEREST), nack) => {
                counters.in_interests += 1;
                // Whether it was decoded or not, the reason is the same.
                if nack.is_none() && !S::IS_STRIPPED {
                    refused = self.core.check_unread(packet.face, bytes, &self.core.long_names.total());
                }
            }
            (Some(types::DATA), None) => counters.in_data += 1,
            _ => return DropReason::Malformed,
        }
        if !self.core.faces.exists(packet.face) {
            return DropReason::UnknownFace;
        }
        refused.err().unwrap_or(DropReason::Malformed)
    }

    /// Handles due timers, and a part of what new next hops and lost faces left to do.
    pub fn advance(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        self.core.now = now;
        self.core.long_names.grow(now);
        self.fire_timers(now, out);
        if !self.core.learning.is_idle() {
            self.core.send_overdue_data(now, out);
        }
        if self.core.disk_reads.is_some() {
            self.take_from_disk(now, out);
        }
        if !self.core.lost_upstreams.is_idle() {
            self.retry_lost(now, out);
        }
        self.continue_new_nexthops(now, out);
    }

    /// When [`advance`](Self::advance) has to be called at the latest; `None` when nothing is waiting for it.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        if !self.core.new_nexthops.is_idle() || !self.core.lost_upstreams.is_idle() {
            return Some(self.core.now);
        }
        let timer = self.core.timers.next_deadline();
        let disk = self.core.pcct.content.disk.as_ref().and_then(|disk| disk.next_deadline());
        timer.into_iter().chain(self.core.learning.next_deadline()).chain(disk).min()
    }

    /// To be called before the worker's thread sleeps for long, so that the FIB writer need not wait for it.
    pub fn prepare_to_sleep(&mut self) {
        self.fib.offline();
    }
}
