//! Parsing of face URIs. The text may be anything; every error tells what is wrong and which form is expected.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::driver::is_pci_address;
use super::{FaceUri, FaceUriError, Host, HostPort, IpFamily, MAX_FACE_URI_BYTES, MemifRole, PortDriver};
use crate::address::{Vni, is_group};

const EXPECTED_SCHEME: &str = "one of udp4, udp6, udp, tcp4, tcp6, tcp, unix, fd, ether, dev, pci, tap, xdp, pcap, \
     udp4+dev, udp6+dev, ws, wss, wsclient, internal, null, contentstore, memif, vxlan4, vxlan6, followed by ://";
const EXPECTED_V4: &str = "an IPv4 address or host name and a port, as in udp4://192.0.2.1:6363";
const EXPECTED_V6: &str = "an IPv6 address in brackets or a host name and a port, as in udp6://[2001:db8::1]:6363";
const EXPECTED_INTERNET: &str = "a host name, an IPv4 address or an IPv6 address in brackets, and a port, as in \
     192.0.2.1:6363 or [2001:db8::1]:6363";
const EXPECTED_NUMERIC: &str = "a numeric address and a port, as in wsclient://192.0.2.1:40000";
const EXPECTED_UNIX: &str = "an absolute path, as in unix:///run/nfd/nfd.sock";
const EXPECTED_FD: &str = "a file descriptor number, as in fd://17";
const EXPECTED_ETHER: &str = "a hardware address in brackets, as in ether://[08:00:27:01:dd:01]";
const EXPECTED_DEV: &str = "a network interface name, as in dev://eth0, optionally with a VLAN from 1 to 4094, as in \
     dev://eth0?vlan=7, or with an address for UDP, as in dev://eth0?vlan=7&ip=192.0.2.1&port=6363, optionally \
     followed by source_port=name and mac=08:00:27:01:dd:01";
const EXPECTED_PCI: &str = "the PCI address of a network card, as in pci://0000:03:00.0, with the same options as \
     dev://eth0";
const EXPECTED_TAP: &str = "the name of a TAP interface, as in tap://ndn0, with the same options as dev://eth0";
const EXPECTED_PCAP: &str = "the absolute path of a capture to read, one to write, or both, as in \
     pcap:///in.pcap?out=/out.pcap or pcap://?out=/out.pcap, optionally followed by &mac=08:00:27:01:dd:01";
const EXPECTED_VXLAN: &str = "an address and a network from 0 to 16777215, as in vxlan4://192.0.2.7?vni=42 or \
     vxlan6://[2001:db8::7]?vni=42, optionally followed by &inner=08:00:27:01:dd:01";
const EXPECTED_UDP_DEV: &str =
    "a network interface name and a port, as in udp4+dev://eth0:56363 or udp6+dev://eth0:56363";
const EXPECTED_NOTHING: &str = "nothing after ://";
const EXPECTED_MEMIF: &str = "an absolute socket path, an interface id and, unless this end is the server, \
     &role=client, as in memif:///run/memif.sock?id=0, with the same options as dev://eth0";

/// Longest host name in the Domain Name System.
const MAX_HOST_NAME_BYTES: usize = 253;
/// Longest interface name in Linux.
const MAX_DEVICE_NAME_BYTES: usize = 15;

/// The text being parsed, for error messages.
pub(super) struct Parser<'a> {
    whole: &'a str,
}

impl Parser<'_> {
    pub(super) fn refuse<T>(&self, problem: impl Into<String>, expected: &'static str) -> Result<T, FaceUriError> {
        Err(FaceUriError::new(self.whole, problem, expected))
    }

    pub(super) fn number<N: FromStr>(&self, text: &str, what: &str, expected: &'static str) -> Result<N, FaceUriError> {
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

    fn device(&self, text: &str, expected: &'static str) -> Result<String, FaceUriError> {
        let fits = (1..=MAX_DEVICE_NAME_BYTES).contains(&text.len());
        let allowed = |b: u8| b.is_ascii_graphic() && !matches!(b, b'/' | b':' | b'[' | b']' | b'%');
        if !fits || !text.bytes().all(allowed) || text == "." || text == ".." {
            return self.refuse(format!("`{text}` is not a network interface name"), expected);
        }
        Ok(text.to_owned())
    }

    fn path(&self, text: &str, expected: &'static str) -> Result<String, FaceUriError> {
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
        let zone =
            zone.map(|zone| if is_pci_address(zone) { Ok(zone.to_owned()) } else { self.device(zone, expected) });
        let zone = zone.transpose()?;
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
    pub(super) fn device_address(&self, text: &str, expected: &'static str) -> Result<[u8; 6], FaceUriError> {
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

    /// Parses a driver's name of a port.
    fn name_for(&self, driver: PortDriver, text: &str) -> Result<String, FaceUriError> {
        match driver {
            PortDriver::Kernel | PortDriver::Xdp => self.device(text, EXPECTED_DEV),
            PortDriver::Tap => self.device(text, EXPECTED_TAP),
            PortDriver::Pci if is_pci_address(text) => Ok(text.to_owned()),
            PortDriver::Pci => self.refuse(format!("`{text}` is not a PCI address"), EXPECTED_PCI),
        }
    }

    fn interface(&self, driver: PortDriver, text: &str) -> Result<FaceUri, FaceUriError> {
        // The name of an interface may contain a question mark.
        let keys = ["?vlan=", "?ip=", "?port=", "?source_port=", "?mac="];
        let Some(at) = keys.iter().filter_map(|key| text.find(key)).min() else {
            return self.name_for(driver, text).map(|interface| FaceUri::device_of(driver, interface));
        };
        let interface = self.name_for(driver, &text[..at])?;
        let options = self.options(&text[at + 1..], EXPECTED_DEV)?;
        Ok(FaceUri::Device { driver, interface, options })
    }

    fn vxlan(&self, family: IpFamily, text: &str) -> Result<FaceUri, FaceUriError> {
        let Some((host, rest)) = text.split_once("?vni=") else {
            return self.refuse("the network `?vni=` is missing", EXPECTED_VXLAN);
        };
        let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let address = match family {
            IpFamily::V4 => host.parse().map(IpAddr::V4).ok(),
            IpFamily::V6 => inside.and_then(|inside| inside.parse().map(IpAddr::V6).ok()),
        };
        let Some(address) = address.filter(is_of_one_device) else {
            return self.refuse(format!("`{host}` is not a unicast address of this family"), EXPECTED_VXLAN);
        };
        let (identifier, inner) = match rest.split_once("&inner=") {
            None => (rest, None),
            Some((identifier, inner)) => (identifier, Some(self.device_address(inner, EXPECTED_VXLAN)?)),
        };
        match Vni::new(self.number(identifier, "VNI", EXPECTED_VXLAN)?) {
            Some(vni) => Ok(FaceUri::Vxlan { address, vni, inner }),
            None => self.refuse(format!("`{identifier}` is not a VNI"), EXPECTED_VXLAN),
        }
    }

    fn udp_device(&self, family: IpFamily, text: &str) -> Result<FaceUri, FaceUriError> {
        let Some((device, port)) = text.split_once(':') else {
            return self.refuse("the port is missing", EXPECTED_UDP_DEV);
        };
        Ok(FaceUri::UdpDevice {
            family,
            device: self.device(device, EXPECTED_UDP_DEV)?,
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

    fn memif(&self, text: &str) -> Result<FaceUri, FaceUriError> {
        let Some((socket, id)) = text.rsplit_once("?id=") else {
            return self.refuse("the interface id `?id=` is missing", EXPECTED_MEMIF);
        };
        let behind = |text| str::split_once(text, '&').map_or((text, None), |(text, rest)| (text, Some(rest)));
        let (id, rest) = behind(id);
        let (role, rest) = match rest.and_then(|rest| rest.strip_prefix("role=")).map(behind) {
            None => (MemifRole::Server, rest),
            Some(("server", rest)) => (MemifRole::Server, rest),
            Some(("client", rest)) => (MemifRole::Client, rest),
            Some((role, _)) => return self.refuse(format!("`{role}` is not a role"), EXPECTED_MEMIF),
        };
        let options = rest.map(|rest| self.options(rest, EXPECTED_MEMIF)).transpose()?.unwrap_or_default();
        Ok(FaceUri::Memif {
            socket: self.path(socket, EXPECTED_MEMIF)?,
            id: self.number(id, "interface id", EXPECTED_MEMIF)?,
            role,
            options,
        })
    }

    fn pcap(&self, text: &str) -> Result<FaceUri, FaceUriError> {
        let path = |text: &str| match text.contains(['?', '&']) {
            true => self.refuse(format!("`{text}` contains a character that is not allowed here"), EXPECTED_PCAP),
            false => self.path(text, EXPECTED_PCAP),
        };
        let (input, options) = text.split_once('?').unwrap_or((text, ""));
        let (output, address) = match options.strip_prefix("out=") {
            None => (None, options),
            Some(rest) => {
                let (output, address) = rest.split_once('&').unwrap_or((rest, ""));
                (Some(path(output)?), address)
            }
        };
        let address = match address.strip_prefix("mac=") {
            Some(address) => Some(self.device_address(address, EXPECTED_PCAP)?),
            None if address.is_empty() => None,
            None => return self.refuse(format!("`{address}` is not an option of a capture"), EXPECTED_PCAP),
        };
        let input = if input.is_empty() { None } else { Some(path(input)?) };
        if input.is_none() && output.is_none() {
            return self.refuse("neither a capture to read nor one to write is given", EXPECTED_PCAP);
        }
        Ok(FaceUri::Pcap { input, output, address })
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

impl FromStr for FaceUri {
    type Err = FaceUriError;

    fn from_str(text: &str) -> Result<FaceUri, FaceUriError> {
        let parser = Parser { whole: text };
        if text.len() > MAX_FACE_URI_BYTES {
            return parser.refuse("it is too long", "at most 1024 bytes");
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return parser.refuse("it has no scheme", EXPECTED_SCHEME);
        };
        let (v4, v6) = (Some(IpFamily::V4), Some(IpFamily::V6));
        let udp = |family| parser.internet(family, rest).map(|(family, at)| FaceUri::Udp { family, at });
        let tcp = |family| parser.internet(family, rest).map(|(family, at)| FaceUri::Tcp { family, at });
        let scheme = scheme.to_ascii_lowercase();
        if let Some(driver) = PortDriver::ALL.into_iter().find(|driver| driver.scheme() == scheme) {
            return parser.interface(driver, rest);
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
            "memif" => parser.memif(rest),
            "pcap" => parser.pcap(rest),
            "vxlan4" => parser.vxlan(IpFamily::V4, rest),
            "vxlan6" => parser.vxlan(IpFamily::V6, rest),
            _ => parser.refuse(format!("`{}` is not a known scheme", scheme.escape_default()), EXPECTED_SCHEME),
        }
    }
}
