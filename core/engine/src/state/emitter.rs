//! Everything that leaves the engine: packets to send, drops with their counts, reports to the control plane, traces.
//!
//! Packets to send are appended to the list of the engine's caller, which each method gets as `out`.

use namehop_packet::in_place::push_in_place;
use namehop_packet::{
    BufferPool, DropReason, FaceId, LinkFields, Outgoing, PacketBuffer, PacketKind, Stamp, Timestamp,
};
use namehop_wire::NameRef;

use super::events::{EngineEvent, Events};
use super::face_drops::FaceDrops;
use crate::counters::EngineCounters;
use crate::pcct::Downstream;
use crate::trace::{TraceRequest, TraceStep, TraceSubject, Tracing};

/// Minimum time between two reports of the same limit.
const LIMIT_REPORT_INTERVAL_MS: u64 = 60_000;
/// Number of steps of a trace of a strategy call without effect: `Pending` and `Asked`.
const STEPS_WITHOUT_EFFECT: usize = 2;

/// The properties of Data that is sent downstream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DataSource {
    /// The face it arrived on; [`FaceId::CONTENT_STORE`] for cached Data.
    pub(crate) face: FaceId,
    /// CongestionMark it arrived with.
    pub(crate) congestion_mark: u64,
    /// The time of reception, if it is measured.
    pub(crate) stamp: Stamp,
    /// Whether its name is under `/localhost`.
    pub(crate) is_localhost: bool,
}

/// Sends packets, and counts, reports and traces what happens to packets.
pub(crate) struct Emitter {
    pool: BufferPool,
    pub(crate) counters: EngineCounters,
    face_drops: FaceDrops,
    events: Events,
    tracing: Tracing,
    /// Time of the last call of the engine.
    now: Timestamp,
    /// The earliest time of the next report for each limit.
    next_limit_reports: [Timestamp; DropReason::COUNT],
}

impl Emitter {
    pub(super) fn new(pool: BufferPool) -> Self {
        Emitter {
            pool,
            counters: EngineCounters::default(),
            face_drops: FaceDrops::default(),
            events: Events::default(),
            tracing: Tracing::default(),
            now: Timestamp::default(),
            next_limit_reports: [Timestamp::default(); DropReason::COUNT],
        }
    }

    /// Returns the time of the last call of the engine.
    #[inline(always)]
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Sets the time of the current call of the engine.
    pub(crate) fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Returns the pool of packet buffers.
    #[inline(always)]
    pub(crate) fn pool(&self) -> &BufferPool {
        &self.pool
    }

    /// Returns the drop counters of all faces.
    pub(crate) fn face_drops(&self) -> &FaceDrops {
        &self.face_drops
    }

    /// Returns the drop counters of all faces, mutable.
    pub(crate) fn face_drops_mut(&mut self) -> &mut FaceDrops {
        &mut self.face_drops
    }
}

/// Drops and reports.
impl Emitter {
    /// Counts a packet that is dropped, in total and for the face that it was received on. Reports a limit that was
    /// reached.
    pub(crate) fn count_drop(&mut self, face: FaceId, reason: DropReason) {
        self.note(|| TraceStep::Dropped(reason));
        self.counters.drops[reason] += 1;
        self.face_drops.count(face, reason);
        if reason.setting().is_some() && self.now >= self.next_limit_reports[reason.index()] {
            self.next_limit_reports[reason.index()] = self.now.plus_ms(LIMIT_REPORT_INTERVAL_MS);
            self.report(EngineEvent::LimitReached { reason, face });
        }
    }

    /// Enqueues a report to the control plane. Returns `false`, and counts the report as lost, if the queue is full.
    pub(crate) fn report(&mut self, event: EngineEvent) -> bool {
        let is_queued = self.events.push(event);
        self.counters.lost_events += u64::from(!is_queued);
        is_queued
    }

    /// Empties the queue of reports and returns them.
    pub(crate) fn take_events(&mut self) -> Vec<EngineEvent> {
        self.events.take()
    }
}

/// Packets.
impl Emitter {
    /// Returns a copy of a packet; `None` if no buffer is available.
    #[inline(always)]
    pub(crate) fn copy_of(&self, packet: &[u8]) -> Option<PacketBuffer> {
        self.pool.copy_of(packet)
    }

    /// Sends a packet to its face.
    #[inline(always)]
    pub(crate) fn transmit(
        &mut self,
        face: FaceId,
        kind: PacketKind,
        buffer: PacketBuffer,
        out: &mut Vec<Outgoing>,
        fields: impl FnOnce() -> LinkFields,
    ) {
        self.note(|| TraceStep::Sent { kind, face });
        match kind {
            PacketKind::Interest => self.counters.out_interests += 1,
            PacketKind::Data => self.counters.out_data += 1,
            PacketKind::Nack => self.counters.out_nacks += 1,
        }
        push_in_place(out, move || Outgoing { face, kind, buffer, fields: fields() });
    }

    /// Sends Data to all downstreams, each with its own token. The last one gets the buffer, the others copies.
    pub(crate) fn send_data(
        &mut self,
        buffer: PacketBuffer,
        source: &DataSource,
        downstreams: &[Downstream],
        announcement: Option<&PacketBuffer>,
        out: &mut Vec<Outgoing>,
    ) {
        let Some((last, others)) = downstreams.split_last() else { return };
        // One time is measured for each received packet.
        let of_copies = DataSource { stamp: Stamp::NONE, ..*source };
        for downstream in others {
            match self.pool.copy_of(buffer.bytes()) {
                Some(copy) => self.send_data_to(copy, &of_copies, downstream, announcement, out),
                None => self.count_drop(source.face, DropReason::NoBuffer),
            }
        }
        self.send_data_to(buffer, source, last, announcement, out);
    }

    /// Sends Data to one downstream.
    #[inline(always)]
    pub(crate) fn send_data_to(
        &mut self,
        buffer: PacketBuffer,
        source: &DataSource,
        downstream: &Downstream,
        announcement: Option<&PacketBuffer>,
        out: &mut Vec<Outgoing>,
    ) {
        let announcement = announcement.and_then(|announcement| self.pool.copy_of(announcement.bytes()));
        self.transmit(downstream.face, PacketKind::Data, buffer, out, || LinkFields {
            pit_token: downstream.token,
            nack: None,
            // The consumer is informed of congestion in either direction.
            congestion_mark: source.congestion_mark.max(downstream.congestion_mark),
            incoming_face_id: Some(source.face),
            next_hop_face_id: None,
            no_cache: false,
            non_discovery: false,
            announcement,
            stamp: source.stamp,
        });
    }
}

/// Traces.
impl Emitter {
    /// Replaces the current trace request; `None` ends tracing.
    pub(crate) fn set_trace_request(&mut self, request: Option<TraceRequest>) {
        self.tracing.set(request);
    }

    /// Returns whether there is a trace request.
    #[inline(always)]
    pub(crate) fn is_tracing(&self) -> bool {
        self.tracing.is_on()
    }

    /// Records a step of the current packet, if it is traced.
    #[inline(always)]
    pub(crate) fn note(&mut self, step: impl FnOnce() -> TraceStep) {
        self.tracing.note(step);
    }

    /// Begins a trace for a packet with this name, if there is a trace request; `first` is its first step. Ends the
    /// previous trace.
    #[inline(always)]
    pub(crate) fn trace_if_on(
        &mut self,
        now: Timestamp,
        subject: TraceSubject,
        face: FaceId,
        name: NameRef<'_>,
        first: impl FnOnce() -> TraceStep,
    ) {
        if self.tracing.is_on() {
            self.begin_trace(now, subject, face, name, first());
        }
    }

    /// Ends the current trace, if there is a trace request.
    #[inline(always)]
    pub(crate) fn end_trace_if_on(&mut self) {
        if self.tracing.is_on() {
            self.end_trace();
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_trace(
        &mut self,
        time: Timestamp,
        subject: TraceSubject,
        face: FaceId,
        name: NameRef<'_>,
        first: TraceStep,
    ) {
        if let Some(previous) = self.tracing.begin(time, subject, face, name, first) {
            self.report(EngineEvent::Traced(previous));
        }
    }

    /// Ends the current trace and reports it.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_trace(&mut self) {
        if let Some(trace) = self.tracing.end() {
            self.report(EngineEvent::Traced(trace));
        }
    }

    /// Begins a trace of a strategy call for a pending Interest without a current packet. Returns whether it is traced,
    /// until [`end_pending_trace`](Self::end_pending_trace). `name` is the Name VALUE of the Interest.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_pending(&mut self, time: Timestamp, name: &[u8], downstreams: usize) -> bool {
        let Ok(name) = NameRef::from_value(name) else { return false };
        self.begin_trace(time, TraceSubject::Pending, FaceId::INVALID, name, TraceStep::Pending { downstreams });
        self.tracing.has_current()
    }

    /// Ends a trace of a strategy call. If the call had no effect, the trace is discarded.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_pending_trace(&mut self) {
        self.tracing.discard_if_short(STEPS_WITHOUT_EFFECT);
        self.end_trace();
    }

    /// Records that a pending Interest ends without an answer from this number of upstreams. Without a current packet,
    /// begins a trace of its own, until [`end_trace`](Self::end_trace). Returns whether it did. `name` is the Name
    /// VALUE of the Interest.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace_unanswered(&mut self, time: Timestamp, name: &[u8], upstreams: usize) -> bool {
        let is_own = !self.tracing.has_current();
        let first = TraceStep::Unanswered { upstreams };
        match NameRef::from_value(name) {
            Ok(name) if is_own => self.begin_trace(time, TraceSubject::Timeout, FaceId::INVALID, name, first),
            _ => self.note(|| first),
        }
        is_own
    }
}
