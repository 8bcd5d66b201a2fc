//! Addresses on links: hardware addresses and VLANs. Face URIs name them, and encapsulations read
//! them from headers.

use std::fmt;
use std::num::NonZeroU16;

/// A hardware address.
pub type MacAddress = [u8; 6];

/// Whether the address is that of a multicast group (or the broadcast address).
pub const fn is_group(address: &MacAddress) -> bool {
    address[0] & 1 == 1
}

/// The largest identifier of a VLAN; 4095 is reserved.
const MAX_VLAN: u16 = 4094;

/// Identifier of a VLAN: 1 to 4094.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VlanId(NonZeroU16);

impl VlanId {
    /// Returns the VLAN with this identifier; `None` if it is out of range.
    pub const fn new(identifier: u16) -> Option<VlanId> {
        match NonZeroU16::new(identifier) {
            Some(identifier) if identifier.get() <= MAX_VLAN => Some(VlanId(identifier)),
            _ => None,
        }
    }

    /// Returns the identifier.
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

impl fmt::Display for VlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
