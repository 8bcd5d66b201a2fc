//! Sections `[ports]` and `[[port]]`, and checks of faces on ports.

use std::collections::BTreeSet;

use namehop_engine::dispatch::MAX_WORKERS;
use namehop_face::FaceUri;
use namehop_face::address::VlanId;
use namehop_face::registry::max_unsolicited_faces;
use namehop_packet::size::LARGE_BYTES;
use namehop_port::drivers::{self, Driver};
use namehop_port::faces::PortNetwork;

use crate::automatic::Auto;
use crate::fault::Fault;
use crate::settings::settings;
use crate::values::{InterfaceText, IpText, PortAddressText, PortText, UriText};
use crate::{Config, StaticFace};

/// Maximum number of addresses of one port or VLAN, and of a port with all its VLANs. Each address costs the kernel's
/// packet filter some instructions for each IP frame.
const MAX_ADDRESSES: usize = 8;
const MAX_ADDRESSES_IN_ALL: usize = 64;

/// If unknown senders can create faces on ports, one in this many of the faces for unsolicited peers is set aside for
/// these ports.
const SHARE_OF_PORTS: usize = 3;
/// Maximum number of faces that unknown senders can create on one port.
const MAX_UNSOLICITED_ON_PORT: usize = 4096;

/// Most bytes of a frame around its packet: addresses, type, VLAN tag, check sequence.
const AROUND_BYTES: usize = 22;

settings! {
    /// Ports are links that a worker serves by itself: network interfaces with NDN directly above Ethernet, and memif
    /// (memory shared with another process). The first port starts DPDK, which holds the packets, and allocates the
    /// memory of all buffers of `[forwarding]`, from huge pages if enough are free.
    ///
    /// `memif_folders` and `interfaces` restrict the ports that commands may open (`namehop face create`). The
    /// configuration itself, and commands signed with a certificate of `[[management.authorizations]]`, may open any
    /// port. The restriction exists because every local application can send commands, and the router may have rights
    /// that the application lacks.
    pub section Ports {
        /// From the first port on, a single worker has its own thread on this CPU: a number, or "auto" for the last CPU
        /// that this process may use. With several workers, `workers` and `processors` in `[forwarding]` apply.
        pub worker_processor: Auto<usize> = Auto::Auto;
        /// On-demand Ethernet faces close after this many seconds without a frame (they may live up to twice as long).
        pub idle_timeout_s: u64 = 600, in 1..=1 << 32;
        /// memif: frames per ring, a power of two. Use the same value at both ends.
        pub memif_ring_frames: u16 = 1024, in 2..=16_384;
        /// memif: bytes per buffer, which is also the maximum frame size; NDNLPv2 fragments larger packets. Use the
        /// same value at both ends.
        pub memif_buffer_bytes: u16 = 2048, in 512..=9_216;
        /// Folders for memif sockets, with all folders below them. "auto" is /run/ndn, ndn in $XDG_RUNTIME_DIR, and
        /// $RUNTIME_DIRECTORY, which systemd sets. The router creates the listed folders when needed, and no others.
        /// Give write permission there to the router's user only.
        pub memif_folders: Vec<String> = vec!["auto".to_owned()];
        /// Network interfaces, or PCI addresses of network cards, with all their VLANs; `["all"]` allows all. Ports of
        /// `[[port]]` and `[[face]]` are always allowed.
        pub interfaces: Vec<String> = Vec::new(), example "[\"eth1\"]";
    }
}

settings! {
    /// A port to open at start. The router also opens a port when a face needs it; a section here adds settings. A VLAN
    /// on a port is a `[[port]]` of its own, uri = "dev://eth1?vlan=7", with `multicast`, `on_demand`, `addresses` and
    /// `gateways` only.
    pub element StaticPort {
        /// URI of the port:
        /// - "dev://eth1" for a network interface, "xdp://eth1" for one over AF_XDP;
        /// - "pci://0000:03:00.0" for a network card without the kernel;
        /// - "tap://ndn0" for an interface to the kernel of this host;
        /// - "memif:///run/ndn/x.sock?id=0", with &role=client at the other end;
        /// - "pcap:///in.pcap?out=/out.pcap" for captures.
        pub uri: PortText, example "\"dev://eth1\"";
        /// pci and tap: MTU in bytes.
        pub mtu: Option<usize>, in 1280..=(LARGE_BYTES - AROUND_BYTES) as u64, example "1500", serde(default);
        /// dev, xdp and pci: number of queues. "auto" is one per worker, if the port has that many.
        pub queues: Auto<usize>, in 1..=MAX_WORKERS as u64, serde(default);
        /// pci: an interface that gives the kernel all traffic other than NDN.
        pub kernel_interface: Option<InterfaceText>, example "\"eth1n\"", serde(default);
        /// Whether to make a face for the NDN multicast group 01:00:5e:00:17:aa.
        pub multicast: bool, serde(default);
        /// Whether frames from unknown senders, and UDP to port 6363, make faces.
        pub on_demand: bool, serde(default);
        /// Addresses of the port, not of the kernel: for UDP and VXLAN faces.
        pub addresses: Vec<PortAddressText>, example r#"["192.0.2.1/24", "2001:db8::1/64"]"#, serde(default);
        /// Next hops for peers outside the networks of `addresses`: at most one per family.
        pub gateways: Vec<IpText>, example "[\"192.0.2.254\"]", serde(default);
    }
}

impl StaticPort {
    /// Returns the network settings of the port, or of the VLAN on it.
    pub fn network(&self) -> PortNetwork {
        PortNetwork {
            vlan: self.vlan(),
            on_demand: self.on_demand,
            addresses: self.addresses.iter().map(|address| address.0).collect(),
            gateways: self.gateways.iter().map(|gateway| gateway.0).collect(),
        }
    }

    /// Returns the VLAN, if this is a VLAN on a port.
    fn vlan(&self) -> Option<VlanId> {
        self.uri.0.options().and_then(|options| options.vlan)
    }

    /// Returns the first key that is set for a VLAN although only its port can have it.
    fn key_of_port(&self) -> Option<&'static str> {
        let keys = [
            ("mtu", self.mtu.is_some()),
            ("queues", self.queues != Auto::Auto),
            ("kernel_interface", self.kernel_interface.is_some()),
        ];
        keys.into_iter().find(|(_, is_said)| *is_said && self.vlan().is_some()).map(|(key, _)| key)
    }

    /// Returns the error in the MTU, if any.
    fn mtu_fault(&self) -> Option<String> {
        (self.mtu.is_some() && !Driver::traits_of(&self.uri.0).sets_mtu)
            .then(|| format!("the system sets the MTU of {}; remove `mtu`", self.uri.0))
    }

    /// Returns the error in the number of queues, if any.
    fn queues_fault(&self) -> Option<String> {
        let Auto::Value(queues) = self.queues else { return None };
        (queues > 1 && !Driver::traits_of(&self.uri.0).has_several_queues)
            .then(|| format!("{} has one queue; remove `queues`", self.uri.0))
    }

    /// Returns the error in the interface for the kernel, if any.
    fn kernel_interface_fault(&self) -> Option<String> {
        (self.kernel_interface.is_some() && !Driver::traits_of(&self.uri.0).is_without_kernel)
            .then(|| format!("{} leaves the kernel's traffic to the kernel; remove `kernel_interface`", self.uri.0))
    }

    /// Returns the first error in the addresses and gateways: key, index and message.
    fn network_fault(&self) -> Option<(&'static str, usize, String)> {
        let network = self.network();
        if !network.addresses.is_empty() && self.uri.0.options().is_none() {
            return Some((
                "addresses",
                0,
                format!(
                    "{} cannot have addresses; only these ports can: {}",
                    self.uri.0,
                    drivers::forms(|driver| driver.scheme.separator.is_some())
                ),
            ));
        }
        if network.addresses.len() > MAX_ADDRESSES {
            return Some(("addresses", MAX_ADDRESSES, format!("a port has at most {MAX_ADDRESSES} addresses")));
        }
        for (index, own) in network.addresses.iter().enumerate() {
            if network.addresses[..index].iter().any(|other| other.address == own.address) {
                return Some(("addresses", index, format!("{} is listed twice; remove one", own.address)));
            }
        }
        for (index, &gateway) in network.gateways.iter().enumerate() {
            let is_neighbour = network.addresses.iter().any(|own| own.contains(gateway)) && !network.has(gateway);
            if !is_neighbour {
                let message = format!(
                    "{gateway} is not on the port's link; write a neighbour in the subnet of one of its `addresses`"
                );
                return Some(("gateways", index, message));
            }
            if network.gateways[..index].iter().any(|other| other.is_ipv4() == gateway.is_ipv4()) {
                return Some((
                    "gateways",
                    index,
                    "a port has at most one gateway for each address family; remove the others".to_owned(),
                ));
            }
        }
        None
    }
}

impl Config {
    /// Returns the number of ports on which unknown senders can create faces, directly or in a VLAN.
    fn ports_for_unsolicited(&self) -> usize {
        let ports: BTreeSet<String> =
            self.port.iter().filter(|port| port.on_demand).map(|port| port.uri.0.port().to_string()).collect();
        ports.len()
    }

    /// Returns how many faces unknown senders can create on one port of a router with at most `max_faces`.
    pub fn max_unsolicited_on_port(&self, max_faces: usize) -> usize {
        let of_all_ports = max_unsolicited_faces(max_faces) / SHARE_OF_PORTS;
        of_all_ports.checked_div(self.ports_for_unsolicited()).unwrap_or(0).min(MAX_UNSOLICITED_ON_PORT)
    }

    /// Returns how many faces unknown senders can create on all ports together of a router with at most `max_faces`.
    pub fn max_unsolicited_on_ports(&self, max_faces: usize) -> usize {
        self.max_unsolicited_on_port(max_faces) * self.ports_for_unsolicited()
    }

    /// Returns whether the configuration needs a port.
    pub fn has_ports(&self) -> bool {
        !self.port.is_empty()
            || self.face.iter().any(|face| face.uri.0.is_on_port(face.local.as_ref().map(|local| &local.0)))
    }

    /// Returns whether the router may use network cards without the kernel.
    pub fn may_use_pci(&self) -> bool {
        let locals = self.face.iter().filter_map(|face| Some(&face.local.as_ref()?.0));
        let is_card = |uri: &FaceUri| Driver::traits_of(uri).is_without_kernel;
        let cards = || drivers::DRIVERS.iter().filter(|driver| driver.traits.is_without_kernel);
        self.port.iter().map(|port| &port.uri.0).chain(locals).any(is_card)
            || self.ports.interfaces.iter().any(|name| cards().any(|driver| driver.is_device(name)))
    }

    /// Returns the first error in ports and their faces.
    pub(crate) fn port_fault(&self) -> Option<Fault> {
        let ring_frames = self.ports.memif_ring_frames;
        if !ring_frames.is_power_of_two() {
            let message = format!("`memif_ring_frames` is {ring_frames}; it must be a power of two");
            return Some(Fault::new("ports.memif_ring_frames", message));
        }
        let is_wrong = |folder: &String| folder != "auto" && !folder.starts_with('/');
        if let Some(index) = self.ports.memif_folders.iter().position(is_wrong) {
            let folder = &self.ports.memif_folders[index];
            let message = format!("`{folder}` is not an absolute path; write a path that begins with /, or \"auto\"");
            return Some(Fault::new(format!("ports.memif_folders[{index}]"), message));
        }
        for (index, port) in self.port.iter().enumerate() {
            let uri = &port.uri.0;
            let message = if uri.network() != *uri {
                format!(
                    "{uri} is more than a port; write only the interface, or a VLAN on it, and the other options in \
                     `local` of a [[face]]"
                )
            } else if self.port[..index].iter().any(|other| other.uri.0 == *uri) {
                format!("{uri} is configured twice; merge these sections into one [[port]]")
            } else {
                continue;
            };
            return Some(Fault::new(format!("port[{index}].uri"), message));
        }
        let vlan_fault = self.port.iter().enumerate().find_map(|(index, port)| {
            let (key, uri) = (port.key_of_port()?, &port.uri.0);
            let message = format!(
                "`{key}` is not a setting of a VLAN, but of its port; write it into the [[port]] {}",
                uri.port()
            );
            Some(Fault::new(format!("port[{index}].{key}"), message))
        });
        let mtu_fault = self
            .port
            .iter()
            .enumerate()
            .find_map(|(index, port)| Some(Fault::new(format!("port[{index}].mtu"), port.mtu_fault()?)));
        let kernel_fault = self.port.iter().enumerate().find_map(|(index, port)| {
            Some(Fault::new(format!("port[{index}].kernel_interface"), port.kernel_interface_fault()?))
        });
        let queues_fault = self
            .port
            .iter()
            .enumerate()
            .find_map(|(index, port)| Some(Fault::new(format!("port[{index}].queues"), port.queues_fault()?)));
        let network_fault = self.port.iter().enumerate().find_map(|(index, port)| {
            let (key, position, message) = port.network_fault()?;
            Some(Fault::new(format!("port[{index}].{key}[{position}]"), message))
        });
        let mut faces = self.face.iter().enumerate();
        vlan_fault
            .or(mtu_fault)
            .or(queues_fault)
            .or(kernel_fault)
            .or(network_fault)
            .or_else(|| self.addresses_fault())
            .or_else(|| faces.find_map(|(index, face)| self.local_fault(index, face)))
            .or_else(|| self.next_hop_fault())
    }

    /// Returns an error if a port has too many addresses in all its VLANs together.
    fn addresses_fault(&self) -> Option<Fault> {
        self.port.iter().enumerate().find_map(|(index, port)| {
            let uri = port.uri.0.port();
            let on_port = self.port[..=index].iter().filter(|other| other.uri.0.is_on(&uri));
            let count: usize = on_port.map(|other| other.addresses.len()).sum();
            (count > MAX_ADDRESSES_IN_ALL).then(|| {
                let message = format!(
                    "{uri} has at most {MAX_ADDRESSES_IN_ALL} addresses in all its VLANs together; remove some"
                );
                Fault::new(format!("port[{index}].addresses"), message)
            })
        })
    }

    /// Returns the local URI of the configured face to this peer, completed with the addresses of its port.
    pub fn local_uri_of(&self, peer: &FaceUri) -> Option<FaceUri> {
        self.complete_local_uri(self.face.iter().find(|face| face.uri.0 == *peer)?)
    }

    /// Returns the local URI of a configured face, completed with the addresses of its port.
    pub fn complete_local_uri(&self, face: &StaticFace) -> Option<FaceUri> {
        let local = face.local.as_ref()?.0.clone();
        match face.uri.0 {
            FaceUri::Udp { .. } | FaceUri::Tunnel(_) => {
                Some(self.network_at(&local).complete(&face.uri.0, &local).unwrap_or(local))
            }
            _ => Some(local),
        }
    }

    /// Returns the configuration of the port, or of the VLAN on it, that this local URI names.
    pub fn network_at(&self, local: &FaceUri) -> PortNetwork {
        let network = local.network();
        let port = self.port.iter().find(|port| port.uri.0 == network);
        port.map(StaticPort::network).unwrap_or_default()
    }

    /// Returns an error if a route over Ethernet or VXLAN has no configured face: the route does not name the
    /// interface.
    fn next_hop_fault(&self) -> Option<Fault> {
        self.route.iter().enumerate().find_map(|(index, route)| {
            let UriText(next_hop @ (FaceUri::Ethernet(_) | FaceUri::Tunnel(_))) = &route.nexthop else {
                return None;
            };
            let unknown = self.local_uri_of(next_hop).is_none();
            unknown.then(|| {
                let message =
                    format!("`nexthop` {next_hop} needs a [[face]] with this `uri` and its `local` interface");
                Fault::new(format!("route[{index}].nexthop"), message)
            })
        })
    }

    fn local_fault(&self, index: usize, face: &StaticFace) -> Option<Fault> {
        let uri = &face.uri.0;
        match (uri, &face.local) {
            (FaceUri::Ethernet(_) | FaceUri::Tunnel(_), None) => {
                let message = format!("{uri} needs `local`, for example local = \"dev://eth1\"");
                Some(Fault::new(format!("face[{index}].uri"), message))
            }
            (FaceUri::Udp { .. } | FaceUri::Tunnel(_), Some(local)) => {
                let message = self.network_at(&local.0).complete(uri, &local.0).err()?;
                Some(Fault::new(format!("face[{index}].local"), message))
            }
            (FaceUri::Ethernet(_), Some(_)) | (_, None) => None,
            (_, Some(_)) => {
                let message = format!("{} faces have no `local`; remove it", uri.scheme());
                Some(Fault::new(format!("face[{index}].local"), message))
            }
        }
    }
}
