//! Which frames of an interface a port wants besides NDN frames without a tag. From it come the filters that the kernel applies, so
//! that the other traffic of a shared interface never reaches a port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::DpdkError;

/// Ethernet types.
pub(crate) const ETHERTYPE_NDN: u16 = 0x8624;
pub(crate) const ETHERTYPE_VLAN: u16 = 0x8100;
pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_ARP: u16 = 0x0806;
pub(crate) const ETHERTYPE_IPV6: u16 = 0x86DD;
/// The bits of a tag that are the VLAN.
pub(crate) const VLAN_BITS: u16 = 0x0FFF;
/// Where addresses stand that packets without a tag are for.
pub(crate) const DESTINATION_V4: u16 = 30;
pub(crate) const TARGET_OF_ARP: u16 = 38;
pub(crate) const DESTINATION_V6: u16 = 38;

/// VLANs whose frames a port can receive: each costs the filter two instructions for each frame.
pub const MAX_VLANS: usize = 256;
/// Internet addresses that a port can have: each costs the filter up to eighteen instructions for each packet of the Internet.
pub const MAX_ADDRESSES: usize = 16;

/// What passes the filter besides NDN frames without a tag.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    vlans: Vec<u16>,
    addresses: Vec<IpAddr>,
}

impl Wanted {
    /// The same with these VLANs, and no others.
    ///
    /// # Errors
    /// When there are more than [`MAX_VLANS`].
    pub(crate) fn with_vlans(&self, vlans: &[u16]) -> Result<Wanted, DpdkError> {
        if vlans.len() > MAX_VLANS {
            return Err(DpdkError::Unusable(format!("an interface can have faces in at most {MAX_VLANS} VLANs")));
        }
        Ok(Wanted { vlans: vlans.to_vec(), ..self.clone() })
    }

    /// The same with these Internet addresses, and no others.
    ///
    /// # Errors
    /// When there are more than [`MAX_ADDRESSES`].
    pub(crate) fn with_addresses(&self, addresses: &[IpAddr]) -> Result<Wanted, DpdkError> {
        if addresses.len() > MAX_ADDRESSES {
            return Err(DpdkError::Unusable(format!("an interface can have at most {MAX_ADDRESSES} addresses")));
        }
        Ok(Wanted { addresses: addresses.to_vec(), ..self.clone() })
    }

    pub(crate) fn vlans(&self) -> &[u16] {
        &self.vlans
    }

    /// Where packets of IPv4 are for.
    pub(crate) fn v4(&self) -> Vec<Ipv4Addr> {
        let v4 = |address: &IpAddr| if let IpAddr::V4(v4) = address { Some(*v4) } else { None };
        self.addresses.iter().filter_map(v4).collect()
    }

    /// Where packets of IPv6 are for: addresses, and the groups in which solicitations for them come; each as four numbers.
    pub(crate) fn v6(&self) -> Vec<[u32; 4]> {
        let v6 = |address: &IpAddr| if let IpAddr::V6(v6) = address { Some(*v6) } else { None };
        let with_group = |address: Ipv6Addr| {
            let words = [96, 64, 32, 0].map(|shift| (address.to_bits() >> shift) as u32);
            [words, [0xFF02_0000, 0, 1, 0xFF00_0000 | words[3] & 0xFF_FFFF]]
        };
        self.addresses.iter().filter_map(v6).flat_map(with_group).collect()
    }
}
