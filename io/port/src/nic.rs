//! Ports that a DPDK driver serves (ethdev), with one or several receive queues and as many transmit queues.
//! [`crate::drivers::pci`] opens them on network cards. Cards that support receive-side scaling spread UDP packets over
//! their queues by addresses and ports. All other frames come to the first queue, unless they are steered to another
//! one ([`crate::steering`]).
//!
//! The driver takes buffers for received frames from the mempool that fits the port's MTU. Sent frames return to their
//! mempools some time after the card has sent them.
//!
//! A card may be removed, or the administrator may take it back. The kernel then waits until the port is closed, so the
//! manager of the port polls [`NicPort::is_removed`].

use std::ffi::CString;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use namehop_packet::size::{LARGE_BYTES, SMALL_BYTES};
use namehop_packet::{BufferPool, PacketBuffer, PortQueue};

use crate::BURST;
use crate::eal::Eal;
use crate::error::DpdkError;
use crate::ffi::{self, Functions};
use crate::losses::{LossCounters, Losses};
use crate::priority_tag::{ADDRESSES_BYTES, TAG_BYTES, take_off_priority_tag};
use crate::steering::{Flow, Origin, Rules};
use crate::thread;
use crate::wanted::Wanted;

/// Bytes around the packet of a frame at most: addresses, type, VLAN tag, frame check sequence.
const AROUND_BYTES: usize = ADDRESSES_BYTES + 2 + TAG_BYTES + 4;
/// Largest MTU of such ports, in bytes: the packet behind the Ethernet header.
pub const MAX_MTU_BYTES: usize = LARGE_BYTES - AROUND_BYTES;
/// MTU of plain Ethernet, in bytes.
pub const USUAL_MTU_BYTES: usize = 1500;
/// Slots of each queue of a card, if there are enough packets.
const SLOTS: usize = 1024;
const MIN_SLOTS: usize = 64;
/// Maximum number of queues of a port; there are no more workers.
const MAX_QUEUES: usize = 64;
/// All queues of a port together may hold one packet in this many, so that enough are left for packets in flight.
const SHARE_OF_PACKETS: usize = 4;

/// Identifies the device for a driver.
#[derive(Debug, Clone)]
pub struct Source {
    /// The bus: `pci`, or `vdev` for drivers without a card.
    pub bus: &'static str,
    /// Address or name of the device on that bus.
    pub name: String,
    /// Further device arguments of the driver.
    pub arguments: String,
    /// Wanted MTU in bytes: the largest packet behind the Ethernet header.
    pub mtu_bytes: usize,
    /// Wanted number of queues.
    pub queues: usize,
}

/// A device in use; closed when all ends of the port have dropped it.
#[derive(Debug)]
struct Card {
    shim: &'static Functions,
    bus: CString,
    name: CString,
    number: u16,
    /// Drops that the workers counted, by queue; the device counts the others.
    losses: Vec<LossCounters>,
    /// Number of flows that are steered to each queue.
    steered: Vec<AtomicUsize>,
}

impl Drop for Card {
    fn drop(&mut self) {
        // SAFETY: the port was opened, and this is its last user.
        unsafe { (self.shim.nic_close)(self.number, self.bus.as_ptr(), self.name.as_ptr()) };
    }
}

/// A port, for the thread that manages it.
#[derive(Debug)]
pub struct NicPort {
    card: Arc<Card>,
    /// Multicast groups that the card receives.
    groups: Mutex<Vec<[u8; 6]>>,
    /// True if the card receives all multicast groups.
    has_all_groups: AtomicBool,
    /// VLANs that the card's VLAN filter accepts, if it has one.
    vlans: Mutex<Vec<u16>>,
    rules: Mutex<Rules>,
    /// Hardware address.
    pub address: [u8; 6],
    /// Largest packet behind the Ethernet header, in bytes.
    pub mtu_bytes: usize,
    /// True if the card spreads UDP packets over its queues.
    pub spreads: bool,
}

impl NicPort {
    /// Opens a device with its driver. Takes up to several seconds. Frames arrive from now on. `hint` is appended to
    /// the error message.
    ///
    /// # Errors
    /// Fails if there is no such device or no driver for it, or if the driver cannot do what `source` asks for.
    pub fn open(
        environment: &Eal,
        source: &Source,
        pool: &BufferPool,
        hint: &str,
    ) -> Result<(NicPort, Vec<NicQueue>), DpdkError> {
        let Source { bus, name, arguments, mtu_bytes, queues } = source;
        let queues = (*queues).clamp(1, MAX_QUEUES);
        let text = |text: &str| {
            CString::new(text)
                .map_err(|_| DpdkError::Unusable(format!("`{}` is not a valid device name", text.escape_default())))
        };
        if *mtu_bytes > MAX_MTU_BYTES {
            return Err(DpdkError::Unusable(format!(
                "an MTU of {mtu_bytes} is too large: at most {MAX_MTU_BYTES} is supported"
            )));
        }
        let is_jumbo = mtu_bytes + AROUND_BYTES > SMALL_BYTES;
        let sample = pool.allocate(if is_jumbo { LARGE_BYTES } else { SMALL_BYTES });
        let sample = sample.ok_or_else(|| DpdkError::Unusable("all packet buffers are in use".to_owned()))?;
        let (bus, name, arguments) = (text(bus)?, text(name)?, text(arguments)?);
        let (small, large) = pool.limits();
        let raw = ffi::NicSource {
            bus: bus.as_ptr(),
            name: name.as_ptr(),
            arguments: arguments.as_ptr(),
            mtu_bytes: *mtu_bytes as u16,
            slots: slots(if is_jumbo { large } else { small }, queues),
            queues: queues as u16,
        };
        let (shim, mut found) = (environment.shim(), ffi::Nic::default());
        // SAFETY: the environment runs, the texts outlive the call, and the sample is an mbuf whose mempool lives as
        // long as the process.
        let result = unsafe { (shim.nic_open)(&raw, sample.as_raw().as_ptr(), &mut found) };
        DpdkError::check(result, || format!("open {}{hint}", source.name))?;
        let losses = (0..found.queues).map(|_| LossCounters::default()).collect();
        let steered = (0..found.queues).map(|_| AtomicUsize::new(0)).collect();
        let card = Arc::new(Card { shim, bus, name, number: found.number, losses, steered });
        let queue = |number| NicQueue { card: Arc::clone(&card), number, pool: pool.clone() };
        let queues = (0..found.queues).map(queue).collect();
        let mtu_bytes = usize::from(found.mtu_bytes);
        Ok((
            NicPort {
                card,
                groups: Mutex::default(),
                has_all_groups: AtomicBool::new(false),
                vlans: Mutex::default(),
                rules: Mutex::default(),
                address: found.address,
                mtu_bytes,
                spreads: found.spreads == 1,
            },
            queues,
        ))
    }

    /// True if the card has a link.
    pub fn is_up(&self) -> bool {
        // SAFETY: the port is open.
        !self.is_removed() && unsafe { (self.card.shim.nic_has_link)(self.card.number) } == 1
    }

    /// True if the kernel has asked for the card back, because it was pulled out or is being unbound.
    pub fn is_removed(&self) -> bool {
        // SAFETY: the function takes any number.
        unsafe { (self.card.shim.nic_is_removed)(self.card.number) == 1 }
    }

    /// Joins or leaves an Ethernet multicast group.
    ///
    /// # Errors
    /// Fails if the card can receive neither this list of groups nor all groups.
    pub fn join(&self, group: [u8; 6], join: bool) -> Result<(), DpdkError> {
        if self.has_all_groups.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wanted = groups.clone();
        wanted.retain(|joined| *joined != group);
        if join {
            wanted.push(group);
        }
        let count = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        // SAFETY: the port is open, and `wanted` holds `count` addresses.
        let result = unsafe { (self.card.shim.nic_set_groups)(self.card.number, wanted.as_ptr(), count) };
        DpdkError::check(result, || "set multicast groups of a network card".to_owned())?;
        *groups = wanted;
        Ok(())
    }

    /// Receives all multicast groups from now on.
    ///
    /// # Errors
    /// Fails if the card does not support it.
    pub fn join_all(&self) -> Result<(), DpdkError> {
        // SAFETY: the port is open.
        let result = unsafe { (self.card.shim.nic_receive_all_groups)(self.card.number) };
        DpdkError::check(result, || "receive all multicast groups on a network card".to_owned())?;
        self.has_all_groups.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Receives frames for all hardware addresses from now on.
    ///
    /// # Errors
    /// Fails if the card does not support it.
    pub fn receive_everything(&self) -> Result<(), DpdkError> {
        // SAFETY: the port is open.
        let result = unsafe { (self.card.shim.nic_receive_everything)(self.card.number) };
        DpdkError::check(result, || "receive frames for all addresses on a network card".to_owned()).map(drop)
    }

    /// Receives all frames of the wanted VLANs from now on. Cards of some drivers receive frames of no other VLANs.
    ///
    /// # Errors
    /// Fails if the card's VLAN filter is full. The VLANs that were added before stay.
    pub fn receive_only(&self, wanted: &Wanted) -> Result<(), DpdkError> {
        let vlans = wanted.all_vlans();
        let mut received = self.vlans.lock().unwrap_or_else(PoisonError::into_inner);
        let set = |vlan: u16, is_wanted: bool| {
            // SAFETY: the port is open.
            let result = unsafe { (self.card.shim.nic_receive_vlan)(self.card.number, vlan, is_wanted.into()) };
            DpdkError::check(result, || format!("set VLAN {vlan} on a network card"))
        };
        for &vlan in &vlans {
            if !received.contains(&vlan) {
                set(vlan, true)?;
                received.push(vlan);
            }
        }
        // Keep VLANs that could not be removed; their frames belong to no face.
        received.retain(|vlan| vlans.contains(vlan) || set(*vlan, false).is_err());
        Ok(())
    }

    /// Steers the frames of a flow to the queue with the fewest flows, and returns that queue. `None` if there is only
    /// one queue, or if the card spreads such frames over all queues.
    ///
    /// # Errors
    /// Fails if the card does not support the rule or has no room for it. The frames then arrive as before.
    pub fn steer(&self, flow: Flow) -> Result<Option<u16>, DpdkError> {
        let is_spread = self.spreads && matches!(flow.origin, Origin::Udp { .. });
        if self.card.steered.len() < 2 || is_spread {
            return Ok(None);
        }
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.add(self.card.shim, self.card.number, flow, &self.card.steered).map(Some)
    }

    /// Stops steering a flow.
    ///
    /// # Errors
    /// Fails if the card cannot remove the rule.
    pub fn release(&self, flow: &Flow) -> Result<(), DpdkError> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.remove(self.card.shim, self.card.number, flow, &self.card.steered)
    }

    /// Frames dropped since the port was opened.
    pub fn losses(&self) -> Losses {
        let mut counted = ffi::NicLosses::default();
        // SAFETY: the port is open.
        unsafe { (self.card.shim.nic_losses)(self.card.number, &mut counted) };
        let own: Losses = self.card.losses.iter().map(LossCounters::read).sum();
        Losses {
            receive_ring_full: counted.ring_full,
            no_buffer: own.no_buffer + counted.no_buffer,
            malformed: own.malformed + counted.malformed,
            send_failed: own.send_failed + counted.send_failed,
        }
    }
}

/// Slots of each queue of a port with this many queues per direction and `packets` packets of its size.
fn slots(packets: usize, queues: usize) -> u16 {
    let share = (packets / (2 * queues * SHARE_OF_PACKETS)).clamp(MIN_SLOTS, SLOTS);
    // Round down to a power of two; it is at most `SLOTS`.
    1 << share.ilog2()
}

/// A receive and a transmit queue of a port, for one worker.
#[derive(Debug)]
pub struct NicQueue {
    card: Arc<Card>,
    number: u16,
    pool: BufferPool,
}

impl NicQueue {
    fn losses(&self) -> &LossCounters {
        // There is one element for each queue.
        &self.card.losses[usize::from(self.number)]
    }

    /// Replaces frames in ordinary memory, which the card cannot access, by copies in a mempool. Such frames exist only
    /// for a moment after the first port was opened. Frames that cannot be copied are dropped and counted.
    #[cold]
    fn move_to_mempool(&self, frames: &mut Vec<PacketBuffer>) {
        frames.retain_mut(|frame| {
            if frame.is_from_mempool() {
                return true;
            }
            let copy = self.pool.copy_of(frame.bytes());
            if copy.is_none() {
                self.losses().no_buffer.add(1);
            }
            copy.map(|copy| *frame = copy).is_some()
        });
    }
}

impl PortQueue for NicQueue {
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        thread::register(self.card.shim);
        let before = frames.len();
        frames.reserve(BURST);
        let mut malformed = 0;
        // SAFETY: there is room for `BURST` more; the driver fills in mbufs of one segment and gives up ownership of
        // them.
        unsafe {
            let end = frames.as_mut_ptr().add(before).cast();
            let count = (self.card.shim.nic_receive)(self.card.number, self.number, end, BURST as u16, &mut malformed);
            frames.set_len(before + usize::from(count));
        }
        if malformed > 0 {
            self.losses().malformed.add(malformed as usize);
        }
        frames[before..].iter_mut().for_each(take_off_priority_tag);
    }

    /// 0 if the driver cannot tell.
    fn waiting(&self) -> usize {
        // SAFETY: the queue is one of the card's, which stays open while `self` exists.
        unsafe { (self.card.shim.nic_waiting)(self.card.number, self.number).into() }
    }

    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        if !frames.iter().all(PacketBuffer::is_from_mempool) {
            self.move_to_mempool(frames);
        }
        let mut sent = 0;
        while sent < frames.len() {
            let count = (frames.len() - sent).min(BURST);
            // SAFETY: `frames` holds `count` mbufs from index `sent`; the mbufs that the driver takes are forgotten
            // below.
            let taken = unsafe {
                let first = frames.as_mut_ptr().add(sent).cast();
                (self.card.shim.nic_send)(self.card.number, self.number, first, count as u16)
            };
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

    fn steered_flows(&self) -> usize {
        self.card.steered[usize::from(self.number)].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_leave_most_packets_to_others() {
        let table =
            [(0, 64), (512, 64), (1023, 64), (1024, 128), (2048, 256), (8191, 512), (8192, 1024), (1 << 24, 1024)];
        for (packets, expected) in table {
            assert_eq!(slots(packets, 1), expected, "{packets}");
        }
        assert_eq!((slots(8192, 4), slots(1 << 24, 64)), (256, 1024));
    }
}
