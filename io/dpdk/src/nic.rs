//! Ports that a driver of DPDK serves (ethdev), with one or several queues for receiving, and as many for sending. [`crate::pci`] opens
//! them on network cards. Cards spread packets of UDP over their queues by addresses and ports (receive-side scaling), if they can;
//! all else comes to the first queue, unless it is steered to another one ([`crate::steering`]).
//!
//! The driver takes buffers for received frames from the mempool whose packets are long enough for the port's MTU. Frames that are
//! sent go back to their mempools by themselves, some time after the card has sent them.
//!
//! A card may be pulled out, or the administrator may take it back: the kernel then waits until the port is closed, so whoever
//! manages it looks at [`NicPort::is_removed`] from time to time.

use std::ffi::CString;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use namehop_packet::pool::{LARGE_BYTES, SMALL_BYTES};
use namehop_packet::{BufferPool, PacketBuffer, PortQueue};

use crate::BURST;
use crate::eal::Eal;
use crate::error::DpdkError;
use crate::ffi;
use crate::losses::{LossCounters, Losses};
use crate::priority_tag::{ADDRESSES_BYTES, TAG_BYTES, take_off_priority_tag};
use crate::steering::{Flow, Origin, Rules};
use crate::thread;
use crate::wanted::Wanted;

/// What stands around the packet of a frame at most: addresses, type, tag of a VLAN, check sequence.
const AROUND_BYTES: usize = ADDRESSES_BYTES + 2 + TAG_BYTES + 4;
/// Largest packet behind the Ethernet header that such ports carry, in bytes.
pub const MAX_MTU_BYTES: usize = LARGE_BYTES - AROUND_BYTES;
/// MTU of plain Ethernet, in bytes.
pub const USUAL_MTU_BYTES: usize = 1500;
/// Frames that fit into each queue of a card, if there are packets enough.
const SLOTS: usize = 1024;
const MIN_SLOTS: usize = 64;
/// Queues of a port at most; there are no more workers.
const MAX_QUEUES: usize = 64;
/// All queues of a port together may hold one of so many packets, so that some are left for what is under way.
const SHARE_OF_PACKETS: usize = 4;

/// Where a driver finds its device.
#[derive(Debug, Clone)]
pub struct Source {
    /// `pci`, or `vdev` for drivers without a card.
    pub bus: &'static str,
    /// Address or name of the device on that bus.
    pub name: String,
    /// What else the driver wants to know.
    pub arguments: String,
    /// Largest packet behind the Ethernet header that is wished for, in bytes.
    pub mtu_bytes: usize,
    /// Queues that are wished for.
    pub queues: usize,
}

/// A device in use; closed when all ends of the port have dropped it.
#[derive(Debug)]
struct Card {
    bus: CString,
    name: CString,
    number: u16,
    /// What the workers counted, by queue; the device counts the rest.
    losses: Vec<LossCounters>,
    /// Flows that are steered to each queue.
    steered: Vec<AtomicUsize>,
}

impl Drop for Card {
    fn drop(&mut self) {
        // SAFETY: the port was opened, and nobody uses it any more.
        unsafe { ffi::namehop_nic_close(self.number, self.bus.as_ptr(), self.name.as_ptr()) };
    }
}

/// A port, for the thread that manages it.
#[derive(Debug)]
pub struct NicPort {
    card: Arc<Card>,
    /// Multicast groups that the card receives.
    groups: Mutex<Vec<[u8; 6]>>,
    /// It receives all of them.
    has_all_groups: AtomicBool,
    /// VLANs whose frames the card receives, if it does not receive those of all.
    vlans: Mutex<Vec<u16>>,
    rules: Mutex<Rules>,
    /// Hardware address.
    pub address: [u8; 6],
    /// Largest packet behind the Ethernet header, in bytes.
    pub mtu_bytes: usize,
    /// The card spreads packets of UDP over its queues.
    pub spreads: bool,
}

impl NicPort {
    /// Has a driver take its device. Takes up to some seconds. Frames arrive from now on. `hint` is what to try when that fails.
    ///
    /// # Errors
    /// When there is no such device, no driver for it, or it cannot do what is wished.
    pub fn open(
        _environment: &Eal,
        source: &Source,
        pool: &BufferPool,
        hint: &str,
    ) -> Result<(NicPort, Vec<NicQueue>), DpdkError> {
        let Source { bus, name, arguments, mtu_bytes, queues } = source;
        let queues = (*queues).clamp(1, MAX_QUEUES);
        let text = |text: &str| {
            CString::new(text).map_err(|_| DpdkError::Unusable(format!("`{}` is no device", text.escape_default())))
        };
        if *mtu_bytes > MAX_MTU_BYTES {
            return Err(DpdkError::Unusable(format!(
                "an MTU of {mtu_bytes} is too large; {MAX_MTU_BYTES} is the largest"
            )));
        }
        let is_jumbo = mtu_bytes + AROUND_BYTES > SMALL_BYTES;
        let sample = pool.allocate(if is_jumbo { LARGE_BYTES } else { SMALL_BYTES });
        let sample = sample.ok_or_else(|| DpdkError::Unusable("packet memory is used up".to_owned()))?;
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
        let mut found = ffi::Nic::default();
        // SAFETY: the environment runs, the texts live, and the sample is an mbuf, whose mempool lives as long as the process.
        let result = unsafe { ffi::namehop_nic_open(&raw, sample.as_raw().as_ptr(), &mut found) };
        DpdkError::check(result, || format!("open {}{hint}", source.name))?;
        let losses = (0..found.queues).map(|_| LossCounters::default()).collect();
        let steered = (0..found.queues).map(|_| AtomicUsize::new(0)).collect();
        let card = Arc::new(Card { bus, name, number: found.number, losses, steered });
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
        if self.has_all_groups.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|joined| *joined != group);
        if join {
            groups.push(group);
        }
        let count = u32::try_from(groups.len()).unwrap_or(u32::MAX);
        // SAFETY: the port is open, and so many addresses are there.
        let result = unsafe { ffi::namehop_nic_set_groups(self.card.number, groups.as_ptr(), count) };
        DpdkError::check(result, || "set multicast groups of a network card".to_owned()).map(drop)
    }

    /// Receives all multicast groups from now on.
    ///
    /// # Errors
    /// When the card cannot.
    pub fn join_all(&self) -> Result<(), DpdkError> {
        self.has_all_groups.store(true, Ordering::Relaxed);
        // SAFETY: the port is open.
        let result = unsafe { ffi::namehop_nic_receive_all_groups(self.card.number) };
        DpdkError::check(result, || "receive all multicast groups on a network card".to_owned()).map(drop)
    }

    /// Receives frames for all hardware addresses from now on.
    ///
    /// # Errors
    /// When the card cannot.
    pub fn receive_everything(&self) -> Result<(), DpdkError> {
        // SAFETY: the port is open.
        let result = unsafe { ffi::namehop_nic_receive_everything(self.card.number) };
        DpdkError::check(result, || "receive frames for all addresses on a network card".to_owned()).map(drop)
    }

    /// Receives the frames of wanted VLANs from now on, whatever is in them. Cards of some drivers receive those of no others.
    ///
    /// # Errors
    /// When the card has no room for more. Then those are received that it has room for.
    pub fn receive_only(&self, wanted: &Wanted) -> Result<(), DpdkError> {
        let vlans = wanted.all_vlans();
        let mut received = self.vlans.lock().unwrap_or_else(PoisonError::into_inner);
        let set = |vlan: u16, is_wanted: bool| {
            // SAFETY: the port is open.
            let result = unsafe { ffi::namehop_nic_receive_vlan(self.card.number, vlan, is_wanted.into()) };
            DpdkError::check(result, || format!("set VLAN {vlan} on a network card"))
        };
        for &vlan in &vlans {
            if !received.contains(&vlan) {
                set(vlan, true)?;
                received.push(vlan);
            }
        }
        // What comes of a VLAN that could not be left belongs to no face.
        received.retain(|vlan| vlans.contains(vlan) || set(*vlan, false).is_err());
        Ok(())
    }

    /// Has the card put the frames of a flow into one of its queues, and says into which: the one that has fewest flows. `None` when
    /// there is only one queue, or the card spreads such frames over all of them.
    ///
    /// # Errors
    /// When the card cannot. Frames come as before then.
    pub fn steer(&self, flow: Flow) -> Result<Option<u16>, DpdkError> {
        let is_spread = self.spreads && matches!(flow.origin, Origin::Udp { .. });
        if self.card.steered.len() < 2 || is_spread {
            return Ok(None);
        }
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.add(self.card.number, flow, &self.card.steered).map(Some)
    }

    /// The frames of a flow come as those of others again.
    ///
    /// # Errors
    /// When the card cannot forget them.
    pub fn release(&self, flow: &Flow) -> Result<(), DpdkError> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.remove(self.card.number, flow, &self.card.steered)
    }

    /// Frames lost since the port was opened.
    pub fn losses(&self) -> Losses {
        let mut counted = ffi::NicLosses::default();
        // SAFETY: the port is open.
        unsafe { ffi::namehop_nic_losses(self.card.number, &mut counted) };
        let own: Losses = self.card.losses.iter().map(LossCounters::read).sum();
        Losses {
            receive_ring_full: counted.ring_full,
            no_buffer: own.no_buffer + counted.no_buffer,
            malformed: own.malformed + counted.malformed,
            send_failed: own.send_failed + counted.send_failed,
        }
    }
}

/// Frames that fit into each queue of a port with so many for each direction when there are so many packets of its size.
fn slots(packets: usize, queues: usize) -> u16 {
    let share = (packets / (2 * queues * SHARE_OF_PACKETS)).clamp(MIN_SLOTS, SLOTS);
    // A power of two, at most `SLOTS`.
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
        // There is one for each queue.
        &self.card.losses[usize::from(self.number)]
    }

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
                self.losses().no_buffer.add(1);
            }
            copy.map(|copy| *frame = copy).is_some()
        });
    }
}

impl PortQueue for NicQueue {
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        thread::register();
        let before = frames.len();
        frames.reserve(BURST);
        let mut malformed = 0;
        // SAFETY: there is room for `BURST` more; the driver fills in mbufs of one segment that are ours from now on.
        unsafe {
            let end = frames.as_mut_ptr().add(before).cast();
            let count = ffi::namehop_nic_receive(self.card.number, self.number, end, BURST as u16, &mut malformed);
            frames.set_len(before + usize::from(count));
        }
        if malformed > 0 {
            self.losses().malformed.add(malformed as usize);
        }
        frames[before..].iter_mut().for_each(take_off_priority_tag);
    }

    /// None that is known where the driver cannot tell.
    fn waiting(&self) -> usize {
        // SAFETY: the queue is one of the card's, which is open as long as this is there.
        unsafe { ffi::namehop_nic_waiting(self.card.number, self.number).into() }
    }

    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        if !frames.iter().all(PacketBuffer::is_from_mempool) {
            self.move_to_mempool(frames);
        }
        let mut sent = 0;
        while sent < frames.len() {
            let count = (frames.len() - sent).min(BURST);
            // SAFETY: so many mbufs are there; those that the driver takes are forgotten below.
            let taken = unsafe {
                let first = frames.as_mut_ptr().add(sent).cast();
                ffi::namehop_nic_send(self.card.number, self.number, first, count as u16)
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
