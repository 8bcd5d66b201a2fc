//! Detects the network interfaces of the default route and of SSH sessions: taking these away would disconnect the
//! operator.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::System;

/// Port of SSH, in the format of `/proc/net/tcp`.
const SSH_PORT: &str = "0016";
/// State of an established connection, in the same format.
const ESTABLISHED: &str = "01";
/// Route flag: the route is up.
const RTF_UP: u32 = 1;
/// Maximum depth of stacked interfaces, such as VLANs on a bond on cards.
const MAX_DEPTH: usize = 8;

/// A route of the main table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Route {
    prefix: IpAddr,
    prefix_bits: u32,
    interface: String,
}

impl Route {
    fn is_default(&self) -> bool {
        self.prefix_bits == 0
    }

    fn covers(&self, address: IpAddr) -> bool {
        let differ = match (self.prefix, address) {
            (IpAddr::V4(prefix), IpAddr::V4(address)) => (prefix.to_bits() ^ address.to_bits()).leading_zeros(),
            (IpAddr::V6(prefix), IpAddr::V6(address)) => (prefix.to_bits() ^ address.to_bits()).leading_zeros(),
            _ => return false,
        };
        differ >= self.prefix_bits
    }
}

/// Interfaces that must stay with the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Needed {
    /// Interfaces of default routes, and their lower interfaces.
    pub(super) default_route: Vec<String>,
    /// Interfaces of SSH sessions, and their lower interfaces.
    pub(super) session: Vec<String>,
}

impl Needed {
    pub(super) fn read(system: &System, ssh_connection: Option<&str>) -> Self {
        let routes = read_routes(system);
        let default: Vec<&str> =
            routes.iter().filter(|route| route.is_default()).map(|route| route.interface.as_str()).collect();
        let mut session = Vec::new();
        for peer in ssh_peers(system, ssh_connection) {
            let covering = routes.iter().filter(|route| route.covers(peer));
            let best = covering.clone().map(|route| route.prefix_bits).max();
            session
                .extend(covering.filter(|route| Some(route.prefix_bits) == best).map(|route| route.interface.as_str()));
        }
        Needed { default_route: with_lower(system, &default), session: with_lower(system, &session) }
    }
}

/// Reads the routes of IPv4 and IPv6, except routes of the loopback interface.
fn read_routes(system: &System) -> Vec<Route> {
    let v4 = system.read("/proc/net/route").unwrap_or_default();
    let v6 = system.read("/proc/net/ipv6_route").unwrap_or_default();
    let routes = v4.lines().filter_map(route_v4).chain(v6.lines().filter_map(route_v6));
    routes.filter(|route| route.interface != "lo").collect()
}

/// Parses a line of `/proc/net/route`: interface, destination, gateway, flags, three numbers, mask.
fn route_v4(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (&interface, &destination, &flags, &mask) = (words.first()?, words.get(1)?, words.get(3)?, words.get(7)?);
    if u32::from_str_radix(flags, 16).ok()? & RTF_UP == 0 {
        return None;
    }
    Some(Route {
        prefix: IpAddr::V4(hex_v4(destination)?),
        prefix_bits: hex_v4(mask)?.to_bits().count_ones(),
        interface: interface.to_owned(),
    })
}

/// Parses a line of `/proc/net/ipv6_route`: destination, prefix length, six numbers, flags, interface.
fn route_v6(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (&destination, &bits, &flags, &interface) = (words.first()?, words.get(1)?, words.get(8)?, words.get(9)?);
    if u32::from_str_radix(flags, 16).ok()? & RTF_UP == 0 {
        return None;
    }
    Some(Route {
        prefix: IpAddr::V6(Ipv6Addr::from_bits(u128::from_str_radix(destination, 16).ok()?)),
        prefix_bits: u32::from_str_radix(bits, 16).ok()?,
        interface: interface.to_owned(),
    })
}

/// Parses an IPv4 address that the kernel printed as a number in native byte order.
fn hex_v4(text: &str) -> Option<Ipv4Addr> {
    Some(Ipv4Addr::from(u32::from_str_radix(text, 16).ok()?.to_ne_bytes()))
}

/// Parses an IPv4 address, or an IPv6 address of four such numbers. IPv4-mapped addresses become IPv4 addresses.
fn hex_address(text: &str) -> Option<IpAddr> {
    if text.len() != 32 || !text.is_ascii() {
        return hex_v4(text).map(IpAddr::V4);
    }
    let mut bytes = [0; 16];
    for (target, part) in bytes.chunks_exact_mut(4).zip(0..4) {
        target.copy_from_slice(&u32::from_str_radix(&text[part * 8..][..8], 16).ok()?.to_ne_bytes());
    }
    Some(Ipv6Addr::from(bytes).to_canonical())
}

/// Returns the peers of SSH sessions: the peer in the environment variable, and the peers of all connections in the
/// kernel, because `sudo` hides the variable.
fn ssh_peers(system: &System, ssh_connection: Option<&str>) -> Vec<IpAddr> {
    let named = ssh_connection.and_then(|text| text.split_whitespace().next()?.parse::<IpAddr>().ok());
    let mut peers: Vec<IpAddr> = named.map(|address| address.to_canonical()).into_iter().collect();
    for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = system.read(file).unwrap_or_default();
        peers.extend(text.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (_, port) = words.get(1)?.split_once(':')?;
            let is_session = port == SSH_PORT && *words.get(3)? == ESTABLISHED;
            is_session.then(|| hex_address(words.get(2)?.split_once(':')?.0))?
        }));
    }
    peers.sort_unstable();
    peers.dedup();
    peers
}

/// Returns the interfaces together with all their lower interfaces.
fn with_lower(system: &System, interfaces: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = interfaces.iter().map(|&name| name.to_owned()).collect();
    let mut latest = all.clone();
    for _ in 0..MAX_DEPTH {
        let below = |name: &String| {
            let names = system.names(&format!("/sys/class/net/{name}")).into_iter();
            names.filter_map(|name| Some(name.strip_prefix("lower_")?.to_owned())).collect::<Vec<_>>()
        };
        latest = latest.iter().flat_map(below).collect();
        all.extend(latest.iter().cloned());
    }
    all.sort_unstable();
    all.dedup();
    all
}
