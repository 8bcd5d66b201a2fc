//! Which frames of an interface a port wants besides NDN frames without a tag. From it come the filters that the kernel applies, so
//! that the other traffic of a shared interface never reaches a port.

use std::collections::BTreeSet;
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
/// Internet addresses that a port can have, in all VLANs together: each costs the filter up to eighteen instructions for each packet of
/// the Internet.
pub const MAX_ADDRESSES: usize = 64;

/// What passes the filter besides NDN frames without a tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    is_everything: bool,
    vlans: Vec<u16>,
    /// With the VLAN that each is in; `None` without a tag.
    addresses: Vec<(Option<u16>, IpAddr)>,
}

impl Wanted {
    /// The NDN frames of these VLANs, and packets for these Internet addresses, each in a VLAN or without a tag: IPv4, IPv6, ARP, and
    /// solicitations of neighbour discovery.
    ///
    /// # Errors
    /// When there are more than [`MAX_VLANS`] or [`MAX_ADDRESSES`].
    pub fn new(vlans: &[u16], addresses: &[(Option<u16>, IpAddr)]) -> Result<Wanted, DpdkError> {
        if vlans.len() > MAX_VLANS {
            return Err(DpdkError::Unusable(format!("an interface can have faces in at most {MAX_VLANS} VLANs")));
        }
        if addresses.len() > MAX_ADDRESSES {
            return Err(DpdkError::Unusable(format!("an interface can have at most {MAX_ADDRESSES} addresses")));
        }
        Ok(Wanted { is_everything: false, vlans: vlans.to_vec(), addresses: addresses.to_vec() })
    }

    /// Every frame, whatever is in it and whoever it is for.
    pub fn everything() -> Wanted {
        Wanted { is_everything: true, ..Wanted::default() }
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.is_everything
    }

    /// Where NDN frames are wanted besides those without a tag.
    pub(crate) fn vlans(&self) -> &[u16] {
        &self.vlans
    }

    /// The VLANs in which there are addresses; `None` stands for frames without a tag, and comes first.
    pub(crate) fn networks(&self) -> BTreeSet<Option<u16>> {
        self.addresses.iter().map(|(vlan, _)| *vlan).collect()
    }

    /// All VLANs in which something is wanted.
    pub(crate) fn all_vlans(&self) -> BTreeSet<u16> {
        self.networks().into_iter().flatten().chain(self.vlans.iter().copied()).collect()
    }

    fn addresses_in(&self, vlan: Option<u16>) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().filter(move |(network, _)| *network == vlan).map(|(_, address)| *address)
    }

    /// Where packets of IPv4 are for in a VLAN, or without a tag.
    pub(crate) fn v4(&self, vlan: Option<u16>) -> Vec<Ipv4Addr> {
        let v4 = |address| if let IpAddr::V4(v4) = address { Some(v4) } else { None };
        self.addresses_in(vlan).filter_map(v4).collect()
    }

    /// Where packets of IPv6 are for: addresses, and the groups in which solicitations for them come; each as four numbers.
    pub(crate) fn v6(&self, vlan: Option<u16>) -> Vec<[u32; 4]> {
        let v6 = |address| if let IpAddr::V6(v6) = address { Some(v6) } else { None };
        let with_group = |address: Ipv6Addr| {
            let words = [96, 64, 32, 0].map(|shift| (address.to_bits() >> shift) as u32);
            [words, [0xFF02_0000, 0, 1, 0xFF00_0000 | words[3] & 0xFF_FFFF]]
        };
        self.addresses_in(vlan).filter_map(v6).flat_map(with_group).collect()
    }
}
