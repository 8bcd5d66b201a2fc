//! Location of the links: memif sockets in a temporary folder, or pairs of network interfaces in a separate network
//! namespace, which ends with this process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use namehop_face::uri::FaceUri;
use namehop_port::drivers::parse_uri;
use namehop_port::encapsulation::ETHERTYPE_NDN;
use namehop_traffic::loadgen::{LoadError, PortAddress, memif_buffer_bytes};
use nix::sched::{CloneFlags, unshare};
use tempfile::TempDir;

use super::port::{End, LinkKind};
use super::{LinksError, TICK};

/// Maximum overhead of a Data packet around its payload in bytes: name, signature, headers.
const AROUND_PAYLOAD_BYTES: usize = 400;
/// Time limit for an interface to come up.
const CARRIER_TIMEOUT: Duration = Duration::from_secs(10);
const USUAL_MTU_BYTES: usize = 1500;

/// Configuration of a router besides its ports, faces and default route.
#[derive(Debug, Clone, Default)]
pub(super) struct RouterSettings {
    /// CPUs of the workers, one worker per CPU.
    pub(super) processors: Vec<usize>,
    /// Further lines of the section `[forwarding]`.
    pub(super) forwarding: String,
    /// Further sections.
    pub(super) sections: String,
}

impl RouterSettings {
    /// One worker, and defaults otherwise.
    pub(super) fn one_worker(processor: usize) -> RouterSettings {
        RouterSettings { processors: vec![processor], ..RouterSettings::default() }
    }
}

/// One of the two links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Consumer,
    Producer,
}

pub(super) const SIDES: [Side; 2] = [Side::Consumer, Side::Producer];

pub(super) struct Place {
    pub(super) kind: LinkKind,
    payload_bytes: usize,
    folder: TempDir,
}

impl Place {
    /// Creates the links. Interfaces are created in a new network namespace, to which the calling thread moves.
    pub(super) fn new(kind: LinkKind, payload_bytes: usize) -> Result<Place, LinksError> {
        let folder = tempfile::Builder::new().prefix("namehop-links").tempdir()?;
        let place = Place { kind, payload_bytes, folder };
        if kind != LinkKind::Memif {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|error| LinksError::Interfaces(error.to_string()))?;
            place.make_interfaces()?;
        }
        Ok(place)
    }

    fn make_interfaces(&self) -> Result<(), LinksError> {
        ip("link set lo up")?;
        for side in SIDES {
            let [generator, forwarder] = [End::Generator, End::Forwarder].map(|end| {
                let address = self.address_text(side, end);
                format!("{} address {address} mtu {}", self.interface(side, end), self.mtu_bytes())
            });
            ip(&format!("link add {generator} type veth peer name {forwarder}"))?;
            for end in [End::Generator, End::Forwarder] {
                // Without addresses the kernel sends nothing on them.
                ip(&format!("link set {} addrgenmode none up", self.interface(side, end)))?;
            }
        }
        SIDES
            .iter()
            .flat_map(|&side| [End::Generator, End::Forwarder].map(|end| (side, end)))
            .try_for_each(|(side, end)| wait_for_carrier(self.interface(side, end)))
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn memif_socket(&self, side: Side) -> PathBuf {
        self.folder().join(if side == Side::Consumer { "consumer.sock" } else { "producer.sock" })
    }

    /// Maximum size of an exchanged packet, in bytes.
    fn packet_bytes(&self) -> usize {
        self.payload_bytes + AROUND_PAYLOAD_BYTES
    }

    fn mtu_bytes(&self) -> usize {
        USUAL_MTU_BYTES.max(self.packet_bytes())
    }

    fn interface(&self, side: Side, end: End) -> &'static str {
        match (side, end) {
            (Side::Consumer, End::Generator) => "consumer",
            (Side::Consumer, End::Forwarder) => "router0",
            (Side::Producer, End::Generator) => "producer",
            (Side::Producer, End::Forwarder) => "router1",
        }
    }

    /// Hardware address of an interface, locally administered.
    fn address(&self, side: Side, end: End) -> [u8; 6] {
        let last = 2 * u8::from(side == Side::Producer) + u8::from(end == End::Forwarder);
        [0x02, 0, 0, 0, 0, last]
    }

    /// Port address of one end of a link, with the other end as its peer.
    pub(super) fn port_address(&self, side: Side, end: End) -> Result<PortAddress, LoadError> {
        let uri = |text: &str| parse_uri(text).map_err(|error| LoadError::Configuration(error.to_string()));
        if self.kind == LinkKind::Memif {
            let role = if end == End::Forwarder { "server" } else { "client" };
            let uri = uri(&format!("memif://{}?id=0&role={role}", self.memif_socket(side).display()))?;
            return PortAddress::new(uri, None, Some(self.packet_bytes())).map_err(LoadError::Configuration);
        }
        let remote = FaceUri::Ethernet(self.address(side, other(end)));
        let local = uri(&format!("{}://{}", self.kind, self.interface(side, end)))?;
        PortAddress::new(remote, Some(local), None).map_err(LoadError::Configuration)
    }

    fn address_text(&self, side: Side, end: End) -> String {
        self.address(side, end).map(|byte| format!("{byte:02x}")).join(":")
    }

    /// Link header of frames sent by an end; empty on a memif.
    pub(super) fn header(&self, side: Side, from: End) -> Vec<u8> {
        if self.kind == LinkKind::Memif {
            return Vec::new();
        }
        [&self.address(side, other(from))[..], &self.address(side, from), &ETHERTYPE_NDN.to_be_bytes()].concat()
    }

    /// URI of the router's face on one side.
    pub(super) fn face_uri(&self, side: Side) -> String {
        match self.kind {
            LinkKind::Memif => format!("memif://{}?id=0", self.memif_socket(side).display()),
            LinkKind::Dev | LinkKind::Xdp => format!("ether://[{}]", self.address_text(side, End::Generator)),
        }
    }

    /// Configuration file of the router between the links: ports, faces, and the route to the producer. The only
    /// listener is a socket in the folder.
    pub(super) fn router_configuration(&self, settings: &RouterSettings) -> String {
        let RouterSettings { processors, forwarding, sections } = settings;
        let mut text = format!(
            "[log]\nlevel = \"warn\"\n[forwarding]\nworkers = {}\nprocessors = {processors:?}\n{forwarding}\
             [faces.unix]\npath = \"{}\"\n[faces.tcp]\nlisten = []\n[faces.udp]\nlisten = []\n\
             [faces.websocket]\nlisten = []\n[metrics]\nenabled = false\n[state]\nenabled = false\n\
             [ports]\nmemif_buffer_bytes = {}\n",
            processors.len(),
            self.router_socket().display(),
            memif_buffer_bytes(self.packet_bytes())
        );
        for side in SIDES {
            text += &format!("[[face]]\nuri = \"{}\"\n", self.face_uri(side));
            if self.kind != LinkKind::Memif {
                text += &format!("local = \"{}://{}\"\n", self.kind, self.interface(side, End::Forwarder));
            }
        }
        text + sections + &format!("[[route]]\nprefix = \"/\"\nnexthop = \"{}\"\n", self.face_uri(Side::Producer))
    }

    /// Path of the router's management socket.
    pub(super) fn router_socket(&self) -> PathBuf {
        self.folder().join("router.sock")
    }
}

fn other(end: End) -> End {
    if end == End::Generator { End::Forwarder } else { End::Generator }
}

/// Waits until an interface has a carrier; on a busy host the kernel reports it late.
fn wait_for_carrier(interface: &str) -> Result<(), LinksError> {
    let limit = Instant::now() + CARRIER_TIMEOUT;
    while !ip(&format!("-oneline link show {interface}"))?.contains("LOWER_UP") {
        if Instant::now() > limit {
            return Err(LinksError::Interfaces(format!("{interface} is not up after {} s", CARRIER_TIMEOUT.as_secs())));
        }
        thread::sleep(TICK);
    }
    Ok(())
}

/// Runs `ip` (iproute2) with these arguments, separated by spaces; returns its output.
fn ip(arguments: &str) -> Result<String, LinksError> {
    let failed = |text: String| LinksError::Interfaces(format!("`ip {arguments}`: {text}"));
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}
