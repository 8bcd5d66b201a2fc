//! What engines report to the control plane, nearly all of it for the self-learning strategy.
//!
//! Announcements are verified and routes are kept by the control plane, so the engine only reports: each report is an
//! [`EngineEvent`] in a bounded queue that the control plane empties with `take_events`. When an announcement is to be
//! attached to Data that goes downstream, the Data and the list of its downstreams wait here, no longer in the PIT,
//! until `announcement_reply` brings the announcement or one second has passed; then the Data is sent with what there is.
//! Interests that arrive in the meantime are answered by the Content Store or make a new PIT entry.

use namehop_packet::{DropReason, FaceId, Outgoing, PacketBuffer, Timestamp};
use namehop_wire::Name;

use super::Engine;
use super::core::Core;
use crate::pcct::Downstream;
use crate::pipelines::outgoing_data::DataSource;
use crate::schedule::Schedule;
use crate::trace::PacketTrace;

/// Reports that wait for the control plane; more are lost, and counted.
const MAX_EVENTS: usize = 1024;
/// Data that waits for an announcement; more is sent without.
const MAX_WAITING: usize = 256;
/// How long Data waits for an announcement.
const WAITING_LASTS_MS: u64 = 1_000;

/// Something the control plane should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEvent {
    /// Data came with a prefix announcement: add a route to `face` if the announcement can be trusted.
    RouteLearned {
        /// Where the Data came from.
        face: FaceId,
        /// The announcement: a complete Data packet.
        announcement: Vec<u8>,
    },
    /// The upstream has no route any more: remove the learnt route for `prefix` by this face.
    RouteForgotten {
        /// The FIB prefix that led there.
        prefix: Name,
        /// The upstream.
        face: FaceId,
    },
    /// Data waits for the announcement that covers its name: answer with [`Engine::announcement_reply`].
    AnnouncementWanted {
        /// To be given back with the answer.
        request: u64,
        /// Name of the Data.
        name: Name,
    },
    /// A limit of the configuration makes the engine drop packets. Reported once a minute at most for each reason.
    LimitReached {
        /// Which limit.
        reason: DropReason,
        /// Where the first such packet came from.
        face: FaceId,
    },
    /// A packet that somebody [traces](crate::trace) has had its turn.
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

    /// When the first waiting Data is to be sent without an announcement.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.waiting.iter().map(|waiting| waiting.deadline).min()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl Core {
    /// Queues a report. `false` when the queue is full.
    pub(crate) fn report(&mut self, event: EngineEvent) -> bool {
        let room = self.learning.events.len() < MAX_EVENTS;
        if room {
            self.learning.events.push(event);
        } else {
            self.counters.lost_events += 1;
        }
        room
    }

    /// Lets Data wait for the announcement that covers `name`. Gives the Data back when too much is waiting already.
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

    /// Sends waiting Data whose time is up.
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

impl<S: Schedule> Engine<S> {
    /// Empties the queue of reports.
    pub fn take_events(&mut self) -> Vec<EngineEvent> {
        std::mem::take(&mut self.core.learning.events)
    }

    /// The control plane's answer to [`EngineEvent::AnnouncementWanted`]: the announcement as a complete Data packet, or
    /// that there is none. Nothing happens when it comes too late.
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
