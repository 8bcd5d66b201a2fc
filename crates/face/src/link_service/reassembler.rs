//! Putting fragments together again (NDNLPv2 fragmentation).
//!
//! A partial packet is known by its sender's endpoint and its message id (Sequence minus FragIndex). Its fragments are
//! copied behind one another into one pooled buffer as they come; when they came in order, which is the rule, that buffer
//! is the packet. A partial packet thus pins one buffer however many fragments it has, no larger than its first-seen
//! fragment lets expect; a face has at most [`MAX_PARTIAL_PACKETS`], and all faces together what their
//! [`ReassemblyBudget`] allows. The tables of a finished partial packet are kept for the next one.

use std::sync::Arc;

use namehop_forward::buffer::{BufferPool, PacketBuffer};
use namehop_forward::time::Timestamp;
use namehop_wire::MAX_PACKET_SIZE;

use super::budget::ReassemblyBudget;
use super::receive::NetworkHeader;
use crate::counters::{LinkDrop, LinkDropCounters};

/// Most fragments of one packet (NFD).
pub const MAX_FRAGMENTS: u64 = 400;
/// Most packets of one face that wait for fragments; the one that waited longest makes room.
pub const MAX_PARTIAL_PACKETS: usize = 64;
/// A partial packet is dropped when no fragment came for this long, in milliseconds.
pub const REASSEMBLY_TIMEOUT_MS: u64 = 500;
/// Tables kept for later when partial packets were given up: who sends many incomplete ones must not leave much behind.
const SPARE_TABLES: usize = 4;

/// One fragment, as received.
#[derive(Debug, Clone, Copy)]
pub struct Fragment<'a> {
    /// Who sent it; 0 on point-to-point links.
    pub endpoint: u64,
    /// Sequence, absent if the frame had none.
    pub sequence: Option<u64>,
    /// FragIndex.
    pub index: u64,
    /// FragCount.
    pub count: u64,
    /// Its slice of the packet.
    pub payload: &'a [u8],
}

/// A packet whose fragments have all come, with the network-layer headers of fragment 0.
#[derive(Debug)]
pub struct Reassembled<B> {
    /// The Interest or Data, not checked yet.
    pub buffer: B,
    /// Headers.
    pub header: NetworkHeader<B>,
}

/// Where a fragment lies in the buffer. Length 0: not there yet.
#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    offset: u16,
    length: u16,
}

#[derive(Debug)]
struct Partial<B> {
    endpoint: u64,
    message_id: u64,
    count: u16,
    received: u16,
    in_order: bool,
    newest: Timestamp,
    buffer: Option<B>,
    header: Option<NetworkHeader<B>>,
    pieces: Box<[Piece; MAX_FRAGMENTS as usize]>,
}

impl<B> Partial<B> {
    fn unused() -> Self {
        Partial {
            endpoint: 0,
            message_id: 0,
            count: 0,
            received: 0,
            in_order: true,
            newest: Timestamp(0),
            buffer: None,
            header: None,
            pieces: Box::new([Piece::default(); MAX_FRAGMENTS as usize]),
        }
    }

    fn begin(&mut self, endpoint: u64, message_id: u64, count: u16, buffer: B) {
        // Only as many places as the last packet used can be dirty.
        self.pieces[..usize::from(self.count)].fill(Piece::default());
        self.endpoint = endpoint;
        self.message_id = message_id;
        self.count = count;
        self.received = 0;
        self.in_order = true;
        self.buffer = Some(buffer);
        self.header = None;
    }

    fn deadline(&self) -> Timestamp {
        self.newest.plus_ms(REASSEMBLY_TIMEOUT_MS)
    }
}

/// The partial packets of one face.
#[derive(Debug)]
pub struct Reassembler<B> {
    /// The first `live` wait for fragments; those behind are spare.
    partials: Vec<Partial<B>>,
    live: usize,
    /// Not later than the first time-out. May be earlier, which costs one idle look.
    next_timeout: Timestamp,
    /// One place is taken for each live partial packet.
    budget: Arc<ReassemblyBudget>,
}

impl<B> Drop for Reassembler<B> {
    fn drop(&mut self) {
        self.budget.give(self.live);
    }
}

impl<B: PacketBuffer> Reassembler<B> {
    /// Without partial packets; takes places for them from `budget`.
    pub fn new(budget: Arc<ReassemblyBudget>) -> Self {
        Reassembler { partials: Vec::new(), live: 0, next_timeout: Timestamp::NEVER, budget }
    }

    /// Takes in a fragment; gives the packet when it was the last one missing. `header` must be there for fragment 0;
    /// those of other fragments are ignored.
    ///
    /// # Errors
    /// The reason why this fragment, or with [`LinkDrop::ReassembledTooLong`] and [`LinkDrop::NoBuffer`] possibly the
    /// whole packet, was dropped; [`LinkDrop::ReassemblyEvicted`] when no new partial packet may begin. Partial packets that had to make room are counted in `drops`.
    pub fn accept<P: BufferPool<Buffer = B>>(
        &mut self,
        now: Timestamp,
        fragment: Fragment<'_>,
        header: NetworkHeader<B>,
        pool: &P,
        drops: &LinkDropCounters,
    ) -> Result<Option<Reassembled<B>>, LinkDrop> {
        if fragment.index >= fragment.count {
            return Err(LinkDrop::FragIndexOutOfRange);
        }
        if fragment.count > MAX_FRAGMENTS {
            return Err(LinkDrop::TooManyFragments);
        }
        let sequence = fragment.sequence.ok_or(LinkDrop::MissingSequence)?;
        if fragment.payload.is_empty() {
            return Err(LinkDrop::EmptyFragment);
        }
        let message_id = sequence.wrapping_sub(fragment.index);
        let known = self.partials[..self.live]
            .iter()
            .position(|p| p.message_id == message_id && p.endpoint == fragment.endpoint);
        let slot = match known {
            Some(slot) => {
                let partial = &self.partials[slot];
                if u64::from(partial.count) != fragment.count {
                    return Err(LinkDrop::FragCountMismatch);
                }
                if partial.pieces[fragment.index as usize].length != 0 {
                    return Err(LinkDrop::DuplicateFragment);
                }
                slot
            }
            None => {
                // All but the last fragment are usually of one size.
                let expected = fragment.payload.len().saturating_mul(fragment.count as usize).min(MAX_PACKET_SIZE);
                let buffer = pool.allocate(expected).ok_or(LinkDrop::NoBuffer)?;
                let slot = self.free_slot(drops)?;
                let count = fragment.count as u16;
                self.partials[slot].begin(fragment.endpoint, message_id, count, buffer);
                slot
            }
        };
        if let Err(reason) = self.add_piece(slot, now, &fragment, header, pool) {
            self.release(slot);
            return Err(reason);
        }
        if self.partials[slot].received < self.partials[slot].count {
            self.next_timeout = self.next_timeout.min(self.partials[slot].deadline());
            return Ok(None);
        }
        let result = finish(&mut self.partials[slot], pool);
        self.release(slot);
        result.map(Some)
    }

    /// Copies a fragment into its partial packet, which is of no use any more when that fails.
    fn add_piece<P: BufferPool<Buffer = B>>(
        &mut self,
        slot: usize,
        now: Timestamp,
        fragment: &Fragment<'_>,
        header: NetworkHeader<B>,
        pool: &P,
    ) -> Result<(), LinkDrop> {
        let partial = &mut self.partials[slot];
        // Every live partial packet has a buffer.
        let target = partial.buffer.as_mut().ok_or(LinkDrop::NoBuffer)?;
        let offset = target.bytes().len();
        if offset + fragment.payload.len() > MAX_PACKET_SIZE {
            return Err(LinkDrop::ReassembledTooLong);
        }
        if !append(target, fragment.payload) {
            // Larger than expected: the fragment seen first was shorter than the others.
            let mut larger = pool.allocate(MAX_PACKET_SIZE).ok_or(LinkDrop::NoBuffer)?;
            if !append(&mut larger, target.bytes()) || !append(&mut larger, fragment.payload) {
                return Err(LinkDrop::NoBuffer);
            }
            *target = larger;
        }
        partial.pieces[fragment.index as usize] =
            Piece { offset: offset as u16, length: fragment.payload.len() as u16 };
        partial.in_order &= fragment.index == u64::from(partial.received);
        partial.received += 1;
        partial.newest = now;
        if fragment.index == 0 {
            partial.header = Some(header);
        }
        Ok(())
    }

    /// A slot at the end of the live ones, made or freed as needed, with a place of the budget. When all faces together
    /// have too many partial packets, one of this face makes room; without any, the new one is refused.
    fn free_slot(&mut self, drops: &LinkDropCounters) -> Result<usize, LinkDrop> {
        if self.live == MAX_PARTIAL_PACKETS || !self.budget.take() {
            let waiting = self.partials[..self.live].iter().enumerate();
            let (oldest, _) = waiting.min_by_key(|(_, partial)| partial.newest).ok_or(LinkDrop::ReassemblyEvicted)?;
            drops.add(LinkDrop::ReassemblyEvicted, 1);
            self.vacate(oldest);
        }
        if self.live == self.partials.len() {
            self.partials.push(Partial::unused());
        }
        self.live += 1;
        Ok(self.live - 1)
    }

    fn release(&mut self, slot: usize) {
        self.vacate(slot);
        self.budget.give(1);
    }

    /// Empties a slot; its place of the budget passes to the next partial packet.
    fn vacate(&mut self, slot: usize) {
        self.live -= 1;
        self.partials.swap(slot, self.live);
        let partial = &mut self.partials[self.live];
        partial.buffer = None;
        partial.header = None;
        if self.live == 0 {
            self.next_timeout = Timestamp::NEVER;
        }
    }

    /// Drops partial packets whose time is over and counts them.
    pub fn expire(&mut self, now: Timestamp, drops: &LinkDropCounters) {
        if now < self.next_timeout {
            return;
        }
        let mut slot = 0;
        let mut next_timeout = Timestamp::NEVER;
        while slot < self.live {
            let deadline = self.partials[slot].deadline();
            if deadline <= now {
                drops.add(LinkDrop::ReassemblyTimeout, 1);
                self.release(slot);
            } else {
                next_timeout = next_timeout.min(deadline);
                slot += 1;
            }
        }
        self.next_timeout = next_timeout;
        self.partials.truncate(self.live.max(SPARE_TABLES));
    }

    /// When [`Reassembler::expire`] wants to be called next.
    pub fn next_deadline(&self) -> Timestamp {
        self.next_timeout
    }

    /// Packets that wait for fragments.
    pub fn waiting(&self) -> usize {
        self.live
    }
}

/// Adds `bytes` at the end; `false` when the buffer is too small for them.
fn append(buffer: &mut impl PacketBuffer, bytes: &[u8]) -> bool {
    buffer.append(bytes.len()).map(|room| room.copy_from_slice(bytes)).is_some()
}

/// Takes the complete packet out of its slot, with the fragments in order.
fn finish<B: PacketBuffer, P: BufferPool<Buffer = B>>(
    partial: &mut Partial<B>,
    pool: &P,
) -> Result<Reassembled<B>, LinkDrop> {
    // Both are there in every complete packet.
    let (Some(gathered), Some(header)) = (partial.buffer.take(), partial.header.take()) else {
        return Err(LinkDrop::NoBuffer);
    };
    if partial.in_order {
        return Ok(Reassembled { buffer: gathered, header });
    }
    let source = gathered.bytes();
    let mut ordered = pool.allocate(source.len()).ok_or(LinkDrop::NoBuffer)?;
    let mut target = ordered.append(source.len()).ok_or(LinkDrop::NoBuffer)?;
    for piece in &partial.pieces[..usize::from(partial.count)] {
        let (offset, length) = (usize::from(piece.offset), usize::from(piece.length));
        let (place, rest) = target.split_at_mut(length);
        place.copy_from_slice(&source[offset..offset + length]);
        target = rest;
    }
    Ok(Reassembled { buffer: ordered, header })
}
