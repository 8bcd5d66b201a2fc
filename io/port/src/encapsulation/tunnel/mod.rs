//! Encapsulations in UDP, between its header and the NDN packet.
//!
//! Each is one file here with a [`TunnelKind`], its `mod` line and its line in [`TUNNELS`]. It declares its URIs, the
//! UDP port on which all hosts receive it, and the form of its header, and reads and writes that header. No other file
//! names it.

pub mod vxlan;

use std::fmt;

use namehop_face::address::MacAddress;
use namehop_face::counters::LinkDrop;
use namehop_face::uri::{TunnelScheme, TunnelUri};

use super::masks::{MAX_TUNNEL_BYTES, Words, mask};

/// All encapsulations in UDP.
pub static TUNNELS: &[&TunnelKind] = &[&vxlan::KIND];

/// The header of an encapsulation; only the first bytes of a shorter one count.
pub(crate) type TunnelHeader = [u8; MAX_TUNNEL_BYTES];

/// An encapsulation in UDP. Two are equal if their UDP ports are.
pub struct TunnelKind {
    /// The scheme of its URIs.
    pub scheme: TunnelScheme,
    /// UDP port on which all hosts receive it.
    pub port: u16,
    /// Length of its header in bytes.
    pub(crate) header_bytes: usize,
    /// Offset in its header of the sender's hardware address; `None` if it has none.
    pub(crate) source_at: Option<usize>,
    /// Writes the header of the packets that a port with this hardware address sends.
    pub(crate) write: fn(&TunnelPeer, &MacAddress) -> TunnelHeader,
    /// Reads the header of a datagram that a port with this hardware address has received.
    pub(crate) read: fn(&[u8], &MacAddress) -> Result<Inside, LinkDrop>,
    /// The compared bits of the headers of the previous datagram, by kind of headers: bit 0 IPv6, bit 1 VLAN tag.
    pub(crate) masks: [Words; 4],
}

/// Returns the masks of an encapsulation of which these bits are the same in all datagrams of a sender. The source port
/// does not identify a sender.
pub(crate) const fn masks(compared: &[u8]) -> [Words; 4] {
    [
        mask(false, false, true, compared),
        mask(false, true, true, compared),
        mask(true, false, true, compared),
        mask(true, true, true, compared),
    ]
}

/// What the header of an encapsulation says about the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inside {
    /// Number of the network.
    pub(crate) network: u32,
    /// Inner hardware address.
    pub(crate) source: Option<MacAddress>,
}

/// The other end of a face over an encapsulation, besides its IP address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunnelPeer {
    /// The encapsulation.
    pub kind: &'static TunnelKind,
    /// Number of the network.
    pub network: u32,
    /// Inner hardware address. `None`: frames are sent to the NDN multicast group, and accepted from any inner sender.
    pub inner: Option<MacAddress>,
}

impl TunnelKind {
    /// Returns the encapsulation of datagrams to this UDP port.
    #[inline]
    pub(crate) fn at(port: u16) -> Option<&'static TunnelKind> {
        TUNNELS.iter().copied().find(|kind| kind.port == port)
    }
}

impl TunnelPeer {
    /// Returns the peer of the face with this remote URI.
    pub(crate) fn of(uri: &TunnelUri) -> Option<TunnelPeer> {
        let kind = TUNNELS.iter().copied().find(|kind| kind.scheme == *uri.scheme)?;
        Some(TunnelPeer { kind, network: uri.network, inner: uri.inner })
    }
}

impl fmt::Debug for TunnelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scheme.fmt(f)
    }
}

impl PartialEq for TunnelKind {
    fn eq(&self, other: &TunnelKind) -> bool {
        self.port == other.port
    }
}

impl Eq for TunnelKind {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_encapsulation_has_a_port_and_schemes_of_its_own() {
        for kind in TUNNELS {
            let same = TUNNELS.iter().filter(|other| other.port == kind.port || other.scheme == kind.scheme);
            assert_eq!(same.count(), 1, "{kind:?}");
            assert!(kind.header_bytes <= MAX_TUNNEL_BYTES);
            let [v4, v6] = kind.scheme.names;
            let expected = kind.scheme.expected;
            assert!(expected.contains(&format!("{v4}://")) && expected.contains(&format!("{v6}://")), "{expected}");
        }
    }

    #[test]
    fn the_documentation_names_each_encapsulation() {
        let documentation = include_str!("../../../../../docs/operation.md");
        for kind in TUNNELS {
            assert!(documentation.contains(&format!("{}://", kind.scheme.names[0])), "{kind:?} in docs/operation.md");
        }
    }
}
