//! Devices of links over ports.

use namehop_face::address::MacAddress;
use namehop_packet::{BufferPool, PortQueue};
use namehop_port::DpdkError;
use namehop_port::drivers::{Device, Driver, OpenError, Opener, RingSizes, Wishes};
use namehop_port::encapsulation::Peer;
use namehop_port::losses::Losses;
use namehop_port::wanted::Wanted;
use namehop_wire::MAX_PACKET_SIZE;
use thiserror::Error;

use super::LoadError;
use super::address::PortAddress;

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
    /// The network interface is down.
    #[error("network interface {0} is down; run 'ip link set {0} up'")]
    InterfaceDown(String),
    /// The port does not carry frames of the requested size.
    #[error("the port has an MTU of {mtu_bytes} bytes, less than {requested}: give a smaller mtu")]
    Mtu {
        /// Its MTU in bytes.
        mtu_bytes: usize,
        /// The requested MTU in bytes.
        requested: usize,
    },
    /// No peer has connected to the memif in time.
    #[error("no peer has connected: create the router's memif face with the opposite role ('namehop face create')")]
    NoPeer,
    /// The driver opened the port without a queue.
    #[error("the port has no queue")]
    NoQueue,
    /// The port cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The port cannot be set up.
    #[error(transparent)]
    Driver(#[from] DpdkError),
}

/// An open port; dropping it closes it.
pub struct OpenPort {
    /// Receives and sends its frames.
    pub queue: Box<dyn PortQueue>,
    device: Box<dyn Device>,
    address: MacAddress,
    mtu_bytes: usize,
    /// Memif ports work as long as it exists.
    _opener: Opener,
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
        self.device.is_connected()
    }

    /// Returns the frames dropped so far.
    pub fn losses(&self) -> Losses {
        self.device.losses()
    }
}

fn open(address: &PortAddress, pool: &BufferPool) -> Result<OpenPort, PortError> {
    let header_bytes = address.peer().framing().header_bytes();
    let asked_bytes = address.mtu_bytes().map_or(0, |mtu| mtu + header_bytes);
    let ring_sizes = RingSizes { buffer_bytes: memif_buffer_bytes(asked_bytes), ..RingSizes::default() };
    let mut opener = Opener::new(pool, ring_sizes);
    let wishes = Wishes { header_bytes, mtu_bytes: address.mtu_bytes(), queues: 1 };
    let opened = opener.open(address.local(), &wishes)?;
    if let Some(port) = address.local().as_port()
        && Driver::traits_of(address.local()).uses_interface
        && !opened.device.is_up()
    {
        return Err(PortError::InterfaceDown(port.device().to_owned()));
    }
    if let Some(requested) = address.mtu_bytes().filter(|requested| *requested > opened.mtu_bytes) {
        return Err(PortError::Mtu { mtu_bytes: opened.mtu_bytes, requested });
    }
    let vlans: Vec<u16> = address.peer().vlan().iter().map(|vlan| vlan.get()).collect();
    opened.device.receive_only(&Wanted::new(&vlans, &[])?)?;
    if let peer @ (Peer::Ethernet(group) | Peer::Vlan(group, _)) = address.peer()
        && peer.is_group()
    {
        opened.device.join(group, true)?;
    }
    Ok(OpenPort {
        queue: opened.queues.into_iter().next().ok_or(PortError::NoQueue)?,
        device: opened.device,
        address: opened.address,
        mtu_bytes: address.mtu_bytes().unwrap_or(opened.mtu_bytes).min(MAX_PACKET_SIZE),
        _opener: opener,
    })
}
