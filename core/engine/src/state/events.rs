//! Reports to the control plane, in a bounded queue that it empties with `Engine::take_events`.
//!
//! The control plane verifies announcements and keeps routes, so the engine only reports.

use namehop_packet::{DropReason, FaceId};
use namehop_wire::Name;

use crate::trace::PacketTrace;

/// Maximum number of queued reports; further ones are dropped and counted.
const MAX_EVENTS: usize = 1024;

/// An event reported to the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEvent {
    /// Data came with a prefix announcement: add a route to `face` if the announcement can be trusted.
    RouteLearned {
        /// The face that the Data arrived on.
        face: FaceId,
        /// The announcement: a complete Data packet.
        announcement: Vec<u8>,
    },
    /// The upstream has no route: remove the learned route for `prefix` through this face.
    RouteForgotten {
        /// The FIB prefix of the route.
        prefix: Name,
        /// The upstream.
        face: FaceId,
    },
    /// Data waits for the announcement that covers its name: reply with
    /// [`Engine::announcement_reply`](crate::Engine::announcement_reply).
    AnnouncementWanted {
        /// Identifies the request in the reply.
        request: u64,
        /// Name of the Data.
        name: Name,
    },
    /// A limit of the configuration makes the engine drop packets. Reported at most once a minute for each reason.
    LimitReached {
        /// The limit.
        reason: DropReason,
        /// The face that the first such packet arrived on.
        face: FaceId,
    },
    /// A [traced](crate::trace) packet was processed.
    Traced(Box<PacketTrace>),
}

/// The queue of reports.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: Vec<EngineEvent>,
}

impl Events {
    /// Enqueues a report. Returns `false` if the queue is full.
    pub(super) fn push(&mut self, event: EngineEvent) -> bool {
        let has_room = self.queue.len() < MAX_EVENTS;
        if has_room {
            self.queue.push(event);
        }
        has_room
    }

    /// Empties the queue and returns the reports.
    pub(super) fn take(&mut self) -> Vec<EngineEvent> {
        std::mem::take(&mut self.queue)
    }
}
