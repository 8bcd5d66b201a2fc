//! Ports on network cards that a driver of DPDK serves (ethdev), without the kernel: one receive and one transmit queue.
//!
//! The card must have been given to the kernel module vfio-pci, which keeps it within the memory of this process. The driver
//! takes buffers for received frames from the mempool of small packets, so the MTU is that of plain Ethernet. Frames that are
//! sent go back to their mempools by themselves, some time after the card has sent them.
//!
//! A card may be pulled out, or the administrator may take it back: the kernel then waits until the port is closed, so whoever
//! manages it looks at [`PciPort::is_removed`] from time to time.

use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use namehop_packet::pool::SMALL_BYTES;
use namehop_packet::{BufferPool, PacketBuffer, PortQueue};
use std::os::fd::BorrowedFd;

use crate::BURST;
use crate::eal::{Devices, Eal, Pages};
use crate::error::DpdkError;
use crate::ffi;
use crate::losses::{LossCounters, Losses};
use crate::thread;

/// Ethernet type of frames with the tag of a VLAN, and the length of such a tag and of what is before it.
const ETHERTYPE_VLAN: [u8; 2] = [0x81, 0x00];
const TAG_BYTES: usize = 4;
const ADDRESSES_BYTES: usize = 12;
/// The bits of a tag that are the VLAN, in its second half.
const VLAN_BITS: u16 = 0x0FFF;

/// A card in use; closed when both ends of the port have dropped it.
#[derive(Debug)]
struct Card {
    address: CString,
    number: u16,
    /// What the worker counted; the card counts the rest.
    losses: LossCounters,
}

impl Drop for Card {
    fn drop(&mut self) {
        // SAFETY: the port was opened, and nobody uses it any more.
        unsafe { ffi::namehop_nic_close(self.number, self.address.as_ptr()) };
    }
}

/// A port on a card, for the thread that manages it.
#[derive(Debug)]
pub struct PciPort {
    card: Arc<Card>,
    /// Multicast groups that the card receives.
    groups: Mutex<Vec<[u8; 6]>>,
    /// Hardware address.
    pub address: [u8; 6],
    /// Largest packet behind the Ethernet header, in bytes.
    pub mtu_bytes: usize,
}

impl PciPort {
    /// Opens the card with this PCI address, as `0000:03:00.0`. Takes up to some seconds. Frames arrive from now on.
    ///
    /// # Errors
    /// When there is no such card, no driver for it, or it is not with vfio-pci; when the environment was started without PCI,
    /// or without huge pages.
    pub fn open(environment: &Eal, address: &str, pool: &BufferPool) -> Result<(PciPort, PciQueue), DpdkError> {
        if environment.devices() != Devices::Pci {
            return Err(DpdkError::Unusable(format!(
                "the router was started without network cards on PCI: list {address} in `interfaces` in section [ports] of \
                 the configuration, and restart"
            )));
        }
        if let Pages::Ordinary { .. } = environment.pages() {
            return Err(DpdkError::Unusable(format!(
                "{address} needs packets on huge pages, of which too few were free: 'namehop setup' sets more aside; then restart"
            )));
        }
        let unusable = || DpdkError::Unusable(format!("{address} is no PCI address"));
        let name = CString::new(address).map_err(|_| unusable())?;
        let sample =
            pool.allocate(SMALL_BYTES).ok_or_else(|| DpdkError::Unusable("packet memory is used up".to_owned()))?;
        let mut found = ffi::Nic::default();
        // SAFETY: the environment runs, and the sample is an mbuf, whose mempool lives as long as the process.
        let result = unsafe { ffi::namehop_nic_open(name.as_ptr(), sample.as_raw().as_ptr(), &mut found) };
        DpdkError::check(result, || {
            format!("open network card {address} (is it with vfio-pci? 'namehop setup' tells)")
        })?;
        let card = Card { address: name, number: found.number, losses: LossCounters::default() };
        let card = Arc::new(card);
        let queue = PciQueue { card: Arc::clone(&card), pool: pool.clone() };
        let mtu_bytes = usize::from(found.mtu_bytes);
        Ok((PciPort { card, groups: Mutex::default(), address: found.address, mtu_bytes }, queue))
    }

    /// Whether a cable is plugged in and the other end answers.
    pub fn is_up(&self) -> bool {
        // SAFETY: the port is open.
        !self.is_removed() && unsafe { ffi::namehop_nic_has_link(self.card.number) } == 1
    }

    /// Whether the kernel wants the card back, because it is pulled out or somebody takes it away.
    pub fn is_removed(&self) -> bool {
        // SAFETY: the function takes any number.
        unsafe { ffi::namehop_nic_is_removed(self.card.number) == 1 }
    }

    /// Joins or leaves an Ethernet multicast group.
    ///
    /// # Errors
    /// When the card can receive neither this list of groups nor all groups.
    pub fn join(&self, group: [u8; 6], join: bool) -> Result<(), DpdkError> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|joined| *joined != group);
        if join {
            groups.push(group);
        }
        let count = u32::try_from(groups.len()).unwrap_or(u32::MAX);
        // SAFETY: the port is open, and so many addresses are there.
        let result = unsafe { ffi::namehop_nic_set_groups(self.card.number, groups.as_ptr().cast(), count) };
        DpdkError::check(result, || "set multicast groups of a network card".to_owned()).map(drop)
    }

    /// Frames lost since the port was opened.
    pub fn losses(&self) -> Losses {
        let mut counted = ffi::NicLosses::default();
        // SAFETY: the port is open.
        unsafe { ffi::namehop_nic_losses(self.card.number, &mut counted) };
        let own = self.card.losses.read();
        Losses {
            receive_ring_full: counted.ring_full,
            no_buffer: own.no_buffer + counted.no_buffer,
            malformed: own.malformed + counted.malformed,
            send_failed: own.send_failed + counted.send_failed,
        }
    }
}

/// The queues of a port, for the worker.
#[derive(Debug)]
pub struct PciQueue {
    card: Arc<Card>,
    pool: BufferPool,
}

impl PciQueue {
    /// Replaces frames in ordinary memory, which the card cannot reach, by copies. There are some for a moment after the first
    /// port was opened. Those that cannot be copied are dropped and counted.
    #[cold]
    fn move_to_mempool(&self, frames: &mut Vec<PacketBuffer>) {
        frames.retain_mut(|frame| {
            if frame.is_from_mempool() {
                return true;
            }
            let copy = self.pool.copy_of(frame.bytes());
            if copy.is_none() {
                self.card.losses.no_buffer.add(1);
            }
            copy.map(|copy| *frame = copy).is_some()
        });
    }
}

impl PortQueue for PciQueue {
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        thread::register();
        let before = frames.len();
        frames.reserve(BURST);
        // SAFETY: there is room for `BURST` more; the driver fills in mbufs of one segment that are ours from now on.
        unsafe {
            let end = frames.as_mut_ptr().add(before).cast();
            let count = ffi::namehop_nic_receive(self.card.number, end, BURST as u16);
            frames.set_len(before + usize::from(count));
        }
        frames[before..].iter_mut().for_each(take_off_priority_tag);
    }

    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        if !frames.iter().all(PacketBuffer::is_from_mempool) {
            self.move_to_mempool(frames);
        }
        let mut sent = 0;
        while sent < frames.len() {
            let count = (frames.len() - sent).min(BURST);
            // SAFETY: so many mbufs are there; those that the driver takes are forgotten below.
            let taken =
                unsafe { ffi::namehop_nic_send(self.card.number, frames.as_mut_ptr().add(sent).cast(), count as u16) };
            sent += usize::from(taken);
            if usize::from(taken) < count {
                break;
            }
        }
        crate::memory::forget_front(frames, sent);
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A tag that names a priority and no VLAN does not count.
#[inline]
fn take_off_priority_tag(frame: &mut PacketBuffer) {
    let bytes = frame.bytes_mut();
    if let Some(&[high, low]) = bytes.get(ADDRESSES_BYTES + 2..ADDRESSES_BYTES + TAG_BYTES)
        && bytes[ADDRESSES_BYTES..ADDRESSES_BYTES + 2] == ETHERTYPE_VLAN
        && u16::from_be_bytes([high, low]) & VLAN_BITS == 0
    {
        bytes.copy_within(..ADDRESSES_BYTES, TAG_BYTES);
        frame.trim_front(TAG_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_priority_come_off_and_those_of_vlans_stay() {
        let pool = BufferPool::new(4, 4);
        let addresses = [7; ADDRESSES_BYTES];
        for (tag, is_kept) in [([0x81, 0, 0xE0, 0], false), ([0x81, 0, 0, 7], true), ([0x86, 0x24, 0, 0], true)] {
            let bytes = [addresses.as_slice(), &tag, b"rest"].concat();
            let mut frame = pool.copy_of(&bytes).expect("a buffer");
            take_off_priority_tag(&mut frame);
            let short = [addresses.as_slice(), b"rest"].concat();
            assert_eq!(frame.bytes(), if is_kept { &bytes } else { &short }, "{tag:?}");
        }
        for length in 0..ADDRESSES_BYTES + TAG_BYTES {
            let bytes = vec![0x81; length];
            let mut frame = pool.copy_of(&bytes).expect("a buffer");
            take_off_priority_tag(&mut frame);
            assert_eq!(frame.bytes(), bytes);
        }
    }
}
