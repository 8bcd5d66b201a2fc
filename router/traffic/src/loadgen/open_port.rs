//! Devices of links over ports: memif, and network interfaces over packet sockets or AF_XDP.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::PathBuf;

use namehop_dpdk::DpdkError;
use namehop_dpdk::interface::Interface;
use namehop_dpdk::losses::Losses;
use namehop_dpdk::memif::{Memif, MemifPort, MemifRole, MemifService, prepare_socket};
use namehop_dpdk::packet_socket::{MAX_FRAME_BYTES, PacketPort};
use namehop_dpdk::wanted::Wanted;
use namehop_dpdk::xdp::XdpPort;
use namehop_face::address::MacAddress;
use namehop_face::encapsulation::{Framing, HEADER_BYTES, Peer};
use namehop_face::uri::{self, FaceUri, PortDriver};
use namehop_packet::{BufferPool, PortQueue};
use namehop_wire::MAX_PACKET_SIZE;
use thiserror::Error;

use super::LoadError;
use super::address::PortAddress;

/// Frames per ring of a memif, the default of routers.
const MEMIF_RING_FRAMES: u16 = 1024;
/// Buffer sizes of a memif in bytes: the default of routers, and the maximum.
const MEMIF_BUFFER_BYTES: (u16, u16) = (2048, 9216);

/// Returns the buffer size of a memif that carries packets of this many bytes without fragmentation.
pub fn memif_buffer_bytes(packet_bytes: usize) -> u16 {
    let (usual, most) = MEMIF_BUFFER_BYTES;
    if packet_bytes <= usize::from(usual) { usual } else { most }
}

/// Why a port cannot be used.
#[derive(Debug, Error)]
pub enum PortError {
    /// The local end of the link is not a port.
    #[error("{0} is not a port")]
    NotAPort(FaceUri),
    /// Only routers can use the driver of the port.
    #[error("{}:// is for routers only", .0.scheme())]
    RouterDriver(PortDriver),
    /// The socket of the memif cannot be created.
    #[error("cannot create its socket: {0}")]
    Socket(io::Error),
    /// The thread that serves the socket of the memif cannot be started.
    #[error("cannot start the thread for memif: {0}")]
    Thread(io::Error),
    /// The network interface is down.
    #[error("network interface {0} is down; run 'ip link set {0} up'")]
    InterfaceDown(String),
    /// The network interface does not carry frames of the requested size.
    #[error("network interface {interface} has an MTU of {mtu_bytes} bytes, less than {requested}: give a smaller mtu")]
    Mtu {
        /// Name of the interface.
        interface: String,
        /// Its MTU in bytes.
        mtu_bytes: usize,
        /// The requested MTU in bytes.
        requested: usize,
    },
    /// The user may not use the network interface.
    #[error("no permission for network interface {interface}: run this as root ({source})")]
    Permission {
        /// Name of the interface.
        interface: String,
        /// The error of the driver.
        source: DpdkError,
    },
    /// No peer has connected to the memif in time.
    #[error("no peer has connected: create the router's memif face with the opposite role ('namehop face create')")]
    NoPeer,
    /// The driver opened the port without a queue.
    #[error("the port has no queue")]
    NoQueue,
    /// The driver cannot open the port.
    #[error(transparent)]
    Driver(#[from] DpdkError),
}

/// The device behind a port, kept while its queue is used.
enum Device {
    Memif {
        port: MemifPort,
        /// Serves the memif's socket.
        _service: MemifService,
    },
    Packet(PacketPort),
    Xdp(XdpPort),
}

/// An open port; dropping it closes it.
pub struct OpenPort {
    /// Receives and sends its frames.
    pub queue: Box<dyn PortQueue>,
    device: Device,
    address: MacAddress,
    mtu_bytes: usize,
}

impl OpenPort {
    /// Opens the port of a link. A memif need not have a peer yet.
    ///
    /// # Errors
    /// Returns [`LoadError::Port`] if there is no such interface, no permission, or not enough memory.
    pub fn open(address: &PortAddress, pool: &BufferPool) -> Result<OpenPort, LoadError> {
        open(address, pool).map_err(|reason| LoadError::Port { link: address.to_string(), reason })
    }

    /// Returns the port's hardware address.
    pub fn address(&self) -> MacAddress {
        self.address
    }

    /// Returns the maximum size of a frame after its header, in bytes.
    pub fn mtu_bytes(&self) -> usize {
        self.mtu_bytes
    }

    /// Returns true if a peer is connected. Only a memif can tell; other ports always return true.
    #[inline]
    pub fn is_connected(&self) -> bool {
        match &self.device {
            Device::Memif { port, .. } => port.is_up(),
            Device::Packet(_) | Device::Xdp(_) => true,
        }
    }

    /// Returns the frames dropped so far.
    pub fn losses(&self) -> Losses {
        match &self.device {
            Device::Memif { port, .. } => port.losses(),
            Device::Packet(port) => port.losses(),
            Device::Xdp(port) => port.losses(),
        }
    }
}

fn open(address: &PortAddress, pool: &BufferPool) -> Result<OpenPort, PortError> {
    match address.local() {
        FaceUri::Memif { socket, id, role, .. } => open_memif(address, (socket, *id, *role), pool),
        FaceUri::Device { driver, interface, .. } => open_interface(address, *driver, interface, pool),
        other => Err(PortError::NotAPort(other.clone())),
    }
}

fn open_memif(
    address: &PortAddress,
    (socket, id, role): (&str, u32, uri::MemifRole),
    pool: &BufferPool,
) -> Result<OpenPort, PortError> {
    let header_bytes = address.peer().framing().header_bytes();
    let asked_bytes = address.mtu_bytes().map_or(0, |mtu| mtu + header_bytes);
    let buffer_bytes = memif_buffer_bytes(asked_bytes);
    let socket = PathBuf::from(socket);
    let role = match role {
        uri::MemifRole::Server => {
            prepare_socket(&socket).map_err(PortError::Socket)?;
            MemifRole::Server
        }
        uri::MemifRole::Client => MemifRole::Client,
    };
    let service = MemifService::start().map_err(PortError::Thread)?;
    let memif = Memif { role, socket, id, ring_slots: MEMIF_RING_FRAMES, buffer_bytes };
    let (port, queue) = service.open(&memif, pool)?;
    let most_bytes = (usize::from(buffer_bytes) - header_bytes).min(MAX_PACKET_SIZE);
    Ok(OpenPort {
        queue: Box::new(queue),
        device: Device::Memif { port, _service: service },
        address: random_address(),
        mtu_bytes: address.mtu_bytes().unwrap_or(most_bytes),
    })
}

fn open_interface(
    address: &PortAddress,
    driver: PortDriver,
    interface: &str,
    pool: &BufferPool,
) -> Result<OpenPort, PortError> {
    let found = Interface::query(interface)?;
    if !found.is_up {
        return Err(PortError::InterfaceDown(interface.to_owned()));
    }
    let mtu_bytes = found.mtu_bytes.min(MAX_FRAME_BYTES - HEADER_BYTES);
    if let Some(requested) = address.mtu_bytes().filter(|requested| *requested > mtu_bytes) {
        return Err(PortError::Mtu { interface: interface.to_owned(), mtu_bytes, requested });
    }
    let vlans: Vec<u16> = address.peer().vlan().iter().map(|vlan| vlan.get()).collect();
    let group = match address.peer() {
        peer @ (Peer::Ethernet(group) | Peer::Vlan(group, _)) if peer.is_group() => Some(group),
        _ => None,
    };
    let refused = |error: DpdkError| match error.is_permission() {
        true => PortError::Permission { interface: interface.to_owned(), source: error },
        false => PortError::Driver(error),
    };
    let wanted = Wanted::new(&vlans, &[]).map_err(refused)?;
    let (queue, device): (Box<dyn PortQueue>, Device) = match driver {
        PortDriver::Xdp => {
            let (port, queues) = XdpPort::open(interface, found.mtu_bytes, 1, pool).map_err(refused)?;
            port.receive_only(&wanted).map_err(refused)?;
            group.map_or(Ok(()), |group| port.join(group, true)).map_err(refused)?;
            (first(queues)?, Device::Xdp(port))
        }
        PortDriver::Kernel => {
            let frame_bytes = found.mtu_bytes + Framing::Ethernet.header_bytes();
            let (port, queues) = PacketPort::open(interface, frame_bytes, 1, pool).map_err(refused)?;
            port.receive_only(&wanted).map_err(refused)?;
            group.map_or(Ok(()), |group| port.join(group, true)).map_err(refused)?;
            (first(queues)?, Device::Packet(port))
        }
        PortDriver::Pci | PortDriver::Tap => return Err(PortError::RouterDriver(driver)),
    };
    let mtu_bytes = address.mtu_bytes().unwrap_or(mtu_bytes).min(MAX_PACKET_SIZE);
    Ok(OpenPort { queue, device, address: found.address, mtu_bytes })
}

fn first<Q: PortQueue>(queues: Vec<Q>) -> Result<Box<dyn PortQueue>, PortError> {
    let first = queues.into_iter().next().ok_or(PortError::NoQueue)?;
    Ok(Box::new(first))
}

/// Returns a random unicast, locally administered MAC address for Ethernet over memif.
fn random_address() -> MacAddress {
    let [_, rest @ .., _, _] = RandomState::new().hash_one(()).to_le_bytes();
    let mut address = [0x02; 6];
    address[1..].copy_from_slice(&rest);
    address
}
