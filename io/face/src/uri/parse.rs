//! Parsing of face URIs. The text may be anything; every error tells what is wrong and which form is expected.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::{
    FaceUri, FaceUriError, Host, HostPort, IpFamily, MAX_FACE_URI_BYTES, PortScheme, PortUri, TunnelScheme, TunnelUri,
};
use crate::address::is_group;

/// The schemes that neither drivers of ports nor encapsulations declare.
const SCHEMES: &str = "udp4, udp6, udp, tcp4, tcp6, tcp, unix, fd, ether, udp4+dev, udp6+dev, ws, wss, wsclient, \
     internal, null, contentstore";
const EXPECTED_V4: &str = "an IPv4 address or host name and a port, as in udp4://192.0.2.1:6363";
const EXPECTED_V6: &str = "an IPv6 address in brackets or a host name and a port, as in udp6://[2001:db8::1]:6363";
const EXPECTED_INTERNET: &str = "a host name, an IPv4 address or an IPv6 address in brackets, and a port, as in \
     192.0.2.1:6363 or [2001:db8::1]:6363";
const EXPECTED_NUMERIC: &str = "a numeric address and a port, as in wsclient://192.0.2.1:40000";
const EXPECTED_UNIX: &str = "an absolute path, as in unix:///run/nfd/nfd.sock";
const EXPECTED_FD: &str = "a file descriptor number, as in fd://17";
const EXPECTED_ETHER: &str = "a hardware address in brackets, as in ether://[08:00:27:01:dd:01]";
const EXPECTED_UDP_DEV: &str =
    "a network interface name and a port, as in udp4+dev://eth0:56363 or udp6+dev://eth0:56363";
const EXPECTED_NOTHING: &str = "nothing after ://";

/// Longest host name in the Domain Name System.
const MAX_HOST_NAME_BYTES: usize = 253;
/// Longest interface name in Linux.
const MAX_DEVICE_NAME_BYTES: usize = 15;

/// Parses parts of a URI. Errors name the whole URI and the expected form.
pub struct UriParser<'a> {
    whole: &'a str,
}

impl<'a> UriParser<'a> {
    /// Creates a parser for parts of `whole`.
    pub fn new(whole: &'a str) -> UriParser<'a> {
        UriParser { whole }
    }

    /// Returns an error.
    ///
    /// # Errors
    /// Always.
    pub fn refuse<T>(&self, problem: impl Into<String>, expected: &'static str) -> Result<T, FaceUriError> {
        Err(FaceUriError::new(self.whole, problem, expected))
    }

    /// Parses a decimal number in its only spelling; `what` it is, for messages.
    ///
    /// # Errors
    /// If the text is not such a number.
    pub fn number<N: FromStr>(&self, text: &str, what: &str, expected: &'static str) -> Result<N, FaceUriError> {
        // A sign or leading zeros would allow several spellings of one address.
        let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        match text.parse() {
            Ok(number) if plain => Ok(number),
            _ => self.refuse(format!("`{text}` is not a valid {what}"), expected),
        }
    }

    pub(super) fn port(&self, text: &str, expected: &'static str) -> Result<u16, FaceUriError> {
        match self.number(text, "port", expected)? {
            0 => self.refuse("port 0 cannot be used", expected),
            port => Ok(port),
        }
    }

    /// Parses the name of a network interface.
    ///
    /// # Errors
    /// If no interface of Linux can have that name.
    pub fn interface(&self, text: &str, expected: &'static str) -> Result<String, FaceUriError> {
        if !is_interface_name(text) {
            return self.refuse(format!("`{text}` is not a network interface name"), expected);
        }
        Ok(text.to_owned())
    }

    /// Parses an absolute path.
    ///
    /// # Errors
    /// If the path is relative or contains a control character.
    pub fn path(&self, text: &str, expected: &'static str) -> Result<String, FaceUriError> {
        if !text.starts_with('/') || text.len() < 2 {
            return self.refuse("the path is not absolute", expected);
        }
        if text.chars().any(char::is_control) {
            return self.refuse("the path contains a control character", expected);
        }
        Ok(text.to_owned())
    }

    fn host_name(&self, text: &str, expected: &'static str) -> Result<Host, FaceUriError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
        if text.is_empty() {
            return self.refuse("the host is missing", expected);
        }
        if text.len() > MAX_HOST_NAME_BYTES || !text.bytes().all(allowed) || text.starts_with('.') {
            return self.refuse(format!("`{text}` is not a host"), expected);
        }
        if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return self.refuse(format!("`{text}` is not an IPv4 address"), expected);
        }
        Ok(Host::Name(text.to_ascii_lowercase()))
    }

    fn bracketed(&self, text: &str, expected: &'static str) -> Result<Host, FaceUriError> {
        let (address, zone) = match text.split_once('%') {
            None => (text, None),
            Some((address, zone)) => (address, Some(zone)),
        };
        let Ok(address) = address.parse::<Ipv6Addr>() else {
            return self.refuse(format!("`{text}` is not an IPv6 address"), expected);
        };
        if let Some(zone) = zone.filter(|zone| !is_zone(zone)) {
            return self.refuse(format!("`{zone}` is not a network interface name"), expected);
        }
        let zone = zone.map(str::to_owned);
        let link_local = address.is_unicast_link_local() || is_link_local_multicast(&address);
        if zone.is_some() && !link_local {
            return self.refuse("only a link-local address can have a zone (%interface)", expected);
        }
        Ok(Host::V6 { address, zone })
    }

    /// `host`, `host:port`, `[v6]`, `[v6]:port`.
    fn host_port(&self, text: &str, expected: &'static str) -> Result<HostPort, FaceUriError> {
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let Some((inside, after)) = rest.split_once(']') else {
                return self.refuse("the bracket `[` is not closed", expected);
            };
            let port = match after.strip_prefix(':') {
                Some(port) => Some(port),
                None if after.is_empty() => None,
                None => {
                    return self.refuse(format!("`{after}` follows the address"), expected);
                }
            };
            (self.bracketed(inside, expected)?, port)
        } else {
            let (host, port) = match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            };
            if port.is_some_and(|port| port.contains(':')) {
                return self.refuse("an IPv6 address needs brackets", expected);
            }
            let host = match host.parse::<Ipv4Addr>() {
                Ok(address) => Host::V4(address),
                Err(_) => self.host_name(host, expected)?,
            };
            (host, port)
        };
        let port = port.map(|port| self.port(port, expected)).transpose()?;
        Ok(HostPort { host, port })
    }

    fn internet(&self, family: Option<IpFamily>, text: &str) -> Result<(Option<IpFamily>, HostPort), FaceUriError> {
        let expected = match family {
            Some(IpFamily::V4) => EXPECTED_V4,
            Some(IpFamily::V6) => EXPECTED_V6,
            None => EXPECTED_INTERNET,
        };
        let at = self.host_port(text.strip_suffix('/').unwrap_or(text), expected)?;
        match (family, &at.host) {
            (Some(IpFamily::V4), Host::V6 { .. }) => {
                self.refuse("the scheme says IPv4 and the address is IPv6", expected)
            }
            (Some(IpFamily::V6), Host::V4(_)) => self.refuse("the scheme says IPv6 and the address is IPv4", expected),
            _ => Ok((family, at)),
        }
    }

    fn hardware_address(&self, text: &str, expected: &'static str) -> Result<[u8; 6], FaceUriError> {
        let mut address = [0_u8; 6];
        let mut groups = text.split([':', '-']);
        for byte in &mut address {
            let group = groups.next().unwrap_or("");
            let hexadecimal = group.len() == 2 && group.bytes().all(|b| b.is_ascii_hexdigit());
            match u8::from_str_radix(group, 16) {
                Ok(value) if hexadecimal => *byte = value,
                _ => return self.refuse(format!("`{text}` is not a hardware address of six bytes"), expected),
            }
        }
        if groups.next().is_some() {
            return self.refuse("the hardware address has more than six bytes", expected);
        }
        Ok(address)
    }

    /// Parses a hardware address of a single device.
    ///
    /// # Errors
    /// If the text is not a hardware address, or the address is that of a group.
    pub fn device_address(&self, text: &str, expected: &'static str) -> Result<[u8; 6], FaceUriError> {
        match self.hardware_address(text, expected)? {
            address if is_group(&address) || address == [0; 6] => {
                self.refuse(format!("`{text}` is not a unicast hardware address"), expected)
            }
            address => Ok(address),
        }
    }

    fn ethernet(&self, text: &str) -> Result<FaceUri, FaceUriError> {
        let inside = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        let Some(inside) = inside else {
            return self.refuse("the hardware address is not in brackets", EXPECTED_ETHER);
        };
        self.hardware_address(inside, EXPECTED_ETHER).map(FaceUri::Ethernet)
    }

    fn udp_device(&self, family: IpFamily, text: &str) -> Result<FaceUri, FaceUriError> {
        let Some((device, port)) = text.split_once(':') else {
            return self.refuse("the port is missing", EXPECTED_UDP_DEV);
        };
        Ok(FaceUri::UdpDevice {
            family,
            device: self.interface(device, EXPECTED_UDP_DEV)?,
            port: self.port(port, EXPECTED_UDP_DEV)?,
        })
    }

    fn web_socket(&self, secure: bool, text: &str) -> Result<FaceUri, FaceUriError> {
        let (at, path) = text.split_once('/').unwrap_or((text, ""));
        if !path.bytes().all(|b| b.is_ascii_graphic()) {
            return self.refuse("the path contains a space, control or non-ASCII character", EXPECTED_INTERNET);
        }
        Ok(FaceUri::WebSocket { secure, at: self.host_port(at, EXPECTED_INTERNET)?, path: path.to_owned() })
    }

    fn web_socket_client(&self, text: &str) -> Result<FaceUri, FaceUriError> {
        let at = self.host_port(text.strip_suffix('/').unwrap_or(text), EXPECTED_NUMERIC)?;
        if matches!(at.host, Host::Name(_)) {
            return self.refuse("the peer is not a numeric address", EXPECTED_NUMERIC);
        }
        Ok(FaceUri::WebSocketClient(at))
    }

    fn empty(&self, text: &str, uri: FaceUri) -> Result<FaceUri, FaceUriError> {
        if text.is_empty() || text == "/" {
            return Ok(uri);
        }
        self.refuse(format!("`{text}` follows the scheme"), EXPECTED_NOTHING)
    }
}

/// Whether an address can be that of a port or peer, in its normal spelling.
pub(super) fn is_of_one_device(address: &IpAddr) -> bool {
    !address.is_unspecified() && !address.is_multicast() && address.to_canonical() == *address
}

fn is_link_local_multicast(address: &Ipv6Addr) -> bool {
    address.segments()[0] & 0xff0f == 0xff02
}

/// Whether a network interface of Linux can have this name.
pub fn is_interface_name(text: &str) -> bool {
    !text.contains(':') && is_zone(text)
}

/// Whether this can be the zone of a link-local address: a network interface, or a device that a port names in the same
/// way, such as a PCI address with its colons.
pub fn is_zone(text: &str) -> bool {
    let fits = (1..=MAX_DEVICE_NAME_BYTES).contains(&text.len());
    let allowed = |b: u8| b.is_ascii_graphic() && !matches!(b, b'/' | b'[' | b']' | b'%');
    fits && text.bytes().all(allowed) && text != "." && text != ".."
}

/// Returns the error for a text without one of these schemes.
fn unknown_scheme(parser: &UriParser<'_>, problem: String, schemes: &UriSchemes<'_>) -> FaceUriError {
    let ports = schemes.ports.iter().map(|port| port.name);
    let others: String =
        ports.chain(schemes.tunnels.iter().flat_map(|tunnel| tunnel.names)).map(|name| format!(", {name}")).collect();
    FaceUriError::new(parser.whole, problem, format!("one of {SCHEMES}{others}, followed by ://"))
}

/// The schemes that drivers of ports and encapsulations declare.
#[derive(Debug, Clone, Copy, Default)]
pub struct UriSchemes<'a> {
    /// Of ports.
    pub ports: &'a [&'static PortScheme],
    /// Of encapsulations in UDP.
    pub tunnels: &'a [&'static TunnelScheme],
}

impl FaceUri {
    /// Parses a URI, which may have one of these schemes.
    ///
    /// # Errors
    /// What is wrong with the text, and which form is expected.
    pub fn parse(text: &str, schemes: &UriSchemes<'_>) -> Result<FaceUri, FaceUriError> {
        let parser = UriParser::new(text);
        if text.len() > MAX_FACE_URI_BYTES {
            return parser.refuse("it is too long", "at most 1024 bytes");
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(unknown_scheme(&parser, "it has no scheme".to_owned(), schemes));
        };
        let (v4, v6) = (Some(IpFamily::V4), Some(IpFamily::V6));
        let udp = |family| parser.internet(family, rest).map(|(family, at)| FaceUri::Udp { family, at });
        let tcp = |family| parser.internet(family, rest).map(|(family, at)| FaceUri::Tcp { family, at });
        let scheme = scheme.to_ascii_lowercase();
        if let Some(port) = schemes.ports.iter().find(|port| port.name == scheme) {
            return PortUri::parse(port, &parser, rest).map(FaceUri::Port);
        }
        for tunnel in schemes.tunnels {
            if let Some(family) = tunnel.names.iter().position(|name| *name == scheme) {
                return TunnelUri::parse(tunnel, family == 1, &parser, rest).map(FaceUri::Tunnel);
            }
        }
        match scheme.as_str() {
            "udp" => udp(None),
            "udp4" => udp(v4),
            "udp6" => udp(v6),
            "tcp" => tcp(None),
            "tcp4" => tcp(v4),
            "tcp6" => tcp(v6),
            "unix" => parser.path(rest, EXPECTED_UNIX).map(FaceUri::Unix),
            "fd" => parser.number(rest, "file descriptor", EXPECTED_FD).map(FaceUri::FileDescriptor),
            "ether" => parser.ethernet(rest),
            "udp4+dev" => parser.udp_device(IpFamily::V4, rest),
            "udp6+dev" => parser.udp_device(IpFamily::V6, rest),
            "ws" => parser.web_socket(false, rest),
            "wss" => parser.web_socket(true, rest),
            "wsclient" => parser.web_socket_client(rest),
            "internal" => parser.empty(rest, FaceUri::Internal),
            "null" => parser.empty(rest, FaceUri::Null),
            "contentstore" => parser.empty(rest, FaceUri::ContentStore),
            _ => {
                let problem = format!("`{}` is not a known scheme", scheme.escape_default());
                Err(unknown_scheme(&parser, problem, schemes))
            }
        }
    }
}

/// Parses a URI of no port. Programs that open ports, or that take URIs from users, parse with the schemes of all
/// drivers and encapsulations.
impl FromStr for FaceUri {
    type Err = FaceUriError;

    fn from_str(text: &str) -> Result<FaceUri, FaceUriError> {
        FaceUri::parse(text, &UriSchemes::default())
    }
}
