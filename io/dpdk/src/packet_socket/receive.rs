//! The ring of received frames that kernel and process share (TPACKET_V2, packet_mmap in the kernel's documentation).
//!
//! A slot is a header, whose status says whether the kernel or the process may use it, and one frame. The
//! kernel fills slots in order, and the process gives them back in order.

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

/// Slots of a ring, at least.
const SLOTS: usize = 1024;
/// A slot for frames of ordinary Ethernet, and one for jumbo frames.
const SLOT_BYTES: usize = 2048;
const JUMBO_SLOT_BYTES: usize = 9216;
/// Slots lie in blocks of this size, a whole number of pages; none crosses the end of one.
const BLOCK_BYTES: usize = 65_536;
/// What the kernel puts in front of a frame: the slot's header, an address, and padding.
const OVERHEAD_BYTES: usize = 66;
/// The two addresses in front of a frame, and the tag that may stand behind them.
const ADDRESSES_BYTES: usize = 12;
const TAG_BYTES: usize = 4;
/// Longest frame that fits, Ethernet header included. The tag of a VLAN takes no room: the kernel keeps it in the slot's header.
pub(super) const MAX_FRAME_BYTES: usize = JUMBO_SLOT_BYTES - OVERHEAD_BYTES;

/// The reader's end of the ring.
pub(super) struct ReceiveRing {
    memory: Mapping,
    slot_bytes: usize,
    /// Where the slot begins that is filled next, and where its block does.
    next: usize,
    block: usize,
}

impl ReceiveRing {
    /// Gives the socket a ring for frames of up to `frame_bytes`.
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
        socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, &version, "choose a kind of ring")?;
        socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &request, "make a ring for its frames")?;
        let memory = Mapping::new(socket.as_fd(), blocks * BLOCK_BYTES)
            .map_err(|error| socket.error("map the ring of its frames", &error))?;
        Ok(ReceiveRing { memory, slot_bytes, next: 0, block: 0 })
    }

    /// Goes on to the next slot.
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

    /// Frames that wait, or a bit fewer: the largest power of two of slots that are filled, from half a ring down to a burst; 0 if they are
    /// fewer. Slots are filled in order, so one of them stands for all in front.
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

    /// Adds up to [`BURST`] frames to `frames`. Returns how many were lost because there was no buffer for them.
    pub(super) fn receive(&mut self, pool: &BufferPool, frames: &mut Vec<PacketBuffer>) -> usize {
        let mut lost = 0;
        for _ in 0..BURST {
            let slot = self.memory.at(self.next);
            // SAFETY: the slot begins with its header, whose first field is the status; slots are aligned to 16 bytes. Kernel
            // and process both use it as an atomic number.
            let status = unsafe { AtomicU32::from_ptr(slot.cast().as_ptr()) };
            let status_bits = status.load(Ordering::Acquire);
            if status_bits & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: the kernel has filled the header and leaves the slot alone until the status is given back.
            let header = unsafe { slot.cast::<libc::tpacket2_hdr>().as_ref() };
            let start = usize::from(header.tp_mac).min(self.slot_bytes);
            // A frame longer than the slot was cut off by the kernel, and is found malformed where frames are read.
            let length = (header.tp_snaplen as usize).min(self.slot_bytes - start);
            // SAFETY: these bytes are in the slot, as was just made sure, and ours as above.
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

/// Copies a frame into a buffer and puts the tag of a VLAN back that the kernel has taken off.
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
