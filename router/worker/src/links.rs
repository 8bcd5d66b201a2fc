//! The links of a worker: rings to and from other threads, and ports. Also what is measured and copied there.

use std::sync::Arc;
use std::time::Duration;

use namehop_face::capture::CaptureRecorder;
use namehop_face::latency::LatencyRecorder;
use namehop_face::registry::Face;
use namehop_face::ring::FrameRing;
use namehop_face::socket::FaceEvent;
use namehop_face::wait_watch::WaitWatch;
use namehop_face::wake::Waker;
use namehop_port::faces::PortSet;
use tracing::debug;

use super::latency::FrameStamps;

/// The rings between a worker and the other threads.
#[derive(Clone)]
pub struct WorkerRings {
    /// From sockets that carry streams.
    pub from_streams: Arc<FrameRing>,
    /// From sockets that carry datagrams.
    pub from_datagrams: Arc<FrameRing>,
    /// To the sockets.
    pub to_sockets: Arc<FrameRing>,
    /// From the control thread.
    pub from_control: Arc<FrameRing>,
    /// To the control thread, from applications on this host.
    pub to_control: Arc<FrameRing>,
    /// To the control thread, from other hosts. A separate ring, so that packets of other hosts cannot take the room of
    /// commands from this host. The face of a frame is the one on which the packet arrived.
    pub to_control_from_neighbours: Arc<FrameRing>,
}

impl WorkerRings {
    /// Returns the waker of the worker, which the rings to it share.
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(self.from_control.waker())
    }
}

/// The links of a worker; see the module's description.
pub(super) struct Links {
    pub(super) rings: WorkerRings,
    pub(super) ports: PortSet,
    /// Time until the next attempt to send, when frames were left over at the last flush of the ports.
    pub(super) port_retry: Option<Duration>,
    /// How long frames wait in the two rings from the sockets.
    pub(super) watches: [WaitWatch; 2],
    /// Measures how long packets stay in the router; `None` when not measuring.
    pub(super) latency: Option<Box<LatencyRecorder>>,
    pub(super) stamps: FrameStamps,
    /// Copies frames; `None` when not capturing.
    pub(super) capture: Option<Box<CaptureRecorder>>,
}

impl Links {
    pub(super) fn new(rings: WorkerRings, ports: PortSet) -> Self {
        Links {
            rings,
            ports,
            port_retry: None,
            watches: Default::default(),
            latency: None,
            stamps: FrameStamps::default(),
            capture: None,
        }
    }

    /// Returns whether there are frames in the rings, or changes and frames at the ports that no bell announces.
    pub(super) fn has_work(&self) -> bool {
        !self.rings.from_streams.is_empty()
            || !self.rings.from_datagrams.is_empty()
            || !self.rings.from_control.is_empty()
            || self.ports.has_work()
    }

    /// Returns whether the ring to the sockets or to the control thread is more than half full, so that another poll
    /// iteration might overfill it.
    pub(super) fn is_output_behind(&self) -> bool {
        [&self.rings.to_sockets, &self.rings.to_control].into_iter().any(|ring| ring.len() > ring.capacity() / 2)
    }

    /// Makes all workers update their link service of a face.
    #[cold]
    pub(super) fn announce_change(&self, face: &Arc<Face>) {
        let (id, remote) = (face.id(), face.remote_uri());
        debug!(face = %id, %remote, mtu_bytes = face.mtu_bytes(), "the path MTU may have changed");
        self.ports.announce(FaceEvent::Changed(Arc::clone(face)));
    }

    /// Wakes the threads that have frames in their rings, and the control thread also if it has events. Waking a thread
    /// costs more than forwarding a burst.
    pub(super) fn wake_receivers(&self, has_events: bool) {
        if !self.rings.to_sockets.is_empty() {
            self.rings.to_sockets.wake();
        }
        if !self.rings.to_control.is_empty() || !self.rings.to_control_from_neighbours.is_empty() || has_events {
            self.rings.to_control.wake();
        }
    }
}
