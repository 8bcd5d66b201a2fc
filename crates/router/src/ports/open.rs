//! From the local URI of a port to the device behind it.

use std::path::PathBuf;
use std::sync::Arc;

use namehop_dpdk::interface::{Doorbell, Interface};
use namehop_dpdk::port::{Device, Memif, MemifRole, Port};
use namehop_dpdk::{DpdkError, Eal, MbufPool};
use namehop_face::ethernet::{Framing, HEADER_BYTES, MacAddress};
use namehop_face::socket::CreateError;
use namehop_face::uri::{self, FaceUri};

use super::memif::prepare_socket;

/// Sizes of memif links.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemifSettings {
    pub(super) ring_frames: u16,
    pub(super) buffer_bytes: u16,
}

/// A device that is open and not started.
pub(super) struct Opened {
    pub(super) port: Port,
    /// There on network interfaces.
    pub(super) bell: Option<Arc<Doorbell>>,
    pub(super) address: MacAddress,
    /// Largest NDN frame, in bytes.
    pub(super) mtu_bytes: usize,
}

/// Opens the device of a port: `dev://` over AF_PACKET, `memif://` as a shared-memory link.
pub(super) fn open(
    eal: &Eal,
    pool: &MbufPool,
    local: &FaceUri,
    framing: Framing,
    settings: MemifSettings,
) -> Result<Opened, CreateError> {
    match local {
        FaceUri::Device(interface) => {
            let found = query(interface)?;
            let bell = Doorbell::open(interface).map_err(|error| match error.is_permission() {
                true => CreateError::NotAcceptable(format!(
                    "no permission for network interface {interface}: the router needs the capability CAP_NET_RAW; run it \
                     as root, or grant that"
                )),
                false => refused(&error),
            })?;
            let port = Port::open(eal, &Device::AfPacket { interface: interface.clone() }, pool);
            Ok(Opened {
                port: port.map_err(|error| refused(&error))?,
                bell: Some(Arc::new(bell)),
                address: found.address,
                mtu_bytes: usable_mtu(&found),
            })
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
            let MemifSettings { ring_frames, buffer_bytes } = settings;
            let memif = Memif { role, socket, id: *id, ring_slots: ring_frames, buffer_bytes };
            let port = Port::open(eal, &Device::Memif(memif), pool).map_err(|error| refused(&error))?;
            let address = port.address().map_err(|error| refused(&error))?;
            let header_bytes = if framing == Framing::Ethernet { HEADER_BYTES } else { 0 };
            Ok(Opened { port, bell: None, address, mtu_bytes: usize::from(buffer_bytes) - header_bytes })
        }
        other => Err(CreateError::NotAcceptable(format!(
            "{other} is not a port: write dev://INTERFACE for a network interface, or memif:///SOCKET?id=NUMBER"
        ))),
    }
}

/// Largest NDN frame that a port on this interface carries, in bytes.
pub(super) fn usable_mtu(interface: &Interface) -> usize {
    interface.mtu_bytes.min(Device::longest_af_packet_frame() - HEADER_BYTES)
}

/// Asks the kernel for an interface. One that is not there may come.
pub(super) fn query(interface: &str) -> Result<Interface, CreateError> {
    Interface::query(interface).map_err(|error| CreateError::Unreachable(error.to_string()))
}

pub(super) fn refused(error: &DpdkError) -> CreateError {
    CreateError::NotAcceptable(error.to_string())
}
