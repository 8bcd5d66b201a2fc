//! The engine of one worker: packets in, packets out.
//!
//! It owns the PIT-CS composite table, the Dead Nonce List, timers and counters, and reads the FIB that the control
//! thread writes. It reads no clock and does no input or output: the caller passes the time and bursts of packets, and
//! gets the packets to send. It never panics on input from outside, and allocates nothing per packet once its lists
//! have grown to the size of a burst.
//!
//! Every dropped packet is counted under a [`DropReason`], in total ([`Engine::counters`]) and for the face it was
//! received on ([`Engine::face_drops`]).

pub mod config;
pub(crate) mod context;
mod control;
pub(crate) mod core;
pub mod cs_counters;
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
pub(crate) mod tier_reads;

use namehop_hash::{HashKey, PrefixHashes};
use namehop_wire::tlv::types;

use self::core::Core;
use crate::fib::FibReader;
use crate::parse::{Parsed, ParsedKind};
use crate::schedule::{BurstState, Prepared};
use crate::strategy::StrategyInstance;
pub use config::{CsChange, CsConfig, CsInfo, EngineConfig, EngineError, TableSizes, UnsolicitedPolicy};
pub use cs_counters::{CsCounters, CsCountersByPolicy};
pub use learning::EngineEvent;
pub use memory::EngineMemory;
use namehop_packet::{BufferPool, DropReason, Incoming, Outgoing, Timestamp};

pub use crate::pcct::erasure::CsErasure;

/// The FIB reader of an engine.
pub type Fib = FibReader<StrategyInstance>;

/// The forwarding engine of one worker.
///
/// [`process`](Self::process) is what a router needs. The module [`schedule`](crate::schedule) lists the steps it
/// consists of.
pub struct Engine {
    pub(crate) fib: Fib,
    pub(crate) core: Core,
    /// Hashes of the name and of the delegation of a pending Interest.
    pub(crate) hashes: PrefixHashes,
    pub(crate) delegation_hashes: PrefixHashes,
    /// The parsed and prefetched state of the packets of a burst.
    pub(crate) burst_state: BurstState,
}

impl Engine {
    /// Creates an engine without faces. `key` must be the one that the FIB was created with.
    ///
    /// # Errors
    /// If the memory for its tables cannot be allocated.
    pub fn new(config: EngineConfig, fib: Fib, pool: BufferPool, key: HashKey) -> Result<Self, EngineError> {
        let core = Core::new(config, pool, key)?;
        Ok(Engine {
            fib,
            core,
            hashes: PrefixHashes::new(),
            delegation_hashes: PrefixHashes::new(),
            burst_state: BurstState::new(),
        })
    }

    /// Handles due timers and then a burst of packets, in order. Empties the burst and appends the packets to send to
    /// `out`. `now` must not decrease between calls.
    pub fn process(&mut self, now: Timestamp, burst: &mut Vec<Incoming>, out: &mut Vec<Outgoing>) {
        self.begin_burst(now, burst.len(), true, out);
        self.run(now, burst, out);
        self.end_burst();
    }

    /// Does what is due before a burst of this number of packets, as [`advance`](Self::advance). `prefetches_timers`
    /// says whether the PIT entries of due timers are prefetched. Must be called before the packets are decoded.
    #[inline(always)]
    pub fn begin_burst(&mut self, now: Timestamp, packets: usize, prefetches_timers: bool, out: &mut Vec<Outgoing>) {
        self.do_due_work(now, prefetches_timers, out);
        if packets > 0 {
            self.core.dead_nonces.expect_use(packets);
        }
        self.core.note_strategies(self.fib.strategies_version());
    }

    /// Ends a burst, after its last packet was handled.
    #[inline(always)]
    pub fn end_burst(&mut self) {
        self.core.end_trace_if_on();
        self.flush_tier();
        self.fib.quiescent();
    }

    /// Passes a decoded packet to its pipeline, and counts it if it is dropped. `prepared` must be the state of this
    /// packet.
    // Without the attribute, the compiler outlines this function and inlines less of its callees, because pipelines
    // record trace steps. That costs 90 more instructions for an Interest and 70 for Data, counted by `make cost-test`.
    #[inline(always)]
    pub fn handle(&mut self, now: Timestamp, packet: Incoming, prepared: Prepared<'_>, out: &mut Vec<Outgoing>) {
        let face = packet.face;
        let parsed_anew;
        let prepared = match prepared.parsed.kind {
            ParsedKind::Unread => {
                parsed_anew = self.parse_again(&packet);
                prepared.parsed_anew(&parsed_anew)
            }
            _ => prepared,
        };
        let handled = match prepared.parsed.kind {
            ParsedKind::Interest => self.incoming_interest::<false>(now, packet, prepared, None, out),
            ParsedKind::Data => self.incoming_data(now, packet, prepared, out),
            ParsedKind::Nack(reason) => self.incoming_nack(now, packet, reason, out),
            ParsedKind::Unread | ParsedKind::Malformed => Err(self.malformed(&packet)),
        };
        if let Err(reason) = handled {
            self.core.count_drop(face, reason);
        }
    }

    /// Decodes an Interest that was skipped for the length of its name, unless it must be refused for that: the
    /// allowance for long names may be larger than predicted.
    #[cold]
    fn parse_again(&self, packet: &Incoming) -> Parsed {
        let mut parsed = Parsed::default();
        let bytes = packet.buffer.bytes();
        parsed.parse(packet, || self.core.check_unread(packet.face, bytes, &self.core.long_names.total()).is_ok());
        parsed
    }

    /// Counts a packet that was not decoded. Returns the drop reason.
    #[cold]
    fn malformed(&mut self, packet: &Incoming) -> DropReason {
        // A packet without a name is not traced, and its drop is not a step of the previous packet's trace.
        self.core.end_trace_if_on();
        let counters = &mut self.core.counters;
        let bytes = packet.buffer.bytes();
        let mut refused = Ok(());
        match (bytes.first().copied().map(u32::from), packet.fields.nack) {
            (Some(types::INTEREST), nack) => {
                counters.in_interests += 1;
                // The reason is the same whether the Interest was decoded or not.
                if nack.is_none() {
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

    /// Handles due timers, and a bounded part of the work that new next hops and lost faces require.
    pub fn advance(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        self.do_due_work(now, true, out);
    }

    /// See [`begin_burst`](Self::begin_burst) for `prefetches_timers`.
    fn do_due_work(&mut self, now: Timestamp, prefetches_timers: bool, out: &mut Vec<Outgoing>) {
        self.core.now = now;
        self.core.long_names.grow(now);
        self.fire_timers(now, prefetches_timers, out);
        if !self.core.learning.is_idle() {
            self.core.send_overdue_data(now, out);
        }
        if self.core.tier_reads.is_some() {
            self.poll_tier(now, out);
        }
        if !self.core.lost_upstreams.is_idle() {
            self.retry_lost(now, out);
        }
        self.continue_new_nexthops(now, out);
    }

    /// Returns the latest time for the next call of [`advance`](Self::advance); `None` if nothing waits for it.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        if !self.core.new_nexthops.is_idle() || !self.core.lost_upstreams.is_idle() {
            return Some(self.core.now);
        }
        let timer = self.core.timers.next_deadline();
        let tier = self.core.pcct.content.second_tier.as_ref().and_then(|tier| tier.next_deadline());
        timer.into_iter().chain(self.core.learning.next_deadline()).chain(tier).min()
    }

    /// Must be called before the worker's thread sleeps for long, so that the FIB writer does not wait for it.
    pub fn prepare_to_sleep(&mut self) {
        self.fib.offline();
    }
}
