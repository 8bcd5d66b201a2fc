//! Conversion of a face URI into its canonical form. This resolves host names with the system's resolver and therefore
//! blocks. It is only for client programs and for reading a configuration at start, never for a thread that serves
//! packets.

use std::net::{SocketAddr, ToSocketAddrs};

use super::{
    DEFAULT_MULTICAST_PORT, DEFAULT_PORT, DEFAULT_WEBSOCKET_PORT, FaceUri, FaceUriError, Host, HostPort, IpFamily,
};

const EXPECTED_RESOLVABLE: &str = "a host name that resolves to an address of the scheme's family";

impl FaceUri {
    /// Returns the canonical form: host name resolved, explicit family, default port filled in. A canonical URI is
    /// returned unchanged. Blocks while it resolves.
    ///
    /// # Errors
    /// If the host name does not resolve to an address of the required family.
    pub fn canonize(&self) -> Result<FaceUri, FaceUriError> {
        // The list has at least one element.
        self.canonize_all().map(|mut all| all.swap_remove(0))
    }

    /// Whether the host is a name.
    pub fn has_host_name(&self) -> bool {
        self.host_port().is_some_and(|at| matches!(at.host, Host::Name(_)))
    }

    /// Returns the canonical forms for all addresses of the host, at least one, in the resolver's order of preference.
    /// Blocks while it resolves.
    ///
    /// # Errors
    /// If the host name does not resolve to an address of the required family.
    pub fn canonize_all(&self) -> Result<Vec<FaceUri>, FaceUriError> {
        let resolved = |family, at: &HostPort, port, make: &dyn Fn(IpFamily, HostPort) -> FaceUri| {
            let found = self.resolve(family, at, port)?;
            Ok(found.into_iter().map(|(family, at)| make(family, at)).collect())
        };
        match self {
            FaceUri::Udp { family, at } => {
                let multicast_port = self.is_multicast().then_some(DEFAULT_MULTICAST_PORT);
                let port = multicast_port.unwrap_or(DEFAULT_PORT);
                resolved(*family, at, port, &|family, at| FaceUri::Udp { family: Some(family), at })
            }
            FaceUri::Tcp { family, at } => {
                resolved(*family, at, DEFAULT_PORT, &|family, at| FaceUri::Tcp { family: Some(family), at })
            }
            FaceUri::WebSocket { secure: true, at, path } => {
                // TLS checks the certificate against the name, so the name is kept.
                let at = HostPort { host: at.host.clone(), port: at.port.or(Some(443)) };
                Ok(vec![FaceUri::WebSocket { secure: true, at, path: path.clone() }])
            }
            FaceUri::WebSocket { secure: false, at, path } => {
                let make = |_, at| FaceUri::WebSocket { secure: false, at, path: path.clone() };
                resolved(None, at, DEFAULT_WEBSOCKET_PORT, &make)
            }
            FaceUri::WebSocketClient(at) => {
                resolved(None, at, DEFAULT_WEBSOCKET_PORT, &|_, at| FaceUri::WebSocketClient(at))
            }
            _ => Ok(vec![self.clone()]),
        }
    }

    fn resolve(
        &self,
        family: Option<IpFamily>,
        at: &HostPort,
        default_port: u16,
    ) -> Result<Vec<(IpFamily, HostPort)>, FaceUriError> {
        let port = at.port.unwrap_or(default_port);
        let refuse = |problem: String| FaceUriError::new(&self.to_string(), problem, EXPECTED_RESOLVABLE);
        match &at.host {
            Host::V4(address) => Ok(vec![HostPort::from_socket(SocketAddr::from((*address, port)))]),
            Host::V6 { address, zone } => match address.to_ipv4_mapped() {
                Some(v4) => Ok(vec![HostPort::from_socket(SocketAddr::from((v4, port)))]),
                None => {
                    let host = Host::V6 { address: *address, zone: zone.clone() };
                    Ok(vec![(IpFamily::V6, HostPort { host, port: Some(port) })])
                }
            },
            Host::Name(name) => {
                let addresses = (name.as_str(), port)
                    .to_socket_addrs()
                    .map_err(|error| refuse(format!("`{name}` does not resolve: {error}")))?;
                let fits = |address: &SocketAddr| match family {
                    Some(IpFamily::V4) => address.is_ipv4(),
                    Some(IpFamily::V6) => address.is_ipv6(),
                    None => true,
                };
                let found: Vec<_> = addresses.filter(fits).map(HostPort::from_socket).collect();
                if found.is_empty() {
                    Err(refuse(format!("`{name}` has no address of that family")))
                } else {
                    Ok(found)
                }
            }
        }
    }
}
