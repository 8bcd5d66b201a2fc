//! Putting fragments together again (NDNLPv2 fragmentation).
//!
//! A partial packet is known by its face, its sender's endpoint and its message id (Sequence minus FragIndex). Its fragments
//! are copied behind one another into one pooled buffer as they come; when they came in order, which is the rule, that buffer
//! is the packet. A partial packet thus takes one buffer however many fragments it has, as large as the fragment that came first
//! makes one expect; a face has at most [`MAX_PARTIAL_PACKETS`], and all faces together what the limit allows. Which one
//! makes room for another is decided in `budget`. The tables of a finished partial packet are kept for the next one.

use std::sync::Arc;

use namehop_packet::{BufferPool, FaceId, PacketBuffer, Timestamp};
use namehop_wire::MAX_PACKET_SIZE;

use super::budget::ReassemblyBudget;
use super::receive::NetworkHeader;
use crate::counters::LinkDrop;
use crate::registry::Face;

/// Most fragments of one packet (NFD).
pub const MAX_FRAGMENTS: u64 = 400;
/// Most packets of one face that wait for fragments; the one that waited longest makes room.
pub const MAX_PARTIAL_PACKETS: usize = 64;
/// A partial packet is dropped when no fragment came for this long, in milliseconds.
pub const REASSEMBLY_TIMEOUT_MS: u64 = 500;
/// Partial packets of all faces together if nothing else was set: a quarter of a pool of 8,192 large buffers.
pub const DEFAULT_PARTIAL_PACKETS_OF_ALL_FACES: usize = 2048;

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
pub struct Reassembled {
    /// The Interest or Data, not checked yet.
    pub buffer: PacketBuffer,
    /// Headers.
    pub header: NetworkHeader,
}

/// Where a fragment lies in the buffer. Length 0: not there yet.
#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    offset: u16,
    length: u16,
}

#[derive(Debug)]
struct Partial {
    /// Absent while the place is free.
    face: Option<Arc<Face>>,
    endpoint: u64,
    message_id: u64,
    count: u16,
    received: u16,
    in_order: bool,
    newest: Timestamp,
    buffer: Option<PacketBuffer>,
    header: Option<NetworkHeader>,
    pieces: Box<[Piece; MAX_FRAGMENTS as usize]>,
}

impl Partial {
    fn unused() -> Self {
        Partial {
            face: None,
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

    fn begin(&mut self, face: &Arc<Face>, endpoint: u64, message_id: u64, count: u16, buffer: PacketBuffer) {
        // Only as many places as the last packet used can be dirty.
        self.pieces[..usize::from(self.count)].fill(Piece::default());
        self.face = Some(Arc::clone(face));
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

    fn is_of(&self, id: FaceId) -> bool {
        self.face.as_ref().is_some_and(|face| face.id() == id)
    }

    /// Copies a fragment into its partial packet, which is of no use any more when that fails.
    fn add_piece(
        &mut self,
        now: Timestamp,
        fragment: &Fragment<'_>,
        header: NetworkHeader,
        pool: &BufferPool,
    ) -> Result<(), LinkDrop> {
        // Every live partial packet has a buffer.
        let target = self.buffer.as_mut().ok_or(LinkDrop::NoBuffer)?;
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
        self.pieces[fragment.index as usize] = Piece { offset: offset as u16, length: fragment.payload.len() as u16 };
        self.in_order &= fragment.index == u64::from(self.received);
        self.received += 1;
        self.newest = now;
        if fragment.index == 0 {
            self.header = Some(header);
        }
        Ok(())
    }
}

/// The partial packets of all faces of a worker. Drops are counted on the face that the packet came from.
#[derive(Debug)]
pub struct Reassembler {
    /// By place.
    partials: Vec<Partial>,
    budget: ReassemblyBudget,
    worker: usize,
}

impl Reassembler {
    /// For the worker with this number and at most so many partial packets of all faces together, at least one. Memory is made
    /// when first needed: some 1.7 KB for each besides its buffer.
    pub fn new(worker: usize, limit: usize) -> Self {
        Reassembler { partials: Vec::new(), budget: ReassemblyBudget::new(limit), worker }
    }

    /// Takes in a fragment; gives the packet when it was the last one missing. `header` must be there for fragment 0;
    /// those of other fragments are ignored.
    ///
    /// # Errors
    /// The reason why this fragment, or with [`LinkDrop::ReassembledTooLong`] and [`LinkDrop::NoBuffer`] possibly the
    /// whole packet, was dropped, which the caller counts. A partial packet that had to make room is counted here.
    pub(super) fn accept(
        &mut self,
        now: Timestamp,
        face: &Arc<Face>,
        fragment: Fragment<'_>,
        header: NetworkHeader,
        pool: &BufferPool,
    ) -> Result<Option<Reassembled>, LinkDrop> {
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
        let known = self.budget.held_by(face.id().slot()).iter().copied().find(|&place| {
            let partial = &self.partials[place as usize];
            partial.message_id == message_id && partial.endpoint == fragment.endpoint && partial.is_of(face.id())
        });
        let place = match known {
            Some(place) => {
                let partial = &self.partials[place as usize];
                if u64::from(partial.count) != fragment.count {
                    return Err(LinkDrop::FragCountMismatch);
                }
                if partial.pieces[fragment.index as usize].length != 0 {
                    return Err(LinkDrop::DuplicateFragment);
                }
                self.budget.touch(place);
                place
            }
            None => {
                // All but the last fragment are usually of one size.
                let expected = fragment.payload.len().saturating_mul(fragment.count as usize).min(MAX_PACKET_SIZE);
                let buffer = pool.allocate(expected).ok_or(LinkDrop::NoBuffer)?;
                let place = self.take_place(face.id());
                let count = fragment.count as u16;
                self.partials[place as usize].begin(face, fragment.endpoint, message_id, count, buffer);
                place
            }
        };
        let partial = &mut self.partials[place as usize];
        if let Err(reason) = partial.add_piece(now, &fragment, header, pool) {
            self.release(place);
            return Err(reason);
        }
        if partial.received < partial.count {
            return Ok(None);
        }
        let result = finish(partial, pool);
        self.release(place);
        result.map(Some)
    }

    /// A place for a new partial packet. When there is none, the one whose turn it is to make room is dropped.
    fn take_place(&mut self, face: FaceId) -> u32 {
        if let Some(place) = self.budget.to_give_up_for(face.slot()) {
            self.give_up(place, LinkDrop::ReassemblyEvicted);
        }
        let place = self.budget.take(face.slot());
        if self.partials.len() <= place as usize {
            self.partials.resize_with(place as usize + 1, Partial::unused);
        }
        place
    }

    fn give_up(&mut self, place: u32, reason: LinkDrop) {
        if let Some(face) = &self.partials[place as usize].face {
            face.counters.worker(self.worker).link_drops.add(reason, 1);
        }
        self.release(place);
    }

    fn release(&mut self, place: u32) {
        let partial = &mut self.partials[place as usize];
        partial.face = None;
        partial.buffer = None;
        partial.header = None;
        self.budget.give(place);
    }

    /// Drops partial packets whose time is over and counts them.
    pub fn expire(&mut self, now: Timestamp) {
        while let Some(place) = self.budget.oldest() {
            if self.partials[place as usize].deadline() > now {
                return;
            }
            self.give_up(place, LinkDrop::ReassemblyTimeout);
        }
    }

    /// When [`Reassembler::expire`] is to be called next; [`Timestamp::NEVER`] when nothing waits.
    pub fn next_deadline(&self) -> Timestamp {
        self.budget.oldest().map_or(Timestamp::NEVER, |place| self.partials[place as usize].deadline())
    }

    /// Drops the partial packets of a face that is gone and counts them.
    pub fn forget(&mut self, face: FaceId) {
        while let Some(&place) =
            self.budget.held_by(face.slot()).iter().find(|&&place| self.partials[place as usize].is_of(face))
        {
            self.give_up(place, LinkDrop::LinkDown);
        }
    }

    /// Packets of all faces that wait for fragments.
    pub fn waiting(&self) -> usize {
        self.budget.taken()
    }

    /// Packets of one face that wait for fragments.
    #[cfg(test)]
    pub(super) fn waiting_of(&self, face: FaceId) -> usize {
        self.budget.held_by(face.slot()).len()
    }
}

/// Adds `bytes` at the end; `false` when the buffer is too small for them.
fn append(buffer: &mut PacketBuffer, bytes: &[u8]) -> bool {
    buffer.append(bytes.len()).map(|room| room.copy_from_slice(bytes)).is_some()
}

/// Takes the complete packet out of its slot, with the fragments in order.
fn finish(partial: &mut Partial, pool: &BufferPool) -> Result<Reassembled, LinkDrop> {
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
