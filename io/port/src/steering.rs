//! Steering: rules that direct the frames of one sender to one receive queue of a card (rte_flow).
//!
//! Receive-side scaling spreads UDP packets, but cards do not know NDN and put NDN frames into the first queue. With
//! one rule per sender, different senders use different queues, and so different workers. If a card does not support
//! rules, or has no room for more, frames arrive as without steering: a missing rule costs a transfer between workers,
//! but never drops a frame.

use std::ffi::{CStr, c_char};
use std::net::IpAddr;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::DpdkError;
use crate::ffi::{self, Functions};

/// Longest reason of a driver, in bytes.
const REASON_BYTES: usize = 200;

/// Properties that the frames of one sender have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Their VLAN; `None` for untagged frames.
    pub vlan: Option<u16>,
    /// Their sender.
    pub origin: Origin,
}

/// A sender of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// NDN directly over Ethernet, from this hardware address.
    Ethernet([u8; 6]),
    /// UDP packets.
    Udp {
        /// Source address.
        source: IpAddr,
        /// Destination address, of the same family.
        destination: IpAddr,
        /// Source port; `None` matches any.
        source_port: Option<u16>,
        /// Destination port.
        destination_port: u16,
    },
}

/// A rule that is installed in the card.
#[derive(Debug)]
struct Rule {
    flow: Flow,
    queue: u16,
    handle: NonNull<ffi::RawFlow>,
}

// SAFETY: the driver accepts a handle from every thread, and only one thread has it at a time.
unsafe impl Send for Rule {}

/// The rules of a card. Closing the card removes them.
#[derive(Debug, Default)]
pub(crate) struct Rules(Vec<Rule>);

impl Rules {
    /// Steers the frames of a flow, on the card with this port number, to the queue with the fewest flows. `steered`
    /// counts the flows of each queue. Returns the queue.
    ///
    /// # Errors
    /// Fails if the card does not support the rule or has no room for it.
    pub(crate) fn add(
        &mut self,
        shim: &Functions,
        number: u16,
        flow: Flow,
        steered: &[AtomicUsize],
    ) -> Result<u16, DpdkError> {
        if let Some(rule) = self.0.iter().find(|rule| rule.flow == flow) {
            return Ok(rule.queue);
        }
        let least = (0..).zip(steered).min_by_key(|(_, count)| count.load(Ordering::Relaxed));
        let queue = least.map_or(0, |(queue, _)| queue);
        let raw = ffi::NicRule::new(&flow, queue);
        let (mut handle, mut reason) = (null_mut(), [0 as c_char; REASON_BYTES]);
        // SAFETY: the port is open, the rule outlives the call, and there is room for a text of this length with its
        // final zero byte.
        let result = unsafe { (shim.nic_add_rule)(number, &raw, &mut handle, reason.as_mut_ptr(), reason.len()) };
        let handle = NonNull::new(handle).filter(|_| result == 0).ok_or_else(|| {
            // SAFETY: the text ends with a zero byte.
            let reason = unsafe { CStr::from_ptr(reason.as_ptr()) }.to_string_lossy().into_owned();
            DpdkError::refused(format!("steer frames to queue {queue} ({reason})"), result)
        })?;
        steered[usize::from(queue)].fetch_add(1, Ordering::Relaxed);
        self.0.push(Rule { flow, queue, handle });
        Ok(queue)
    }

    /// Removes the rule for a flow, if there is one.
    ///
    /// # Errors
    /// Fails if the card cannot remove it; the card then keeps the rule, but it is forgotten here.
    pub(crate) fn remove(
        &mut self,
        shim: &Functions,
        number: u16,
        flow: &Flow,
        steered: &[AtomicUsize],
    ) -> Result<(), DpdkError> {
        let Some(place) = self.0.iter().position(|rule| rule.flow == *flow) else { return Ok(()) };
        let rule = self.0.swap_remove(place);
        steered[usize::from(rule.queue)].fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the port is open, and the rule is one of its own; the handle has no other user.
        let result = unsafe { (shim.nic_remove_rule)(number, rule.handle.as_ptr()) };
        DpdkError::check(result, || "remove a steering rule".to_owned()).map(drop)
    }
}

impl ffi::NicRule {
    fn new(flow: &Flow, queue: u16) -> Self {
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => {
                let mut octets = [0; 16];
                octets[..4].copy_from_slice(&address.octets());
                octets
            }
            IpAddr::V6(address) => address.octets(),
        };
        let rule = ffi::NicRule { queue, vlan: flow.vlan.unwrap_or(0), ..ffi::NicRule::default() };
        match flow.origin {
            Origin::Ethernet(hardware_source) => ffi::NicRule { hardware_source, ..rule },
            Origin::Udp { source, destination, source_port, destination_port } => ffi::NicRule {
                ip_version: if source.is_ipv4() { 4 } else { 6 },
                source: octets(source),
                destination: octets(destination),
                source_port: source_port.unwrap_or(0),
                destination_port,
                ..rule
            },
        }
    }
}
