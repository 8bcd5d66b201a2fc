//! The port thread: opens and closes ports, creates their faces, and checks both at intervals.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::{info, warn};

use namehop_config::{Auto, Config, StaticPort};
use namehop_face::FaceUri;
use namehop_face::registry::{Face, FaceFlags, FacePersistency, FaceUpdate};
use namehop_face::socket::{CreateError, FaceEvent};
use namehop_packet::FaceId;
use namehop_port::drivers::{self, Driver, Opener, RingSizes, Wishes};
use namehop_port::encapsulation::tunnel::TUNNELS;
use namehop_port::encapsulation::{FacePeer, Framing, NDN_GROUP};
use namehop_port::faces::{PortId, PortNetwork, face_params};
use namehop_port::{Devices, Eal, mempool_bytes, use_mempools};

use super::PortContext;
use super::managed::{ManagedPort, PortPlan, UnsolicitedLimits, network_of};
use super::refused;
use super::silence::Silences;
use crate::memory_budget::Bounds;
use namehop_worker::fault_point;

/// Interval between checks of links: the longest time until a broken link is noticed.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Pause between attempts to open a configured port that the system refused.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

pub(super) type FaceReply = oneshot::Sender<Result<Arc<Face>, CreateError>>;

/// A command from the control thread.
#[expect(clippy::large_enum_variant, reason = "commands are few and short-lived")]
pub(super) enum PortCommand {
    /// Open the configured ports.
    OpenConfigured(oneshot::Sender<()>),
    /// Create a face, and open its port if necessary.
    CreateFace { uri: FaceUri, local_uri: Option<FaceUri>, update: FaceUpdate, reply: FaceReply },
    /// Close a face. The reply says whether it was on a port.
    DestroyFace { id: FaceId, reply: oneshot::Sender<bool> },
    /// Close all faces and ports, and end the thread.
    Shutdown(oneshot::Sender<()>),
}

/// The configured settings of a port besides its URI.
#[derive(Default)]
struct PortSettings {
    networks: Vec<PortNetwork>,
    mtu_bytes: Option<usize>,
    /// `Auto` = one for each worker.
    queues: Auto<usize>,
    kernel_interface: Option<String>,
}

impl PortSettings {
    /// Collects the settings of the port with this URI, and of VLANs on it.
    fn of(configured: &[StaticPort], uri: &FaceUri) -> PortSettings {
        let on_port = configured.iter().filter(|port| port.uri.0.is_on(uri));
        let of_port = configured.iter().find(|port| port.uri.0 == *uri);
        PortSettings {
            networks: on_port.map(StaticPort::network).collect(),
            mtu_bytes: of_port.and_then(|port| port.mtu),
            queues: of_port.map(|port| port.queues).unwrap_or_default(),
            kernel_interface: of_port.and_then(|port| port.kernel_interface.as_ref()).map(|name| name.0.clone()),
        }
    }
}

/// A configured port that could not be opened yet.
struct MissingPort {
    /// Index in the configuration.
    index: usize,
    next_attempt: Instant,
    /// The reason in the log.
    reason: Option<String>,
}

impl MissingPort {
    fn new(index: usize) -> MissingPort {
        MissingPort { index, next_attempt: Instant::now(), reason: None }
    }
}

/// All ports: open ones, and configured ones that are still missing.
pub(super) struct Ports {
    pub(super) context: PortContext,
    packet_bytes: usize,
    devices: Devices,
    opener: Opener,
    /// Flags of new faces.
    flags: FaceFlags,
    self_learning: bool,
    idle_timeout: Duration,
    unsolicited: UnsolicitedLimits,
    /// The configured ports and VLANs.
    configured: Vec<StaticPort>,
    /// Configured ports that could not be opened yet.
    missing: Vec<MissingPort>,
    open: Vec<ManagedPort>,
    /// Frame counts of on-demand faces at the last check for idle faces.
    used: HashMap<FaceId, u64>,
    next_idle_look: Instant,
    silences: Silences,
}

impl Ports {
    pub(super) fn new(context: PortContext, config: &Config, bounds: &Bounds) -> Self {
        let ports = &config.ports;
        let ring_sizes = RingSizes { slots: ports.memif_ring_frames, buffer_bytes: ports.memif_buffer_bytes };
        let opener = Opener::new(&context.pool, ring_sizes);
        let idle_timeout = Duration::from_secs(ports.idle_timeout_s);
        Ports {
            context,
            packet_bytes: mempool_bytes(bounds.small_buffers, bounds.large_buffers),
            devices: if config.may_use_pci() { Devices::Pci } else { Devices::None },
            opener,
            flags: config.faces.port_flags(),
            self_learning: config.faces.self_learning,
            idle_timeout,
            unsolicited: UnsolicitedLimits {
                on_port: config.max_unsolicited_on_port(bounds.max_faces),
                per_address: config.faces.strangers_per_address,
            },
            configured: config.port.clone(),
            missing: Vec::new(),
            open: Vec::new(),
            used: HashMap::new(),
            next_idle_look: Instant::now() + idle_timeout,
            silences: Silences::new(Duration::from_secs(config.faces.blocked_timeout_s)),
        }
    }

    /// Returns whether the configuration names ports.
    pub(super) fn has_configured(&self) -> bool {
        !self.configured.is_empty()
    }

    /// Executes commands until told to shut down or until all senders are gone.
    pub(super) fn run(mut self, commands: &Receiver<PortCommand>) {
        fault_point("ports thread");
        let mut next_check = Instant::now() + CHECK_INTERVAL;
        loop {
            // If a reply cannot be sent, its receiver has stopped waiting.
            match commands.recv_timeout(next_check.saturating_duration_since(Instant::now())) {
                Ok(PortCommand::OpenConfigured(reply)) => {
                    self.missing = (0..self.configured.len()).map(MissingPort::new).collect();
                    self.open_missing(Instant::now());
                    let _ = reply.send(());
                }
                Ok(PortCommand::CreateFace { uri, local_uri, update, reply }) => {
                    let _ = reply.send(self.create_face(&uri, local_uri, &update));
                }
                Ok(PortCommand::DestroyFace { id, reply }) => {
                    let _ = reply.send(self.destroy_face(id));
                }
                Ok(PortCommand::Shutdown(reply)) => {
                    self.close_all();
                    let _ = reply.send(());
                    return;
                }
                Err(RecvTimeoutError::Disconnected) => return self.close_all(),
                Err(RecvTimeoutError::Timeout) => {
                    self.check();
                    next_check = Instant::now() + CHECK_INTERVAL;
                }
            }
        }
    }

    /// Opens the configured ports in `missing`. A port that fails stays in the list.
    fn open_missing(&mut self, now: Instant) {
        for mut missing in std::mem::take(&mut self.missing) {
            if now < missing.next_attempt {
                self.missing.push(missing);
                continue;
            }
            let port = self.configured[missing.index].clone();
            let Err(error) = self.open_configured(&port) else { continue };
            let is_unreachable = matches!(error, CreateError::Unreachable(_));
            let text = error.to_string();
            if missing.reason.as_ref() != Some(&text) {
                match is_unreachable {
                    true => warn!(port = %port.uri.0, %error, "waiting for a configured port to appear"),
                    false => warn!(
                        port = %port.uri.0,
                        %error,
                        "cannot open a configured port; retrying every {} s",
                        RETRY_PAUSE.as_secs()
                    ),
                }
                missing.reason = Some(text);
            }
            // A query is all that an attempt costs for an interface that is not there.
            missing.next_attempt = if is_unreachable { now } else { Instant::now() + RETRY_PAUSE };
            self.missing.push(missing);
        }
    }

    fn open_configured(&mut self, port: &StaticPort) -> Result<(), CreateError> {
        let index = self.find_or_open(&port.uri.0.port(), Framing::Ethernet)?;
        self.open[index].stays = true;
        if port.multicast {
            let update = FaceUpdate::default();
            match self.create_face(&FaceUri::Ethernet(NDN_GROUP), Some(port.uri.0.clone()), &update) {
                Ok(_) | Err(CreateError::Exists(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the index in `open` of the port with this URI; opens the port if necessary.
    fn find_or_open(&mut self, uri: &FaceUri, framing: Framing) -> Result<usize, CreateError> {
        if let Some(index) = self.open.iter().position(|port| port.uri == *uri) {
            return match self.open[index].framing == framing {
                true => Ok(index),
                false => Err(CreateError::NotAcceptable(format!(
                    "{uri} carries either bare NDN packets of one {} face, or Ethernet faces; it is in use for the \
                     other kind",
                    uri.scheme()
                ))),
            };
        }
        if let Some(other) = self.open.iter().find(|port| is_same_interface(&port.uri, uri)) {
            return Err(CreateError::NotAcceptable(format!(
                "{} is open on this interface, and the two ports would take frames from each other: use that port, or \
                 destroy its faces",
                other.uri
            )));
        }
        let eal = Eal::start(self.packet_bytes, self.devices).map_err(|error| refused(&error))?;
        use_mempools(&self.context.pool, eal).map_err(|error| refused(&error))?;
        let taken = |id: u16| self.open.iter().any(|port| port.id == PortId(id));
        let id = PortId((0..u16::MAX).find(|&id| !taken(id)).unwrap_or_default());
        let PortSettings { mut networks, mtu_bytes, queues, kernel_interface } =
            PortSettings::of(&self.configured, uri);
        if framing == Framing::Bare {
            networks.clear();
        }
        let max_queues = self.context.control.max_queues();
        let queues = match queues {
            Auto::Auto => max_queues,
            Auto::Value(queues) => queues.min(max_queues),
        };
        let wishes = Wishes { header_bytes: framing.header_bytes(), mtu_bytes, queues };
        let plan = PortPlan { uri: uri.clone(), framing, networks, wishes, kernel_interface };
        let port = ManagedPort::open(&self.context, &mut self.opener, id, plan, self.unsolicited)?;
        info!(port = %uri, "port opened");
        self.open.push(port);
        Ok(self.open.len() - 1)
    }

    fn create_face(
        &mut self,
        uri: &FaceUri,
        local_uri: Option<FaceUri>,
        update: &FaceUpdate,
    ) -> Result<Arc<Face>, CreateError> {
        let mut local = local_uri.unwrap_or_else(|| uri.clone());
        if matches!(uri, FaceUri::Udp { .. } | FaceUri::Tunnel(_)) {
            local = self.network_at(&local).complete(uri, &local).map_err(CreateError::NotAcceptable)?;
        }
        let Some(peer) = FacePeer::of(uri, &local) else {
            let text = match uri {
                FaceUri::Ethernet(_) => format!("an Ethernet face needs a local URI: {}", drivers::forms(|_| true)),
                FaceUri::Udp { .. } | FaceUri::Tunnel(_) => format!(
                    "the addresses of this face are of different families, its remote address is not unicast, or its \
                     local URI has an option that these faces do not have (reserved ports: {})",
                    reserved_ports()
                ),
                _ => format!("the local URI of a {} face must equal its remote URI", uri.scheme()),
            };
            return Err(CreateError::NotAcceptable(text));
        };
        if update.persistency == Some(FacePersistency::OnDemand) {
            let text = "a command cannot create an on-demand face: choose persistent or permanent".to_owned();
            return Err(CreateError::NotAcceptable(text));
        }
        if let Some(face) = self.context.face_at(uri, &local) {
            return Err(CreateError::Exists(face));
        }
        if let Some(face) = self.rival_of(&peer, &local) {
            return Err(CreateError::NotAcceptable(format!(
                "face {} ({}) already receives all packets from this address, from any port",
                face.id(),
                face.remote_uri()
            )));
        }
        let index = self.find_or_open(&local.port(), peer.framing())?;
        let port = &mut self.open[index];
        if let Some(problem) = port.refuses(&peer) {
            self.close_if_unused(index);
            return Err(CreateError::NotAcceptable(problem));
        }
        let mut params = face_params(peer, &port.uri, port.mtu_bytes);
        params.is_up = port.is_up;
        params.self_learning = self.self_learning;
        params.idle_timeout = Some(self.idle_timeout);
        params.home_worker = Some(self.context.control.worker_of(port.id));
        if !peer.is_group() {
            params.flags = self.flags;
        }
        let result = port.add_face(&self.context, params, peer, update);
        if result.is_err() {
            self.close_if_unused(index);
        }
        result
    }

    /// Returns the settings of the network that faces with this local URI are in.
    fn network_at(&self, local: &FaceUri) -> PortNetwork {
        match self.open.iter().find(|port| port.is_at(local)) {
            Some(port) => port.network_at(local),
            None => network_of(&PortSettings::of(&self.configured, &local.port()).networks, local),
        }
    }

    /// Returns an existing face that would receive the frames of this peer.
    fn rival_of(&self, peer: &FacePeer, local: &FaceUri) -> Option<Arc<Face>> {
        let FacePeer::Internet(peer) = peer else { return None };
        let port = self.open.iter().find(|port| port.is_at(local))?;
        port.faces(&self.context).into_iter().find(|face| {
            let other = FacePeer::of(face.remote_uri(), &face.local_uri());
            matches!(other, Some(FacePeer::Internet(other)) if other.is_same_as(peer))
        })
    }

    fn destroy_face(&mut self, id: FaceId) -> bool {
        let Some(face) = self.context.faces.get(id) else { return false };
        let Some(index) = self.open.iter().position(|port| port.is_at(&face.local_uri())) else { return false };
        self.open[index].remove_face(&self.context, &face);
        self.close_if_unused(index);
        true
    }

    /// Closes a port that has no faces left and is not configured.
    fn close_if_unused(&mut self, index: usize) {
        let port = &self.open[index];
        if !port.stays && port.is_without_faces() {
            info!(port = %port.uri, "port closed");
            self.open.swap_remove(index).close(&self.context);
        }
    }

    fn close_all(&mut self) {
        for mut port in std::mem::take(&mut self.open) {
            for face in port.faces(&self.context) {
                port.remove_face(&self.context, &face);
            }
            port.close(&self.context);
        }
    }

    /// Handles changes that happened without a command.
    fn check(&mut self) {
        let now = Instant::now();
        if !self.missing.is_empty() {
            self.open_missing(now);
        }
        for port in &mut self.open {
            port.check(&self.context, &mut self.opener, now);
        }
        self.silences.check(&self.context, &self.open, now);
        if now >= self.next_idle_look {
            self.next_idle_look = now + self.idle_timeout;
            self.close_idle_faces(now);
        }
    }

    /// Closes on-demand faces without a frame since the last check.
    fn close_idle_faces(&mut self, now: Instant) {
        let mut used = HashMap::new();
        for index in 0..self.open.len() {
            for face in self.open[index].faces(&self.context) {
                if face.persistency() != FacePersistency::OnDemand {
                    continue;
                }
                let frames = face.counters.sum(|worker| worker.received.frames.get() + worker.sent.frames.get());
                if self.used.get(&face.id()) == Some(&frames) {
                    self.open[index].remove_face(&self.context, &face);
                } else {
                    face.set_expiration(Some(now + self.idle_timeout));
                    used.insert(face.id(), frames);
                }
            }
        }
        self.used = used;
    }
}

/// Lists the UDP ports of encapsulations, for messages.
fn reserved_ports() -> String {
    let ports = TUNNELS.iter().map(|tunnel| format!("{} for {}", tunnel.port, tunnel.scheme.names.join(" and ")));
    ports.collect::<Vec<_>>().join(", ")
}

/// Returns whether two ports would receive the frames of one interface in different ways.
fn is_same_interface(one: &FaceUri, other: &FaceUri) -> bool {
    let interface = |uri: &FaceUri| {
        let port = uri.as_port().filter(|_| Driver::traits_of(uri).uses_interface)?;
        Some(port.device().to_owned())
    };
    one != other && interface(one).is_some_and(|name| interface(other) == Some(name))
}

impl PortContext {
    /// Announces an event to the rest of the router. Fails silently while the router shuts down.
    pub(super) fn announce(&self, event: FaceEvent) {
        let _ = self.events.send(event);
    }

    /// Returns the face with these addresses.
    fn face_at(&self, remote: &FaceUri, local: &FaceUri) -> Option<Arc<Face>> {
        self.faces.find_by_remote(remote).into_iter().find(|face| *face.local_uri() == *local)
    }
}
