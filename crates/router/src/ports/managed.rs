//! One port as the ports' thread holds it: the device, its state, and the worker's end of it.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{debug, info, warn};

use namehop_dpdk::Eal;
use namehop_dpdk::interface::Doorbell;
use namehop_dpdk::port::{Port, PortStatistics, StartedPort};
use namehop_face::ethernet::{FramePort, Framing, MacAddress, PortId, PortParams, WorkerSilent, is_group};
use namehop_face::registry::{Face, FaceParams, FaceUpdate};
use namehop_face::socket::{CreateError, FaceEvent};
use namehop_face::uri::MemifRole;
use namehop_face::{FaceUri, LinkDrop};

use super::PortContext;
use super::link::DpdkLink;
use super::open::{self, MemifSettings, Opened};

/// Pause between attempts to reach the server of a memif, or to open a device again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The device behind a port.
enum Device {
    /// In use by the worker.
    Started(StartedPort),
    /// Open; the server of a memif is not there.
    Stopped(Port),
    /// It could not be opened again.
    Gone,
}

/// A port.
pub(super) struct ManagedPort {
    pub(super) id: PortId,
    /// Its URI, and that of this end of its faces.
    pub(super) local: FaceUri,
    pub(super) framing: Framing,
    /// The configuration asks for it.
    pub(super) stays: bool,
    pub(super) is_up: bool,
    pub(super) mtu_bytes: usize,
    address: MacAddress,
    device: Device,
    bell: Option<Arc<Doorbell>>,
    next_attempt: Instant,
    counted: PortStatistics,
}

impl ManagedPort {
    /// Opens the device and hands it to the worker. The server of a memif need not be there yet.
    pub(super) fn open(
        context: &PortContext,
        eal: &Eal,
        id: PortId,
        local: &FaceUri,
        framing: Framing,
        memif: MemifSettings,
        max_on_demand_faces: usize,
    ) -> Result<ManagedPort, CreateError> {
        let Opened { port, bell, address, mtu_bytes } = open::open(eal, &context.pool, local, framing, memif)?;
        let params = PortParams {
            link: None,
            framing,
            address,
            local_uri: local.clone(),
            mtu_bytes,
            max_on_demand_faces,
            is_up: false,
        };
        context.control.add(id, params).map_err(silent)?;
        let mut opened = ManagedPort {
            id,
            local: local.clone(),
            framing,
            stays: false,
            is_up: false,
            mtu_bytes,
            address,
            device: Device::Stopped(port),
            bell,
            next_attempt: Instant::now(),
            counted: PortStatistics::default(),
        };
        opened.start(context);
        opened.note_state(context);
        Ok(opened)
    }

    /// Whether its faces have this local URI.
    pub(super) fn is_at(&self, local: &FaceUri) -> bool {
        self.local == *local
    }

    /// Its faces, those that senders made included.
    pub(super) fn faces(&self, context: &PortContext) -> Vec<Arc<Face>> {
        let mut faces = context.faces.snapshot();
        faces.retain(|face| self.is_at(face.local_uri()));
        faces
    }

    /// Starts a stopped device and gives its queues to the worker.
    fn start(&mut self, context: &PortContext) {
        self.device = match std::mem::replace(&mut self.device, Device::Gone) {
            Device::Stopped(port) => match port.start() {
                Ok((started, queue)) => {
                    let link = DpdkLink { queue, bell: self.bell.clone() };
                    if let Err(error) = context.control.give_link(self.id, Box::new(link), self.address) {
                        warn!(%error, "a port cannot be used");
                    }
                    Device::Started(started)
                }
                Err((port, error)) => {
                    debug!(port = %self.local, %error, "the port does not start yet; trying again");
                    Device::Stopped(port)
                }
            },
            other => other,
        };
        self.next_attempt = Instant::now() + RETRY_PAUSE;
    }

    /// Takes the queues back from the worker and stops the device.
    fn stop(&mut self, context: &PortContext) {
        let link = context.control.take_link(self.id).unwrap_or_default();
        self.device = match std::mem::replace(&mut self.device, Device::Gone) {
            Device::Started(started) => match link.and_then(queue_of).map(|link| started.stop(link.queue)) {
                Some(Ok(port)) => Device::Stopped(port),
                Some(Err(error)) => {
                    warn!(port = %self.local, %error, "a port did not stop");
                    Device::Gone
                }
                None => Device::Gone,
            },
            other => other,
        };
    }

    /// Closes the device and opens it again, for an interface that came back as another one or carries other frames.
    fn reopen(&mut self, context: &PortContext, eal: &Eal, memif: MemifSettings) {
        self.stop(context);
        self.device = Device::Gone;
        self.counted = PortStatistics::default();
        self.next_attempt = Instant::now() + RETRY_PAUSE;
        match open::open(eal, &context.pool, &self.local, self.framing, memif) {
            Ok(Opened { port, bell, address, mtu_bytes }) => {
                info!(port = %self.local, "port opened again");
                self.device = Device::Stopped(port);
                (self.bell, self.address, self.mtu_bytes) = (bell, address, mtu_bytes);
                for face in self.faces(context) {
                    self.join(&face, true);
                    face.set_link_mtu_bytes(mtu_bytes);
                    context.worker.face_changed(face.id());
                }
                self.start(context);
            }
            Err(error) => debug!(port = %self.local, %error, "a port cannot be opened again yet"),
        }
    }

    /// Closes the device. Its faces were removed before.
    pub(super) fn close(mut self, context: &PortContext) {
        self.stop(context);
        // The link came back above.
        let _ = context.control.remove(self.id);
    }

    /// Enters a face and tells everybody.
    pub(super) fn add_face(
        &mut self,
        context: &PortContext,
        params: FaceParams,
        remote: MacAddress,
        update: &FaceUpdate,
    ) -> Result<Arc<Face>, CreateError> {
        let face = context.faces.insert(params).map_err(|error| CreateError::NotAcceptable(error.to_string()))?;
        if let Err(rejected) = face.update(update) {
            context.faces.remove(face.id());
            return Err(CreateError::NotAcceptable(rejected.to_string()));
        }
        if let Err(error) = context.control.add_face(self.id, Arc::clone(&face), remote) {
            context.faces.remove(face.id());
            return Err(silent(error));
        }
        self.join(&face, true);
        debug!(face = %face.id(), remote = %face.remote_uri(), local = %self.local, "face created");
        context.announce(FaceEvent::Created(Arc::clone(&face)));
        Ok(face)
    }

    /// Removes a face and tells everybody.
    pub(super) fn remove_face(&mut self, context: &PortContext, face: &Arc<Face>) {
        // A worker that has ended has no faces.
        let _ = context.control.remove_face(face.id());
        self.join(face, false);
        face.set_up(false);
        context.faces.remove(face.id());
        debug!(face = %face.id(), remote = %face.remote_uri(), "face closed");
        context.announce(FaceEvent::Destroyed(Arc::clone(face)));
    }

    /// Has the interface receive the group of a multicast face, or not any more.
    fn join(&self, face: &Face, join: bool) {
        if let (FaceUri::Ethernet(group), Some(bell)) = (face.remote_uri(), &self.bell)
            && is_group(group)
            && let Err(error) = bell.join(*group, join)
        {
            // An interface that is gone has left all groups.
            debug!(face = %face.id(), %error, join, "the membership in a group was not changed");
        }
    }

    /// Notices links that broke or came back, and frames that were lost below.
    pub(super) fn look(&mut self, context: &PortContext, eal: &Eal, memif: MemifSettings, now: Instant) {
        let must_reopen = match &self.local {
            FaceUri::Device(interface) => match open::query(interface) {
                Err(_) if matches!(self.device, Device::Gone) => false,
                Err(_) => {
                    // Nothing arrives any more. What comes back under this name is another interface.
                    self.stop(context);
                    self.device = Device::Gone;
                    false
                }
                Ok(found) => {
                    matches!(self.device, Device::Gone)
                        || (open::usable_mtu(&found), found.address) != (self.mtu_bytes, self.address)
                }
            },
            _ => matches!(self.device, Device::Gone),
        };
        if must_reopen && now >= self.next_attempt {
            self.reopen(context, eal, memif);
        }
        let is_client = matches!(self.local, FaceUri::Memif { role: MemifRole::Client, .. });
        if is_client && !self.is_up && now >= self.next_attempt {
            // The driver connects when the device starts, and only then.
            self.stop(context);
            self.start(context);
        }
        self.note_state(context);
        self.note_losses(context);
    }

    /// Has faces, worker and everybody know whether the link works.
    fn note_state(&mut self, context: &PortContext) {
        let is_up = match (&self.device, &self.local) {
            (Device::Started(_), FaceUri::Device(interface)) => open::query(interface).is_ok_and(|found| found.is_up),
            (Device::Started(started), _) => started.port().is_up().unwrap_or(false),
            _ => false,
        };
        if is_up == self.is_up {
            return;
        }
        self.is_up = is_up;
        info!(port = %self.local, is_up, "link state");
        context.control.set_state(self.id, is_up, self.mtu_bytes);
        for face in self.faces(context) {
            if face.set_up(is_up) != is_up {
                let event = if is_up { FaceEvent::Up } else { FaceEvent::Down };
                context.announce(event(face));
            }
        }
    }

    /// Counts frames that the driver lost.
    fn note_losses(&mut self, context: &PortContext) {
        let Device::Started(started) = &self.device else { return };
        let Ok(now) = started.port().statistics() else { return };
        let before = std::mem::replace(&mut self.counted, now);
        let drops = context.faces.link_drops();
        for (reason, now, before) in [
            (LinkDrop::ReceiveRingFull, now.missed, before.missed),
            (LinkDrop::NoBuffer, now.no_buffer, before.no_buffer),
            (LinkDrop::MalformedFrame, now.receive_errors, before.receive_errors),
            (LinkDrop::SendFailed, now.send_errors, before.send_errors),
        ] {
            drops.add(reason, now.saturating_sub(before));
        }
    }
}

/// The queues inside a link that the worker gave back.
fn queue_of(link: Box<dyn FramePort<namehop_dpdk::Mbuf>>) -> Option<Box<DpdkLink>> {
    let link: Box<dyn Any> = link;
    link.downcast().ok()
}

fn silent(error: WorkerSilent) -> CreateError {
    CreateError::Unreachable(error.to_string())
}
