//! Steering: rules by which a card with several receive queues puts the frames of one sender into one of them (rte_flow).
//!
//! Cards spread packets of UDP by themselves (receive-side scaling), but know nothing of NDN, whose frames they put into the first queue.
//! With a rule for each sender, those of different senders go to different queues, and so to different workers. A card that does not
//! know such rules, or has no room for more, is as before: whoever reads a queue takes what comes to it, so a rule that is missing
//! costs a hand-over and never a frame.

use std::ffi::{CStr, c_char};
use std::net::IpAddr;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::DpdkError;
use crate::ffi;

/// Longest reason that a driver gives.
const REASON_BYTES: usize = 200;

/// What the frames of one sender have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// The VLAN that they are in; `None` without a tag.
    pub vlan: Option<u16>,
    /// Who sends them.
    pub origin: Origin,
}

/// Who sends frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// NDN right above Ethernet, from this hardware address.
    Ethernet([u8; 6]),
    /// Packets of UDP.
    Udp {
        /// Where they are from.
        source: IpAddr,
        /// Where they go, an address of the same family.
        destination: IpAddr,
        /// From which port; `None`: from any.
        source_port: Option<u16>,
        /// To which port.
        destination_port: u16,
    },
}

/// A rule that the card has.
#[derive(Debug)]
struct Rule {
    flow: Flow,
    queue: u16,
    handle: NonNull<ffi::RawFlow>,
}

// SAFETY: the driver takes a handle from every thread, and only one at a time has it.
unsafe impl Send for Rule {}

/// The rules of a card. They go with it.
#[derive(Debug, Default)]
pub(crate) struct Rules(Vec<Rule>);

impl Rules {
    /// Has the card with this number put the frames of a flow into the queue that has fewest flows; `steered` counts those of each queue.
    /// Gives the queue.
    ///
    /// # Errors
    /// When the card cannot.
    pub(crate) fn add(&mut self, number: u16, flow: Flow, steered: &[AtomicUsize]) -> Result<u16, DpdkError> {
        if let Some(rule) = self.0.iter().find(|rule| rule.flow == flow) {
            return Ok(rule.queue);
        }
        let least = (0..).zip(steered).min_by_key(|(_, count)| count.load(Ordering::Relaxed));
        let queue = least.map_or(0, |(queue, _)| queue);
        let raw = ffi::NicRule::new(&flow, queue);
        let (mut handle, mut reason) = (null_mut(), [0 as c_char; REASON_BYTES]);
        // SAFETY: the port is open, the rule lives, and there is room for a text of this length with its end.
        let result = unsafe { ffi::namehop_nic_add_rule(number, &raw, &mut handle, reason.as_mut_ptr(), reason.len()) };
        let handle = NonNull::new(handle).filter(|_| result == 0).ok_or_else(|| {
            // SAFETY: the text ends with a zero.
            let reason = unsafe { CStr::from_ptr(reason.as_ptr()) }.to_string_lossy().into_owned();
            DpdkError::refused(format!("steer frames to queue {queue} ({reason})"), result)
        })?;
        steered[usize::from(queue)].fetch_add(1, Ordering::Relaxed);
        self.0.push(Rule { flow, queue, handle });
        Ok(queue)
    }

    /// Takes the rule for a flow away, if there is one.
    ///
    /// # Errors
    /// When the card cannot; then it goes on as before, and the rule is forgotten.
    pub(crate) fn remove(&mut self, number: u16, flow: &Flow, steered: &[AtomicUsize]) -> Result<(), DpdkError> {
        let Some(place) = self.0.iter().position(|rule| rule.flow == *flow) else { return Ok(()) };
        let rule = self.0.swap_remove(place);
        steered[usize::from(rule.queue)].fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the port is open, and the rule is one of its own that nobody else has.
        let result = unsafe { ffi::namehop_nic_remove_rule(number, rule.handle.as_ptr()) };
        DpdkError::check(result, || "remove a rule for frames".to_owned()).map(drop)
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
