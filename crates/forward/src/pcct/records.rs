//! In-records and out-records of a PIT slot: the first one inline, further ones in a chain of blocks.
//!
//! Every block of a chain but the last is full. Passes over all records walk the chain once; removing one record by index
//! moves the last one into its place.

use namehop_table::Arena;
use namehop_wire::lp::PitToken;

use super::entry::{BLOCK_RECORDS, INLINE_RECORDS, InRecord, MAX_DOWNSTREAMS, MAX_UPSTREAMS, NONE, PendingHopLimit};
use super::entry::{RecordBlock, SHORT_TOKEN_BYTES, TokenBlock, UpstreamRecord};
use super::slots::slot_of;
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

type Blocks<R> = Arena<RecordBlock<R>>;

/// Block and place in it of the record with this index, which is not inline.
fn locate<R>(blocks: &Blocks<R>, first: u32, index: usize) -> (u32, usize) {
    let index = index - INLINE_RECORDS;
    let mut block = first;
    for _ in 0..index / BLOCK_RECORDS {
        block = blocks[block].next;
    }
    (block, index % BLOCK_RECORDS)
}

/// The records of a slot, walked once.
fn walk<'a, R>(
    inline: &'a [R; INLINE_RECORDS],
    blocks: &'a Blocks<R>,
    first: u32,
    count: usize,
) -> impl Iterator<Item = &'a R> {
    let mut next = first;
    let mut left = count.saturating_sub(INLINE_RECORDS);
    let chained = std::iter::from_fn(move || {
        let taken = left.min(BLOCK_RECORDS);
        if taken == 0 {
            return None;
        }
        let block = &blocks[next];
        next = block.next;
        left -= taken;
        Some(&block.records[..taken])
    });
    inline[..count.min(INLINE_RECORDS)].iter().chain(chained.flatten())
}

/// Makes room for a record behind `count` others. `first` is the head of the chain.
fn extend<R: Copy + Default>(blocks: &mut Blocks<R>, first: &mut u32, count: usize, most: usize) -> Result<(), NoRoom> {
    if count >= most {
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

/// Gives up the blocks that `count` records do not need.
fn truncate<R>(blocks: &mut Blocks<R>, first: &mut u32, count: usize) {
    let mut spare = if count <= INLINE_RECORDS {
        std::mem::replace(first, NONE)
    } else {
        let (last, _) = locate(blocks, *first, count - 1);
        std::mem::replace(&mut blocks[last].next, NONE)
    };
    while spare != NONE {
        let next = blocks[spare].next;
        blocks.free(spare);
        spare = next;
    }
}

/// Keeps the records that `keep` says so of, in their order, and returns how many those are.
fn retain<R: Copy>(
    inline: &mut [R; INLINE_RECORDS],
    blocks: &mut Blocks<R>,
    first: &mut u32,
    count: usize,
    mut keep: impl FnMut(&R) -> bool,
) -> usize {
    let (mut kept, mut read, mut write) = (0, Place::FIRST, Place::FIRST);
    for _ in 0..count {
        let record = *read.of(inline, blocks);
        if keep(&record) {
            if read != write {
                *write.of(inline, blocks) = record;
            }
            write = write.next(blocks, *first);
            kept += 1;
        }
        read = read.next(blocks, *first);
    }
    truncate(blocks, first, kept);
    kept
}

/// Where a record is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Inline(usize),
    Block(u32, usize),
}

impl Place {
    const FIRST: Place = Place::Inline(0);

    fn of<'a, R>(self, inline: &'a mut [R; INLINE_RECORDS], blocks: &'a mut Blocks<R>) -> &'a mut R {
        match self {
            Place::Inline(place) => &mut inline[place],
            Place::Block(block, place) => &mut blocks[block].records[place],
        }
    }

    fn next<R>(self, blocks: &Blocks<R>, first: u32) -> Place {
        match self {
            Place::Inline(place) if place + 1 < INLINE_RECORDS => Place::Inline(place + 1),
            Place::Inline(_) => Place::Block(first, 0),
            Place::Block(block, place) if place + 1 < BLOCK_RECORDS => Place::Block(block, place + 1),
            Place::Block(block, _) => Place::Block(blocks[block].next, 0),
        }
    }
}

/// What the downstream with this record is told with its answer.
fn told(record: &InRecord, tokens: &Arena<TokenBlock>) -> Downstream {
    let length = usize::from(record.token_bytes);
    let bytes = if record.long_token == NONE { &record.short_token[..] } else { &tokens[record.long_token][..] };
    Downstream {
        face: record.face,
        token: PitToken::from_slice(&bytes[..length]).unwrap_or_default(),
        congestion_mark: u64::from(record.congestion_mark),
    }
}

impl Pcct {
    /// Number of downstreams.
    pub(crate) fn in_count(&self, pit: PitRef) -> usize {
        usize::from(self.slot(pit).in_count)
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

    /// All downstreams.
    pub(crate) fn in_records(&self, pit: PitRef) -> impl Iterator<Item = &InRecord> + '_ {
        let slot = self.slot(pit);
        walk(&slot.in_records, &self.in_blocks, slot.more_in, usize::from(slot.in_count))
    }

    /// Inserts or renews the in-record of a face.
    pub(crate) fn renew_in_record(&mut self, pit: PitRef, arrival: &Arrival<'_>) -> Result<(), NoRoom> {
        let known = self.in_records(pit).position(|record| record.face == arrival.face);
        let index = match known {
            Some(index) => index,
            None => {
                let count = self.in_count(pit);
                let slot = slot_of(&mut self.entries, &mut self.slots, pit);
                extend(&mut self.in_blocks, &mut slot.more_in, count, MAX_DOWNSTREAMS)?;
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

    /// Removes a downstream; the last one takes its place.
    fn remove_in_record(&mut self, pit: PitRef, index: usize) {
        let last = self.in_count(pit) - 1;
        let long_token = self.in_record(pit, index).long_token;
        if long_token != NONE {
            self.tokens.free(long_token);
        }
        *self.in_record_mut(pit, index) = *self.in_record(pit, last);
        let slot = slot_of(&mut self.entries, &mut self.slots, pit);
        truncate(&mut self.in_blocks, &mut slot.more_in, last);
        slot.in_count -= 1;
    }

    /// Removes the downstreams that `is_taken` says so of, and hands each to `taken` with what it is to be told.
    pub(crate) fn take_in_records(
        &mut self,
        pit: PitRef,
        mut is_taken: impl FnMut(&InRecord) -> bool,
        mut taken: impl FnMut(&InRecord, Downstream),
    ) {
        let slot = slot_of(&mut self.entries, &mut self.slots, pit);
        let (tokens, count) = (&mut self.tokens, usize::from(slot.in_count));
        let kept = retain(&mut slot.in_records, &mut self.in_blocks, &mut slot.more_in, count, |record| {
            if !is_taken(record) {
                return true;
            }
            taken(record, told(record, tokens));
            if record.long_token != NONE {
                tokens.free(record.long_token);
            }
            false
        });
        slot.in_count = kept as u16;
    }

    /// Removes the downstreams that `is_gone` says so of.
    pub(crate) fn remove_in_records(&mut self, pit: PitRef, is_gone: impl FnMut(&InRecord) -> bool) {
        self.take_in_records(pit, is_gone, |_, _| ());
    }

    fn out_count(&self, pit: PitRef) -> usize {
        usize::from(self.slot(pit).out_count)
    }

    /// An upstream, for change.
    ///
    /// # Panics
    /// May panic like indexing, if there are not so many.
    pub(crate) fn out_record_mut(&mut self, pit: PitRef, index: usize) -> &mut UpstreamRecord {
        if index < INLINE_RECORDS {
            return &mut self.slot_mut(pit).out_records[index];
        }
        let (block, place) = locate(&self.out_blocks, self.slot(pit).more_out, index);
        &mut self.out_blocks[block].records[place]
    }

    /// All upstreams.
    pub(crate) fn out_records(&self, pit: PitRef) -> impl Iterator<Item = &UpstreamRecord> + '_ {
        let slot = self.slot(pit);
        walk(&slot.out_records, &self.out_blocks, slot.more_out, usize::from(slot.out_count))
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
        let slot = slot_of(&mut self.entries, &mut self.slots, pit);
        extend(&mut self.out_blocks, &mut slot.more_out, count, MAX_UPSTREAMS)?;
        slot.out_count += 1;
        *self.out_record_mut(pit, count) = UpstreamRecord::new(face);
        Ok(count)
    }

    /// Removes the upstreams that `is_gone` says so of.
    pub(crate) fn remove_out_records(&mut self, pit: PitRef, mut is_gone: impl FnMut(&UpstreamRecord) -> bool) {
        let slot = slot_of(&mut self.entries, &mut self.slots, pit);
        let count = usize::from(slot.out_count);
        let kept =
            retain(&mut slot.out_records, &mut self.out_blocks, &mut slot.more_out, count, |record| !is_gone(record));
        slot.out_count = kept as u16;
    }
}
