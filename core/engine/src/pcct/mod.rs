//! PIT-CS composite table: pending Interests and cached Data of one worker in one table.
//!
//! Entries are keyed by (name, chosen forwarding hint). The bucket table is keyed by the hash of the name alone, and
//! all entries of one name form a ring. So Data that finds one entry it may satisfy finds all others. An entry lives
//! while it has a PIT slot or Data. When an Interest is satisfied, the Data goes into the entry that the Interest made.
//!
//! | file | what |
//! |---|---|
//! | `entry`, `record` | memory layout |
//! | `keys` | lookup, insertion and removal of entries |
//! | `slots` | PIT slots: opening, closing, timers, finding the ones that Data satisfies |
//! | `records`, `chain` | downstream and upstream records of a slot |
//! | `content`, `insertion`, `content_settings` | the Content Store: lookup, insertion, settings |
//! | `data_digest`, `erasure`, `prefix_index`, `second_tier` | its digests, erasure, prefix index and second tier |
//! | `digest_names` | names of Data that Interests request by digest |
//! | `prefetch` | prefetches |
//! | `blocks` | memory for Data, long names, copies of Interests |
//! | `memory` | the memory that full tables use |
//! | `pit_queue`, `shares` | the order in which PIT slots are evicted |
//! | `check` | self-check |
//!
//! Nothing here sends packets or knows more of a face than its id. Assumes that names are valid Name VALUEs with at
//! most 64 components.

pub(crate) mod blocks;
mod chain;
mod check;
pub(crate) mod content;
mod content_settings;
mod data_digest;
mod digest_names;
pub(crate) mod entry;
pub(crate) mod erasure;
pub(crate) mod insertion;
pub(crate) mod keys;
pub(crate) mod memory;
mod pit_queue;
pub(crate) mod prefetch;
mod prefix_index;
pub(crate) mod record;
mod records;
mod second_tier;
mod shares;
mod slots;

use std::sync::Arc;

use namehop_hash::HashKey;
use namehop_table::{Arena, BucketTable};
use namehop_wire::MAX_NAME_COMPONENTS;

use blocks::{Block, OwnedBlocks};
use content::{ContentConfig, ContentStore};
use digest_names::DigestNames;
use entry::{Entry, PitSlot};
use pit_queue::PitQueue;
use record::{InRecord, RecordBlock, TokenBlock, UpstreamRecord};
use shares::Shares;

use crate::dispatch::NameDispatch;
use crate::pit_token::TokenForm;

pub(crate) use chain::NoRoom;
pub(crate) use records::{Arrival, Downstream, short_downstream};

/// Maximum number of entries with one name and a forwarding hint. One without a hint may exist in addition.
pub(crate) const MAX_HINTS: usize = 8;

/// Handle of one PIT slot. Valid until the slot is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PitRef {
    pub(crate) entry: u32,
    pub(crate) slot: u32,
}

/// Sizes of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PcctConfig {
    /// Maximum number of PIT slots.
    pub(crate) pit_capacity: usize,
    /// Maximum bytes of long names and Interest copies.
    pub(crate) memory_bytes: usize,
    pub(crate) content: ContentConfig,
    /// The key for hashing names.
    pub(crate) key: HashKey,
    /// Number of the worker: the first byte of its PIT tokens.
    pub(crate) worker: u8,
}

/// The PIT-CS composite table.
pub(crate) struct Pcct {
    table: BucketTable,
    entries: Arena<Entry>,
    slots: Arena<PitSlot>,
    in_blocks: Arena<RecordBlock<InRecord>>,
    out_blocks: Arena<RecordBlock<UpstreamRecord>>,
    tokens: Arena<TokenBlock>,
    /// Long names and Interest copies.
    memory: OwnedBlocks,
    queue: PitQueue,
    shares: Shares,
    pit_capacity: usize,
    /// Maximum number of entries in use: one for each possible PIT slot and each possible cached Data, and some spare
    /// ones.
    entry_limit: usize,
    next_serial: u32,
    /// Entry indices below this one have been in use at some time.
    touched: u32,
    /// Number of CanBePrefix slots by number of components: Data without a token probes only prefixes of these lengths.
    pending_prefixes: [u32; MAX_NAME_COMPONENTS + 1],
    /// Number of slots with an implicit digest in the name, by number of components.
    pending_digests: [u32; MAX_NAME_COMPONENTS + 1],
    /// Names of the Data that these slots request.
    digest_names: DigestNames,
    key: HashKey,
    /// The layout of tokens for the PIT slots.
    token_form: TokenForm,
    /// The sum of both numbers: pending Interests that Data of another name may satisfy.
    pending_unusual: u32,
    /// Counts pending Interests that Data of other workers may satisfy; `None` if there is only one worker.
    dispatch: Option<Arc<NameDispatch>>,
    pub(crate) content: ContentStore,
    /// Scratch: blocks of a chunk that is cleared.
    starved: Vec<Block>,
}

/// Returns the number of extension blocks of each kind for this PIT capacity.
fn extension_capacity(pit_capacity: usize) -> usize {
    pit_capacity / 4 + 256
}
