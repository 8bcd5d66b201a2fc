//! Ports of a switch: devices that receive and send every frame, regardless of its addresses.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use namehop_face::uri::{self, FaceUri};
use namehop_packet::{BufferPool, PortQueue};
use namehop_port::DpdkError;
use namehop_port::drivers::{self, Device, Driver, OpenError, OpenPort, Presence, RingSizes, Spread, Wishes};
use namehop_port::losses::Losses;
use thiserror::Error;

use crate::controller::Controller;

/// Bytes of the addresses, the type and a VLAN tag.
const HEADER_BYTES: usize = 18;

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
    #[error("{0} cannot be a port of a switch: write {usage}", usage = drivers::usage())]
    NotAPort(FaceUri),
}

/// Why a port cannot be opened.
#[derive(Debug, Error)]
pub enum PortError {
    /// The driver cannot open it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The device does not receive all frames.
    #[error(transparent)]
    Driver(#[from] DpdkError),
    /// The controller's port has no eventfd.
    #[error("cannot create an eventfd: {0}")]
    Controller(io::Error),
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
        let uri = drivers::parse_uri(uri)?;
        if Driver::of(&uri).is_none() || uri.port() != uri {
            return Err(PortSpecError::NotAPort(uri));
        }
        Ok(PortSpec { number, uri })
    }
}

/// An open port; it closes when this and its queues are dropped.
pub struct Port {
    /// The specification that it was opened with.
    pub spec: PortSpec,
    device: Box<dyn Device>,
    /// Number of queues; each is served by its own worker.
    pub queues: usize,
    /// How packets are spread over the queues.
    pub spread: Spread,
}

impl Port {
    /// True if the link is up.
    pub fn is_up(&self) -> bool {
        self.device.is_up()
    }

    /// True if the device is permanently gone.
    pub fn is_gone(&self) -> bool {
        self.device.presence() == Presence::Removed
    }

    /// True if it is a capture that was read to its end and written, or the controller's port, which never delays the
    /// end.
    pub fn is_done(&self) -> bool {
        self.device.is_done()
    }

    /// Frames dropped below the switch.
    pub fn losses(&self) -> Losses {
        self.device.losses()
    }

    /// Lets a capture start to deliver frames.
    pub fn start(&self) {
        self.device.start();
    }
}

/// The controller's port.
struct ControllerDevice(Arc<Controller>);

impl Device for ControllerDevice {
    fn is_up(&self) -> bool {
        true
    }

    fn losses(&self) -> Losses {
        Losses { malformed: self.0.malformed.load(Ordering::Relaxed), ..Losses::default() }
    }

    fn is_done(&self) -> bool {
        true
    }
}

/// The queues of a port, for workers 0, 1, and so on.
pub type Queues = Vec<Box<dyn PortQueue>>;

/// Opens ports, with memory for their packets.
pub struct Opener {
    pool: BufferPool,
    queues: usize,
    drivers: drivers::Opener,
    pub(crate) controller: Option<Arc<Controller>>,
}

impl Opener {
    /// Makes an opener. Ports get `queues` queues if their devices support it. Memif ports work as long as it exists.
    pub fn new(pool: &BufferPool, queues: usize) -> Opener {
        let drivers = drivers::Opener::new(pool, RingSizes::default());
        Opener { pool: pool.clone(), queues, drivers, controller: None }
    }

    /// Opens a port.
    ///
    /// # Errors
    /// Returns what is wrong, and what to do.
    pub fn open(&mut self, spec: &PortSpec) -> Result<(Port, Queues), PortError> {
        if spec.uri == FaceUri::Internal {
            return self.open_controller(spec);
        }
        let wishes = Wishes { header_bytes: HEADER_BYTES, mtu_bytes: None, queues: self.queues };
        let OpenPort { device, queues, spread, .. } = self.drivers.open(&spec.uri, &wishes)?;
        device.receive_everything()?;
        Ok((Port { spec: spec.clone(), device, queues: queues.len(), spread }, queues))
    }

    fn open_controller(&mut self, spec: &PortSpec) -> Result<(Port, Queues), PortError> {
        let (controller, queue) = Controller::open(&self.pool).map_err(PortError::Controller)?;
        self.controller = Some(Arc::clone(&controller));
        let device = Box::new(ControllerDevice(controller));
        Ok((Port { spec: spec.clone(), device, queues: 1, spread: Spread::OneQueue }, vec![Box::new(queue)]))
    }
}
