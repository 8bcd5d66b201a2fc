//! Sections `[ports]` and `[[port]]`, and what must fit together for faces on ports.

use serde::{Deserialize, Serialize};

use namehop_face::FaceUri;

use super::fault::Fault;
use super::values::{AutoNumber, PortText, UriText};
use super::{Config, StaticFace};

/// The number of a processor; `"auto"` is the last one that the process may run on.
pub type Processor = AutoNumber;

/// `[ports]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ports {
    /// Where the worker runs once it has a port.
    pub worker_processor: Processor,
    /// On-demand Ethernet faces close after so many seconds without a frame.
    pub idle_timeout_s: u64,
    /// Frames that fit into each ring of a memif.
    pub memif_ring_frames: u16,
    /// Bytes of one buffer of a memif.
    pub memif_buffer_bytes: u16,
    /// Folders below which commands may open memif sockets; `auto` stands for the usual ones.
    pub memif_folders: Vec<String>,
    /// Network interfaces and PCI addresses of network cards that commands may use, or `all`.
    pub interfaces: Vec<String>,
}

impl Default for Ports {
    fn default() -> Self {
        Ports {
            worker_processor: Processor::Auto,
            idle_timeout_s: 600,
            memif_ring_frames: 1024,
            memif_buffer_bytes: 2048,
            memif_folders: vec!["auto".to_owned()],
            interfaces: Vec::new(),
        }
    }
}

/// `[[port]]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaticPort {
    /// What it is: `dev://`, `pci://` or `memif://`.
    pub uri: PortText,
    /// A face for the NDN multicast group.
    #[serde(default)]
    pub multicast: bool,
    /// Unknown senders make faces.
    #[serde(default)]
    pub on_demand: bool,
}

impl Config {
    /// Whether network cards may be used without the kernel.
    pub(crate) fn may_use_pci(&self) -> bool {
        let locals = self.face.iter().filter_map(|face| Some(&face.local.as_ref()?.0));
        let is_card = |uri: &FaceUri| matches!(uri, FaceUri::Pci { .. });
        // No name of an interface has a colon in it.
        self.port.iter().map(|port| &port.uri.0).chain(locals).any(is_card)
            || self.ports.interfaces.iter().any(|name| name.contains(':'))
    }

    /// The first value of ports and their faces that is wrong.
    pub(super) fn port_fault(&self) -> Option<Fault> {
        let ring_frames = self.ports.memif_ring_frames;
        if !ring_frames.is_power_of_two() {
            let message = format!("`memif_ring_frames` is {ring_frames}; it must be a power of two");
            return Some(Fault::new("ports.memif_ring_frames", message));
        }
        let is_wrong = |folder: &String| folder != "auto" && !folder.starts_with('/');
        if let Some(index) = self.ports.memif_folders.iter().position(is_wrong) {
            let folder = &self.ports.memif_folders[index];
            let message = format!("`{folder}` is no folder; write a path that begins with /, or \"auto\"");
            return Some(Fault::new(format!("ports.memif_folders[{index}]"), message));
        }
        let is_vlan = |port: &StaticPort| {
            matches!(port.uri.0, FaceUri::Device { vlan: Some(_), .. } | FaceUri::Pci { vlan: Some(_), .. })
        };
        if let Some(index) = self.port.iter().position(is_vlan) {
            let message = format!(
                "{} is a VLAN on a port; name the interface alone here, and the VLAN in `local` of a [[face]]",
                self.port[index].uri.0
            );
            return Some(Fault::new(format!("port[{index}].uri"), message));
        }
        let faces = self.face.iter().enumerate();
        faces.filter_map(|(index, face)| local_fault(index, face)).next().or_else(|| self.next_hop_fault())
    }

    /// The local URI that the faces to this peer are configured with.
    pub(crate) fn local_uri_of(&self, peer: &FaceUri) -> Option<&FaceUri> {
        self.face.iter().find(|face| face.uri.0 == *peer)?.local.as_ref().map(|local| &local.0)
    }

    /// A route over Ethernet leads to a face that is configured, because the route does not say over which interface.
    fn next_hop_fault(&self) -> Option<Fault> {
        self.route.iter().enumerate().find_map(|(index, route)| {
            let UriText(next_hop @ FaceUri::Ethernet(_)) = &route.nexthop else { return None };
            let unknown = self.local_uri_of(next_hop).is_none();
            unknown.then(|| {
                let message =
                    format!("`nexthop` {next_hop} needs a [[face]] with this `uri` and its `local` interface");
                Fault::new(format!("route[{index}].nexthop"), message)
            })
        })
    }
}

fn local_fault(index: usize, face: &StaticFace) -> Option<Fault> {
    let uri = &face.uri.0;
    match (uri, &face.local) {
        (FaceUri::Ethernet(_), None) => {
            let message = format!("{uri} needs `local`, for example local = \"dev://eth1\"");
            Some(Fault::new(format!("face[{index}].uri"), message))
        }
        (FaceUri::Ethernet(_), Some(_)) | (_, None) => None,
        (_, Some(_)) => {
            let message = format!("{} faces take no `local`; remove it", uri.scheme());
            Some(Fault::new(format!("face[{index}].local"), message))
        }
    }
}
