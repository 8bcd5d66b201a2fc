//! Open ports: the device for the thread that manages the port, and the queues for workers.

use std::fmt;

use namehop_face::address::MacAddress;
use namehop_packet::PortQueue;

use crate::error::DpdkError;
use crate::losses::Losses;
use crate::steering::Flow;
use crate::wanted::Wanted;

/// The device of an open port, for the thread that manages the port. It closes when it and all its queues are dropped.
pub trait Device: Send {
    /// Returns whether the link is up.
    fn is_up(&self) -> bool;

    /// Returns the frames lost since the device was opened.
    fn losses(&self) -> Losses;

    /// Returns whether the device is still the one that was opened.
    fn presence(&self) -> Presence {
        Presence::Present
    }

    /// Returns whether a peer is connected, without a system call. Devices that cannot tell return true.
    fn is_connected(&self) -> bool {
        true
    }

    /// Starts the delivery of frames, where the device waits for that.
    fn start(&self) {}

    /// Returns whether all frames were delivered and written; only a capture ends.
    fn is_done(&self) -> bool {
        false
    }

    /// Returns why the link does not work, if the device found a reason since the last call.
    fn take_trouble(&self) -> Option<String> {
        None
    }

    /// Joins or leaves an Ethernet multicast group, on devices that do not receive all groups.
    ///
    /// # Errors
    /// If the kernel or the card refuses.
    fn join(&self, _group: MacAddress, _join: bool) -> Result<(), DpdkError> {
        Ok(())
    }

    /// Joins all Ethernet multicast groups, on devices that do not receive all groups.
    ///
    /// # Errors
    /// If the card refuses.
    fn join_all(&self) -> Result<(), DpdkError> {
        Ok(())
    }

    /// Steers the frames of a flow to one queue and returns its number. `None` if the device spreads flows itself or
    /// cannot steer.
    ///
    /// # Errors
    /// If the card refuses the rule.
    fn steer(&self, _flow: Flow) -> Result<Option<u16>, DpdkError> {
        Ok(None)
    }

    /// Stops steering a flow.
    ///
    /// # Errors
    /// If the card refuses.
    fn release(&self, _flow: &Flow) -> Result<(), DpdkError> {
        Ok(())
    }

    /// Sets the filter: the device receives `wanted` besides untagged NDN frames, and nothing else as far as it can
    /// filter.
    ///
    /// # Errors
    /// If the kernel or the card refuses.
    fn receive_only(&self, _wanted: &Wanted) -> Result<(), DpdkError> {
        Ok(())
    }

    /// Removes the filter: the device receives every frame.
    ///
    /// # Errors
    /// If the kernel or the card refuses.
    fn receive_everything(&self) -> Result<(), DpdkError> {
        Ok(())
    }
}

/// Whether a device is still the one that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Present,
    /// It was replaced, or its address or MTU changed: it must be closed and opened again.
    Changed,
    /// It was removed: it must be closed now, and opened again when it is back.
    Removed,
}

/// An open port.
pub struct OpenPort {
    /// For the thread that manages the port.
    pub device: Box<dyn Device>,
    /// The workers' ends, at least one.
    pub queues: Vec<Box<dyn PortQueue>>,
    /// How frames are spread over the queues.
    pub spread: Spread,
    /// Hardware address.
    pub address: MacAddress,
    /// Largest packet behind the header of a frame, in bytes.
    pub mtu_bytes: usize,
}

/// How frames are spread over the queues of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// There is one queue.
    OneQueue,
    /// UDP packets by addresses and ports, all others to the first queue.
    ByPorts,
    /// By the device's own rules.
    ByDevice,
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Spread::OneQueue => "not at all",
            Spread::ByPorts => "UDP packets by addresses and ports, all others to the first queue",
            Spread::ByDevice => "by the device's own rules",
        })
    }
}

/// Boxes the queues of a port.
pub(super) fn boxed<Q: PortQueue>(queues: impl IntoIterator<Item = Q>) -> Vec<Box<dyn PortQueue>> {
    queues.into_iter().map(|queue| Box::new(queue) as Box<dyn PortQueue>).collect()
}

/// Makes a unicast, locally administered hardware address of a number.
pub(super) fn local_address(number: u64) -> MacAddress {
    let [_, rest @ .., _, _] = number.to_le_bytes();
    let mut address = [0x02; 6];
    address[1..].copy_from_slice(&rest);
    address
}
