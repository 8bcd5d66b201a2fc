//! Where the links are: sockets of memifs in a folder of their own, or pairs of network interfaces in a network namespace of their own,
//! which goes with this process.

use std::path::{Path, PathBuf};
use std::process::Command;

use namehop_face::encapsulation::ETHERTYPE_NDN;
use namehop_face::uri::{FaceUri, MemifRole, PortDriver, PortOptions};
use namehop_traffic::loadgen::{LoadError, PortAddress, memif_buffer_bytes};
use nix::sched::{CloneFlags, unshare};
use tempfile::TempDir;

use super::LinksError;
use super::port::{End, LinkKind};

/// What stands around the payload of a Data at most: names, signature, headers.
const AROUND_PAYLOAD_BYTES: usize = 400;
const USUAL_MTU_BYTES: usize = 1500;

/// Which of the two links.
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
    /// Makes the links. Interfaces are made in a network namespace, to which the calling thread moves.
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
                // The kernel has nothing to send on them.
                ip(&format!("link set {} addrgenmode none up", self.interface(side, end)))?;
            }
        }
        Ok(())
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn memif_socket(&self, side: Side) -> PathBuf {
        self.folder().join(if side == Side::Consumer { "consumer.sock" } else { "producer.sock" })
    }

    /// Largest packet that is exchanged, in bytes.
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

    /// Hardware address of an interface, administered locally.
    fn address(&self, side: Side, end: End) -> [u8; 6] {
        let last = 2 * u8::from(side == Side::Producer) + u8::from(end == End::Forwarder);
        [0x02, 0, 0, 0, 0, last]
    }

    /// What one end of a link opens, with the other end as its peer.
    pub(super) fn port_address(&self, side: Side, end: End) -> Result<PortAddress, LoadError> {
        let driver = match self.kind {
            LinkKind::Memif => {
                let role = if end == End::Forwarder { MemifRole::Server } else { MemifRole::Client };
                let socket = self.memif_socket(side).to_string_lossy().into_owned();
                let uri = FaceUri::Memif { socket, id: 0, role, options: PortOptions::default() };
                return PortAddress::new(uri, None, Some(self.packet_bytes())).map_err(LoadError::Configuration);
            }
            LinkKind::Dev => PortDriver::Kernel,
            LinkKind::Xdp => PortDriver::Xdp,
        };
        let remote = FaceUri::Ethernet(self.address(side, other(end)));
        let local = FaceUri::device_of(driver, self.interface(side, end));
        PortAddress::new(remote, Some(local), None).map_err(LoadError::Configuration)
    }

    fn address_text(&self, side: Side, end: End) -> String {
        self.address(side, end).map(|byte| format!("{byte:02x}")).join(":")
    }

    /// What stands in front of packets that leave an end; nothing on a memif.
    pub(super) fn header(&self, side: Side, from: End) -> Vec<u8> {
        if self.kind == LinkKind::Memif {
            return Vec::new();
        }
        [&self.address(side, other(from))[..], &self.address(side, from), &ETHERTYPE_NDN.to_be_bytes()].concat()
    }

    /// Configuration of the router between the links: ports, faces, and the route to the producer; `settings` are further lines of section
    /// `[forwarding]`. Its only listener is a socket in the folder.
    pub(super) fn router_configuration(&self, processor: usize, settings: &str) -> String {
        let faces = SIDES.map(|side| match self.kind {
            LinkKind::Memif => (format!("memif://{}?id=0", self.memif_socket(side).display()), String::new()),
            LinkKind::Dev | LinkKind::Xdp => {
                let remote = self.address_text(side, End::Generator);
                let local = format!("local = \"{}://{}\"", self.kind, self.interface(side, End::Forwarder));
                (format!("ether://[{remote}]"), local)
            }
        });
        let [(_, _), (producer, _)] = &faces;
        let mut text = format!(
            "[log]\nlevel = \"warn\"\n[forwarding]\nworkers = 1\nprocessors = [{processor}]\n{settings}\
             [faces.unix]\npath = \"{}\"\n[faces.tcp]\nlisten = []\n[faces.udp]\nlisten = []\n[faces.websocket]\nlisten = []\n\
             [metrics]\nenabled = false\n[state]\nenabled = false\n[ports]\nmemif_buffer_bytes = {}\n",
            self.router_socket().display(),
            memif_buffer_bytes(self.packet_bytes())
        );
        for (uri, local) in &faces {
            text += &format!("[[face]]\nuri = \"{uri}\"\n{local}\n");
        }
        text + &format!("[[route]]\nprefix = \"/\"\nnexthop = \"{producer}\"\n")
    }

    /// Where the router takes commands.
    pub(super) fn router_socket(&self) -> PathBuf {
        self.folder().join("router.sock")
    }
}

fn other(end: End) -> End {
    if end == End::Generator { End::Forwarder } else { End::Generator }
}

/// Runs `ip` (iproute2) with these arguments, separated by spaces.
fn ip(arguments: &str) -> Result<(), LinksError> {
    let failed = |text: String| LinksError::Interfaces(format!("`ip {arguments}`: {text}"));
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}
