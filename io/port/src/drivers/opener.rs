//! Opens ports, and the errors of that.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::path::PathBuf;

use namehop_face::{FaceUri, FaceUriError};
use namehop_packet::BufferPool;

use super::device::OpenPort;
use super::{Driver, usage};
use crate::error::DpdkError;

/// Settings of a port. A driver ignores unsupported settings; [`DriverTraits`] tells what it supports.
#[derive(Debug, Clone, Copy)]
pub struct Wishes {
    /// Bytes of a frame in front of its packet.
    pub header_bytes: usize,
    /// MTU in bytes.
    pub mtu_bytes: Option<usize>,
    /// Number of queues. The device may have fewer.
    pub queues: usize,
}

/// Sizes of the rings that a port shares with another process, as far as this end chooses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingSizes {
    /// Slots of each ring: a power of two from 2 to 16,384.
    pub slots: u16,
    /// Bytes of a buffer; a longer frame takes several.
    pub buffer_bytes: u16,
}

impl Default for RingSizes {
    fn default() -> RingSizes {
        RingSizes { slots: 1024, buffer_bytes: 2048 }
    }
}

/// Why a port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No driver has the scheme of the URI.
    #[error("{uri} is not a port: write {}", usage())]
    NotAPort {
        /// The URI.
        uri: FaceUri,
    },
    /// The driver does not understand the device in the URI.
    #[error(transparent)]
    Device(#[from] FaceUriError),
    /// The kernel does not know the network interface; it may appear later.
    #[error(transparent)]
    NoInterface(DpdkError),
    /// The process lacks a privilege.
    #[error(
        "no permission for network interface {interface}: the capability CAP_NET_RAW is needed; grant it, or run as \
         root ({source})"
    )]
    Permission {
        /// Name of the interface.
        interface: String,
        /// The driver's error.
        source: DpdkError,
    },
    /// The control socket of a port cannot be created.
    #[error("cannot create the {scheme} socket {}: {source}", .socket.display())]
    Socket {
        /// The scheme of the port.
        scheme: &'static str,
        /// Path of the socket.
        socket: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The thread that serves the ports of a driver cannot be started.
    #[error("cannot start the {scheme} thread: {source}")]
    Thread {
        /// The scheme of the ports.
        scheme: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The driver refuses.
    #[error(transparent)]
    Driver(#[from] DpdkError),
}

impl OpenError {
    /// Returns the error of a driver on a network interface.
    pub(super) fn on_interface(interface: &str, error: DpdkError) -> OpenError {
        match error.is_permission() {
            true => OpenError::Permission { interface: interface.to_owned(), source: error },
            false => OpenError::Driver(error),
        }
    }
}

/// Opens ports, with memory for their packets.
pub struct Opener {
    pub(super) pool: BufferPool,
    pub(super) ring_sizes: RingSizes,
    /// What a driver shares among all its ports, by type. Made for the first of them.
    services: HashMap<TypeId, Box<dyn Any + Send>>,
}

impl Opener {
    /// Creates an opener. Ports that a thread of their driver serves, such as memif, work as long as it exists.
    pub fn new(pool: &BufferPool, ring_sizes: RingSizes) -> Opener {
        Opener { pool: pool.clone(), ring_sizes, services: HashMap::new() }
    }

    /// Opens the port with this URI. Its peer need not be there yet.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(&mut self, uri: &FaceUri, wishes: &Wishes) -> Result<OpenPort, OpenError> {
        let (Some(driver), Some(port)) = (Driver::of(uri), uri.as_port()) else {
            return Err(OpenError::NotAPort { uri: uri.clone() });
        };
        (driver.open)(self, port, wishes)
    }

    /// Returns what a driver shares among all its ports; starts it if necessary.
    pub(super) fn service<S: Any + Send>(
        &mut self,
        start: impl FnOnce() -> Result<S, OpenError>,
    ) -> Result<&S, OpenError> {
        let service = match self.services.entry(TypeId::of::<S>()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Box::new(start()?)),
        };
        Ok(service.downcast_ref().expect("a service is of the type that is its key"))
    }
}
