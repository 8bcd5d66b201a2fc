//! Ports of a switch: devices that receive and send every frame, regardless of its addresses.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use namehop_dpdk::interface::Interface;
use namehop_dpdk::losses::Losses;
use namehop_dpdk::memif::{Memif, MemifPort, MemifRole, MemifService, prepare_socket};
use namehop_dpdk::nic::{NicPort, NicQueue, USUAL_MTU_BYTES};
use namehop_dpdk::packet_socket::{MAX_FRAME_BYTES, PacketPort};
use namehop_dpdk::relay::RelayPort;
use namehop_dpdk::xdp::XdpPort;
use namehop_dpdk::{Devices, DpdkError, Eal, mempool_bytes, pcap, pci, use_mempools};
use namehop_face::uri::{self, FaceUri, PortDriver};
use namehop_packet::{BufferPool, PortQueue};
use thiserror::Error;

use crate::controller::Controller;

/// Bytes of the addresses, the type and a VLAN tag.
const HEADER_BYTES: usize = 18;
/// Slots of the rings of a memif that this end offers, and bytes of each of its buffers.
const MEMIF_SLOTS: u16 = 1024;
const MEMIF_BUFFER_BYTES: u16 = 2048;

/// A port number of the program and its device, as in `0=dev://eth0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSpec {
    /// The program's number of the port.
    pub number: u32,
    /// URI of the device.
    pub uri: FaceUri,
}

impl PortSpec {
    /// The controller's port, in this process; its packets are exchanged through
    /// [`Switch::controller`](crate::Switch::controller).
    pub fn controller(number: u32) -> PortSpec {
        PortSpec { number, uri: FaceUri::Internal }
    }
}

/// Why a text is not a port.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum PortSpecError {
    /// There is no number or no URI.
    #[error("a port must be NUMBER=URI, as in 0=dev://eth0")]
    Form,
    /// The number is not one of a port.
    #[error("'{0}' is not a port number: use 0 to 510 (511 drops packets)")]
    Number(String),
    /// The URI is malformed.
    #[error(transparent)]
    Uri(#[from] uri::FaceUriError),
    /// The URI is one of a face that cannot be a port.
    #[error(
        "{0} cannot be a port of a switch: write dev://INTERFACE, xdp://INTERFACE, pci://ADDRESS, \
         memif:///SOCKET?id=NUMBER or pcap:///IN?out=/OUT"
    )]
    NotAPort(FaceUri),
}

/// Why a port cannot be opened.
#[derive(Debug, Error)]
pub enum PortError {
    /// DPDK or the system refuses it.
    #[error("{0}")]
    Dpdk(#[from] DpdkError),
    /// This user may not open it.
    #[error("{0} (this needs the capability CAP_NET_RAW: run as root, or grant it)")]
    Permission(DpdkError),
    /// The socket of a memif cannot be created.
    #[error("cannot create {0}: {1}")]
    Socket(PathBuf, io::Error),
    /// The thread that serves memif ports cannot be started.
    #[error("cannot serve memif ports: {0}")]
    Memif(io::Error),
    /// The controller's port has no eventfd.
    #[error("cannot create an eventfd: {0}")]
    Controller(io::Error),
    /// The URI is one of a face that cannot be a port.
    #[error("{0} cannot be a port of a switch")]
    NotAPort(FaceUri),
}

impl std::str::FromStr for PortSpec {
    type Err = PortSpecError;

    fn from_str(text: &str) -> Result<PortSpec, PortSpecError> {
        let (number, uri) = text.split_once('=').ok_or(PortSpecError::Form)?;
        let number: u32 = number
            .parse()
            .ok()
            .filter(|number| *number < 511)
            .ok_or_else(|| PortSpecError::Number(number.to_owned()))?;
        let uri: FaceUri = uri.parse()?;
        let is_port = match &uri {
            FaceUri::Device { driver, .. } => matches!(driver, PortDriver::Kernel | PortDriver::Xdp | PortDriver::Pci),
            FaceUri::Memif { .. } | FaceUri::Pcap { .. } => true,
            _ => false,
        };
        if !is_port || uri.port() != uri {
            return Err(PortSpecError::NotAPort(uri));
        }
        Ok(PortSpec { number, uri })
    }
}

enum Device {
    Controller(Arc<Controller>),
    Interface(String, PacketPort),
    Xdp(String, XdpPort),
    Nic(NicPort),
    Pcap(RelayPort),
    Memif(MemifPort),
}

/// An open port; it closes when this and its queues are dropped.
pub struct Port {
    /// The specification that it was opened with.
    pub spec: PortSpec,
    device: Device,
    /// Number of queues; each is served by its own worker.
    pub queues: usize,
    /// How packets are spread over the queues.
    pub spread: &'static str,
}

impl Port {
    /// True if the link is up.
    pub fn is_up(&self) -> bool {
        match &self.device {
            Device::Controller(_) => true,
            Device::Interface(name, _) | Device::Xdp(name, _) => Interface::query(name).is_ok_and(|found| found.is_up),
            Device::Nic(port) => port.is_up(),
            Device::Pcap(port) => !port.has_ended(),
            Device::Memif(port) => port.is_up(),
        }
    }

    /// True if the device is permanently gone.
    pub fn is_gone(&self) -> bool {
        match &self.device {
            Device::Interface(name, _) | Device::Xdp(name, _) => Interface::query(name).is_err(),
            Device::Nic(port) => port.is_removed(),
            Device::Controller(_) | Device::Pcap(_) | Device::Memif(_) => false,
        }
    }

    /// True if it is a capture that was read to its end and written, or the controller's port, which never delays the
    /// end.
    pub fn is_done(&self) -> bool {
        matches!(&self.device, Device::Pcap(port) if port.is_done()) || matches!(&self.device, Device::Controller(_))
    }

    /// Frames dropped below the switch.
    pub fn losses(&self) -> Losses {
        match &self.device {
            Device::Controller(port) => {
                Losses { malformed: port.malformed.load(Ordering::Relaxed), ..Losses::default() }
            }
            Device::Interface(_, port) => port.losses(),
            Device::Xdp(_, port) => port.losses(),
            Device::Nic(port) => port.losses(),
            Device::Pcap(port) => port.losses(),
            Device::Memif(port) => port.losses(),
        }
    }

    /// Lets a capture start to deliver frames.
    pub fn start(&self) {
        if let Device::Pcap(port) = &self.device {
            port.start();
        }
    }
}

/// The queues of a port, for workers 0, 1, and so on.
pub type Queues = Vec<Box<dyn PortQueue>>;

/// Opens ports, with memory for their packets.
pub struct Opener {
    pool: BufferPool,
    queues: usize,
    memif: Option<MemifService>,
    pub(crate) controller: Option<Arc<Controller>>,
}

impl Opener {
    /// Makes an opener. Ports get `queues` queues if their devices support it.
    pub fn new(pool: &BufferPool, queues: usize) -> Opener {
        Opener { pool: pool.clone(), queues, memif: None, controller: None }
    }

    /// Opens a port.
    ///
    /// # Errors
    /// Returns what is wrong, and what to do.
    pub fn open(&mut self, spec: &PortSpec) -> Result<(Port, Queues), PortError> {
        let (device, queues, spread) = self.device(&spec.uri)?;
        Ok((Port { spec: spec.clone(), device, queues: queues.len(), spread }, queues))
    }

    /// The thread that serves memif ports; it must live as long as they do.
    pub fn into_service(self) -> Option<MemifService> {
        self.memif
    }

    /// Opens a PCI network card with a DPDK driver.
    fn card(&self, address: &str) -> Result<(NicPort, Vec<NicQueue>), DpdkError> {
        let (small, large) = self.pool.limits();
        let environment = Eal::start(mempool_bytes(small, large), Devices::Pci)?;
        use_mempools(&self.pool, environment)?;
        let (port, queues) = pci::open(environment, address, USUAL_MTU_BYTES, self.queues, &self.pool)?;
        port.receive_everything()?;
        Ok((port, queues))
    }

    fn device(&mut self, uri: &FaceUri) -> Result<(Device, Queues, &'static str), PortError> {
        let text = |error: DpdkError| match error.is_permission() {
            true => PortError::Permission(error),
            false => PortError::Dpdk(error),
        };
        const BY_PORTS: &str = "UDP packets by addresses and ports, others to the first worker";
        const ONE: &str = "all packets to one worker";
        match uri {
            FaceUri::Device { driver: PortDriver::Kernel, interface, .. } => {
                let found = Interface::query(interface).map_err(text)?;
                let frame_bytes = (found.mtu_bytes + HEADER_BYTES).min(MAX_FRAME_BYTES);
                let (port, queues) = PacketPort::open(interface, frame_bytes, self.queues, &self.pool).map_err(text)?;
                port.receive_everything().map_err(text)?;
                Ok((
                    Device::Interface(interface.clone(), port),
                    boxed(queues),
                    if self.queues > 1 { BY_PORTS } else { ONE },
                ))
            }
            FaceUri::Device { driver: PortDriver::Xdp, interface, .. } => {
                let found = Interface::query(interface).map_err(text)?;
                let (port, queues) =
                    XdpPort::open(interface, found.mtu_bytes, self.queues, &self.pool).map_err(text)?;
                port.receive_everything().map_err(text)?;
                Ok((Device::Xdp(interface.clone(), port), boxed(queues), "by the interface's queues"))
            }
            FaceUri::Device { driver: PortDriver::Pci, interface, .. } => {
                let (port, queues) = self.card(interface)?;
                let spread = match (queues.len(), port.spreads) {
                    (1, _) => ONE,
                    (_, true) => BY_PORTS,
                    (_, false) => "by the card's default",
                };
                Ok((Device::Nic(port), boxed(queues), spread))
            }
            FaceUri::Internal => {
                let (controller, queue) = Controller::open(&self.pool).map_err(PortError::Controller)?;
                self.controller = Some(Arc::clone(&controller));
                Ok((Device::Controller(controller), boxed([queue]), ONE))
            }
            FaceUri::Pcap { input, output, .. } => {
                let [input, output] = [input, output].map(|path| path.as_deref().map(Path::new));
                let (port, queue) = pcap::open(input, output, &self.pool).map_err(text)?;
                Ok((Device::Pcap(port), boxed([queue]), ONE))
            }
            FaceUri::Memif { socket, id, role, .. } => {
                let socket = PathBuf::from(socket);
                let role = match role {
                    uri::MemifRole::Server => MemifRole::Server,
                    uri::MemifRole::Client => MemifRole::Client,
                };
                if role == MemifRole::Server {
                    prepare_socket(&socket).map_err(|error| PortError::Socket(socket.clone(), error))?;
                }
                let service = match &mut self.memif {
                    Some(service) => service,
                    none => none.insert(MemifService::start().map_err(PortError::Memif)?),
                };
                let memif = Memif { role, socket, id: *id, ring_slots: MEMIF_SLOTS, buffer_bytes: MEMIF_BUFFER_BYTES };
                let (port, queue) = service.open(&memif, &self.pool).map_err(text)?;
                Ok((Device::Memif(port), boxed([queue]), ONE))
            }
            other => Err(PortError::NotAPort(other.clone())),
        }
    }
}

fn boxed<Q: PortQueue>(queues: impl IntoIterator<Item = Q>) -> Queues {
    queues.into_iter().map(|queue| Box::new(queue) as Box<dyn PortQueue>).collect()
}
