//! From the local URI of a port to the device behind it.

use namehop_packet::{BufferPool, PortQueue};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

use namehop_dpdk::interface::Interface;
use namehop_dpdk::memif::{Memif, MemifPort, MemifRole, MemifService};
use namehop_dpdk::packet_socket::{self, PacketPort};
use namehop_dpdk::pci::PciPort;
use namehop_dpdk::{DpdkError, Eal};
use namehop_face::encapsulation::{Framing, MacAddress};
use namehop_face::socket::CreateError;
use namehop_face::uri::{self, FaceUri};

use super::memif::prepare_socket;

/// Sizes of memif links, and the thread that serves their sockets.
pub(super) struct Memifs {
    pub(super) ring_frames: u16,
    pub(super) buffer_bytes: u16,
    /// There from the first link on.
    pub(super) service: Option<MemifService>,
}

/// The device behind a port, which closes when it is dropped together with the worker's end.
pub(super) enum Device {
    Interface(PacketPort),
    Card(PciPort),
    Memif(MemifPort),
}

/// A device that is open, and what is known of it.
pub(super) struct Opened {
    pub(super) device: Device,
    /// The worker's end.
    pub(super) queue: Box<dyn PortQueue>,
    pub(super) address: MacAddress,
    /// Largest NDN frame, in bytes.
    pub(super) mtu_bytes: usize,
}

/// Opens the device of the port with this URI: `dev://` over a packet socket, `pci://` with a driver
/// of DPDK, `memif://` as a shared-memory link.
pub(super) fn open(
    environment: &Eal,
    pool: &BufferPool,
    uri: &FaceUri,
    framing: Framing,
    memifs: &mut Memifs,
) -> Result<Opened, CreateError> {
    match uri {
        FaceUri::Device { interface, .. } => {
            let found = query(interface)?;
            let frame_bytes = found.mtu_bytes + framing.header_bytes();
            let (port, queue) =
                PacketPort::open(interface, frame_bytes, pool).map_err(|error| match error.is_permission() {
                    true => CreateError::NotAcceptable(format!(
                        "no permission for network interface {interface}: the router needs the capability CAP_NET_RAW; run it \
                     as root, or grant that"
                    )),
                    false => refused(&error),
                })?;
            Ok(Opened {
                device: Device::Interface(port),
                queue: Box::new(queue),
                address: found.address,
                mtu_bytes: usable_mtu(&found, framing),
            })
        }
        FaceUri::Pci { address, .. } => {
            let (port, queue) = PciPort::open(environment, address, pool).map_err(|error| refused(&error))?;
            let (address, mtu_bytes) = (port.address, port.mtu_bytes);
            Ok(Opened { device: Device::Card(port), queue: Box::new(queue), address, mtu_bytes })
        }
        FaceUri::Memif { socket, id, role } => {
            let role = match role {
                uri::MemifRole::Server => MemifRole::Server,
                uri::MemifRole::Client => MemifRole::Client,
            };
            let socket = PathBuf::from(socket);
            if role == MemifRole::Server {
                prepare_socket(&socket).map_err(|error| {
                    CreateError::NotAcceptable(format!("cannot make the memif socket {}: {error}", socket.display()))
                })?;
            }
            let service = match &mut memifs.service {
                Some(service) => service,
                none => none.insert(MemifService::start().map_err(|error| {
                    CreateError::NotAcceptable(format!("cannot start the thread for memif: {error}"))
                })?),
            };
            let Memifs { ring_frames, buffer_bytes, .. } = *memifs;
            let memif = Memif { role, socket, id: *id, ring_slots: ring_frames, buffer_bytes };
            let (port, queue) = service.open(&memif, pool).map_err(|error| refused(&error))?;
            Ok(Opened {
                device: Device::Memif(port),
                queue: Box::new(queue),
                address: random_address(),
                mtu_bytes: usize::from(buffer_bytes) - framing.header_bytes(),
            })
        }
        other => Err(CreateError::NotAcceptable(format!(
            "{other} is not a port: write dev://INTERFACE for a network interface, pci://ADDRESS for a network card without the kernel, or memif:///SOCKET?id=NUMBER"
        ))),
    }
}

/// An address for Ethernet faces over memif: of one device, and not from the space of manufacturers.
fn random_address() -> MacAddress {
    let [_, rest @ .., _, _] = RandomState::new().hash_one(()).to_ne_bytes();
    let mut address = [0x02; 6];
    address[1..].copy_from_slice(&rest);
    address
}

/// Largest NDN frame that a port on this interface carries, in bytes.
pub(super) fn usable_mtu(interface: &Interface, framing: Framing) -> usize {
    interface.mtu_bytes.min(packet_socket::MAX_FRAME_BYTES - framing.header_bytes())
}

/// Asks the kernel for an interface. One that is not there may come.
pub(super) fn query(interface: &str) -> Result<Interface, CreateError> {
    Interface::query(interface).map_err(|error| CreateError::Unreachable(error.to_string()))
}

pub(super) fn refused(error: &DpdkError) -> CreateError {
    CreateError::NotAcceptable(error.to_string())
}
