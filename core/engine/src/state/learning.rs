//! Data that waits for a prefix announcement, for the self-learning strategy.
//!
//! If an announcement is to be attached to Data that goes downstream, the Data and the list of its downstreams leave
//! the PIT and wait here until the control plane replies with the announcement or one second has passed. Then the Data
//! is sent with the announcement, or without one. Interests that arrive in the meantime are answered by the Content
//! Store or open a new PIT entry.

use namehop_packet::{DropReason, Outgoing, PacketBuffer, Timestamp};
use namehop_wire::Name;

use super::emitter::{DataSource, Emitter};
use super::events::EngineEvent;
use crate::pcct::Downstream;

/// Maximum number of Data packets that wait for an announcement; further ones are sent without one.
const MAX_WAITING: usize = 256;
/// How long Data waits for an announcement.
const WAITING_LASTS_MS: u64 = 1_000;

struct WaitingData {
    request: u64,
    deadline: Timestamp,
    source: DataSource,
    buffer: PacketBuffer,
    downstreams: Vec<Downstream>,
}

/// The Data that waits for announcements.
pub(crate) struct Learning {
    waiting: Vec<WaitingData>,
    next_request: u64,
}

impl Learning {
    pub(super) fn new() -> Self {
        Learning { waiting: Vec::new(), next_request: 0 }
    }

    /// Returns when the first waiting Data is to be sent without an announcement.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.waiting.iter().map(|waiting| waiting.deadline).min()
    }

    /// Returns whether no Data waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Makes Data wait for the announcement that covers `name`, and asks the control plane for it. Returns the Data if
    /// too many packets are waiting.
    pub(crate) fn await_announcement(
        &mut self,
        emitter: &mut Emitter,
        now: Timestamp,
        name: Name,
        source: DataSource,
        buffer: PacketBuffer,
        downstreams: &[Downstream],
    ) -> Result<(), PacketBuffer> {
        let request = self.next_request;
        let has_room = self.waiting.len() < MAX_WAITING;
        if !has_room || !emitter.report(EngineEvent::AnnouncementWanted { request, name }) {
            return Err(buffer);
        }
        self.next_request += 1;
        let deadline = now.plus_ms(WAITING_LASTS_MS);
        let downstreams = downstreams.to_vec();
        self.waiting.push(WaitingData { request, deadline, source, buffer, downstreams });
        Ok(())
    }

    /// Sends waiting Data that is past its deadline.
    pub(crate) fn send_overdue(&mut self, emitter: &mut Emitter, now: Timestamp, out: &mut Vec<Outgoing>) {
        let mut index = 0;
        while index < self.waiting.len() {
            if self.waiting[index].deadline <= now {
                let waiting = self.waiting.swap_remove(index);
                emitter.send_data(waiting.buffer, &waiting.source, &waiting.downstreams, None, out);
            } else {
                index += 1;
            }
        }
    }

    /// Sends the Data of a request with its announcement, a complete Data packet, or without one. Does nothing if no
    /// Data waits for this request.
    pub(crate) fn send_with(
        &mut self,
        emitter: &mut Emitter,
        request: u64,
        announcement: Option<&[u8]>,
        out: &mut Vec<Outgoing>,
    ) {
        let Some(index) = self.waiting.iter().position(|waiting| waiting.request == request) else { return };
        let waiting = self.waiting.swap_remove(index);
        let attached = announcement.and_then(|bytes| {
            let copy = emitter.copy_of(bytes);
            if copy.is_none() {
                emitter.count_drop(waiting.source.face, DropReason::NoBuffer);
            }
            copy
        });
        emitter.send_data(waiting.buffer, &waiting.source, &waiting.downstreams, attached.as_ref(), out);
    }
}
