//! Events that an engine reports to the control plane, most of them for the self-learning strategy.
//!
//! The control plane verifies announcements and keeps routes, so the engine only reports: each report is an
//! [`EngineEvent`] in a bounded queue that the control plane empties with `take_events`. If an announcement is to be
//! attached to Data that goes downstream, the Data and the list of its downstreams leave the PIT and wait here until
//! `announcement_reply` brings the announcement or one second has passed. Then the Data is sent with the announcement,
//! or without one. Interests that arrive in the meantime are answered by the Content Store or open a new PIT entry.

use namehop_packet::{DropReason, FaceId, Outgoing, PacketBuffer, Timestamp};
use namehop_wire::Name;

use super::Engine;
use super::core::Core;
use crate::pcct::Downstream;
use crate::pipelines::outgoing_data::DataSource;
use crate::trace::PacketTrace;

/// Maximum number of queued reports; further ones are dropped and counted.
const MAX_EVENTS: usize = 1024;
/// Maximum number of Data packets that wait for an announcement; further ones are sent without one.
const MAX_WAITING: usize = 256;
/// How long Data waits for an announcement.
const WAITING_LASTS_MS: u64 = 1_000;

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
    /// Data waits for the announcement that covers its name: reply with [`Engine::announcement_reply`].
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

struct WaitingData {
    request: u64,
    deadline: Timestamp,
    source: DataSource,
    buffer: PacketBuffer,
    downstreams: Vec<Downstream>,
}

/// Reports and waiting Data.
pub(crate) struct Learning {
    events: Vec<EngineEvent>,
    waiting: Vec<WaitingData>,
    next_request: u64,
}

impl Learning {
    pub(crate) fn new() -> Self {
        Learning { events: Vec::new(), waiting: Vec::new(), next_request: 0 }
    }

    /// Returns when the first waiting Data is to be sent without an announcement.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.waiting.iter().map(|waiting| waiting.deadline).min()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl Core {
    /// Queues a report. Returns `false` if the queue is full.
    pub(crate) fn report(&mut self, event: EngineEvent) -> bool {
        let room = self.learning.events.len() < MAX_EVENTS;
        if room {
            self.learning.events.push(event);
        } else {
            self.counters.lost_events += 1;
        }
        room
    }

    /// Makes Data wait for the announcement that covers `name`. Returns the Data if too many packets are waiting.
    pub(crate) fn await_announcement(
        &mut self,
        now: Timestamp,
        name: Name,
        source: DataSource,
        buffer: PacketBuffer,
        downstreams: &[Downstream],
    ) -> Result<(), PacketBuffer> {
        let request = self.learning.next_request;
        let room = self.learning.waiting.len() < MAX_WAITING;
        if !room || !self.report(EngineEvent::AnnouncementWanted { request, name }) {
            return Err(buffer);
        }
        self.learning.next_request += 1;
        let deadline = now.plus_ms(WAITING_LASTS_MS);
        let downstreams = downstreams.to_vec();
        self.learning.waiting.push(WaitingData { request, deadline, source, buffer, downstreams });
        Ok(())
    }

    /// Sends waiting Data that is past its deadline.
    pub(crate) fn send_overdue_data(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        let mut index = 0;
        while index < self.learning.waiting.len() {
            if self.learning.waiting[index].deadline <= now {
                let waiting = self.learning.waiting.swap_remove(index);
                self.send_data(waiting.buffer, &waiting.source, &waiting.downstreams, None, out);
            } else {
                index += 1;
            }
        }
    }
}

impl Engine {
    /// Empties the queue of reports and returns them.
    pub fn take_events(&mut self) -> Vec<EngineEvent> {
        std::mem::take(&mut self.core.learning.events)
    }

    /// Handles the control plane's reply to [`EngineEvent::AnnouncementWanted`]: the announcement as a complete Data
    /// packet, or `None`. Does nothing if the reply comes too late.
    pub fn announcement_reply(&mut self, request: u64, announcement: Option<&[u8]>, out: &mut Vec<Outgoing>) {
        let core = &mut self.core;
        let Some(index) = core.learning.waiting.iter().position(|waiting| waiting.request == request) else { return };
        let waiting = core.learning.waiting.swap_remove(index);
        let attached = announcement.and_then(|bytes| {
            let copy = core.pool.copy_of(bytes);
            if copy.is_none() {
                core.count_drop(waiting.source.face, DropReason::NoBuffer);
            }
            copy
        });
        core.send_data(waiting.buffer, &waiting.source, &waiting.downstreams, attached.as_ref(), out);
    }
}
