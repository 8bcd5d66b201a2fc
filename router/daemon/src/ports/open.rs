//! Opens the device behind the local URI of a port.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use namehop_dpdk::interface::Interface;
use namehop_dpdk::losses::Losses;
use namehop_dpdk::memif::{Memif, MemifPort, MemifRole, MemifService, prepare_socket};
use namehop_dpdk::nic::{NicPort, USUAL_MTU_BYTES};
use namehop_dpdk::packet_socket::{self, PacketPort};
use namehop_dpdk::relay::RelayPort;
use namehop_dpdk::steering::Flow;
use namehop_dpdk::tap::TapPort;
use namehop_dpdk::wanted::Wanted;
use namehop_dpdk::xdp::XdpPort;
use namehop_dpdk::{DpdkError, Eal, pcap, pci};
use namehop_face::address::MacAddress;
use namehop_face::encapsulation::{Framing, VLAN_HEADER_BYTES};
use namehop_face::port::PortQueues;
use namehop_face::socket::CreateError;
use namehop_face::uri::{self, FaceUri, PortDriver};
use namehop_packet::{BufferPool, PortQueue};

/// Sizes of memif links, and the thread that serves their sockets.
pub(super) struct Memifs {
    pub(super) ring_frames: u16,
    pub(super) buffer_bytes: u16,
    /// Started with the first link.
    pub(super) service: Option<MemifService>,
}

/// File with an identifier of this host.
const MACHINE_ID: &str = "/etc/machine-id";
/// Default hardware address of a capture port; constant, so that the same capture gives the same frames.
const PCAP_ADDRESS: MacAddress = [0x02, 0, 0, 0, 0, 0x01];

/// The device behind a port. It closes when both it and the workers' ends are dropped.
pub(super) enum Device {
    /// An interface of the kernel, with its name.
    Interface(String, PacketPort),
    /// An interface of the kernel over AF_XDP, with its name.
    Xdp(String, XdpPort),
    /// A network card with a DPDK driver.
    Nic(NicPort),
    Tap(TapPort),
    Pcap(RelayPort),
    Memif(MemifPort),
}

impl Device {
    /// Returns whether the link is up.
    pub(super) fn is_up(&self) -> bool {
        match self {
            Device::Interface(name, _) | Device::Xdp(name, _) => query(name).is_ok_and(|found| found.is_up),
            Device::Nic(port) => port.is_up(),
            Device::Tap(port) => port.is_up(),
            Device::Pcap(port) => !port.has_ended(),
            Device::Memif(port) => port.is_up(),
        }
    }

    /// Returns the index of the kernel's network interface that the device uses.
    pub(super) fn interface_index(&self) -> Option<u32> {
        match self {
            Device::Interface(_, port) => Some(port.interface_index()),
            Device::Xdp(_, port) => Some(port.interface_index()),
            Device::Nic(_) | Device::Tap(_) | Device::Pcap(_) | Device::Memif(_) => None,
        }
    }

    /// Returns whether the device was removed, so that it must be closed and opened again later.
    pub(super) fn is_removed(&self) -> bool {
        match self {
            Device::Nic(port) => port.is_removed(),
            Device::Tap(port) => port.relay().has_ended(),
            Device::Interface(..) | Device::Xdp(..) | Device::Pcap(_) | Device::Memif(_) => false,
        }
    }

    /// Starts delivery of frames. Called when the port has a face.
    pub(super) fn start(&self) {
        if let Device::Pcap(port) = self {
            port.start();
        }
    }

    /// Returns why the link does not work, if the device found a reason since the last call.
    pub(super) fn take_trouble(&self) -> Option<String> {
        match self {
            Device::Memif(port) => port.take_trouble(),
            Device::Interface(..) | Device::Xdp(..) | Device::Nic(_) | Device::Tap(_) | Device::Pcap(_) => None,
        }
    }

    /// Returns the frames lost since the device was opened.
    pub(super) fn losses(&self) -> Losses {
        match self {
            Device::Interface(_, port) => port.losses(),
            Device::Xdp(_, port) => port.losses(),
            Device::Nic(port) => port.losses(),
            Device::Tap(port) => port.relay().losses(),
            Device::Pcap(port) => port.losses(),
            Device::Memif(port) => port.losses(),
        }
    }

    /// Joins or leaves an Ethernet multicast group, on devices that do not receive all groups.
    pub(super) fn join(&self, group: MacAddress, join: bool) -> Result<(), DpdkError> {
        match self {
            Device::Interface(_, port) => port.join(group, join),
            Device::Xdp(_, port) => port.join(group, join),
            Device::Nic(port) => port.join(group, join),
            Device::Tap(_) | Device::Pcap(_) | Device::Memif(_) => Ok(()),
        }
    }

    /// Joins all Ethernet multicast groups, on devices that do not receive all groups.
    pub(super) fn join_all(&self) -> Result<(), DpdkError> {
        match self {
            Device::Nic(port) => port.join_all(),
            _ => Ok(()),
        }
    }

    /// Steers the frames of a flow to one queue and returns its number. `None` if the device spreads flows itself or
    /// cannot steer.
    pub(super) fn steer(&self, flow: Flow) -> Result<Option<u16>, DpdkError> {
        match self {
            Device::Nic(port) => port.steer(flow),
            _ => Ok(None),
        }
    }

    /// Stops steering a flow.
    pub(super) fn release(&self, flow: &Flow) -> Result<(), DpdkError> {
        match self {
            Device::Nic(port) => port.release(flow),
            _ => Ok(()),
        }
    }

    /// Sets the filter: the device receives `wanted` besides untagged NDN frames, and nothing else as far as it can
    /// filter.
    pub(super) fn receive_only(&self, wanted: &Wanted) -> Result<(), DpdkError> {
        match self {
            Device::Interface(_, port) => port.receive_only(wanted),
            Device::Xdp(_, port) => port.receive_only(wanted),
            Device::Nic(port) => port.receive_only(wanted),
            Device::Tap(_) | Device::Pcap(_) | Device::Memif(_) => Ok(()),
        }
    }
}

/// An open device with its properties.
pub(super) struct Opened {
    pub(super) device: Device,
    /// The workers' ends, one per queue.
    pub(super) queues: PortQueues,
    /// How frames are spread over several queues, for the log.
    pub(super) spread: &'static str,
    pub(super) address: MacAddress,
    /// Largest NDN frame, in bytes.
    pub(super) mtu_bytes: usize,
}

/// The resources for opening devices.
pub(super) struct Place<'a> {
    pub(super) environment: &'a Eal,
    pub(super) pool: &'a BufferPool,
    pub(super) memifs: &'a mut Memifs,
}

/// Settings that only some devices support.
#[derive(Clone, Copy)]
pub(super) struct DeviceWishes {
    /// MTU in bytes, for devices with an MTU that the kernel does not set.
    pub(super) mtu_bytes: Option<usize>,
    /// Requested number of queues; the device may have fewer.
    pub(super) queues: usize,
}

/// Descriptions of how frames are spread over the queues of a port.
const BY_PORTS: &str = "UDP packets by addresses and ports, all others to the first queue";
const BY_DEVICE: &str = "by the device's own rules";
const NOT_AT_ALL: &str = "not at all";

/// Opens the device of the port with this URI: `dev://` over a packet socket, `xdp://` over an AF_XDP socket, `pci://`
/// with a DPDK driver, `tap://` as an interface to the kernel, `pcap://` over files, `memif://` as a shared-memory
/// link. Only some drivers use the settings in `wishes`.
pub(super) fn open(
    place: Place<'_>,
    uri: &FaceUri,
    framing: Framing,
    wishes: DeviceWishes,
) -> Result<Opened, CreateError> {
    let Place { environment, pool, memifs } = place;
    let DeviceWishes { mtu_bytes, queues } = wishes;
    match uri {
        FaceUri::Device { driver: PortDriver::Pci, interface, .. } => {
            let mtu_bytes = mtu_bytes.unwrap_or(USUAL_MTU_BYTES);
            let opened = pci::open(environment, interface, mtu_bytes, queues, pool);
            let (port, queues) = opened.map_err(|error| refused(&error))?;
            let (address, mtu_bytes) = (port.address, port.mtu_bytes);
            let spread = if port.spreads { BY_PORTS } else { BY_DEVICE };
            Ok(Opened { device: Device::Nic(port), queues: boxed(queues), spread, address, mtu_bytes })
        }
        FaceUri::Device { driver: PortDriver::Xdp, interface, .. } => {
            let Interface { address, mtu_bytes, .. } = query(interface)?;
            let opened = XdpPort::open(interface, mtu_bytes, queues, pool);
            let (port, queues) = opened.map_err(|error| refused(&error))?;
            let (device, queues) = (Device::Xdp(interface.clone(), port), boxed(queues));
            Ok(Opened { device, queues, spread: BY_DEVICE, address, mtu_bytes })
        }
        FaceUri::Device { driver: PortDriver::Tap, interface, .. } => {
            let mtu_bytes = mtu_bytes.unwrap_or(USUAL_MTU_BYTES);
            let (port, queue) = TapPort::open(interface, mtu_bytes, None, pool).map_err(|error| refused(&error))?;
            let address = address_for(interface);
            Ok(Opened { device: Device::Tap(port), queues: boxed([queue]), spread: NOT_AT_ALL, address, mtu_bytes })
        }
        FaceUri::Pcap { input, output, address } => {
            let [input, output] = [input, output].map(|path| path.as_deref().map(Path::new));
            let (port, queue) = pcap::open(input, output, pool).map_err(|error| refused(&error))?;
            let address = address.unwrap_or(PCAP_ADDRESS);
            let mtu_bytes = pcap::MAX_FRAME_BYTES - VLAN_HEADER_BYTES;
            Ok(Opened { device: Device::Pcap(port), queues: boxed([queue]), spread: NOT_AT_ALL, address, mtu_bytes })
        }
        FaceUri::Device { driver: PortDriver::Kernel, interface, .. } => {
            let found = query(interface)?;
            let frame_bytes = found.mtu_bytes + framing.header_bytes();
            let opened = PacketPort::open(interface, frame_bytes, queues, pool);
            let (port, queues) = opened.map_err(|error| match error.is_permission() {
                true => CreateError::NotAcceptable(format!(
                    "no permission for network interface {interface}: the router needs the capability CAP_NET_RAW; \
                     grant it, or run the router as root"
                )),
                false => refused(&error),
            })?;
            Ok(Opened {
                device: Device::Interface(interface.clone(), port),
                queues: boxed(queues),
                spread: BY_PORTS,
                address: found.address,
                mtu_bytes: usable_mtu(&found, framing),
            })
        }
        FaceUri::Memif { socket, id, role, .. } => {
            let role = match role {
                uri::MemifRole::Server => MemifRole::Server,
                uri::MemifRole::Client => MemifRole::Client,
            };
            let socket = PathBuf::from(socket);
            if role == MemifRole::Server {
                prepare_socket(&socket).map_err(|error| {
                    CreateError::NotAcceptable(format!("cannot create the memif socket {}: {error}", socket.display()))
                })?;
            }
            let service =
                match &mut memifs.service {
                    Some(service) => service,
                    none => none.insert(MemifService::start().map_err(|error| {
                        CreateError::NotAcceptable(format!("cannot start the memif thread: {error}"))
                    })?),
                };
            let Memifs { ring_frames, buffer_bytes, .. } = *memifs;
            let memif = Memif { role, socket, id: *id, ring_slots: ring_frames, buffer_bytes };
            let (port, queue) = service.open(&memif, pool).map_err(|error| refused(&error))?;
            Ok(Opened {
                device: Device::Memif(port),
                queues: boxed([queue]),
                spread: NOT_AT_ALL,
                address: random_address(),
                mtu_bytes: usize::from(buffer_bytes) - framing.header_bytes(),
            })
        }
        other => Err(CreateError::NotAcceptable(format!(
            "{other} is not a port: write dev://INTERFACE for a network interface, pci://ADDRESS for a network card \
             without the kernel, tap://INTERFACE for a new interface to the kernel, memif:///SOCKET?id=NUMBER, or \
             pcap:///FILE"
        ))),
    }
}

fn boxed<Q: PortQueue>(queues: impl IntoIterator<Item = Q>) -> PortQueues {
    queues.into_iter().map(|queue| Box::new(queue) as Box<dyn PortQueue>).collect()
}

/// Returns the hardware address of the port at the other end of a TAP interface: constant on one host, different on
/// others.
fn address_for(interface: &str) -> MacAddress {
    let computer = fs::read(MACHINE_ID).unwrap_or_default();
    // FNV-1a, because it is the same in every version of the program and compiler.
    let hash = computer
        .iter()
        .chain(interface.as_bytes())
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3));
    local_address(hash.to_le_bytes())
}

/// Returns a random hardware address for Ethernet faces over memif: unicast and locally administered.
fn random_address() -> MacAddress {
    local_address(RandomState::new().hash_one(()).to_le_bytes())
}

fn local_address([_, rest @ .., _, _]: [u8; 8]) -> MacAddress {
    let mut address = [0x02; 6];
    address[1..].copy_from_slice(&rest);
    address
}

/// Returns the largest NDN frame that a port on this interface carries, in bytes.
pub(super) fn usable_mtu(interface: &Interface, framing: Framing) -> usize {
    interface.mtu_bytes.min(packet_socket::MAX_FRAME_BYTES - framing.header_bytes())
}

/// Queries the kernel for an interface. The error is `Unreachable`, because a missing interface may appear later.
pub(super) fn query(interface: &str) -> Result<Interface, CreateError> {
    Interface::query(interface).map_err(|error| CreateError::Unreachable(error.to_string()))
}

pub(super) fn refused(error: &DpdkError) -> CreateError {
    CreateError::NotAcceptable(error.to_string())
}
