//! The Internet addresses and routes of a port. Both are configured: nothing is learned from the link.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use namehop_face::address::VlanId;
use namehop_face::uri::{DEFAULT_PORT, FaceUri, Host};

/// An address of a port with its prefix length, which determines the neighbours on the link: `192.0.2.1/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortAddress {
    /// The address.
    pub address: IpAddr,
    /// Length of the prefix shared with the neighbours, in bits.
    pub prefix_bits: u8,
}

/// A port's configuration in one network on its link: in a VLAN, or untagged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortNetwork {
    /// The VLAN; `None` if untagged.
    pub vlan: Option<VlanId>,
    /// Whether unknown senders may create faces in this network.
    pub on_demand: bool,
    /// The port's own addresses.
    pub addresses: Vec<PortAddress>,
    /// Next hops for destinations that are not on the link: at most one for each address family.
    pub gateways: Vec<IpAddr>,
}

fn bits(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

impl PortAddress {
    /// Whether an address is on the link.
    pub fn contains(&self, other: IpAddr) -> bool {
        let ((own, family), (other, other_family)) = (bits(self.address), bits(other));
        // Shifting out all bits would overflow.
        family == other_family && (self.prefix_bits == 0 || (own ^ other) >> (128 - u32::from(self.prefix_bits)) == 0)
    }
}

impl PortNetwork {
    /// Returns the neighbour that packets for `remote` are sent to; `None` if there is no route.
    pub fn next_hop(&self, remote: IpAddr) -> Option<IpAddr> {
        let is_on_link = match remote {
            IpAddr::V6(address) if address.is_unicast_link_local() => true,
            remote => self.addresses.iter().any(|own| own.contains(remote)),
        };
        if is_on_link {
            return Some(remote);
        }
        self.gateways.iter().find(|gateway| gateway.is_ipv4() == remote.is_ipv4()).copied()
    }

    /// Whether this is one of the port's addresses.
    pub fn has(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.address == address)
    }

    /// Returns the default source address of packets to `remote`: one on the same link, else the first of its family.
    pub fn source_for(&self, remote: IpAddr) -> Option<IpAddr> {
        let of_family = |own: &&PortAddress| own.address.is_ipv4() == remote.is_ipv4();
        let on_link = self.addresses.iter().find(|own| own.contains(remote));
        on_link.or_else(|| self.addresses.iter().find(of_family)).map(|own| own.address)
    }

    /// Returns the local URI of the face from this port to `remote`, a UDP or VXLAN URI, with all options that `local`
    /// leaves open.
    ///
    /// # Errors
    /// The reason why there can be no such face.
    pub fn complete(&self, remote: &FaceUri, local: &FaceUri) -> Result<FaceUri, String> {
        let Some(mut options) = local.options().copied() else {
            return Err(format!(
                "a face to {remote} needs a network interface or shared memory as its local URI, not {local}"
            ));
        };
        let network = local.network();
        let to = match remote {
            FaceUri::Tunnel(tunnel) => tunnel.address,
            other => match other.host_port().map(|at| &at.host) {
                Some(Host::V4(address)) => IpAddr::V4(*address),
                Some(Host::V6 { address, .. }) => IpAddr::V6(*address),
                _ => return Err(format!("{remote} has no numeric address")),
            },
        };
        if self.has(to) {
            return Err(format!("{to} is an address of {network} itself: use the address of the peer"));
        }
        let Some(address) = options.address.or_else(|| self.source_for(to)) else {
            return Err(format!(
                "{network} has no address for sending to {to}: add one to `addresses` in its [[port]] of the \
                 configuration"
            ));
        };
        if !self.has(address) {
            return Err(format!(
                "{network} has no address {address}: add it to `addresses` in its [[port]] of the configuration"
            ));
        }
        if options.next_hop.is_none() && self.next_hop(to).is_none() {
            return Err(format!(
                "{to} is not on the link of {network}: add a gateway with `gateways` in its [[port]] of the \
                 configuration, or set mac= in the local URI"
            ));
        }
        options.address = Some(address);
        if matches!(remote, FaceUri::Udp { .. }) {
            options.port.get_or_insert(DEFAULT_PORT);
        }
        Ok(local.with_options(options))
    }
}

impl fmt::Display for PortAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}

impl FromStr for PortAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<PortAddress, String> {
        let refuse = || {
            format!(
                "`{text}` is not an address with the length of its prefix; \
                 write for example \"192.0.2.1/24\" or \"2001:db8::1/64\""
            )
        };
        let (address, length) = text.split_once('/').ok_or_else(refuse)?;
        let address: IpAddr = address.parse().map_err(|_| refuse())?;
        let prefix_bits: u8 = length.parse().map_err(|_| refuse())?;
        let is_usable = !address.is_unspecified()
            && !address.is_multicast()
            && !address.is_loopback()
            && address.to_canonical() == address
            && address != IpAddr::V4(std::net::Ipv4Addr::BROADCAST)
            && prefix_bits <= bits(address).1;
        if is_usable { Ok(PortAddress { address, prefix_bits }) } else { Err(refuse()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::parse_uri;

    fn uri(text: &str) -> FaceUri {
        parse_uri(text).expect(text)
    }

    fn network() -> PortNetwork {
        let addresses = ["192.0.2.1/24", "198.51.100.9/30", "2001:db8::1/64"];
        PortNetwork {
            addresses: addresses.map(|text| text.parse().expect(text)).to_vec(),
            gateways: vec!["192.0.2.254".parse().expect("address")],
            ..PortNetwork::default()
        }
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    #[test]
    fn neighbours_are_reached_directly_and_others_by_the_gateway() {
        let network = network();
        for (remote, next_hop, source) in [
            ("192.0.2.7", Some("192.0.2.7"), Some("192.0.2.1")),
            ("198.51.100.10", Some("198.51.100.10"), Some("198.51.100.9")),
            ("198.51.100.12", Some("192.0.2.254"), Some("192.0.2.1")),
            ("203.0.113.1", Some("192.0.2.254"), Some("192.0.2.1")),
            ("2001:db8::7", Some("2001:db8::7"), Some("2001:db8::1")),
            ("2001:db8:1::7", None, Some("2001:db8::1")),
            ("fe80::7", Some("fe80::7"), Some("2001:db8::1")),
        ] {
            let (to, found) = (address(remote), (next_hop.map(address), source.map(address)));
            assert_eq!((network.next_hop(to), network.source_for(to)), found, "{remote}");
        }
        assert!("0.0.0.1/0".parse::<PortAddress>().expect("address").contains(address("203.0.113.1")));
        assert!(!"192.0.2.1/0".parse::<PortAddress>().expect("address").contains(address("::1")));
    }

    #[test]
    fn what_is_no_address_of_a_port_is_refused() {
        for text in [
            "192.0.2.1",
            "192.0.2.1/33",
            "::1/64",
            "2001:db8::1/129",
            "224.0.0.1/24",
            "0.0.0.0/0",
            "x/3",
            "::ffff:192.0.2.1/128",
        ] {
            let error = text.parse::<PortAddress>().expect_err(text);
            assert!(error.contains("192.0.2.1/24"), "{error}");
        }
        assert_eq!("2001:db8::1/64".parse::<PortAddress>().expect("address").to_string(), "2001:db8::1/64");
    }

    #[test]
    fn a_local_uri_is_completed_from_the_addresses_of_the_port() {
        let network = network();
        let complete =
            |remote: &str, local: &str| network.complete(&uri(remote), &uri(local)).map(|uri| uri.to_string());
        for (remote, local, expected) in [
            ("udp4://192.0.2.7:6363", "dev://eth1", "dev://eth1?ip=192.0.2.1&port=6363"),
            (
                "udp4://198.51.100.10:1",
                "dev://eth1?source_port=name",
                "dev://eth1?ip=198.51.100.9&port=6363&source_port=name",
            ),
            ("udp4://192.0.2.7:6363", "dev://eth1?ip=198.51.100.9&port=7", "dev://eth1?ip=198.51.100.9&port=7"),
            ("udp4://192.0.2.7:6363", "dev://eth1?vlan=7", "dev://eth1?vlan=7&ip=192.0.2.1&port=6363"),
            ("udp4://192.0.2.7:6363", "memif:///a?id=1", "memif:///a?id=1&ip=192.0.2.1&port=6363"),
            ("vxlan6://[2001:db8::7]?vni=5", "dev://eth1", "dev://eth1?ip=2001:db8::1"),
            (
                "udp6://[2001:db8:1::7]:6363",
                "dev://eth1?mac=02:00:00:00:00:01",
                "dev://eth1?ip=2001:db8::1&port=6363&mac=02:00:00:00:00:01",
            ),
        ] {
            assert_eq!(complete(remote, local).as_deref(), Ok(expected));
        }
        for (remote, local, problem) in [
            ("udp6://[2001:db8:1::7]:6363", "dev://eth1", "`gateways`"),
            ("udp4://192.0.2.7:6363", "dev://eth1?ip=192.0.2.2", "`addresses`"),
            ("udp4://192.0.2.1:6363", "dev://eth1", "the address of the peer"),
            ("vxlan4://198.51.100.9?vni=5", "dev://eth1", "the address of the peer"),
            ("udp4://192.0.2.7:6363", "pcap:///a", "network interface"),
        ] {
            let error = complete(remote, local).expect_err(local);
            assert!(error.contains(problem), "{error}");
        }
        let none = PortNetwork::default();
        let error = none.complete(&uri("udp4://192.0.2.7:6363"), &uri("dev://eth1"));
        assert!(error.expect_err("the port has no address").contains("`addresses`"));
        let error = none.complete(&uri("udp4://192.0.2.7:6363"), &uri("dev://eth1?vlan=7"));
        assert!(error.expect_err("the port has no address").starts_with("dev://eth1?vlan=7 has no address"));
    }
}
