//! URIs of faces over an encapsulation in UDP. This module knows no encapsulation: each declares the [`TunnelScheme`]
//! of its URIs.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use super::display::Hardware;
use super::parse::is_of_one_device;
use super::{FaceUriError, UriParser};

/// The URIs of one encapsulation in UDP: `vxlan4://192.0.2.7?vni=42`. Two schemes are equal if their names are.
pub struct TunnelScheme {
    /// The schemes over IPv4 and over IPv6, in lower case: `vxlan4` and `vxlan6`.
    pub names: [&'static str; 2],
    /// The parameter with the number of the network: `vni`.
    pub network: &'static str,
    /// The largest number of a network.
    pub max_network: u32,
    /// Whether the packets inside are in Ethernet frames, so that `inner` can name the hardware address of the peer.
    pub has_inner_address: bool,
    /// The accepted form, for messages.
    pub expected: &'static str,
}

impl fmt::Debug for TunnelScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names[0])
    }
}

impl PartialEq for TunnelScheme {
    fn eq(&self, other: &TunnelScheme) -> bool {
        self.names == other.names
    }
}

impl Eq for TunnelScheme {}

impl Hash for TunnelScheme {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.names.hash(state);
    }
}

/// The remote end of a face over an encapsulation in UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TunnelUri {
    /// The encapsulation.
    pub scheme: &'static TunnelScheme,
    /// IP address of the remote end.
    pub address: IpAddr,
    /// Number of the network.
    pub network: u32,
    /// Inner hardware address; `None` for the NDN multicast group, and without Ethernet inside.
    pub inner: Option<[u8; 6]>,
}

impl TunnelUri {
    /// Returns the scheme of the URI.
    pub fn scheme_name(&self) -> &'static str {
        self.scheme.names[usize::from(self.address.is_ipv6())]
    }

    /// Parses what follows the scheme over IPv4 or IPv6 and `://`.
    pub(super) fn parse(
        scheme: &'static TunnelScheme,
        is_v6: bool,
        parser: &UriParser<'_>,
        text: &str,
    ) -> Result<TunnelUri, FaceUriError> {
        let TunnelScheme { network: parameter, max_network, has_inner_address, expected, .. } = *scheme;
        let Some((host, rest)) = text.split_once(&format!("?{parameter}=")) else {
            return parser.refuse(format!("the network `?{parameter}=` is missing"), expected);
        };
        let address = match is_v6 {
            false => host.parse().map(IpAddr::V4).ok(),
            true => {
                let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
                inside.and_then(|inside| inside.parse().map(IpAddr::V6).ok())
            }
        };
        let Some(address) = address.filter(is_of_one_device) else {
            return parser.refuse(format!("`{host}` is not a unicast address of this family"), expected);
        };
        let (number, inner) = match rest.split_once("&inner=").filter(|_| has_inner_address) {
            None => (rest, None),
            Some((number, inner)) => (number, Some(parser.device_address(inner, expected)?)),
        };
        match parser.number(number, &parameter.to_uppercase(), expected)? {
            network if network <= max_network => Ok(TunnelUri { scheme, address, network, inner }),
            _ => parser.refuse(format!("`{number}` is not a {}", parameter.to_uppercase()), expected),
        }
    }
}

impl fmt::Display for TunnelUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, parameter, network) = (self.scheme_name(), self.scheme.network, self.network);
        match self.address {
            IpAddr::V4(address) => write!(f, "{scheme}://{address}?{parameter}={network}")?,
            IpAddr::V6(address) => write!(f, "{scheme}://[{address}]?{parameter}={network}")?,
        }
        match self.inner {
            Some(inner) => write!(f, "&inner={}", Hardware(inner)),
            None => Ok(()),
        }
    }
}
