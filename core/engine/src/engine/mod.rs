//! The engine of one worker: packets in, packets out.
//!
//! It owns the PIT-CS composite table, the Dead Nonce List, timers and counters, and reads the FIB that the control
//! thread writes. It reads no clock and does no input or output: the caller passes the time and bursts of packets, and
//! gets the packets to send. It never panics on input from outside, and allocates nothing per packet once its lists
//! have grown to the size of a burst.
//!
//! Every dropped packet is counted under a [`DropReason`](namehop_packet::DropReason), in total
//! ([`Engine::counters`]) and for the face it was received on ([`Engine::face_drops`]).
//!
//! Here is the type, with its control operations. What it does with packets is above it: the `pipelines`, and the
//! [`schedule`](crate::schedule) that calls them.

mod content_store;
mod control;
mod several_workers;
mod status;

use namehop_hash::{HashKey, Lanes, PrefixHashes};
use namehop_packet::{BufferPool, Timestamp};

pub use self::status::EngineStatus;
use crate::burst::{BurstState, MAX_LOOKAHEAD};
pub use crate::pcct::InvariantError;
pub use crate::pcct::content::erasure::CsErasure;
use crate::state::ForwardingState;
pub use crate::state::config::{
    CsChange, CsConfig, CsInfo, EngineConfig, EngineError, TableSizes, UnknownUnsolicitedPolicy, UnsolicitedPolicy,
};
pub use crate::state::cs_counters::{CsCounters, CsCountersByPolicy};
pub use crate::state::events::EngineEvent;
pub use crate::state::memory::EngineMemory;
pub use crate::state::route::Fib;

/// The forwarding engine of one worker.
///
/// [`process`](Self::process) is what a router needs. The module [`schedule`](crate::schedule) lists the steps it
/// consists of.
pub struct Engine {
    pub(crate) fib: Fib,
    pub(crate) state: ForwardingState,
    /// Hashes of the name and of the delegation of a pending Interest.
    pub(crate) hashes: PrefixHashes,
    pub(crate) delegation_hashes: PrefixHashes,
    /// The parsed and prefetched state of the packets of a burst.
    pub(crate) burst_state: BurstState,
    /// Number of packets that the prefetch stages process together.
    pub(crate) lookahead: usize,
    /// The SIMD lanes that hash the names of a burst.
    pub(crate) lanes: Lanes,
}

impl Engine {
    /// Creates an engine without faces. `key` must be the one that the FIB was created with.
    ///
    /// # Errors
    /// If the memory for its tables cannot be allocated.
    pub fn new(config: EngineConfig, fib: Fib, pool: BufferPool, key: HashKey) -> Result<Self, EngineError> {
        let lookahead = config.lookahead.clamp(1, MAX_LOOKAHEAD);
        Ok(Engine {
            fib,
            state: ForwardingState::new(config, pool, key)?,
            hashes: PrefixHashes::new(),
            delegation_hashes: PrefixHashes::new(),
            burst_state: BurstState::new(),
            lookahead,
            lanes: Lanes::best(),
        })
    }

    /// Returns the latest time for the next call of [`advance`](Self::advance); `None` if nothing waits for it.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let state = &self.state;
        if !state.new_nexthops.is_idle() || !state.lost_upstreams.is_idle() {
            return Some(state.emitter.now());
        }
        let tier = state.pcct.content.tier().and_then(|tier| tier.next_deadline());
        state.timers.next_deadline().into_iter().chain(state.learning.next_deadline()).chain(tier).min()
    }

    /// Returns whether nothing is pending. Then the engine holds no packet except cached Data.
    pub fn is_idle(&self) -> bool {
        let waits_for_tier = self.state.tier_reads.as_ref().is_some_and(|reads| reads.len() > 0);
        self.state.pcct.pit.len() == 0 && self.state.learning.is_idle() && !waits_for_tier
    }

    /// Must be called before the worker's thread sleeps for long, so that the FIB writer does not wait for it.
    pub fn prepare_to_sleep(&mut self) {
        self.fib.offline();
    }
}
