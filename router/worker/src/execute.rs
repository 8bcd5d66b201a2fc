//! How a worker executes commands of the control thread.

use std::sync::Arc;
use std::time::Duration;

use namehop_client::nfd::{HandoverCounters, QueueStatus, WorkerStatus};
use tokio::sync::oneshot;
use tracing::{debug, warn};

use namehop_engine::engine::{CsErasure, EngineStatus};
use namehop_face::latency::LatencyRecorder;
use namehop_face::port::QueueCounts;
use namehop_packet::Timestamp;
use namehop_store::Progress;
use namehop_wire::Name;

use super::command::{Settled, WorkerCommand};
use super::faces::Output;
use super::{Handover, Worker};

/// A running erasure of cached Data. Each poll iteration does a part of it, so that forwarding continues meanwhile.
pub(super) struct Erasing {
    what: What,
    limit: usize,
    erased: usize,
    erasure: CsErasure,
    reply: oneshot::Sender<usize>,
}

/// Selects which Data is erased.
enum What {
    /// All Data under a prefix.
    Under(Name),
    /// Data of these entries of the name dispatch table.
    Entries(Arc<[usize]>),
}

impl Erasing {
    fn new(what: What, limit: usize, reply: oneshot::Sender<usize>) -> Self {
        Erasing { what, limit, erased: 0, erasure: CsErasure::default(), reply }
    }
}

fn queue_status(counts: QueueCounts) -> QueueStatus {
    let QueueCounts { port, queue, received_frames, sent_frames, steered_faces } = counts;
    QueueStatus { port, queue: queue as u64, received_frames, sent_frames, steered_faces: steered_faces as u64 }
}

impl Worker {
    /// Executes one command and replies.
    pub(super) fn execute(&mut self, now: Timestamp, command: WorkerCommand) {
        // The sender may have stopped waiting for the reply; the command is executed all the same.
        match command {
            WorkerCommand::AddFace(face, reply) => {
                // The face may have been closed again meanwhile.
                if self.table.get(face.id()).is_some() {
                    self.add_face(&face);
                }
                let _ = reply.map(|reply| reply.send(()));
            }
            WorkerCommand::RemoveFace(id, reply) => {
                // A face on a port of this worker is removed by a port change.
                if self.records.get(id).is_some_and(|record| !matches!(record.output, Output::Port(_))) {
                    self.faces().remove(id);
                }
                let _ = reply.map(|reply| reply.send(()));
            }
            WorkerCommand::UpdateFace(id, reply) => {
                self.faces().note_link(id);
                if let Some(record) = self.records.get(id) {
                    let options = record.link.face().link_options();
                    record.link.update(options);
                    self.timers.note(record);
                    if !matches!(record.output, Output::Port(_)) {
                        record.output =
                            Output::without_port(record.link.face(), self.number).unwrap_or(Output::Sockets);
                    }
                    self.engine.set_unsolicited(id, record.link.face().is_unsolicited());
                }
                let _ = reply.send(());
            }
            WorkerCommand::NextHopAdded(prefix, nexthop) => {
                self.engine.new_nexthop(now, prefix.as_ref(), nexthop, &mut self.outgoing);
            }
            WorkerCommand::CsInfo(reply) => {
                let _ = reply.send(self.engine.cs_info());
            }
            WorkerCommand::CsConfigure(change, reply) => {
                if let Err(error) = self.engine.cs_configure(change) {
                    warn!(%error, "cannot change the Content Store; it keeps its capacity and policy");
                }
                self.settling.push(reply);
            }
            WorkerCommand::CsErase(prefix, limit, reply) => {
                self.erasing.push_back(Erasing::new(What::Under(prefix), limit, reply));
            }
            WorkerCommand::CsEraseEntries(entries, reply) => {
                self.erasing.push_back(Erasing::new(What::Entries(entries), usize::MAX, reply));
            }
            WorkerCommand::Snapshot(reply) => {
                self.publish_drops();
                let _ = reply.send(EngineStatus {
                    counters: *self.engine.counters(),
                    sizes: self.engine.table_sizes(),
                    cs: self.engine.cs_info(),
                    buffers_in_use: self.pool.in_use(),
                });
            }
            WorkerCommand::WorkerStatus(reply) => {
                let _ = reply.send(self.status(now));
            }
            WorkerCommand::AnnouncementReply(request, announcement) => {
                self.engine.announcement_reply(request, announcement.as_deref(), &mut self.outgoing);
            }
            WorkerCommand::Trace(request, reply) => {
                self.engine.trace(request);
                let _ = reply.send(());
            }
            WorkerCommand::SwapLatency(next, reply) => {
                let _ = reply.send(LatencyRecorder::swap(&mut self.latency, next));
            }
            WorkerCommand::SwapCapture(next, reply) => {
                let _ = reply.send(std::mem::replace(&mut self.capture, next));
            }
            WorkerCommand::Shutdown => {
                debug!("worker stops");
                self.is_stopping = true;
            }
        }
    }

    /// Returns the status of this worker; `now` is on the worker's clock.
    pub fn status(&self, now: Timestamp) -> WorkerStatus {
        let counters = self.engine.counters();
        let mut handover = self.handover.as_ref().map_or_else(HandoverCounters::default, |handover| handover.counters);
        handover.congestion_marks += self.congestion_marks;
        WorkerStatus {
            packets: counters.in_interests + counters.in_data + counters.in_nacks,
            handover,
            busy: self.busy,
            running: Duration::from_nanos(now.0),
            processor: self.processor.map(|processor| processor as u64),
            pit_entries: self.engine.table_sizes().pit as u64,
            cs_entries: self.engine.table_sizes().cs as u64,
            dispatch_entries: self.handover.as_ref().map_or(0, Handover::dispatch_entries),
            queues: self.ports.queue_counts().into_iter().map(queue_status).collect(),
        }
    }

    /// Copies the engine's drop counts to the counters of each face, which other threads can read.
    fn publish_drops(&mut self) {
        for face in self.table.snapshot() {
            if let Some(drops) = self.engine.face_drops(face.id()) {
                let published = &face.counters.worker(self.number).engine_drops;
                for (reason, count) in drops.iter() {
                    published.set(reason.index() as u8, count);
                }
            }
        }
    }

    /// Does a part of the work that follows from changed Content Store settings, and replies when it is complete.
    pub(super) fn settle(&mut self) {
        if self.settling.is_empty() {
            return;
        }
        if let Progress::Done(mut retired) = self.engine.cs_settle() {
            for reply in self.settling.drain(..) {
                let _ = reply.send(Settled { info: self.engine.cs_info(), retired: retired.take() });
            }
        }
    }

    /// Does a part of the first erasure in the queue, and replies when it is complete.
    pub(super) fn erase(&mut self) {
        let Some(mut erasing) = self.erasing.pop_front() else { return };
        let Erasing { what, limit, erased, erasure, .. } = &mut erasing;
        *erased += match what {
            What::Under(prefix) => self.engine.cs_erase(prefix.as_ref(), *limit - *erased, erasure),
            What::Entries(entries) => self.engine.cs_erase_entries(entries, erasure),
        };
        if *erased < *limit && !erasure.is_complete() {
            self.erasing.push_front(erasing);
        } else {
            // The sender may have stopped waiting.
            let _ = erasing.reply.send(erasing.erased);
        }
    }
}
