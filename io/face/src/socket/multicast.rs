//! UDP multicast: one face per interface and address family.
//!
//! Each face has a socket bound to the group, so that it receives nothing else and sends from the NDN multicast port.
//! Packets never leave the link (TTL 1) and are not looped back to this host. When an interface disappears, its faces
//! keep their ids and routes and are down until an interface with that name appears again.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV6};
use std::rc::Rc;

use namehop_packet::{FaceId, LinkType};
use nix::net::if_::InterfaceFlags;
use socket2::{InterfaceIndexOrAddress, Protocol, Socket, Type};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::config::{MulticastInterfaces, SocketConfig};
use super::datagram_path::Path;
use super::error::ListenError;
use super::interfaces::{Changes, Interface, RETRY, SETTLING, interfaces};
use super::listen::{internet_socket, size_buffers};
use super::shared::{Link, ServiceState};
use super::udp::{self, Audience, Channel};
use crate::registry::{FacePersistency, FaceUpdate};
use crate::uri::{FaceUri, IpFamily};

/// The interface on which a group is joined: its index, and its address for IPv4. A different index means a different
/// interface.
type InterfaceAddress = (u32, Option<Ipv4Addr>);

/// A socket that has joined a group on one interface.
#[derive(Debug)]
pub(super) struct Joined {
    socket: Socket,
    interface: String,
    bound_to: InterfaceAddress,
    /// The group; for IPv6 with the interface as scope.
    group: SocketAddr,
}

impl Joined {
    /// Returns the URI of this end.
    pub(super) fn local_uri(&self) -> FaceUri {
        let family = if self.group.is_ipv4() { IpFamily::V4 } else { IpFamily::V6 };
        FaceUri::UdpDevice { family, device: self.interface.clone(), port: self.group.port() }
    }
}

/// Joins the configured groups. A group that cannot be joined yet is retried later. Exception: if the interface was
/// named and the port is in use or not permitted, that is an error.
pub(super) fn join(config: &SocketConfig) -> Result<Vec<Joined>, ListenError> {
    let multicast = &config.multicast;
    if multicast.interfaces == MulticastInterfaces::Off {
        return Ok(Vec::new());
    }
    let found = interfaces().map_err(|source| ListenError::System { action: "list network interfaces", source })?;
    let is_named = matches!(multicast.interfaces, MulticastInterfaces::Named(_));
    if let MulticastInterfaces::Named(names) = &multicast.interfaces {
        for interface in names.iter().filter(|name| !found.iter().any(|interface| interface.name == **name)) {
            tracing::warn!(
                interface,
                "no such network interface yet: joining the multicast groups as soon as it appears"
            );
        }
    }
    let mut joined = Vec::new();
    for wanted in wanted(&found, config) {
        match wanted.join(config) {
            Ok(one) => joined.push(one),
            Err(error @ (ListenError::PortInUse { .. } | ListenError::PortPermission { .. })) if is_named => {
                return Err(error);
            }
            Err(error) => {
                tracing::warn!(
                    interface = wanted.interface.name,
                    %error,
                    "cannot create a multicast face on this interface yet"
                );
            }
        }
    }
    Ok(joined)
}

/// A group that should be joined on an interface.
struct Wanted<'a> {
    interface: &'a Interface,
    group: SocketAddr,
    bound_to: InterfaceAddress,
}

/// Returns the groups to join on these interfaces.
fn wanted<'a>(found: &'a [Interface], config: &SocketConfig) -> Vec<Wanted<'a>> {
    let multicast = &config.multicast;
    let is_chosen = |interface: &Interface| match &multicast.interfaces {
        MulticastInterfaces::Off => false,
        MulticastInterfaces::All => is_suitable(interface.flags),
        MulticastInterfaces::Named(names) => names.contains(&interface.name),
    };
    let mut wanted = Vec::new();
    for interface in found.iter().filter(|interface| interface.index != 0 && is_chosen(interface)) {
        let index = interface.index;
        if let (Some(group), Some(own)) = (multicast.group_v4, interface.v4) {
            wanted.push(Wanted { interface, group: group.into(), bound_to: (index, Some(own)) });
        }
        if let Some(group) = multicast.group_v6.filter(|_| interface.has_v6) {
            let group = SocketAddrV6::new(*group.ip(), group.port(), 0, index);
            wanted.push(Wanted { interface, group: group.into(), bound_to: (index, None) });
        }
    }
    wanted
}

fn is_suitable(flags: InterfaceFlags) -> bool {
    flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_MULTICAST)
        && !flags.contains(InterfaceFlags::IFF_LOOPBACK)
}

impl Wanted<'_> {
    fn join(&self, config: &SocketConfig) -> Result<Joined, ListenError> {
        let socket = self.joined_socket(config);
        let socket = socket.map_err(|source| ListenError::internet("UDP multicast", self.group, source))?;
        Ok(Joined { socket, interface: self.interface.name.clone(), bound_to: self.bound_to, group: self.group })
    }

    fn joined_socket(&self, config: &SocketConfig) -> io::Result<Socket> {
        let socket = group_socket(self.group, config)?;
        let (index, own) = self.bound_to;
        // `multicast_all` off: otherwise this socket would also receive the group's packets on interfaces that other
        // sockets joined.
        match self.group {
            SocketAddr::V4(group) => {
                socket.join_multicast_v4_n(group.ip(), &InterfaceIndexOrAddress::Index(index))?;
                socket.set_multicast_if_v4(&own.unwrap_or(Ipv4Addr::UNSPECIFIED))?;
                socket.set_multicast_loop_v4(false)?;
                socket.set_multicast_ttl_v4(1)?;
                socket.set_multicast_all_v4(false)?;
            }
            SocketAddr::V6(group) => {
                socket.join_multicast_v6(group.ip(), index)?;
                socket.set_multicast_if_v6(index)?;
                socket.set_multicast_loop_v6(false)?;
                socket.set_multicast_hops_v6(1)?;
                socket.set_multicast_all_v6(false)?;
            }
        }
        Ok(socket)
    }
}

fn group_socket(group: SocketAddr, config: &SocketConfig) -> io::Result<Socket> {
    let socket = internet_socket(group, Type::DGRAM, Protocol::UDP)?;
    size_buffers(&socket, config.datagram_kernel_bytes);
    // Every forwarder on this host listens to the group on the same port.
    socket.set_reuse_address(true)?;
    socket.bind(&group.into())?;
    Ok(socket)
}

/// The face of a group on one interface.
struct Membership {
    interface: String,
    is_v4: bool,
    face: FaceId,
    /// The interface on which the group is joined; `None` while the interface does not exist.
    bound_to: Option<InterfaceAddress>,
    receiving: AbortHandle,
}

/// The faces of all joined groups; they follow the interfaces.
pub(super) struct Memberships {
    shared: Rc<ServiceState>,
    all: Vec<Membership>,
    receivers: JoinSet<()>,
}

impl Memberships {
    /// Creates the faces of the groups joined at the start.
    pub(super) fn open(shared: &Rc<ServiceState>, joined: Vec<Joined>) -> io::Result<Self> {
        let mut memberships = Memberships { shared: Rc::clone(shared), all: Vec::new(), receivers: JoinSet::new() };
        for one in joined {
            memberships.add(one)?;
        }
        Ok(memberships)
    }

    /// Follows the changes of interfaces as long as the service runs.
    pub(super) async fn keep(mut self) {
        let changes = Changes::subscribe("multicast faces").await;
        loop {
            // This also handles changes made before the subscription.
            let is_complete = self.follow();
            if is_complete {
                changes.next().await;
            } else {
                // Retry even if nothing has changed.
                let _ = timeout(RETRY, changes.next()).await;
            }
            sleep(SETTLING).await;
        }
    }

    /// Joins and leaves groups according to the present interfaces; returns `false` if a group could not be joined.
    fn follow(&mut self) -> bool {
        let config = &Rc::clone(&self.shared).config;
        let Ok(found) = interfaces() else { return false };
        let wanted = wanted(&found, config);
        let mut complete = true;
        for membership in &mut self.all {
            let is_there = |wanted: &Wanted<'_>| {
                wanted.interface.name == membership.interface
                    && wanted.group.is_ipv4() == membership.is_v4
                    && Some(wanted.bound_to) == membership.bound_to
            };
            if membership.bound_to.is_some() && !wanted.iter().any(is_there) {
                membership.leave(&self.shared);
            }
        }
        for wanted in wanted {
            let same = |membership: &Membership| {
                membership.interface == wanted.interface.name && membership.is_v4 == wanted.group.is_ipv4()
            };
            let known = self.all.iter().position(same);
            if known.is_some_and(|known| self.all[known].bound_to.is_some()) {
                continue;
            }
            let done = wanted.join(config).map_err(|error| error.to_string()).and_then(|joined| {
                let done = match known {
                    Some(known) => self.all[known].rejoin(&self.shared, joined, &mut self.receivers),
                    None => {
                        let group = joined.group;
                        tracing::info!(interface = wanted.interface.name, %group, "joining the multicast group");
                        self.add(joined)
                    }
                };
                done.map_err(|error| error.to_string())
            });
            if let Err(error) = done {
                tracing::debug!(interface = wanted.interface.name, error, "cannot join a multicast group yet");
                complete = false;
            }
        }
        complete
    }

    /// Creates the permanent face of a joined group.
    fn add(&mut self, joined: Joined) -> io::Result<()> {
        let shared = &self.shared;
        let Joined { interface, bound_to, group, .. } = &joined;
        let (interface, bound_to, group) = (interface.clone(), *bound_to, *group);
        let mut params = shared.params(FaceUri::udp(group), joined.local_uri());
        let is_ad_hoc = shared.config.multicast.is_ad_hoc;
        params.link_type = if is_ad_hoc { LinkType::AdHoc } else { LinkType::MultiAccess };
        params.link_mtu_bytes = shared.config.datagram_mtu_bytes.unwrap_or(params.link_mtu_bytes);
        params.persistency = FacePersistency::Permanent;
        params.allowed_persistencies = &[FacePersistency::Permanent];
        let channel = Channel::new(joined.socket, group, Audience::Group, shared.config.datagram_queue_bytes)?;
        match channel.open(shared, Path { remote: group, local: group }, params, &FaceUpdate::default()) {
            Ok(peer) => {
                let receiving = self.receivers.spawn_local(udp::receive(Rc::clone(shared), channel));
                let (is_v4, face, bound_to) = (group.is_ipv4(), peer.face_id(), Some(bound_to));
                self.all.push(Membership { interface, is_v4, face, bound_to, receiving });
            }
            Err(error) => tracing::warn!(%group, interface, %error, "cannot create a multicast face"),
        }
        Ok(())
    }
}

impl Membership {
    /// Takes the face down, because its interface is gone. The face stays.
    fn leave(&mut self, shared: &ServiceState) {
        self.bound_to = None;
        self.receiving.abort();
        let Some(entry) = shared.face(self.face) else { return };
        if let Link::Datagram(link) = &entry.link {
            link.disconnect(&entry.face);
        }
        tracing::info!(interface = self.interface, face = %self.face, "interface removed: the multicast face is down");
        shared.set_up(&entry.face, false);
    }

    /// Brings the face up again over a new socket, because its interface is back.
    fn rejoin(&mut self, shared: &Rc<ServiceState>, joined: Joined, receivers: &mut JoinSet<()>) -> io::Result<()> {
        // A face that was destroyed on command stays destroyed.
        let Some(entry) = shared.face(self.face) else { return Ok(()) };
        let Link::Datagram(link) = &entry.link else { return Ok(()) };
        let channel = Channel::new(joined.socket, joined.group, Audience::Group, shared.config.datagram_queue_bytes)?;
        channel.attach(&entry, link, Path { remote: joined.group, local: joined.group });
        self.bound_to = Some(joined.bound_to);
        self.receiving = receivers.spawn_local(udp::receive(Rc::clone(shared), channel));
        tracing::info!(
            interface = self.interface,
            face = %self.face,
            "interface present again: the multicast face is up"
        );
        shared.set_up(&entry.face, true);
        Ok(())
    }
}
