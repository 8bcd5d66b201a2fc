//! The frames that a port wants besides untagged NDN frames. The filters in the kernel are built from it, so that other
//! traffic of a shared interface never reaches the port.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::DpdkError;

/// Ethernet types.
pub(crate) const ETHERTYPE_NDN: u16 = 0x8624;
pub(crate) const ETHERTYPE_VLAN: u16 = 0x8100;
pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_ARP: u16 = 0x0806;
pub(crate) const ETHERTYPE_IPV6: u16 = 0x86DD;
/// The VLAN bits of a tag.
pub(crate) const VLAN_BITS: u16 = 0x0FFF;
/// Offsets of the destination address in untagged frames, in bytes.
pub(crate) const DESTINATION_V4: u16 = 30;
pub(crate) const TARGET_OF_ARP: u16 = 38;
pub(crate) const DESTINATION_V6: u16 = 38;

/// Maximum number of VLANs that a port can receive: each adds two filter instructions per frame.
pub const MAX_VLANS: usize = 256;
/// Maximum number of IP addresses of a port, in all VLANs together: each adds up to eighteen filter instructions per IP
/// packet.
pub const MAX_ADDRESSES: usize = 64;

/// Frames that pass the filter besides untagged NDN frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    is_everything: bool,
    vlans: Vec<u16>,
    /// Each with its VLAN; `None` for untagged frames.
    addresses: Vec<(Option<u16>, IpAddr)>,
}

impl Wanted {
    /// Wants the NDN frames of these VLANs, and packets to these IP addresses, each in its VLAN or untagged: IPv4,
    /// IPv6, ARP, and neighbour solicitations.
    ///
    /// # Errors
    /// Fails for more than [`MAX_VLANS`] VLANs or [`MAX_ADDRESSES`] addresses.
    pub fn new(vlans: &[u16], addresses: &[(Option<u16>, IpAddr)]) -> Result<Wanted, DpdkError> {
        if vlans.len() > MAX_VLANS {
            return Err(DpdkError::Unusable(format!("an interface can have faces in at most {MAX_VLANS} VLANs")));
        }
        if addresses.len() > MAX_ADDRESSES {
            return Err(DpdkError::Unusable(format!("an interface can have at most {MAX_ADDRESSES} addresses")));
        }
        Ok(Wanted { is_everything: false, vlans: vlans.to_vec(), addresses: addresses.to_vec() })
    }

    /// Wants every frame.
    pub fn everything() -> Wanted {
        Wanted { is_everything: true, ..Wanted::default() }
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.is_everything
    }

    /// VLANs that NDN frames are wanted from.
    pub(crate) fn vlans(&self) -> &[u16] {
        &self.vlans
    }

    /// The VLANs that have addresses; `None` stands for untagged frames and comes first.
    pub(crate) fn networks(&self) -> BTreeSet<Option<u16>> {
        self.addresses.iter().map(|(vlan, _)| *vlan).collect()
    }

    /// All VLANs from which frames are wanted.
    pub(crate) fn all_vlans(&self) -> BTreeSet<u16> {
        self.networks().into_iter().flatten().chain(self.vlans.iter().copied()).collect()
    }

    fn addresses_in(&self, vlan: Option<u16>) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().filter(move |(network, _)| *network == vlan).map(|(_, address)| *address)
    }

    /// Wanted IPv4 addresses of a VLAN, or of untagged frames.
    pub(crate) fn v4(&self, vlan: Option<u16>) -> Vec<Ipv4Addr> {
        let v4 = |address| if let IpAddr::V4(v4) = address { Some(v4) } else { None };
        self.addresses_in(vlan).filter_map(v4).collect()
    }

    /// Wanted IPv6 destinations: the addresses, and their solicited-node multicast groups, each as four 32-bit words.
    pub(crate) fn v6(&self, vlan: Option<u16>) -> Vec<[u32; 4]> {
        let v6 = |address| if let IpAddr::V6(v6) = address { Some(v6) } else { None };
        let with_group = |address: Ipv6Addr| {
            let words = [96, 64, 32, 0].map(|shift| (address.to_bits() >> shift) as u32);
            [words, [0xFF02_0000, 0, 1, 0xFF00_0000 | words[3] & 0xFF_FFFF]]
        };
        self.addresses_in(vlan).filter_map(v6).flat_map(with_group).collect()
    }
}
