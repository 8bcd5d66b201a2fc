//! In-records and out-records of a PIT slot: the first ones inline, further ones in a chain of blocks.
//!
//! Records are addressed by index. Removing one moves the last one into its place. Every block of a chain but the last
//! is full.

use namehop_table::Arena;
use namehop_wire::lp::PitToken;

use super::entry::{BLOCK_RECORDS, INLINE_RECORDS, InRecord, MAX_RECORDS, NONE, RecordBlock, SHORT_TOKEN_BYTES};
use super::entry::{PendingHopLimit, UpstreamRecord};
use super::{Pcct, PitRef};
use crate::face::FaceId;
use crate::time::Timestamp;

/// There is no room for another record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// What a downstream is told with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Downstream {
    pub(crate) face: FaceId,
    pub(crate) token: PitToken,
    pub(crate) congestion_mark: u64,
}

/// An Interest as its in-record keeps it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub(crate) face: FaceId,
    pub(crate) nonce: u32,
    pub(crate) expiry: Timestamp,
    pub(crate) hop_limit: PendingHopLimit,
    pub(crate) congestion_mark: u64,
    pub(crate) token: &'a PitToken,
}

/// Block and place in it of the record with this index, which is not inline.
fn locate<R>(blocks: &Arena<RecordBlock<R>>, first: u32, index: usize) -> (u32, usize) {
    let index = index - INLINE_RECORDS;
    let mut block = first;
    for _ in 0..index / BLOCK_RECORDS {
        block = blocks[block].next;
    }
    (block, index % BLOCK_RECORDS)
}

/// Makes room for a record behind `count` others. `first` is the head of the chain.
fn extend<R: Copy + Default>(blocks: &mut Arena<RecordBlock<R>>, first: &mut u32, count: usize) -> Result<(), NoRoom> {
    if count >= MAX_RECORDS {
        return Err(NoRoom);
    }
    if count >= INLINE_RECORDS && (count - INLINE_RECORDS).is_multiple_of(BLOCK_RECORDS) {
        let block = blocks.allocate().ok_or(NoRoom)?;
        blocks[block].next = NONE;
        if count == INLINE_RECORDS {
            *first = block;
        } else {
            let (last, _) = locate(blocks, *first, count - 1);
            blocks[last].next = block;
        }
    }
    Ok(())
}

/// Gives up the room of the last of `count` records.
fn shrink<R: Copy + Default>(blocks: &mut Arena<RecordBlock<R>>, first: &mut u32, count: usize) {
    if count > INLINE_RECORDS && (count - 1 - INLINE_RECORDS).is_multiple_of(BLOCK_RECORDS) {
        let (block, _) = locate(blocks, *first, count - 1);
        if count - 1 == INLINE_RECORDS {
            *first = NONE;
        } else {
            let (last, _) = locate(blocks, *first, count - 2);
            blocks[last].next = NONE;
        }
        blocks.free(block);
    }
}

impl Pcct {
    /// Number of downstreams.
    pub(crate) fn in_count(&self, pit: PitRef) -> usize {
        usize::from(self.slot(pit).in_count)
    }

    /// A downstream.
    ///
    /// # Panics
    /// Like indexing, if there are not so many.
    pub(crate) fn in_record(&self, pit: PitRef, index: usize) -> &InRecord {
        let slot = self.slot(pit);
        assert!(index < usize::from(slot.in_count));
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

    /// All downstreams.
    pub(crate) fn in_records(&self, pit: PitRef) -> impl Iterator<Item = &InRecord> + '_ {
        (0..self.in_count(pit)).map(move |index| self.in_record(pit, index))
    }

    /// Position of a face's in-record.
    pub(crate) fn find_in_record(&self, pit: PitRef, face: FaceId) -> Option<usize> {
        self.in_records(pit).position(|record| record.face == face)
    }

    /// Inserts or renews the in-record of a face.
    pub(crate) fn renew_in_record(&mut self, pit: PitRef, arrival: &Arrival<'_>) -> Result<(), NoRoom> {
        let index = match self.find_in_record(pit, arrival.face) {
            Some(index) => index,
            None => {
                let count = self.in_count(pit);
                let mut first = self.slot(pit).more_in;
                extend(&mut self.in_blocks, &mut first, count)?;
                let slot = self.slot_mut(pit);
                slot.more_in = first;
                slot.in_count += 1;
                *self.in_record_mut(pit, count) = InRecord { face: arrival.face, ..InRecord::default() };
                count
            }
        };
        if self.set_token(pit, index, arrival.token).is_err() {
            self.remove_in_record(pit, index);
            return Err(NoRoom);
        }
        let record = self.in_record_mut(pit, index);
        record.nonce = arrival.nonce;
        record.expiry = arrival.expiry;
        record.congestion_mark = u8::try_from(arrival.congestion_mark).unwrap_or(u8::MAX);
        record.hop_limit = arrival.hop_limit;
        Ok(())
    }

    fn set_token(&mut self, pit: PitRef, index: usize, token: &PitToken) -> Result<(), NoRoom> {
        let bytes = token.as_slice();
        let mut long_token = self.in_record(pit, index).long_token;
        if bytes.len() > SHORT_TOKEN_BYTES {
            if long_token == NONE {
                long_token = self.tokens.allocate().ok_or(NoRoom)?;
            }
            self.tokens[long_token][..bytes.len()].copy_from_slice(bytes);
        } else if long_token != NONE {
            self.tokens.free(long_token);
            long_token = NONE;
        }
        let record = self.in_record_mut(pit, index);
        record.long_token = long_token;
        record.token_bytes = bytes.len() as u8;
        if long_token == NONE {
            record.short_token[..bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    /// What the downstream is told with its answer.
    pub(crate) fn downstream(&self, pit: PitRef, index: usize) -> Downstream {
        let record = self.in_record(pit, index);
        let length = usize::from(record.token_bytes);
        let bytes =
            if record.long_token == NONE { &record.short_token[..] } else { &self.tokens[record.long_token][..] };
        Downstream {
            face: record.face,
            token: PitToken::from_slice(&bytes[..length]).unwrap_or_default(),
            congestion_mark: u64::from(record.congestion_mark),
        }
    }

    /// Removes a downstream; the last one takes its place.
    pub(crate) fn remove_in_record(&mut self, pit: PitRef, index: usize) {
        let last = self.in_count(pit) - 1;
        let long_token = self.in_record(pit, index).long_token;
        if long_token != NONE {
            self.tokens.free(long_token);
        }
        *self.in_record_mut(pit, index) = *self.in_record(pit, last);
        let mut first = self.slot(pit).more_in;
        shrink(&mut self.in_blocks, &mut first, last + 1);
        let slot = self.slot_mut(pit);
        slot.more_in = first;
        slot.in_count -= 1;
    }

    /// Removes the downstreams that `is_gone` says so of.
    pub(crate) fn remove_in_records(&mut self, pit: PitRef, mut is_gone: impl FnMut(&InRecord) -> bool) {
        for index in (0..self.in_count(pit)).rev() {
            if is_gone(self.in_record(pit, index)) {
                self.remove_in_record(pit, index);
            }
        }
    }

    /// Number of upstreams.
    pub(crate) fn out_count(&self, pit: PitRef) -> usize {
        usize::from(self.slot(pit).out_count)
    }

    /// An upstream.
    ///
    /// # Panics
    /// Like indexing, if there are not so many.
    pub(crate) fn out_record(&self, pit: PitRef, index: usize) -> &UpstreamRecord {
        let slot = self.slot(pit);
        assert!(index < usize::from(slot.out_count));
        match slot.out_records.get(index) {
            Some(record) => record,
            None => {
                let (block, place) = locate(&self.out_blocks, slot.more_out, index);
                &self.out_blocks[block].records[place]
            }
        }
    }

    /// An upstream, for change.
    pub(crate) fn out_record_mut(&mut self, pit: PitRef, index: usize) -> &mut UpstreamRecord {
        if index < INLINE_RECORDS {
            return &mut self.slot_mut(pit).out_records[index];
        }
        let (block, place) = locate(&self.out_blocks, self.slot(pit).more_out, index);
        &mut self.out_blocks[block].records[place]
    }

    /// All upstreams.
    pub(crate) fn out_records(&self, pit: PitRef) -> impl Iterator<Item = &UpstreamRecord> + '_ {
        (0..self.out_count(pit)).map(move |index| self.out_record(pit, index))
    }

    /// Position of a face's out-record.
    pub(crate) fn find_out_record(&self, pit: PitRef, face: FaceId) -> Option<usize> {
        self.out_records(pit).position(|record| record.face == face)
    }

    /// Position of a face's out-record, made if need be.
    pub(crate) fn find_or_add_out_record(&mut self, pit: PitRef, face: FaceId) -> Result<usize, NoRoom> {
        if let Some(index) = self.find_out_record(pit, face) {
            return Ok(index);
        }
        let count = self.out_count(pit);
        let mut first = self.slot(pit).more_out;
        extend(&mut self.out_blocks, &mut first, count)?;
        let slot = self.slot_mut(pit);
        slot.more_out = first;
        slot.out_count += 1;
        *self.out_record_mut(pit, count) = UpstreamRecord::new(face);
        Ok(count)
    }

    /// Removes an upstream; the last one takes its place.
    pub(crate) fn remove_out_record(&mut self, pit: PitRef, index: usize) {
        let last = self.out_count(pit) - 1;
        *self.out_record_mut(pit, index) = *self.out_record(pit, last);
        let mut first = self.slot(pit).more_out;
        shrink(&mut self.out_blocks, &mut first, last + 1);
        let slot = self.slot_mut(pit);
        slot.more_out = first;
        slot.out_count -= 1;
    }

    /// Removes the upstreams that `is_gone` says so of.
    pub(crate) fn remove_out_records(&mut self, pit: PitRef, mut is_gone: impl FnMut(&UpstreamRecord) -> bool) {
        for index in (0..self.out_count(pit)).rev() {
            if is_gone(self.out_record(pit, index)) {
                self.remove_out_record(pit, index);
            }
        }
    }
}
