//! Reassembly of fragments (NDNLPv2 fragmentation).
//!
//! A partial packet is identified by its face, its sender's endpoint and its message id (Sequence minus FragIndex). Its
//! fragments are copied one after another into one pooled buffer as they arrive. If they arrived in order, which is
//! usual, that buffer is the packet. So a partial packet takes one buffer, however many fragments it has; its size is
//! estimated from the fragment that arrives first. A face has at most [`MAX_PARTIAL_PACKETS`], and all faces together
//! have at most the configured limit. `budget` decides which one is evicted for another. The tables of a finished
//! partial packet are reused for the next one.

use std::sync::Arc;

use namehop_packet::{BufferPool, FaceId, PacketBuffer, Timestamp};
use namehop_wire::MAX_PACKET_SIZE;

use super::budget::ReassemblyBudget;
use super::receive::NetworkHeader;
use crate::counters::LinkDrop;
use crate::registry::Face;

/// Maximum number of fragments of one packet (NFD).
pub const MAX_FRAGMENTS: u64 = 400;
/// Maximum number of packets of one face that wait for fragments. Beyond it, the one that has waited longest is
/// evicted.
pub const MAX_PARTIAL_PACKETS: usize = 64;
/// Time without a new fragment after which a partial packet is dropped, in milliseconds.
pub const REASSEMBLY_TIMEOUT_MS: u64 = 500;

/// A received fragment.
#[derive(Debug, Clone, Copy)]
pub struct Fragment<'a> {
    /// The sender's endpoint; 0 on point-to-point links.
    pub endpoint: u64,
    /// Sequence; `None` if the frame had none.
    pub sequence: Option<u64>,
    /// FragIndex.
    pub index: u64,
    /// FragCount.
    pub count: u64,
    /// Its part of the packet.
    pub payload: &'a [u8],
}

/// A completely received packet, with the network-layer headers of fragment 0.
#[derive(Debug)]
pub struct Reassembled {
    /// The Interest or Data, not checked yet.
    pub buffer: PacketBuffer,
    /// Headers.
    pub header: NetworkHeader,
}

/// Position of a fragment in the buffer; length 0 if it has not arrived.
#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    offset: u16,
    length: u16,
}

#[derive(Debug)]
struct Partial {
    /// `None` while the slot is free.
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
        // Only the entries that the last packet used can differ from the default.
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

    /// Copies a fragment into its partial packet. If this fails, the partial packet is useless.
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
            // Larger than estimated: the fragment that arrived first was shorter than the others.
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

/// The partial packets of all faces of a worker. Drops are counted on the face that received the packet.
#[derive(Debug)]
pub struct Reassembler {
    /// Indexed by slot of the budget.
    partials: Vec<Partial>,
    budget: ReassemblyBudget,
    worker: usize,
}

impl Reassembler {
    /// Creates the reassembler of a worker, for at most `limit` partial packets of all faces together, at least one.
    /// Memory is allocated at first use: about 1.7 KB for each packet besides its buffer.
    pub fn new(worker: usize, limit: usize) -> Self {
        Reassembler { partials: Vec::new(), budget: ReassemblyBudget::new(limit), worker }
    }

    /// Adds a fragment; returns the packet if it is now complete. `header` is used for fragment 0 only.
    ///
    /// # Errors
    /// The reason why this fragment was dropped, which the caller counts. With [`LinkDrop::ReassembledTooLong`] and
    /// [`LinkDrop::NoBuffer`] the whole packet may be dropped. An evicted partial packet is counted here.
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
        let known = self.budget.held_by(face.id().slot()).iter().copied().find(|&slot| {
            let partial = &self.partials[slot as usize];
            partial.message_id == message_id && partial.endpoint == fragment.endpoint && partial.is_of(face.id())
        });
        let slot = match known {
            Some(slot) => {
                let partial = &self.partials[slot as usize];
                if u64::from(partial.count) != fragment.count {
                    return Err(LinkDrop::FragCountMismatch);
                }
                if partial.pieces[fragment.index as usize].length != 0 {
                    return Err(LinkDrop::DuplicateFragment);
                }
                self.budget.touch(slot);
                slot
            }
            None => {
                // All fragments but the last usually have the same size.
                let expected = fragment.payload.len().saturating_mul(fragment.count as usize).min(MAX_PACKET_SIZE);
                let buffer = pool.allocate(expected).ok_or(LinkDrop::NoBuffer)?;
                let slot = self.take_slot(face.id());
                let count = fragment.count as u16;
                self.partials[slot as usize].begin(face, fragment.endpoint, message_id, count, buffer);
                slot
            }
        };
        let partial = &mut self.partials[slot as usize];
        if let Err(reason) = partial.add_piece(now, &fragment, header, pool) {
            self.release(slot);
            return Err(reason);
        }
        if partial.received < partial.count {
            return Ok(None);
        }
        let result = finish(partial, pool);
        self.release(slot);
        result.map(Some)
    }

    /// Takes a slot for a new partial packet; evicts another packet if none is free.
    fn take_slot(&mut self, face: FaceId) -> u32 {
        if let Some(slot) = self.budget.victim_for(face.slot()) {
            self.evict(slot, LinkDrop::ReassemblyEvicted);
        }
        let slot = self.budget.take(face.slot());
        if self.partials.len() <= slot as usize {
            self.partials.resize_with(slot as usize + 1, Partial::unused);
        }
        slot
    }

    fn evict(&mut self, slot: u32, reason: LinkDrop) {
        if let Some(face) = &self.partials[slot as usize].face {
            face.counters.worker(self.worker).link_drops.add(reason, 1);
        }
        self.release(slot);
    }

    fn release(&mut self, slot: u32) {
        let partial = &mut self.partials[slot as usize];
        partial.face = None;
        partial.buffer = None;
        partial.header = None;
        self.budget.give(slot);
    }

    /// Drops and counts partial packets that have timed out.
    pub fn expire(&mut self, now: Timestamp) {
        while let Some(slot) = self.budget.oldest() {
            if self.partials[slot as usize].deadline() > now {
                return;
            }
            self.evict(slot, LinkDrop::ReassemblyTimeout);
        }
    }

    /// Returns when [`Reassembler::expire`] is to be called next; [`Timestamp::NEVER`] if nothing waits.
    pub fn next_deadline(&self) -> Timestamp {
        self.budget.oldest().map_or(Timestamp::NEVER, |slot| self.partials[slot as usize].deadline())
    }

    /// Drops and counts the partial packets of a closed face.
    pub fn forget(&mut self, face: FaceId) {
        while let Some(&slot) =
            self.budget.held_by(face.slot()).iter().find(|&&slot| self.partials[slot as usize].is_of(face))
        {
            self.evict(slot, LinkDrop::LinkDown);
        }
    }

    /// Returns the number of packets of all faces that wait for fragments.
    pub fn waiting(&self) -> usize {
        self.budget.taken()
    }

    /// Returns the number of packets of one face that wait for fragments.
    #[cfg(test)]
    pub(super) fn waiting_of(&self, face: FaceId) -> usize {
        self.budget.held_by(face.slot()).len()
    }
}

/// Appends `bytes`; returns `false` if the buffer is too small.
fn append(buffer: &mut PacketBuffer, bytes: &[u8]) -> bool {
    buffer.append(bytes.len()).map(|room| room.copy_from_slice(bytes)).is_some()
}

/// Takes the complete packet out of its slot, with the fragments in order.
fn finish(partial: &mut Partial, pool: &BufferPool) -> Result<Reassembled, LinkDrop> {
    // Every complete packet has both.
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
        let (room, rest) = target.split_at_mut(length);
        room.copy_from_slice(&source[offset..offset + length]);
        target = rest;
    }
    Ok(Reassembled { buffer: ordered, header })
}
