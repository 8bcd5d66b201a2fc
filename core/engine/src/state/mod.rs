//! The state of an engine except the FIB, divided by what each part owns.
//!
//! It is separate from the FIB so that a pipeline can hold a FIB match, which borrows the reader, while it changes the
//! state. Parts do not know each other: a method that needs another part gets it as an argument. Only what opens, ends
//! and evicts PIT entries (`pit_room`) takes the whole state.
//!
//! | file | part |
//! |---|---|
//! | `emitter` | packets to send, drops, counters, reports (`events`, `face_drops`), traces |
//! | `faces` | the faces |
//! | `limits` | limits on names, also on the rate of long ones, and on lifetimes |
//! | `rules` | the operator's rules about single packets |
//! | `dead_nonces` | the dead nonce list with the lifetime of its nonces |
//! | `pit_timers` | timers of PIT entries |
//! | `new_nexthops`, `lost_upstreams` | pending Interests to send again, because a next hop is new or lost |
//! | `learning` | Data that waits for an announcement |
//! | `tier_reads` | Interests that wait for the second tier |
//! | `other_workers` | packets that belong to another engine |
//! | `strategies_version` | which PIT entries reflect the current strategies |
//! | `cs_counters` | counters of the Content Store for each policy |
//!
//! | file | what else |
//! |---|---|
//! | `config`, `memory` | settings, and the memory that they imply |
//! | `pit_room` | opening, evicting and ending PIT entries |
//! | `pit_walk` | a walk over all PIT entries, in bounded parts |
//! | `route` | next hops and strategy of an Interest |
//! | `interest_form` | Interests as bytes: rewritten, or rebuilt from the PIT |

pub(crate) mod config;
pub(crate) mod cs_counters;
pub(crate) mod dead_nonces;
pub(crate) mod emitter;
pub(crate) mod events;
mod face_drops;
pub(crate) mod faces;
pub(crate) mod interest_form;
pub(crate) mod learning;
pub(crate) mod limits;
pub(crate) mod lost_upstreams;
pub(crate) mod memory;
pub(crate) mod new_nexthops;
pub(crate) mod other_workers;
mod pit_room;
pub(crate) mod pit_timers;
pub(crate) mod pit_walk;
pub(crate) mod route;
pub(crate) mod rules;
pub(crate) mod strategies_version;
pub(crate) mod tier_reads;

use namehop_hash::{HashKey, hash_name, hash_with_nonce};
use namehop_packet::BufferPool;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::pcct::content::ContentConfig;
use crate::pcct::record::InRecord;
use crate::pcct::{Downstream, Pcct, PcctConfig, PitRef};
use crate::strategy::MeasurementTable;
use config::{EngineConfig, EngineError};
use cs_counters::PolicyPeriods;
use dead_nonces::DeadNonces;
use emitter::Emitter;
use faces::FaceArray;
use learning::Learning;
use limits::Limits;
use lost_upstreams::LostUpstreams;
use new_nexthops::NewNextHops;
use other_workers::OtherWorkers;
use pit_timers::PitTimers;
use rules::Rules;
use strategies_version::StrategiesVersion;
use tier_reads::TierReads;

/// The state of an engine except the FIB; see the module documentation.
pub(crate) struct ForwardingState {
    pub(crate) key: HashKey,
    pub(crate) emitter: Emitter,
    pub(crate) faces: FaceArray,
    pub(crate) limits: Limits,
    pub(crate) rules: Rules,
    /// PIT and Content Store.
    pub(crate) pcct: Pcct,
    pub(crate) timers: PitTimers,
    pub(crate) dead_nonces: DeadNonces,
    pub(crate) strategies: StrategiesVersion,
    pub(crate) measurements: MeasurementTable,
    pub(crate) new_nexthops: NewNextHops,
    pub(crate) lost_upstreams: LostUpstreams,
    pub(crate) learning: Learning,
    pub(crate) policy_periods: PolicyPeriods,
    /// Interests that wait for the second tier of the Content Store; `None` if there is none.
    pub(crate) tier_reads: Option<Box<TierReads>>,
    pub(crate) other_workers: OtherWorkers,
    pub(crate) scratch: Scratch,
    /// Scratch: entries that hold memory of one chunk.
    owners: Vec<u32>,
    random: SplitMix64,
}

/// Lists that are reused to avoid allocations. A pipeline takes one and puts it back.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) matches: Vec<PitRef>,
    pub(crate) downstreams: Vec<Downstream>,
    pub(crate) answered: Vec<(InRecord, Downstream)>,
}

impl ForwardingState {
    /// Creates the state of an engine without faces.
    ///
    /// # Errors
    /// If the memory for its tables cannot be allocated.
    pub(crate) fn new(config: EngineConfig, pool: BufferPool, key: HashKey) -> Result<Self, EngineError> {
        let pcct = Pcct::new(&PcctConfig {
            pit_capacity: config.pit_capacity,
            memory_bytes: config.pit_memory_bytes,
            content: ContentConfig {
                capacity_packets: config.cs.capacity_packets,
                capacity_bytes: config.cs.capacity_bytes,
                reserved_packets: config.reserved_packets,
                policy: config.cs.policy,
                admit: config.cs.admit,
                serve: config.cs.serve,
            },
            key,
            worker: config.worker,
        })?;
        Ok(ForwardingState {
            key,
            emitter: Emitter::new(pool),
            faces: FaceArray::new(),
            limits: Limits::new(config.max_name_bytes, config.long_name_bytes_per_s, config.max_lifetime_ms),
            rules: Rules::new(
                config.producer_regions,
                config.default_hop_limit,
                config.unsolicited,
                config.accept_unasked_data,
            ),
            pcct,
            timers: PitTimers::new(config.pit_capacity, config.new_timers)?,
            dead_nonces: DeadNonces::new(config.dead_nonce_lifetime_ms, config.dead_nonce_capacity)?,
            strategies: StrategiesVersion::default(),
            measurements: MeasurementTable::new(config.measurement_capacity),
            new_nexthops: NewNextHops::new(),
            lost_upstreams: LostUpstreams::default(),
            learning: Learning::new(),
            policy_periods: PolicyPeriods::default(),
            tier_reads: None,
            other_workers: OtherWorkers::none(config.worker),
            scratch: Scratch::default(),
            owners: Vec::new(),
            // Seeded from the secret hash key; the outputs that peers can observe do not reveal it. Each worker has its
            // own sequence.
            random: SplitMix64::seed_from_u64(hash_with_nonce(
                hash_name(&key, b"random numbers"),
                config.worker.into(),
            )),
        })
    }

    /// Returns a random number.
    pub(crate) fn random(&mut self) -> u64 {
        self.random.next_u64()
    }
}
