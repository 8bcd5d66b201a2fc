//! In-records and out-records of a PIT slot: the first one inline, further ones in a chain of blocks.
//!
//! Passes over all records walk the chain once; removing one record by index moves the last one into its place.

use namehop_packet::{FaceId, Timestamp};
use namehop_table::Arena;
use namehop_wire::lp::PitToken;

use super::Pit;
use super::chain::{NoRoom, Walk, extend, locate, retain, truncate};
use crate::pcct::PitRef;
use crate::pcct::entry::NONE;
use crate::pcct::record::{INLINE_RECORDS, InRecord, MAX_DOWNSTREAMS, MAX_UPSTREAMS, PendingHopLimit};
use crate::pcct::record::{SHORT_TOKEN_BYTES, TokenBlock, UpstreamRecord};

/// What an answer to a downstream carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Downstream {
    pub(crate) face: FaceId,
    pub(crate) token: PitToken,
    pub(crate) congestion_mark: u64,
}

/// An Interest in the form of its in-record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub(crate) face: FaceId,
    pub(crate) nonce: u32,
    pub(crate) expiry: Timestamp,
    /// Same as [`PitSlot::lifetime_ms`](crate::pcct::entry::PitSlot::lifetime_ms).
    pub(crate) lifetime_ms: u32,
    pub(crate) hop_limit: PendingHopLimit,
    pub(crate) congestion_mark: u64,
    pub(crate) token: &'a PitToken,
    pub(crate) non_discovery: bool,
    /// Whether its strategy asks to be notified of Data.
    pub(crate) measured: bool,
}

/// Builds the record of an Interest. A token without a block of its own must fit into the record.
#[inline(always)]
fn in_record(arrival: &Arrival<'_>, long_token: u32) -> InRecord {
    InRecord {
        expiry: arrival.expiry,
        face: arrival.face,
        nonce: arrival.nonce,
        long_token,
        token_bytes: arrival.token.len() as u8,
        congestion_mark: u8::try_from(arrival.congestion_mark).unwrap_or(u8::MAX),
        hop_limit: arrival.hop_limit,
        short_token: arrival.token.first_bytes(),
    }
}

/// Returns what an answer to the downstream with this record carries.
#[inline(always)]
fn downstream_of(record: &InRecord, tokens: &Arena<TokenBlock>) -> Downstream {
    if record.long_token == NONE {
        return short_downstream(record);
    }
    let token = PitToken::from_slice(&tokens[record.long_token][..usize::from(record.token_bytes)]);
    Downstream { token: token.unwrap_or_default(), ..short_downstream(record) }
}

/// The same for a record that holds its token inline.
#[inline(always)]
pub(crate) fn short_downstream(record: &InRecord) -> Downstream {
    Downstream {
        face: record.face,
        token: PitToken::short(record.short_token, usize::from(record.token_bytes)).unwrap_or_default(),
        congestion_mark: u64::from(record.congestion_mark),
    }
}

impl Pit {
    /// Returns the number of downstreams.
    #[inline]
    pub(crate) fn in_count(&self, pit: PitRef) -> usize {
        usize::from(self.slot(pit).in_count)
    }

    /// Returns the downstream, if it is the only one and its record [holds its token inline](short_downstream).
    #[inline]
    pub(crate) fn only_in_record(&self, pit: PitRef) -> Option<&InRecord> {
        let slot = self.slot(pit);
        let record = &slot.in_records[0];
        (slot.in_count == 1 && record.long_token == NONE).then_some(record)
    }

    fn in_record(&self, pit: PitRef, index: usize) -> &InRecord {
        let slot = self.slot(pit);
        debug_assert!(index < usize::from(slot.in_count));
        match slot.in_records.get(index) {
            Some(record) => record,
            None => {
                let (block, place) = locate(&self.in_blocks, slot.more_in, index);
                &self.in_blocks[block].records[place]
            }
        }
    }

    fn in_record_mut(&mut self, pit: PitRef, index: usize) -> &mut InRecord {
        if index < INLINE_RECORDS {
            return &mut self.slot_mut(pit).in_records[index];
        }
        let (block, place) = locate(&self.in_blocks, self.slot(pit).more_in, index);
        &mut self.in_blocks[block].records[place]
    }

    /// Returns all downstreams.
    #[inline]
    pub(crate) fn in_records(&self, pit: PitRef) -> Walk<'_, InRecord> {
        let slot = self.slot(pit);
        Walk::new(&slot.in_records, &self.in_blocks, slot.more_in, usize::from(slot.in_count))
    }

    /// Inserts or renews the in-record of a face, and makes the PIT slot pending until its last in-record expires.
    /// Returns `true` if it was satisfied before.
    #[inline(always)]
    pub(crate) fn renew(&mut self, pit: PitRef, arrival: &Arrival<'_>) -> Result<bool, NoRoom> {
        let mut slot = self.slot_mut(pit);
        // The usual case: the first downstream, with a token that fits.
        if slot.in_count == 0 && arrival.token.len() <= SHORT_TOKEN_BYTES {
            slot.in_records[0] = in_record(arrival, NONE);
            slot.in_count = 1;
            slot.expiry = arrival.expiry;
        } else {
            let expiry = self.renew_one_of_many(pit, arrival)?;
            slot = self.slot_mut(pit);
            slot.expiry = expiry;
        }
        slot.lifetime_ms = arrival.lifetime_ms;
        Ok(slot.renew(arrival.non_discovery, arrival.measured))
    }

    #[cold]
    fn renew_one_of_many(&mut self, pit: PitRef, arrival: &Arrival<'_>) -> Result<Timestamp, NoRoom> {
        let count = self.in_count(pit);
        let known = self.in_records(pit).position(|record| record.face == arrival.face);
        let index = match known {
            Some(index) => index,
            None => {
                let slot = &mut self.slots[pit.slot];
                extend(&mut self.in_blocks, &mut slot.more_in, count, MAX_DOWNSTREAMS)?;
                slot.in_count += 1;
                *self.in_record_mut(pit, count) = InRecord::default();
                count
            }
        };
        match self.keep_token(self.in_record(pit, index).long_token, arrival.token) {
            Ok(long_token) => {
                *self.in_record_mut(pit, index) = in_record(arrival, long_token);
                Ok(self.in_records(pit).map(|record| record.expiry).max().unwrap_or(arrival.expiry))
            }
            Err(no_room) => {
                self.remove_in_record(pit, index);
                Err(no_room)
            }
        }
    }

    /// Stores a token that is too long for a record. `long_token` is the token block that the record has already.
    /// Returns the token block that it gets.
    fn keep_token(&mut self, long_token: u32, token: &PitToken) -> Result<u32, NoRoom> {
        let bytes = token.as_slice();
        if bytes.len() <= SHORT_TOKEN_BYTES {
            if long_token != NONE {
                self.tokens.free(long_token);
            }
            return Ok(NONE);
        }
        let block = if long_token == NONE { self.tokens.allocate().ok_or(NoRoom)? } else { long_token };
        self.tokens[block][..bytes.len()].copy_from_slice(bytes);
        Ok(block)
    }

    /// Removes a downstream; the last one takes its place.
    fn remove_in_record(&mut self, pit: PitRef, index: usize) {
        let last = self.in_count(pit) - 1;
        let long_token = self.in_record(pit, index).long_token;
        if long_token != NONE {
            self.tokens.free(long_token);
        }
        *self.in_record_mut(pit, index) = *self.in_record(pit, last);
        let slot = &mut self.slots[pit.slot];
        truncate(&mut self.in_blocks, &mut slot.more_in, last);
        slot.in_count -= 1;
    }

    /// Removes the downstreams for which `is_taken` returns `true`, and passes each to `taken` with the content of its
    /// answer.
    pub(crate) fn take_in_records(
        &mut self,
        pit: PitRef,
        mut is_taken: impl FnMut(&InRecord) -> bool,
        mut taken: impl FnMut(&InRecord, Downstream),
    ) {
        let slot = &mut self.slots[pit.slot];
        let (tokens, count) = (&mut self.tokens, usize::from(slot.in_count));
        let kept = retain(&mut slot.in_records, &mut self.in_blocks, &mut slot.more_in, count, |record| {
            if !is_taken(record) {
                return true;
            }
            taken(record, downstream_of(record, tokens));
            if record.long_token != NONE {
                tokens.free(record.long_token);
            }
            false
        });
        slot.in_count = kept as u16;
    }

    /// Removes the downstreams for which `is_gone` returns `true`.
    pub(crate) fn remove_in_records(&mut self, pit: PitRef, is_gone: impl FnMut(&InRecord) -> bool) {
        self.take_in_records(pit, is_gone, |_, _| ());
    }

    /// Returns an upstream, mutable.
    ///
    /// # Panics
    /// May panic like indexing if `index` is out of range.
    pub(crate) fn out_record_mut(&mut self, pit: PitRef, index: usize) -> &mut UpstreamRecord {
        if index < INLINE_RECORDS {
            return &mut self.slot_mut(pit).out_records[index];
        }
        let (block, place) = locate(&self.out_blocks, self.slot(pit).more_out, index);
        &mut self.out_blocks[block].records[place]
    }

    /// Returns all upstreams.
    #[inline]
    pub(crate) fn out_records(&self, pit: PitRef) -> Walk<'_, UpstreamRecord> {
        let slot = self.slot(pit);
        Walk::new(&slot.out_records, &self.out_blocks, slot.more_out, usize::from(slot.out_count))
    }

    /// Returns the index of a face's out-record.
    pub(crate) fn find_out_record(&self, pit: PitRef, face: FaceId) -> Option<usize> {
        self.out_records(pit).position(|record| record.face == face)
    }

    /// Returns whether the Interest was sent to this face.
    #[inline(always)]
    pub(crate) fn was_sent_to(&self, pit: PitRef, face: FaceId) -> bool {
        let slot = self.slot(pit);
        // The usual case: the first upstream.
        slot.out_count > 0 && slot.out_records[0].face == face
            || slot.out_count > 1 && self.find_out_record(pit, face).is_some()
    }

    /// Returns the index of a face's out-record, which is added if necessary, and whether it is new.
    #[inline]
    pub(crate) fn find_or_add_out_record(&mut self, pit: PitRef, face: FaceId) -> Result<(usize, bool), NoRoom> {
        let slot = self.slot_mut(pit);
        // The usual case: the first upstream.
        if slot.out_count == 0 {
            slot.out_count = 1;
            slot.out_records[0] = UpstreamRecord::new(face);
            return Ok((0, true));
        }
        self.find_or_add_one_of_many(pit, face)
    }

    #[cold]
    fn find_or_add_one_of_many(&mut self, pit: PitRef, face: FaceId) -> Result<(usize, bool), NoRoom> {
        if let Some(index) = self.find_out_record(pit, face) {
            return Ok((index, false));
        }
        let count = usize::from(self.slot(pit).out_count);
        let slot = &mut self.slots[pit.slot];
        extend(&mut self.out_blocks, &mut slot.more_out, count, MAX_UPSTREAMS)?;
        slot.out_count += 1;
        *self.out_record_mut(pit, count) = UpstreamRecord::new(face);
        Ok((count, true))
    }

    /// Removes the upstreams for which `is_gone` returns `true`.
    pub(crate) fn remove_out_records(&mut self, pit: PitRef, mut is_gone: impl FnMut(&UpstreamRecord) -> bool) {
        let slot = &mut self.slots[pit.slot];
        let count = usize::from(slot.out_count);
        let kept =
            retain(&mut slot.out_records, &mut self.out_blocks, &mut slot.more_out, count, |record| !is_gone(record));
        slot.out_count = kept as u16;
    }
}
