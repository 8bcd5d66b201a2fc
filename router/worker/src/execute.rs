//! How a worker executes commands of the control thread.

use std::time::Duration;

use namehop_client::nfd::{HandoverCounters, QueueStatus, WorkerStatus};
use tracing::{debug, warn};

use namehop_engine::engine::EngineStatus;
use namehop_face::latency::LatencyRecorder;
use namehop_packet::Timestamp;
use namehop_port::faces::QueueCounts;

use super::command::WorkerCommand;
use super::commands::Erased;
use super::{Handover, Worker};

fn queue_status(counts: QueueCounts) -> QueueStatus {
    let QueueCounts { port, queue, received_frames, sent_frames, steered_faces } = counts;
    QueueStatus { port, queue: queue as u64, received_frames, sent_frames, steered_faces: steered_faces as u64 }
}

impl Worker {
    /// Executes all commands, and a part of the work that they have started. Returns whether there was any.
    #[inline]
    pub(super) fn obey(&mut self, now: Timestamp) -> bool {
        let mut worked = false;
        while let Some(command) = self.commands.next() {
            worked = true;
            self.execute(now, command);
        }
        worked | self.commands.go_on(&mut self.engine)
    }

    /// Executes one command and replies.
    fn execute(&mut self, now: Timestamp, command: WorkerCommand) {
        // The sender may have stopped waiting for the reply; the command is executed all the same.
        match command {
            WorkerCommand::AddFace(face, reply) => {
                // The face may have been closed again meanwhile.
                if self.faces.table.get(face.id()).is_some() {
                    self.faces().add_without_port(&face);
                }
                let _ = reply.map(|reply| reply.send(()));
            }
            WorkerCommand::RemoveFace(id, reply) => {
                self.faces().remove_without_port(id);
                let _ = reply.map(|reply| reply.send(()));
            }
            WorkerCommand::UpdateFace(id, reply) => {
                self.faces().update(id);
                let _ = reply.send(());
            }
            WorkerCommand::NextHopAdded(prefix, nexthop) => {
                self.engine.new_nexthop(now, prefix.as_ref(), nexthop, &mut self.burst.outgoing);
            }
            WorkerCommand::CsInfo(reply) => {
                let _ = reply.send(self.engine.cs_info());
            }
            WorkerCommand::CsConfigure(change, reply) => {
                if let Err(error) = self.engine.cs_configure(change) {
                    warn!(%error, "cannot change the Content Store; it keeps its capacity and policy");
                }
                self.commands.reply_when_settled(reply);
            }
            WorkerCommand::CsErase(prefix, limit, reply) => {
                self.commands.start_erasing(Erased::Under(prefix), limit, reply);
            }
            WorkerCommand::CsEraseEntries(entries, reply) => {
                self.commands.start_erasing(Erased::Entries(entries), usize::MAX, reply);
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
                self.engine.announcement_reply(request, announcement.as_deref(), &mut self.burst.outgoing);
            }
            WorkerCommand::Trace(request, reply) => {
                self.engine.trace(request);
                let _ = reply.send(());
            }
            WorkerCommand::SwapLatency(next, reply) => {
                let _ = reply.send(LatencyRecorder::swap(&mut self.links.latency, next));
            }
            WorkerCommand::SwapCapture(next, reply) => {
                let _ = reply.send(std::mem::replace(&mut self.links.capture, next));
            }
            WorkerCommand::Shutdown => {
                debug!("worker stops");
                self.commands.is_stopping = true;
            }
        }
    }

    /// Returns the status of this worker; `now` is on the worker's clock.
    pub fn status(&self, now: Timestamp) -> WorkerStatus {
        let counters = self.engine.counters();
        let others = self.others.as_ref().map(|others| &others.handover);
        let mut handover = others.map_or_else(HandoverCounters::default, |handover| handover.counters);
        handover.congestion_marks += self.activity.congestion_marks;
        WorkerStatus {
            packets: counters.in_interests + counters.in_data + counters.in_nacks,
            handover,
            busy: self.activity.busy,
            running: Duration::from_nanos(now.0),
            processor: self.activity.processor.map(|processor| processor as u64),
            pit_entries: self.engine.table_sizes().pit as u64,
            cs_entries: self.engine.table_sizes().cs as u64,
            dispatch_entries: others.map_or(0, Handover::dispatch_entries),
            queues: self.links.ports.queue_counts().into_iter().map(queue_status).collect(),
        }
    }

    /// Copies the engine's drop counts to the counters of each face, which other threads can read.
    fn publish_drops(&mut self) {
        for face in self.faces.table.snapshot() {
            if let Some(drops) = self.engine.face_drops(face.id()) {
                let published = &face.counters.worker(self.number()).engine_drops;
                for (reason, count) in drops.iter() {
                    published.set(reason.index() as u8, count);
                }
            }
        }
    }
}
