//! The memory layout of one PCCT entry, by cache line.
//!
//! An entry belongs to one (name, chosen forwarding hint). It refers to PIT slots, one for each combination of
//! CanBePrefix and MustBeFresh in use, and to one cached Data. Slots are separate from entries, because in a router
//! with a large cache most entries hold Data and no pending Interest.

use namehop_packet::Timestamp;

use super::blocks::Block;
use super::record::{INLINE_RECORDS, InRecord, UpstreamRecord};
use crate::strategy::context::PitScratch;

/// The index that refers to nothing.
pub(crate) const NONE: u32 = u32::MAX;
/// Bytes of name and hint together that fit into an entry; longer ones go to a block.
pub(crate) const SHORT_KEY_BYTES: usize = 80;

/// One entry of the table: two cache lines.
///
/// | line | content |
/// |---|---|
/// | 0 | identity, handles of slot and Data, freshness: all that a lookup needs except the name; start of the name |
/// | 1 | rest of the name, hint |
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(crate) struct Entry {
    /// Hash of the name alone: the key of the bucket table.
    pub(crate) name_hash: u64,
    /// The time until which the Data is fresh.
    pub(crate) fresh_until: Timestamp,
    /// Low half of the hash of the hint; 0 without a hint. Separates hints in the prefix index.
    pub(crate) delegation_hash: u32,
    /// Number of times this entry was freed; a stale PIT token has another generation.
    pub(crate) generation: u32,
    /// Next entry of the same name with another hint: all of them form a ring. The entry itself if it is alone.
    pub(crate) next_variant: u32,
    /// First PIT slot.
    pub(crate) first_slot: u32,
    /// The cached Data, followed by its 32-byte digest if that is known.
    pub(crate) data: Block,
    /// Serial number of the PIT slot opened last in this entry or, before it has had one, in the table.
    pub(crate) serial: u32,
    pub(crate) name_bytes: u16,
    pub(crate) delegation_bytes: u16,
    pub(crate) data_bytes: u16,
    /// Number of components of the name.
    pub(crate) depth: u8,
    pub(crate) flags: EntryFlags,
    /// Name and hint, or the handle of their block if they are longer than this.
    pub(crate) short_key: [u8; SHORT_KEY_BYTES],
}

const _: () = assert!(size_of::<Entry>() == 2 * 64);

/// The flags of an entry, in one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct EntryFlags(u8);

impl EntryFlags {
    /// The entry holds a name.
    pub(crate) const IN_USE: EntryFlags = EntryFlags(1);
    /// The last component of the name is an implicit digest.
    pub(crate) const NAMES_DIGEST: EntryFlags = EntryFlags(2);
    /// The digest is stored behind the Data.
    pub(crate) const DIGEST_KNOWN: EntryFlags = EntryFlags(4);

    pub(crate) const fn has(self, flag: EntryFlags) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) fn set(&mut self, flag: EntryFlags, value: bool) {
        self.0 = self.0 & !flag.0 | if value { flag.0 } else { 0 };
    }
}

impl Default for Entry {
    /// Returns an entry that is not in use.
    fn default() -> Self {
        Entry {
            name_hash: 0,
            fresh_until: Timestamp(0),
            delegation_hash: 0,
            generation: 0,
            next_variant: NONE,
            first_slot: NONE,
            data: Block::NONE,
            serial: 0,
            name_bytes: 0,
            delegation_bytes: 0,
            data_bytes: 0,
            depth: 0,
            flags: EntryFlags::default(),
            short_key: [0; SHORT_KEY_BYTES],
        }
    }
}

impl Entry {
    pub(crate) fn in_use(&self) -> bool {
        self.flags.has(EntryFlags::IN_USE)
    }

    /// Returns whether the last component of the name is an implicit digest.
    pub(crate) fn names_digest(&self) -> bool {
        self.flags.has(EntryFlags::NAMES_DIGEST)
    }

    /// Returns the number of bytes of name and hint together.
    #[inline]
    pub(crate) fn key_bytes(&self) -> usize {
        usize::from(self.name_bytes) + usize::from(self.delegation_bytes)
    }

    /// Returns the block of name and hint, if they do not fit into the entry.
    #[inline]
    pub(crate) fn long_key(&self) -> Option<Block> {
        let handle = self.short_key.first_chunk().filter(|_| self.key_bytes() > SHORT_KEY_BYTES)?;
        Some(Block::from_bytes(*handle))
    }

    pub(crate) fn has_data(&self) -> bool {
        !self.data.is_none()
    }

    pub(crate) fn has_slots(&self) -> bool {
        self.first_slot != NONE
    }
}

/// The selectors of an Interest, which identify a PIT slot of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Selectors {
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
}

impl Selectors {
    /// Returns the selectors as two bits.
    pub(crate) const fn bits(self) -> u8 {
        (if self.can_be_prefix { CAN_BE_PREFIX } else { 0 }) | (if self.must_be_fresh { MUST_BE_FRESH } else { 0 })
    }

    pub(crate) const fn from_bits(bits: u8) -> Self {
        Selectors { can_be_prefix: bits & CAN_BE_PREFIX != 0, must_be_fresh: bits & MUST_BE_FRESH != 0 }
    }
}

const CAN_BE_PREFIX: u8 = 1;
const MUST_BE_FRESH: u8 = 2;
const SELECTORS: u8 = CAN_BE_PREFIX | MUST_BE_FRESH;
const STRATEGY_TIMER: u8 = 4;
const SATISFIED: u8 = 8;
const NON_DISCOVERY: u8 = 16;
const KEEP_NONCES: u8 = 32;
const MEASURED: u8 = 64;
const AWAITS_OTHER_WORKERS: u8 = 128;

/// One PIT entry in the sense of the protocol: two cache lines, state and records.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(crate) struct PitSlot {
    /// When the PIT entry ends.
    pub(crate) expiry: Timestamp,
    /// When the timer for `expiry` is due; timers for other times are ignored.
    pub(crate) timer_at: Timestamp,
    /// Number of this PIT entry since the start: distinguishes it from earlier ones in stale timers.
    pub(crate) serial: u32,
    /// Its position in the eviction queue.
    pub(crate) queue_position: u32,
    /// InterestLifetime of the latest Interest; [`LIFETIME_ABSENT`] if it had none.
    pub(crate) lifetime_ms: u32,
    /// Copy of the Interest, if it cannot be rebuilt from name and selectors.
    pub(crate) packet: Block,
    /// First extension block of in-records and of out-records.
    pub(crate) more_in: u32,
    pub(crate) more_out: u32,
    /// Next PIT slot of the entry.
    pub(crate) next: u32,
    pub(crate) scratch: PitScratch,
    pub(crate) packet_bytes: u16,
    pub(crate) in_count: u16,
    pub(crate) out_count: u16,
    flags: u8,
    pub(crate) in_records: [InRecord; INLINE_RECORDS],
    pub(crate) out_records: [UpstreamRecord; INLINE_RECORDS],
}

const _: () = assert!(size_of::<PitSlot>() == 2 * 64);
const _: () = assert!(std::mem::offset_of!(PitSlot, in_records) == 64);

/// `lifetime_ms` of an Interest without InterestLifetime.
pub(crate) const LIFETIME_ABSENT: u32 = u32::MAX;

impl Default for PitSlot {
    /// Returns a slot that is not in use.
    fn default() -> Self {
        PitSlot {
            expiry: Timestamp::NEVER,
            timer_at: Timestamp::NEVER,
            serial: 0,
            queue_position: 0,
            lifetime_ms: LIFETIME_ABSENT,
            packet: Block::NONE,
            more_in: NONE,
            more_out: NONE,
            next: NONE,
            scratch: PitScratch::default(),
            packet_bytes: 0,
            in_count: 0,
            out_count: 0,
            flags: 0,
            in_records: [InRecord::default(); INLINE_RECORDS],
            out_records: [UpstreamRecord::default(); INLINE_RECORDS],
        }
    }
}

impl PitSlot {
    /// Resets the slot for a new PIT entry. Records stay as they are: the counts say that there are none.
    pub(crate) fn open(&mut self, selectors: Selectors, serial: u32, queue_position: u32) {
        self.expiry = Timestamp::NEVER;
        self.timer_at = Timestamp::NEVER;
        self.serial = serial;
        self.queue_position = queue_position;
        self.lifetime_ms = LIFETIME_ABSENT;
        self.packet = Block::NONE;
        self.packet_bytes = 0;
        self.more_in = NONE;
        self.more_out = NONE;
        self.next = NONE;
        self.scratch = PitScratch::default();
        self.in_count = 0;
        self.out_count = 0;
        self.flags = selectors.bits();
    }

    /// Returns whether the slot has records or a PIT token in other blocks.
    #[inline]
    pub(crate) fn has_more_records(&self) -> bool {
        let has_long_token = self.in_count > 0 && self.in_records[0].long_token != NONE;
        self.more_in != NONE || self.more_out != NONE || has_long_token
    }

    pub(crate) const fn selectors(&self) -> Selectors {
        Selectors::from_bits(self.flags & SELECTORS)
    }

    pub(crate) const fn is_satisfied(&self) -> bool {
        self.flags & SATISFIED != 0
    }

    /// Marks the slot as satisfied. With `keep_nonces`, its nonces still go to the Dead Nonce List, because the cached
    /// Data may stop answering before that list would drop them.
    pub(crate) fn set_satisfied(&mut self, keep_nonces: bool) {
        self.flags = self.flags & !KEEP_NONCES | SATISFIED | if keep_nonces { KEEP_NONCES } else { 0 };
    }

    /// Returns whether the nonces of the out-records go to the Dead Nonce List when the slot ends.
    pub(crate) const fn keeps_nonces(&self) -> bool {
        !self.is_satisfied() || self.flags & KEEP_NONCES != 0
    }

    /// Returns whether the strategy asked, at the last Interest, to be notified of Data.
    pub(crate) const fn is_measured(&self) -> bool {
        self.flags & MEASURED != 0
    }

    /// Returns whether a timer of the strategy is set.
    pub(crate) const fn has_strategy_timer(&self) -> bool {
        self.flags & STRATEGY_TIMER != 0
    }

    pub(crate) fn set_strategy_timer(&mut self, is_set: bool) {
        self.flags = self.flags & !STRATEGY_TIMER | if is_set { STRATEGY_TIMER } else { 0 };
    }

    /// Returns whether Data of other workers may satisfy the slot, and it was counted for that.
    pub(crate) const fn awaits_other_workers(&self) -> bool {
        self.flags & AWAITS_OTHER_WORKERS != 0
    }

    pub(crate) fn set_awaits_other_workers(&mut self, awaits: bool) {
        self.flags = self.flags & !AWAITS_OTHER_WORKERS | if awaits { AWAITS_OTHER_WORKERS } else { 0 };
    }

    pub(crate) const fn is_non_discovery(&self) -> bool {
        self.flags & NON_DISCOVERY != 0
    }

    /// Makes the PIT entry pending for a new Interest. Returns `true` if it was satisfied.
    #[inline]
    pub(crate) fn renew(&mut self, non_discovery: bool, measured: bool) -> bool {
        let was_satisfied = self.is_satisfied();
        let kept = self.flags & !(SATISFIED | KEEP_NONCES | NON_DISCOVERY | MEASURED);
        self.flags = kept | if non_discovery { NON_DISCOVERY } else { 0 } | if measured { MEASURED } else { 0 };
        was_satisfied
    }
}
