//! Face URIs: the textual addresses of faces in the management protocol, in configuration files and on the command
//! line.
//!
//! A [`FaceUri`] is parsed once and compared, hashed and printed as a value. It is printed in its normal spelling
//! (lower case, no trailing slash). [`FaceUri::is_canonical`] tells whether it also names one concrete address, as
//! `faces/create` requires. Parsing never resolves names and uses neither network nor file system; only
//! [`FaceUri::canonize`] does, and it blocks.

mod canonize;
mod display;
mod options;
mod parse;
mod port;
#[cfg(test)]
mod tests;
mod tunnel;

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

pub use display::Hardware;
pub use options::PortOptions;
pub use parse::{UriParser, UriSchemes, is_interface_name, is_zone};
pub use port::{ParsePort, PortScheme, PortUri};
pub use tunnel::{TunnelScheme, TunnelUri};

/// Port of unicast UDP and of TCP (NFD).
pub const DEFAULT_PORT: u16 = 6363;
/// Port of UDP multicast (NFD).
pub const DEFAULT_MULTICAST_PORT: u16 = 56363;
/// Port of WebSocket listeners (NFD).
pub const DEFAULT_WEBSOCKET_PORT: u16 = 9696;
/// Longest text accepted as a face URI, in bytes.
pub const MAX_FACE_URI_BYTES: usize = 1024;

/// What is wrong with a face URI, and what is expected instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("face URI `{uri}`: {problem}; expected {expected}")]
pub struct FaceUriError {
    /// The rejected text, shortened if very long.
    pub uri: String,
    /// What is wrong with it.
    pub problem: String,
    /// The accepted form.
    pub expected: Cow<'static, str>,
}

impl FaceUriError {
    fn new(uri: &str, problem: impl Into<String>, expected: impl Into<Cow<'static, str>>) -> Self {
        let mut shown: String = uri.chars().take(120).flat_map(char::escape_default).collect();
        if uri.chars().nth(120).is_some() {
            shown.push_str("...");
        }
        FaceUriError { uri: shown, problem: problem.into(), expected: expected.into() }
    }
}

/// Version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// The host part of an Internet address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// Numeric IPv4.
    V4(Ipv4Addr),
    /// Numeric IPv6; the zone is the network interface a link-local address belongs to (`fe80::1%eth0`).
    V6 {
        /// The address.
        address: Ipv6Addr,
        /// Interface name or number, only on link-local addresses.
        zone: Option<String>,
    },
    /// A host name in lower case, not resolved yet.
    Name(String),
}

/// Host and port; the port is `None` if the text omits it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// Host.
    pub host: Host,
    /// Port, if written.
    pub port: Option<u16>,
}

/// Address of a face or of one of its ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FaceUri {
    /// `udp4://`, `udp6://`, or `udp://` for either family.
    Udp {
        /// Address family of the scheme.
        family: Option<IpFamily>,
        /// Address.
        at: HostPort,
    },
    /// `tcp4://`, `tcp6://`, or `tcp://` for either family.
    Tcp {
        /// Address family of the scheme.
        family: Option<IpFamily>,
        /// Address.
        at: HostPort,
    },
    /// `unix:///path`: a stream socket in the file system.
    Unix(String),
    /// `fd://17`: the remote end of an accepted local connection, by file descriptor number.
    FileDescriptor(u32),
    /// `ether://[08:00:27:01:dd:01]`: a hardware address.
    Ethernet([u8; 6]),
    /// `dev://eth0`, `dev://eth0?vlan=7`: a port, as local end of a face on it. Its driver declares the scheme.
    Port(PortUri),
    /// `vxlan4://192.0.2.7?vni=42`: the remote end of a face over an encapsulation in UDP, which declares the scheme.
    Tunnel(TunnelUri),
    /// `udp4+dev://eth0:56363`, `udp6+dev://eth0:56363`: local end of a UDP multicast face on one interface.
    UdpDevice {
        /// Address family.
        family: IpFamily,
        /// Network interface.
        device: String,
        /// UDP port.
        port: u16,
    },
    /// `ws://host:9696/path` or `wss://…`: a WebSocket server.
    WebSocket {
        /// `wss`: inside TLS.
        secure: bool,
        /// Address.
        at: HostPort,
        /// Request path without its leading slash; usually empty.
        path: String,
    },
    /// `wsclient://192.0.2.1:40000`: the remote end of an accepted WebSocket connection.
    WebSocketClient(HostPort),
    /// `internal://`: the management face.
    Internal,
    /// `null://`: the face that discards packets.
    Null,
    /// `contentstore://`: origin of cached Data.
    ContentStore,
}

impl HostPort {
    /// Converts a socket address. An IPv4-mapped IPv6 address becomes the IPv4 address.
    fn from_socket(address: SocketAddr) -> (IpFamily, HostPort) {
        let port = Some(address.port());
        match address {
            SocketAddr::V4(v4) => (IpFamily::V4, HostPort { host: Host::V4(*v4.ip()), port }),
            SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
                Some(v4) => (IpFamily::V4, HostPort { host: Host::V4(v4), port }),
                None => {
                    let zone = (v6.scope_id() != 0).then(|| interface_name(v6.scope_id()));
                    let host = Host::V6 { address: *v6.ip(), zone };
                    (IpFamily::V6, HostPort { host, port })
                }
            },
        }
    }

    /// Returns the socket address if host and port are numeric and the zone, if any, is an interface of this host.
    pub fn socket_address(&self) -> Option<SocketAddr> {
        let port = self.port?;
        match &self.host {
            Host::V4(address) => Some(SocketAddr::new(IpAddr::V4(*address), port)),
            Host::V6 { address, zone } => {
                let scope_id = match zone {
                    None => 0,
                    Some(zone) => interface_index(zone)?,
                };
                Some(SocketAddr::V6(SocketAddrV6::new(*address, port, 0, scope_id)))
            }
            Host::Name(_) => None,
        }
    }

    fn is_numeric_with_port(&self, family: Option<IpFamily>) -> bool {
        let family_fits = match (&self.host, family) {
            (Host::V4(_), Some(IpFamily::V4)) | (Host::V4(_), None) => true,
            (Host::V6 { address, .. }, Some(IpFamily::V6) | None) => address.to_ipv4_mapped().is_none(),
            _ => false,
        };
        family_fits && self.port.is_some()
    }
}

/// Returns the name of the interface with this index, or the index itself if the interface does not exist.
fn interface_name(index: u32) -> String {
    match nix::net::if_::if_indextoname(index) {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_) => index.to_string(),
    }
}

fn interface_index(zone: &str) -> Option<u32> {
    match nix::net::if_::if_nametoindex(zone) {
        Ok(index) => Some(index),
        Err(_) => zone.parse().ok(),
    }
}

impl FaceUri {
    /// Returns the `udp4://` or `udp6://` URI of a socket address.
    pub fn udp(address: SocketAddr) -> FaceUri {
        let (family, at) = HostPort::from_socket(address);
        FaceUri::Udp { family: Some(family), at }
    }

    /// Returns the `tcp4://` or `tcp6://` URI of a socket address.
    pub fn tcp(address: SocketAddr) -> FaceUri {
        let (family, at) = HostPort::from_socket(address);
        FaceUri::Tcp { family: Some(family), at }
    }

    /// Returns the `ws://` URI of a listening address.
    pub fn web_socket(address: SocketAddr) -> FaceUri {
        FaceUri::WebSocket { secure: false, at: HostPort::from_socket(address).1, path: String::new() }
    }

    /// Returns the `wsclient://` URI of the peer of an accepted WebSocket connection.
    pub fn web_socket_client(address: SocketAddr) -> FaceUri {
        FaceUri::WebSocketClient(HostPort::from_socket(address).1)
    }

    /// Returns the scheme, as written before `://`.
    pub fn scheme(&self) -> &'static str {
        match self {
            FaceUri::Udp { family: None, .. } => "udp",
            FaceUri::Udp { family: Some(IpFamily::V4), .. } => "udp4",
            FaceUri::Udp { family: Some(IpFamily::V6), .. } => "udp6",
            FaceUri::Tcp { family: None, .. } => "tcp",
            FaceUri::Tcp { family: Some(IpFamily::V4), .. } => "tcp4",
            FaceUri::Tcp { family: Some(IpFamily::V6), .. } => "tcp6",
            FaceUri::Unix(_) => "unix",
            FaceUri::FileDescriptor(_) => "fd",
            FaceUri::Ethernet(_) => "ether",
            FaceUri::Port(port) => port.scheme().name,
            FaceUri::Tunnel(tunnel) => tunnel.scheme_name(),
            FaceUri::UdpDevice { family: IpFamily::V4, .. } => "udp4+dev",
            FaceUri::UdpDevice { family: IpFamily::V6, .. } => "udp6+dev",
            FaceUri::WebSocket { secure: false, .. } => "ws",
            FaceUri::WebSocket { secure: true, .. } => "wss",
            FaceUri::WebSocketClient(_) => "wsclient",
            FaceUri::Internal => "internal",
            FaceUri::Null => "null",
            FaceUri::ContentStore => "contentstore",
        }
    }

    /// Returns host and port for the schemes that have them.
    pub fn host_port(&self) -> Option<&HostPort> {
        match self {
            FaceUri::Udp { at, .. } | FaceUri::Tcp { at, .. } | FaceUri::WebSocket { at, .. } => Some(at),
            FaceUri::WebSocketClient(at) => Some(at),
            _ => None,
        }
    }

    /// Returns the socket address of a numeric UDP, TCP or WebSocket URI. `None` for other schemes, for host names, if
    /// the port is missing, and if the zone is not an interface of this host.
    pub fn socket_address(&self) -> Option<SocketAddr> {
        self.host_port()?.socket_address()
    }

    /// Returns the URI of a port, if it is one.
    pub fn as_port(&self) -> Option<&PortUri> {
        match self {
            FaceUri::Port(port) => Some(port),
            _ => None,
        }
    }

    /// Returns the options of a port that can have VLANs and Internet addresses; `None` for other URIs.
    pub fn options(&self) -> Option<&PortOptions> {
        self.as_port().and_then(PortUri::options)
    }

    /// Returns the same port with these options; unchanged if it cannot have options.
    pub fn with_options(&self, options: PortOptions) -> FaceUri {
        match self {
            FaceUri::Port(port) => FaceUri::Port(port.with_options(options)),
            other => other.clone(),
        }
    }

    /// Returns the port of faces with this local URI: the device without VLAN and other options.
    pub fn port(&self) -> FaceUri {
        self.with_options(PortOptions::default())
    }

    /// Returns the VLAN on its port, or the port itself if untagged: the network that addresses belong to.
    pub fn network(&self) -> FaceUri {
        self.with_options(PortOptions::of_vlan(self.options().and_then(|options| options.vlan)))
    }

    /// Whether faces with this local URI are on the port with that URI.
    pub fn is_on(&self, port: &FaceUri) -> bool {
        match (self, port) {
            (FaceUri::Port(own), FaceUri::Port(port)) => own.scheme() == port.scheme() && own.device() == port.device(),
            _ => self == port,
        }
    }

    /// Whether this is the remote URI of the face with bare packets on a port, and so the URI of that port.
    pub fn is_bare_port(&self) -> bool {
        self.as_port().is_some_and(|port| port.scheme().can_be_bare)
    }

    /// Whether the face with this remote URI, and the given local one, is on a port, which the worker polls; all other
    /// faces are on sockets.
    pub fn is_on_port(&self, local: Option<&FaceUri>) -> bool {
        let is_on_device = local.is_some_and(|local| local.options().is_some());
        is_on_device || self.is_bare_port() || matches!(self, FaceUri::Ethernet(_) | FaceUri::Tunnel(_))
    }

    /// Whether the address is a multicast group (IP or Ethernet).
    pub fn is_multicast(&self) -> bool {
        match self {
            FaceUri::Ethernet(address) => address[0] & 1 == 1,
            FaceUri::Udp { at, .. } => match &at.host {
                Host::V4(address) => address.is_multicast(),
                Host::V6 { address, .. } => address.is_multicast(),
                Host::Name(_) => false,
            },
            _ => false,
        }
    }

    /// Whether this URI names one concrete address: numeric, with explicit family and port. `faces/create` accepts no
    /// others. A `wss` server keeps its host name, because its certificate is checked against it.
    pub fn is_canonical(&self) -> bool {
        match self {
            FaceUri::Udp { family, at } | FaceUri::Tcp { family, at } => {
                family.is_some() && at.is_numeric_with_port(*family)
            }
            FaceUri::WebSocket { secure: true, at, .. } => match at.host {
                Host::Name(_) => at.port.is_some(),
                _ => at.is_numeric_with_port(None),
            },
            FaceUri::WebSocket { secure: false, at, .. } | FaceUri::WebSocketClient(at) => {
                at.is_numeric_with_port(None)
            }
            _ => true,
        }
    }
}
