//! One port as the port thread holds it: the device, its state, and the workers' queues.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{debug, info, warn};

use namehop_face::address::{MacAddress, VlanId, is_group};
use namehop_face::registry::{Face, FaceParams, FaceUpdate};
use namehop_face::socket::{CreateError, FaceEvent};
use namehop_face::{FaceUri, LinkDrop};
use namehop_packet::FaceId;
use namehop_port::DpdkError;
use namehop_port::drivers::{Device, OpenError, OpenPort, Opener, Presence, Wishes};
use namehop_port::encapsulation::{FacePeer, Framing, Peer, solicitation_group};
use namehop_port::faces::{PortId, PortNetwork, PortParams, PortQueues, WorkerSilent};
use namehop_port::losses::Losses;
use namehop_port::wanted::Wanted;

use super::PortContext;
use super::kernel_share::KernelShare;
use super::made::FacesMade;
use super::steering::Steering;
use super::trouble::Trouble;
use super::{create_error, refused};

/// Pause between attempts to open a device again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Pause between the removal of a device and the first attempt to open it again.
const REMOVAL_PAUSE: Duration = Duration::from_millis(200);

/// The settings with which a port is opened.
pub(super) struct PortPlan {
    pub(super) uri: FaceUri,
    pub(super) framing: Framing,
    pub(super) networks: Vec<PortNetwork>,
    pub(super) wishes: Wishes,
    /// Name of the interface through which the kernel gets its share of the link's traffic.
    pub(super) kernel_interface: Option<String>,
}

/// Maximum numbers of faces that unknown senders can create.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnsolicitedLimits {
    /// On one port.
    pub(super) on_port: usize,
    /// From one IP address on one port.
    pub(super) per_address: usize,
}

/// An open port.
pub(super) struct ManagedPort {
    pub(super) id: PortId,
    /// URI of the port.
    pub(super) uri: FaceUri,
    pub(super) framing: Framing,
    /// Settings of the port in each network on its link.
    networks: Vec<PortNetwork>,
    /// The configuration names the port, so it stays open without faces.
    pub(super) stays: bool,
    made: FacesMade,
    pub(super) is_up: bool,
    pub(super) mtu_bytes: usize,
    wishes: Wishes,
    /// Number of workers with a queue of the port. Does not shrink if the port reopens with fewer queues.
    queues: usize,
    kernel: KernelShare,
    steering: Steering,
    address: MacAddress,
    /// `None` while the device could not be opened again.
    device: Option<Box<dyn Device>>,
    /// The filter of the device: frames to receive besides untagged NDN frames.
    wanted: Wanted,
    next_attempt: Instant,
    /// The log already has the reason why the port cannot be opened again.
    was_refused: bool,
    trouble: Trouble,
    counted: Losses,
}

impl ManagedPort {
    /// Opens the device and gives its queues to the workers. The server of a memif may start later.
    pub(super) fn open(
        context: &PortContext,
        opener: &mut Opener,
        id: PortId,
        plan: PortPlan,
        unsolicited: UnsolicitedLimits,
    ) -> Result<ManagedPort, CreateError> {
        let PortPlan { uri, framing, networks, wishes, kernel_interface } = plan;
        let opened = opener.open(&uri, &wishes).map_err(create_error)?;
        let OpenPort { device, queues, spread, address, mtu_bytes } = opened;
        if queues.len() > 1 {
            info!(port = %uri, queues = queues.len(), %spread, "a port has several queues");
        }
        let queue_count = queues.len();
        let params = PortParams {
            queue: None,
            framing,
            address,
            networks: networks.clone(),
            uri: uri.clone(),
            mtu_bytes,
            max_on_demand_faces: unsolicited.on_port,
            max_unsolicited_per_address: unsolicited.per_address,
            is_up: false,
        };
        context.control.add(id, params, queues).map_err(silent)?;
        let mut opened = ManagedPort {
            id,
            uri,
            framing,
            networks,
            stays: false,
            made: FacesMade::default(),
            is_up: false,
            mtu_bytes,
            wishes: Wishes { queues: queue_count, ..wishes },
            queues: queue_count,
            kernel: KernelShare::new(kernel_interface),
            steering: Steering::default(),
            address,
            device: Some(device),
            wanted: Wanted::default(),
            next_attempt: Instant::now(),
            was_refused: false,
            trouble: Trouble::new(),
            counted: Losses::default(),
        };
        opened.receive_all_wanted();
        opened.share_with_kernel(context);
        opened.note_state(context);
        Ok(opened)
    }

    /// Returns whether faces with this local URI are on this port.
    pub(super) fn is_at(&self, local: &FaceUri) -> bool {
        local.is_on(&self.uri)
    }

    /// Returns the faces on this port, including those created by unknown senders.
    pub(super) fn faces(&self, context: &PortContext) -> Vec<Arc<Face>> {
        let mut faces = context.faces.snapshot();
        faces.retain(|face| self.is_at(&face.local_uri()));
        faces
    }

    fn give_queues(&self, context: &PortContext, queues: PortQueues) {
        if let Err(error) = context.control.give_queues(self.id, self.queues, queues, self.address, self.mtu_bytes) {
            warn!(%error, "cannot use a port");
        }
    }

    /// Takes the queues back from the workers and closes the device; no end of it is left then.
    fn stop(&mut self, context: &PortContext) {
        // Workers that have ended have released their queues.
        let _ = context.control.take_queues(self.id, self.queues);
        // Count losses after the last frame was sent, because that frame may be lost too.
        self.note_losses(context);
        self.device = None;
    }

    /// Closes the device and opens it again, when its interface was replaced or its address or MTU changed.
    fn reopen(&mut self, context: &PortContext, opener: &mut Opener) {
        if self.device.is_some() {
            self.stop(context);
        }
        self.counted = Losses::default();
        self.next_attempt = Instant::now() + RETRY_PAUSE;
        match opener.open(&self.uri, &self.wishes) {
            Ok(OpenPort { device, queues, address, mtu_bytes, .. }) => {
                info!(port = %self.uri, "port reopened");
                self.was_refused = false;
                (self.device, self.address, self.mtu_bytes) = (Some(device), address, mtu_bytes);
                self.wanted = Wanted::default();
                self.receive_all_wanted();
                self.kernel.end();
                self.share_with_kernel(context);
                self.give_queues(context, queues);
                for face in self.faces(context) {
                    self.join(&face, true);
                    self.steer(&face);
                    let peer = FacePeer::of(face.remote_uri(), &face.local_uri());
                    face.set_link_mtu_bytes(peer.map_or(mtu_bytes, |peer| peer.mtu_bytes(mtu_bytes)));
                    context.workers.face_changed(face.id());
                }
            }
            // A query is all that an attempt costs, so it is repeated with the next check.
            Err(OpenError::NoInterface(_)) => self.next_attempt = Instant::now(),
            Err(error) if !self.was_refused => {
                warn!(port = %self.uri, %error, "cannot reopen a port; retrying every second");
                self.was_refused = true;
            }
            Err(error) => debug!(port = %self.uri, %error, "cannot reopen a port yet"),
        }
    }

    /// Closes the port. Its faces must have been removed.
    pub(super) fn close(mut self, context: &PortContext) {
        self.stop(context);
        // `stop` took the queues back.
        let _ = context.control.remove(self.id, self.queues);
    }

    /// Returns why the port cannot have a face to this peer, if so.
    pub(super) fn refuses(&self, peer: &FacePeer) -> Option<String> {
        let FacePeer::Link(Peer::Ethernet(address) | Peer::Vlan(address, _)) = peer else { return None };
        if *address == self.address {
            return Some(format!("this is the hardware address of {} itself: write the address of the peer", self.uri));
        }
        (*address == [0; 6]).then(|| "00:00:00:00:00:00 is not the hardware address of a peer".to_owned())
    }

    /// Creates a face and announces it.
    pub(super) fn add_face(
        &mut self,
        context: &PortContext,
        params: FaceParams,
        peer: FacePeer,
        update: &FaceUpdate,
    ) -> Result<Arc<Face>, CreateError> {
        let face = context.faces.insert(params).map_err(|error| CreateError::NotAcceptable(error.to_string()))?;
        if let Err(rejected) = face.update(update) {
            context.faces.remove(face.id());
            return Err(CreateError::NotAcceptable(rejected.to_string()));
        }
        let is_first = self.made.add(face.id(), peer.vlan().map(VlanId::get));
        let is_received = if is_first { self.receive_wanted() } else { Ok(()) };
        let added = is_received
            .map_err(|error| refused(&error))
            .and_then(|()| context.control.add_face(self.id, self.queues, &face, peer).map_err(silent));
        if let Err(error) = added {
            self.forget(face.id());
            context.faces.remove(face.id());
            return Err(error);
        }
        self.join(&face, true);
        self.steer(&face);
        if let Some(device) = &self.device {
            device.start();
        }
        debug!(face = %face.id(), remote = %face.remote_uri(), local = %self.uri, "face created");
        context.announce(FaceEvent::Created(Arc::clone(&face)));
        Ok(face)
    }

    /// Removes a face and announces its end.
    pub(super) fn remove_face(&mut self, context: &PortContext, face: &Arc<Face>) {
        // A worker that has ended has no faces.
        let _ = context.control.remove_face(self.id, self.queues, face.id());
        self.join(face, false);
        if let Some(device) = &self.device {
            self.steering.remove(device.as_ref(), face);
        }
        face.set_up(false);
        if context.faces.remove(face.id()).is_none() {
            // The face was evicted for another one at the same moment; its end was announced then.
            return;
        }
        self.forget(face.id());
        debug!(face = %face.id(), remote = %face.remote_uri(), "face closed");
        context.announce(FaceEvent::Destroyed(Arc::clone(face)));
    }

    /// Returns whether the port has no faces except those created by unknown senders.
    pub(super) fn is_without_faces(&self) -> bool {
        self.made.is_empty()
    }

    /// Removes a face from the index. If it was the last in its VLAN, the device stops receiving the VLAN.
    fn forget(&mut self, face: FaceId) {
        if self.made.remove(face)
            && let Err(error) = self.receive_wanted()
        {
            // Excess frames arrive and are dropped.
            debug!(port = %self.uri, %error, "the frame filter stays unchanged");
        }
    }

    /// Steers the frames of a face to one queue of the device, if the device has several and supports that.
    fn steer(&mut self, face: &Face) {
        if let Some(device) = &self.device {
            self.steering.add(device.as_ref(), face);
        }
    }

    /// Creates the kernel's interface if it is configured and missing.
    fn share_with_kernel(&mut self, context: &PortContext) {
        if let (Some(device), true) = (&self.device, self.kernel.is_missing()) {
            self.kernel.make(context, self.id, device.as_ref(), self.address, self.mtu_bytes);
        }
    }

    /// Sets the filter and the groups of a newly opened device. Failures are logged.
    fn receive_all_wanted(&mut self) {
        let own = self.networks.iter().flat_map(|network| &network.addresses);
        let groups = own.filter_map(|own| match own.address {
            IpAddr::V6(address) => Some(solicitation_group(address)),
            IpAddr::V4(_) => None,
        });
        let join = |group| self.device.as_ref().map_or(Ok(()), |device| device.join(group, true));
        let joined = groups.map(join).find(Result::is_err).unwrap_or(Ok(()));
        if let Err(error) = self.receive_wanted().and(joined) {
            warn!(port = %self.uri, %error, "the port cannot receive packets to its addresses or in its VLANs");
        }
    }

    /// Sets the filter of the device: packets to the port's addresses, and frames of VLANs that are configured or have
    /// faces. Besides these, the device receives only untagged NDN frames.
    fn receive_wanted(&mut self) -> Result<(), DpdkError> {
        let Some(device) = &self.device else { return Ok(()) };
        let identifier = |network: &PortNetwork| network.vlan.map(VlanId::get);
        let of_networks = self.networks.iter().filter_map(identifier);
        let vlans: BTreeSet<u16> = of_networks.chain(self.made.vlans()).collect();
        let addresses = self
            .networks
            .iter()
            .flat_map(|network| network.addresses.iter().map(move |own| (identifier(network), own.address)));
        let wanted = Wanted::new(&Vec::from_iter(vlans), &Vec::from_iter(addresses))?;
        if wanted != self.wanted {
            device.receive_only(&wanted)?;
            self.wanted = wanted;
        }
        Ok(())
    }

    /// Returns the settings of the port in the network that this local URI names; without addresses if that network is
    /// not configured.
    pub(super) fn network_at(&self, local: &FaceUri) -> PortNetwork {
        network_of(&self.networks, local)
    }

    /// Joins or leaves the group of a multicast face.
    fn join(&self, face: &Face, join: bool) {
        if let (FaceUri::Ethernet(group), Some(device)) = (face.remote_uri(), &self.device)
            && is_group(group)
            && let Err(error) = device.join(*group, join)
        {
            // An interface that was removed has left all groups.
            debug!(face = %face.id(), %error, join, "cannot join or leave a multicast group");
        }
    }

    /// Checks for links that broke or recovered, and counts frames lost below the faces.
    pub(super) fn check(&mut self, context: &PortContext, opener: &mut Opener, now: Instant) {
        let presence = self.device.as_ref().map(|device| device.presence());
        if presence == Some(Presence::Removed) {
            info!(port = %self.uri, "network card or interface removed");
            // Nothing arrives any more. The kernel does not release a card before it is closed.
            self.stop(context);
            self.next_attempt = now + REMOVAL_PAUSE;
        }
        let must_reopen = presence != Some(Presence::Present);
        if must_reopen && now >= self.next_attempt {
            self.reopen(context, opener);
        } else if now >= self.next_attempt && self.kernel.is_missing() {
            self.next_attempt = now + RETRY_PAUSE;
            self.share_with_kernel(context);
        }
        self.note_state(context);
        self.trouble.note(&self.uri, self.is_up, self.device.as_ref().and_then(|device| device.take_trouble()));
        self.note_losses(context);
    }

    /// Updates the link state in faces and workers, and announces changes.
    fn note_state(&mut self, context: &PortContext) {
        let is_up = self.device.as_ref().is_some_and(|device| device.is_up());
        let was_up = std::mem::replace(&mut self.is_up, is_up);
        if !is_up || !was_up {
            // Repeated while the link is down: a frame that arrived at the last moment may have made workers consider
            // it up.
            context.control.set_state(self.id, self.queues, is_up);
        }
        if is_up == was_up {
            return;
        }
        info!(port = %self.uri, is_up, "link state");
        for face in self.faces(context) {
            if face.set_up(is_up) != is_up {
                let event = if is_up { FaceEvent::Up } else { FaceEvent::Down };
                context.announce(event(face));
            }
        }
    }

    /// Counts frames that were lost below the faces.
    fn note_losses(&mut self, context: &PortContext) {
        let now = self.device.as_ref().map(|device| device.losses()).unwrap_or_default();
        let own = now.since(std::mem::replace(&mut self.counted, now));
        let drops = context.faces.link_drops();
        for lost in [own, self.kernel.new_losses()] {
            drops.add(LinkDrop::ReceiveRingFull, lost.receive_ring_full);
            drops.add(LinkDrop::NoBuffer, lost.no_buffer);
            drops.add(LinkDrop::MalformedFrame, lost.malformed);
            drops.add(LinkDrop::SendFailed, lost.send_failed);
        }
    }
}

/// Returns the network that a local URI names; one without addresses if it is not in `networks`.
pub(super) fn network_of(networks: &[PortNetwork], local: &FaceUri) -> PortNetwork {
    let vlan = local.options().and_then(|options| options.vlan);
    let named = networks.iter().find(|network| network.vlan == vlan);
    named.cloned().unwrap_or(PortNetwork { vlan, ..PortNetwork::default() })
}

fn silent(error: WorkerSilent) -> CreateError {
    CreateError::Unreachable(error.to_string())
}
