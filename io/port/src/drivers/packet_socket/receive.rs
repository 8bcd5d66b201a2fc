//! The ring of received frames that kernel and process share (TPACKET_V2, packet_mmap in the kernel's documentation).
//!
//! A slot holds one frame behind a header; the status in the header says whether the kernel or the process owns the
//! slot. The kernel fills slots in order, and the process returns them in order.

use std::os::fd::AsFd;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use namehop_packet::{BufferPool, PacketBuffer};

use super::socket::Socket;
use super::unfinished;
use crate::BURST;
use crate::error::DpdkError;
use crate::mapping::Mapping;
use crate::wanted::{ETHERTYPE_VLAN, VLAN_BITS};

/// Minimum number of slots of a ring.
const SLOTS: usize = 1024;
/// Slot sizes for frames of ordinary Ethernet and for jumbo frames, in bytes.
const SLOT_BYTES: usize = 2048;
const JUMBO_SLOT_BYTES: usize = 9216;
/// Slots lie in blocks of this size, a whole number of pages; no slot crosses the end of a block.
const BLOCK_BYTES: usize = 65_536;
/// Bytes that the kernel puts in front of a frame: the slot header, an address, and padding.
const OVERHEAD_BYTES: usize = 66;
/// Sizes of the two addresses at the start of a frame, and of the tag that may follow them, in bytes.
const ADDRESSES_BYTES: usize = 12;
const TAG_BYTES: usize = 4;
/// Longest frame that fits, in bytes, including the Ethernet header. A VLAN tag takes no room: the kernel stores it in
/// the slot header.
pub(super) const MAX_FRAME_BYTES: usize = JUMBO_SLOT_BYTES - OVERHEAD_BYTES;

/// The reader's end of the ring.
pub(super) struct ReceiveRing {
    memory: Mapping,
    slot_bytes: usize,
    /// Offset of the next slot to read, and of its block.
    next: usize,
    block: usize,
}

impl ReceiveRing {
    /// Sets up a ring of the socket for frames of up to `frame_bytes`.
    pub(super) fn new(socket: &Socket, frame_bytes: usize) -> Result<ReceiveRing, DpdkError> {
        let slot_bytes = if frame_bytes + OVERHEAD_BYTES <= SLOT_BYTES { SLOT_BYTES } else { JUMBO_SLOT_BYTES };
        let per_block = BLOCK_BYTES / slot_bytes;
        let blocks = SLOTS.div_ceil(per_block);
        let slots = blocks * per_block;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, &version, "select the version of the receive ring")?;
        socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &request, "create the receive ring")?;
        let memory = Mapping::new(socket.as_fd(), blocks * BLOCK_BYTES)
            .map_err(|error| socket.error("map the receive ring", &error))?;
        Ok(ReceiveRing { memory, slot_bytes, next: 0, block: 0 })
    }

    /// Moves on to the next slot.
    fn advance(&mut self) {
        self.next += self.slot_bytes;
        if self.next + self.slot_bytes > self.block + BLOCK_BYTES {
            self.block += BLOCK_BYTES;
            if self.block == self.memory.bytes() {
                self.block = 0;
            }
            self.next = self.block;
        }
    }

    /// Lower bound on the number of waiting frames: the largest power of two, from half a ring down to a burst, for
    /// which the slot at that distance is filled; 0 if there is none. Slots are filled in order, so a filled slot
    /// implies that all slots before it are filled.
    pub(super) fn waiting(&self) -> usize {
        let per_block = BLOCK_BYTES / self.slot_bytes;
        let slots = self.memory.bytes() / BLOCK_BYTES * per_block;
        let next = self.block / BLOCK_BYTES * per_block + (self.next - self.block) / self.slot_bytes;
        let is_filled = |waiting: &usize| {
            let slot = (next + waiting - 1) % slots;
            let place = self.memory.at(slot / per_block * BLOCK_BYTES + slot % per_block * self.slot_bytes);
            // SAFETY: the slot begins with its status, as in `receive`.
            let status = unsafe { AtomicU32::from_ptr(place.cast().as_ptr()) };
            status.load(Ordering::Relaxed) & libc::TP_STATUS_USER != 0
        };
        [SLOTS / 2, SLOTS / 4, SLOTS / 8, BURST].into_iter().find(is_filled).unwrap_or(0)
    }

    /// Adds up to [`BURST`] frames to `frames`. Returns how many were dropped because no buffer was free.
    pub(super) fn receive(&mut self, pool: &BufferPool, frames: &mut Vec<PacketBuffer>) -> usize {
        let mut lost = 0;
        for _ in 0..BURST {
            let slot = self.memory.at(self.next);
            // SAFETY: the slot begins with its header, and the first field of the header is the status; slots are
            // aligned to 16 bytes. Kernel and process both access it atomically.
            let status = unsafe { AtomicU32::from_ptr(slot.cast().as_ptr()) };
            let status_bits = status.load(Ordering::Acquire);
            if status_bits & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: the kernel has filled the header and leaves the slot alone until the status is returned to it.
            let header = unsafe { slot.cast::<libc::tpacket2_hdr>().as_ref() };
            let start = usize::from(header.tp_mac).min(self.slot_bytes);
            // The kernel truncated a frame that is longer than the slot; the parser finds it malformed.
            let length = (header.tp_snaplen as usize).min(self.slot_bytes - start);
            // SAFETY: the bytes were just checked to lie in the slot, and the process owns the slot, as above.
            let bytes = unsafe { slice::from_raw_parts(slot.add(start).as_ptr(), length) };
            let vlan = if status_bits & libc::TP_STATUS_VLAN_VALID == 0 { 0 } else { header.tp_vlan_tci & VLAN_BITS };
            let mut frame = if vlan == 0 { pool.copy_of(bytes) } else { copy_with_tag(pool, bytes, vlan) };
            if status_bits & libc::TP_STATUS_CSUMNOTREADY != 0
                && let Some(frame) = &mut frame
            {
                unfinished::finish(frame.bytes_mut());
            }
            match frame {
                Some(frame) => frames.push(frame),
                None => lost += 1,
            }
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.advance();
        }
        lost
    }
}

/// Copies a frame into a buffer and inserts the VLAN tag that the kernel removed.
#[inline(never)]
fn copy_with_tag(pool: &BufferPool, frame: &[u8], vlan: u16) -> Option<PacketBuffer> {
    let (addresses, rest) = frame.split_at_checked(ADDRESSES_BYTES)?;
    let mut copy = pool.allocate(frame.len() + TAG_BYTES)?;
    let (copied_addresses, behind) = copy.append(frame.len() + TAG_BYTES)?.split_at_mut(ADDRESSES_BYTES);
    copied_addresses.copy_from_slice(addresses);
    let (tag, copied_rest) = behind.split_at_mut(TAG_BYTES);
    tag[..2].copy_from_slice(&ETHERTYPE_VLAN.to_be_bytes());
    tag[2..].copy_from_slice(&vlan.to_be_bytes());
    copied_rest.copy_from_slice(rest);
    Some(copy)
}
