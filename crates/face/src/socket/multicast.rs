//! UDP multicast: one face per interface and address family.
//!
//! Each face has a socket bound to the group, so that it receives nothing else and sends from the NDN multicast port.
//! Packets never leave the link (TTL 1) and do not come back to this computer.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::rc::Rc;

use namehop_forward::buffer::BufferPool;
use namehop_forward::face::LinkType;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use socket2::{InterfaceIndexOrAddress, Protocol, Socket, Type};

use super::config::{MulticastInterfaces, SocketConfig};
use super::error::ListenError;
use super::listen::{enlarge_buffers, internet_socket};
use super::shared::Shared;
use super::udp::Channel;
use crate::registry::{FacePersistency, FaceUpdate};
use crate::uri::{FaceUri, IpFamily};

/// A socket that has joined a group on one interface.
#[derive(Debug)]
pub(super) struct Joined {
    socket: Socket,
    interface: String,
    /// The group; for IPv6 with the interface as scope.
    group: SocketAddr,
}

impl Joined {
    /// URI of this end.
    pub(super) fn local_uri(&self) -> FaceUri {
        let family = if self.group.is_ipv4() { IpFamily::V4 } else { IpFamily::V6 };
        FaceUri::UdpDevice { family, device: self.interface.clone(), port: self.group.port() }
    }
}

struct Interface {
    name: String,
    flags: InterfaceFlags,
    v4: Option<Ipv4Addr>,
    has_v6: bool,
}

fn interfaces() -> io::Result<Vec<Interface>> {
    let mut found: Vec<Interface> = Vec::new();
    for one in nix::ifaddrs::getifaddrs()? {
        let known = found.iter().position(|interface| interface.name == one.interface_name);
        let index = known.unwrap_or_else(|| {
            found.push(Interface { name: one.interface_name.clone(), flags: one.flags, v4: None, has_v6: false });
            found.len() - 1
        });
        let (Some(interface), Some(address)) = (found.get_mut(index), one.address) else { continue };
        if let Some(v4) = address.as_sockaddr_in() {
            interface.v4.get_or_insert(v4.ip());
        }
        interface.has_v6 |= address.as_sockaddr_in6().is_some();
    }
    Ok(found)
}

/// Joins the configured groups. An interface that was named must work; one that was found by itself may fail with a
/// warning.
pub(super) fn join(config: &SocketConfig) -> Result<Vec<Joined>, ListenError> {
    let multicast = &config.multicast;
    if multicast.interfaces == MulticastInterfaces::Off {
        return Ok(Vec::new());
    }
    let found = interfaces().map_err(|source| ListenError::System { action: "list network interfaces", source })?;
    let is_named = matches!(multicast.interfaces, MulticastInterfaces::Named(_));
    let chosen: Vec<&Interface> = match &multicast.interfaces {
        MulticastInterfaces::Off => Vec::new(),
        MulticastInterfaces::All => found.iter().filter(|interface| is_suitable(interface.flags)).collect(),
        MulticastInterfaces::Named(names) => {
            let mut chosen = Vec::new();
            for name in names {
                let one = found.iter().find(|interface| interface.name == *name);
                chosen.push(one.ok_or_else(|| ListenError::NoSuchInterface { interface: name.clone() })?);
            }
            chosen
        }
    };
    let mut joined = Vec::new();
    for interface in chosen {
        let v4 = multicast.group_v4.zip(interface.v4).map(|(group, own)| join_v4(interface, group, own, config));
        let v6 = multicast.group_v6.filter(|_| interface.has_v6).map(|group| join_v6(interface, group, config));
        for result in [v4, v6].into_iter().flatten() {
            match result {
                Ok(one) => joined.push(one),
                Err(error) if is_named => return Err(error),
                Err(error) => tracing::warn!(interface = interface.name, %error, "no multicast face on this interface"),
            }
        }
    }
    Ok(joined)
}

fn is_suitable(flags: InterfaceFlags) -> bool {
    flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_MULTICAST)
        && !flags.contains(InterfaceFlags::IFF_LOOPBACK)
}

fn join_v4(
    interface: &Interface,
    group: SocketAddrV4,
    own: Ipv4Addr,
    config: &SocketConfig,
) -> Result<Joined, ListenError> {
    let open = || -> io::Result<Socket> {
        let index = if_nametoindex(interface.name.as_str())?;
        let socket = group_socket(SocketAddr::V4(group), config)?;
        socket.join_multicast_v4_n(group.ip(), &InterfaceIndexOrAddress::Index(index))?;
        socket.set_multicast_if_v4(&own)?;
        socket.set_multicast_loop_v4(false)?;
        socket.set_multicast_ttl_v4(1)?;
        // Otherwise this socket would also hear the group on interfaces that other sockets joined.
        socket.set_multicast_all_v4(false)?;
        Ok(socket)
    };
    joined(interface, SocketAddr::V4(group), open())
}

fn join_v6(interface: &Interface, group: SocketAddrV6, config: &SocketConfig) -> Result<Joined, ListenError> {
    let index = if_nametoindex(interface.name.as_str()).unwrap_or(0);
    let group = SocketAddr::V6(SocketAddrV6::new(*group.ip(), group.port(), 0, index));
    let open = || -> io::Result<Socket> {
        let socket = group_socket(group, config)?;
        if let SocketAddr::V6(group) = group {
            socket.join_multicast_v6(group.ip(), index)?;
        }
        socket.set_multicast_if_v6(index)?;
        socket.set_multicast_loop_v6(false)?;
        socket.set_multicast_hops_v6(1)?;
        socket.set_multicast_all_v6(false)?;
        Ok(socket)
    };
    joined(interface, group, open())
}

fn group_socket(group: SocketAddr, config: &SocketConfig) -> io::Result<Socket> {
    let socket = internet_socket(group, Type::DGRAM, Protocol::UDP)?;
    enlarge_buffers(&socket, config.datagram_kernel_bytes);
    // Every forwarder on this computer listens to the group on the same port.
    socket.set_reuse_address(true)?;
    socket.bind(&group.into())?;
    Ok(socket)
}

fn joined(interface: &Interface, group: SocketAddr, socket: io::Result<Socket>) -> Result<Joined, ListenError> {
    match socket {
        Ok(socket) => Ok(Joined { socket, interface: interface.name.clone(), group }),
        Err(source) => Err(ListenError::internet("UDP multicast", group, source)),
    }
}

/// Makes the permanent face of a joined group.
pub(super) fn open<P: BufferPool>(
    shared: &Rc<Shared<P>>,
    joined: Joined,
) -> io::Result<Option<Rc<Channel<P::Buffer>>>> {
    let mut params = shared.params(FaceUri::udp(joined.group), joined.local_uri());
    params.link_type = LinkType::MultiAccess;
    params.persistency = FacePersistency::Permanent;
    params.allowed_persistencies = &[FacePersistency::Permanent];
    let channel = Channel::new(joined.socket, joined.group, true, shared.config.datagram_queue_bytes)?;
    match channel.open(shared, joined.group, params, &FaceUpdate::default()) {
        Ok(_) => Ok(Some(channel)),
        Err(error) => {
            tracing::warn!(group = %joined.group, interface = joined.interface, %error, "no multicast face");
            Ok(None)
        }
    }
}
