//! Memory layout of in-records and out-records, inside a PIT slot and in extension blocks.

use namehop_packet::{FaceId, Timestamp};
use namehop_wire::lp::{NackReason, PitToken};

use super::entry::NONE;
use crate::strategy::context::OutScratch;

/// Records of each kind inside a PIT slot.
pub(crate) const INLINE_RECORDS: usize = 1;
/// Records per extension block.
pub(crate) const BLOCK_RECORDS: usize = 7;
/// Maximum number of in-records of a PIT slot. Each Interest passes over all of them, so peers must not choose their
/// number.
pub(crate) const MAX_DOWNSTREAMS: usize = INLINE_RECORDS + 292 * BLOCK_RECORDS;
/// Maximum number of out-records of a PIT slot.
pub(crate) const MAX_UPSTREAMS: usize = INLINE_RECORDS + 36 * BLOCK_RECORDS;

/// Maximum length of a token inside an in-record.
pub(crate) const SHORT_TOKEN_BYTES: usize = 8;

/// HopLimit of a pending Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingHopLimit {
    /// The Interest has none.
    Absent,
    /// Received with this HopLimit; the next hop sees one less.
    Received(u8),
    /// Received without a HopLimit; the next hop sees this one.
    Added(u8),
}

impl PendingHopLimit {
    /// Returns the HopLimit that the downstream sent.
    pub(crate) fn received(self) -> Option<u8> {
        match self {
            PendingHopLimit::Received(hop_limit) => Some(hop_limit),
            PendingHopLimit::Absent | PendingHopLimit::Added(_) => None,
        }
    }

    /// Returns the HopLimit that the next hop sees.
    pub(crate) fn onward(self) -> Option<u8> {
        match self {
            PendingHopLimit::Absent => None,
            PendingHopLimit::Received(hop_limit) => Some(hop_limit.saturating_sub(1)),
            PendingHopLimit::Added(hop_limit) => Some(hop_limit),
        }
    }
}

/// An in-record: a downstream, and what its answer needs.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct InRecord {
    pub(crate) expiry: Timestamp,
    pub(crate) face: FaceId,
    pub(crate) nonce: u32,
    /// Index of the token block, if the token is longer than `short_token`.
    pub(crate) long_token: u32,
    pub(crate) token_bytes: u8,
    /// CongestionMark of the Interest; larger ones count as 255.
    pub(crate) congestion_mark: u8,
    pub(crate) hop_limit: PendingHopLimit,
    pub(crate) short_token: [u8; SHORT_TOKEN_BYTES],
}

const _: () = assert!(size_of::<InRecord>() == 32);

impl Default for InRecord {
    fn default() -> Self {
        InRecord {
            expiry: Timestamp(0),
            face: FaceId::INVALID,
            nonce: 0,
            long_token: NONE,
            token_bytes: 0,
            congestion_mark: 0,
            hop_limit: PendingHopLimit::Absent,
            short_token: [0; SHORT_TOKEN_BYTES],
        }
    }
}

/// An out-record: an upstream that the Interest was sent to.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct UpstreamRecord {
    pub(crate) last_renewed: Timestamp,
    pub(crate) face: FaceId,
    pub(crate) nonce: u32,
    /// The record ends this long after `last_renewed`.
    pub(crate) lifetime_ms: u32,
    /// Reason of the Nack received since; [`NOT_NACKED`] if there was none.
    nack: u32,
    pub(crate) scratch: OutScratch,
}

const _: () = assert!(size_of::<UpstreamRecord>() == 32);

const NOT_NACKED: u32 = u32::MAX;

impl Default for UpstreamRecord {
    fn default() -> Self {
        UpstreamRecord {
            last_renewed: Timestamp(0),
            face: FaceId::INVALID,
            nonce: 0,
            lifetime_ms: 0,
            nack: NOT_NACKED,
            scratch: OutScratch::default(),
        }
    }
}

impl UpstreamRecord {
    /// Creates the record of a face to which nothing was sent yet.
    pub(crate) fn new(face: FaceId) -> Self {
        UpstreamRecord { face, ..UpstreamRecord::default() }
    }

    pub(crate) fn expiry(&self) -> Timestamp {
        self.last_renewed.plus_ms(u64::from(self.lifetime_ms))
    }

    /// Returns whether this upstream is expected to answer.
    pub(crate) fn is_pending(&self, now: Timestamp) -> bool {
        self.nacked().is_none() && self.expiry() > now
    }

    pub(crate) fn nacked(&self) -> Option<NackReason> {
        (self.nack != NOT_NACKED).then_some(NackReason(u64::from(self.nack)))
    }

    /// Stores or clears a Nack. Reasons beyond 32 bits, which no specification defines, become reason 0 (none).
    pub(crate) fn set_nacked(&mut self, reason: Option<NackReason>) {
        self.nack = match reason {
            None => NOT_NACKED,
            Some(reason) => u32::try_from(reason.code()).ok().filter(|&code| code != NOT_NACKED).unwrap_or(0),
        };
    }
}

/// More in-records or out-records of a slot: four cache lines.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(crate) struct RecordBlock<R> {
    pub(crate) records: [R; BLOCK_RECORDS],
    pub(crate) next: u32,
}

impl<R: Copy + Default> Default for RecordBlock<R> {
    fn default() -> Self {
        RecordBlock { records: [R::default(); BLOCK_RECORDS], next: NONE }
    }
}

const _: () = assert!(size_of::<RecordBlock<InRecord>>() == 4 * 64);

/// A PIT token too long for its in-record.
pub(crate) type TokenBlock = [u8; PitToken::MAX_LEN];
