//! Addresses of the links of consumers and producers: a forwarder's socket, or a port as in routers.

use std::fmt;
use std::str::FromStr;

use namehop_client::target::TransportUri;
use namehop_face::FaceUri;
use namehop_face::registry::MIN_MTU_BYTES;
use namehop_port::drivers::{self, Driver};
use namehop_port::encapsulation::{FacePeer, Peer};
use namehop_wire::MAX_PACKET_SIZE;

/// Address of a link in one URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkUri {
    /// A forwarder's socket.
    Socket(TransportUri),
    /// The remote end of a face on a port.
    Port(FaceUri),
}

impl FromStr for LinkUri {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
        if scheme == "ether" || drivers::DRIVERS.iter().any(|driver| is_bare(driver) && driver.scheme.name == scheme) {
            return drivers::parse_uri(text).map(LinkUri::Port).map_err(|error| error.to_string());
        }
        text.parse().map(LinkUri::Socket).map_err(|error| {
            let ports = drivers::forms(is_bare);
            format!("{error}; or a port: {ports}, ether://[ADDRESS] with local = \"dev://INTERFACE\"")
        })
    }
}

/// Whether ports of this driver imply both ends of a link.
fn is_bare(driver: &Driver) -> bool {
    driver.scheme.can_be_bare
}

/// Address of a link, with everything needed to open it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkAddress {
    /// A forwarder's socket.
    Socket(TransportUri),
    /// A face on a port.
    Port(PortAddress),
}

impl LinkAddress {
    /// Creates the address of a link to `uri`. `local` is the port, required unless `uri` implies it. `mtu_bytes` is
    /// the MTU of the link.
    ///
    /// # Errors
    /// Fails if the parts do not fit together, or consumers and producers cannot use such a link.
    pub fn new(uri: LinkUri, local: Option<FaceUri>, mtu_bytes: Option<usize>) -> Result<LinkAddress, String> {
        match uri {
            LinkUri::Port(remote) => PortAddress::new(remote, local, mtu_bytes).map(LinkAddress::Port),
            LinkUri::Socket(uri) if local.is_some() || mtu_bytes.is_some() => {
                Err(format!("local and mtu are for links over ports, but {uri} is a socket"))
            }
            LinkUri::Socket(uri) => Ok(LinkAddress::Socket(uri)),
        }
    }
}

impl fmt::Display for LinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkAddress::Socket(uri) => uri.fmt(f),
            LinkAddress::Port(address) => address.fmt(f),
        }
    }
}

/// The two ends of a link over a port, like the ends of a router's face.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortAddress {
    remote: FaceUri,
    local: FaceUri,
    peer: Peer,
    mtu_bytes: Option<usize>,
}

impl PortAddress {
    /// Creates an address: a port with bare packets, which implies its local end, or an Ethernet address reached
    /// through the port `local`. Without `mtu_bytes` the port's MTU applies.
    ///
    /// # Errors
    /// Returns which part is missing or wrong.
    pub fn new(remote: FaceUri, local: Option<FaceUri>, mtu_bytes: Option<usize>) -> Result<PortAddress, String> {
        let local = match (&remote, local) {
            (_, Some(local)) => local,
            (remote, None) if remote.is_bare_port() => remote.clone(),
            (_, None) => {
                let ports = drivers::DRIVERS.iter().filter(|driver| driver.traits.uses_interface);
                let ports: Vec<String> = ports.map(|driver| format!("\"{}\"", driver.form)).collect();
                return Err(format!("{remote} needs a port: local = {}", ports.join(" or ")));
            }
        };
        if !Driver::traits_of(&local).has_peer {
            return Err(format!("{local} cannot be used by consumers and producers: it is not a port with a peer"));
        }
        if mtu_bytes.is_some_and(|bytes| !(MIN_MTU_BYTES..=MAX_PACKET_SIZE).contains(&bytes)) {
            return Err(format!("the MTU must be between {MIN_MTU_BYTES} and {MAX_PACKET_SIZE} bytes"));
        }
        match FacePeer::of(&remote, &local) {
            Some(FacePeer::Link(peer)) => Ok(PortAddress { remote, local, peer, mtu_bytes }),
            _ => Err(format!(
                "cannot link {local} to {remote}: give {}, or ether://[ADDRESS] through a port",
                drivers::forms(is_bare)
            )),
        }
    }

    /// Returns the remote end.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Returns the port's URI.
    pub fn local(&self) -> &FaceUri {
        &self.local
    }

    /// Returns the configured MTU in bytes, if any.
    pub fn mtu_bytes(&self) -> Option<usize> {
        self.mtu_bytes
    }
}

impl fmt::Display for PortAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remote == self.local {
            true => self.remote.fmt(f),
            false => write!(f, "{} through {}", self.remote, self.local),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(uri: &str, local: Option<&str>, mtu_bytes: Option<usize>) -> Result<String, String> {
        let local = local.map(|local| drivers::parse_uri(local).expect("a face URI"));
        LinkAddress::new(uri.parse()?, local, mtu_bytes).map(|address| address.to_string())
    }

    #[test]
    fn links_are_named_as_faces_are() {
        for (uri, local, shown) in [
            ("unix:///run/nfd/nfd.sock", None, "unix:///run/nfd/nfd.sock"),
            ("memif:///run/ndn/x.sock?id=3&role=client", None, "memif:///run/ndn/x.sock?id=3&role=client"),
            (
                "ether://[02:00:00:00:00:01]",
                Some("dev://eth1?vlan=7"),
                "ether://[02:00:00:00:00:01] through dev://eth1?vlan=7",
            ),
            ("ether://[02:00:00:00:00:01]", Some("xdp://eth1"), "ether://[02:00:00:00:00:01] through xdp://eth1"),
        ] {
            assert_eq!(address(uri, local, None).as_deref(), Ok(shown));
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_what_would() {
        for (uri, local, mtu_bytes, said) in [
            ("ether://[02:00:00:00:00:01]", None, None, "dev://INTERFACE"),
            ("ether://[02:00:00:00:00:01]", Some("pcap:///in.pcap"), None, "not a port with a peer"),
            ("ether://[02:00:00:00:00:01]", Some("dev://eth1?ip=192.0.2.1"), None, "cannot link"),
            ("ether://02:00:00:00:00:01", Some("dev://eth1"), None, "brackets"),
            ("memif:///x.sock", None, None, "?id="),
            ("memif:///x.sock?id=0", Some("dev://eth1"), None, "cannot link"),
            ("memif:///x.sock?id=0", None, Some(63), "between 64 and 8800"),
            ("unix:///x.sock", Some("dev://eth1"), None, "is a socket"),
            ("nonsense://x", None, None, "memif:///SOCKET?id=NUMBER"),
        ] {
            let error = address(uri, local, mtu_bytes).expect_err(uri);
            assert!(error.contains(said), "{uri}: {error}");
        }
    }
}
