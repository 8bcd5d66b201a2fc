//! Turning a face URI into its canonical form. Resolves host names with the system's resolver and therefore blocks:
//! only for client programs and for reading a configuration at start, never on a thread that serves packets.

use std::net::{SocketAddr, ToSocketAddrs};

use super::{
    DEFAULT_MULTICAST_PORT, DEFAULT_PORT, DEFAULT_WEBSOCKET_PORT, FaceUri, FaceUriError, Host, HostPort, IpFamily,
};

const EXPECTED_RESOLVABLE: &str = "a host name that resolves to an address of the scheme's family";

impl FaceUri {
    /// The canonical form: the host name resolved, the family explicit, the default port filled in. A URI that is
    /// canonical already comes back unchanged. Blocks while it resolves.
    ///
    /// # Errors
    /// When the host name does not resolve to an address of the wanted family.
    pub fn canonize(&self) -> Result<FaceUri, FaceUriError> {
        match self {
            FaceUri::Udp { family, at } => {
                let multicast_port = self.is_multicast().then_some(DEFAULT_MULTICAST_PORT);
                let port = multicast_port.unwrap_or(DEFAULT_PORT);
                let (family, at) = self.resolve(*family, at, port)?;
                Ok(FaceUri::Udp { family: Some(family), at })
            }
            FaceUri::Tcp { family, at } => {
                let (family, at) = self.resolve(*family, at, DEFAULT_PORT)?;
                Ok(FaceUri::Tcp { family: Some(family), at })
            }
            FaceUri::WebSocket { secure, at, path } => {
                let at = if *secure {
                    // TLS checks the certificate against the name, so the name stays.
                    HostPort { host: at.host.clone(), port: at.port.or(Some(443)) }
                } else {
                    self.resolve(None, at, DEFAULT_WEBSOCKET_PORT)?.1
                };
                Ok(FaceUri::WebSocket { secure: *secure, at, path: path.clone() })
            }
            FaceUri::WebSocketClient(at) => {
                let (_, at) = self.resolve(None, at, DEFAULT_WEBSOCKET_PORT)?;
                Ok(FaceUri::WebSocketClient(at))
            }
            _ => Ok(self.clone()),
        }
    }

    fn resolve(
        &self,
        family: Option<IpFamily>,
        at: &HostPort,
        default_port: u16,
    ) -> Result<(IpFamily, HostPort), FaceUriError> {
        let port = at.port.unwrap_or(default_port);
        let refuse = |problem: String| FaceUriError::new(&self.to_string(), problem, EXPECTED_RESOLVABLE);
        match &at.host {
            Host::V4(address) => Ok(HostPort::from_socket(SocketAddr::from((*address, port)))),
            Host::V6 { address, zone } => match address.to_ipv4_mapped() {
                Some(v4) => Ok(HostPort::from_socket(SocketAddr::from((v4, port)))),
                None => {
                    let host = Host::V6 { address: *address, zone: zone.clone() };
                    Ok((IpFamily::V6, HostPort { host, port: Some(port) }))
                }
            },
            Host::Name(name) => {
                let mut addresses = (name.as_str(), port)
                    .to_socket_addrs()
                    .map_err(|error| refuse(format!("`{name}` does not resolve: {error}")))?;
                let fits = |address: &SocketAddr| match family {
                    Some(IpFamily::V4) => address.is_ipv4(),
                    Some(IpFamily::V6) => address.is_ipv6(),
                    None => true,
                };
                let address =
                    addresses.find(fits).ok_or_else(|| refuse(format!("`{name}` has no address of that family")))?;
                Ok(HostPort::from_socket(address))
            }
        }
    }
}
