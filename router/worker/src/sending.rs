//! The end of a poll iteration: packets become frames, which go to ports, to the rings of the sockets and of the
//! control thread, or to the workers that have the ports.

use namehop_face::capture::{CaptureRecorder, Direction};
use namehop_face::counters::LinkDrop;
use namehop_face::port::PortSet;
use namehop_face::ring::Frame;
use namehop_packet::{BufferPool, FaceId, FaceScope, Outgoing, PacketBuffer, Timestamp};
use tracing::warn;

use super::faces::{FaceRecord, Output};
use super::handover::Handed;
use super::latency::FrameStamps;
use super::{Worker, WorkerRings};

impl Worker {
    pub(super) fn run_link_timers(&mut self, now: Timestamp) {
        self.reassembler.expire(now);
        let (rings, ports, pool) = (&self.rings, &mut self.ports, &self.pool);
        let (dropped, encoded, stamps) = (&mut self.dropped_interests, &mut self.encoded, &mut self.stamps);
        let capture = &mut self.capture;
        self.timers.run_due(now, &mut self.records, pool, dropped, encoded, |record, frames| {
            capture_sent(capture, record, frames);
            send_frames(rings, ports, pool, record, frames, stamps);
        });
        self.pass_on_dropped(now);
    }

    /// Runs the link services over the packets to send. Consecutive packets to one face are sent together.
    pub(super) fn transmit(&mut self, now: Timestamp) {
        let mut outgoing = std::mem::take(&mut self.outgoing);
        let mut rest = outgoing.drain(..);
        while let Some(id) = rest.as_slice().first().map(|packet| packet.face) {
            if id == FaceId::INTERNAL {
                rest.next().into_iter().for_each(|packet| self.send_to_control(now, packet));
                continue;
            }
            let Some(record) = self.records.get(id) else {
                self.table.link_drops().add(LinkDrop::LinkDown, 1);
                rest.next();
                continue;
            };
            if let Some(handover) = &mut self.handover
                && let Some(home) = record.sent_by(&mut self.ports)
            {
                while rest.as_slice().first().is_some_and(|packet| packet.face == id)
                    && let Some(packet) = rest.next()
                {
                    handover.hand_over(now, home, Handed::Outgoing(packet), self.table.link_drops());
                }
                continue;
            }
            let queued = record.queued_bytes(&self.ports);
            while rest.as_slice().first().is_some_and(|packet| packet.face == id)
                && let Some(packet) = rest.next()
            {
                let (stamp, before) = (packet.stamp(), self.encoded.len());
                // The link service counts a drop under its reason.
                let _ = record.link.send(now, packet, queued, &self.pool, &mut self.encoded);
                if stamp.is_some() && self.encoded.len() > before {
                    self.stamps.put_on(self.encoded.len() - 1, stamp);
                }
            }
            capture_sent(&mut self.capture, record, &self.encoded);
            send_frames(&self.rings, &mut self.ports, &self.pool, record, &mut self.encoded, &mut self.stamps);
            self.timers.note(record);
        }
        drop(rest);
        self.outgoing = outgoing;
    }

    /// Enqueues a packet to the control thread, on the ring for applications on this host or the one for other hosts.
    /// If the ring is full the packet is dropped and counted.
    fn send_to_control(&mut self, now: Timestamp, packet: Outgoing) {
        let from = packet.fields.incoming_face_id.unwrap_or_default();
        let is_local = self.records.get(from).is_some_and(|record| record.info.scope == FaceScope::Local);
        let (ring, reason) = match is_local {
            true => (&self.rings.to_control, LinkDrop::SendQueueFull),
            false => (&self.rings.to_control_from_neighbours, LinkDrop::TooManyCommands),
        };
        let Some(record) = self.records.get(FaceId::INTERNAL) else {
            self.table.link_drops().add(LinkDrop::LinkDown, 1);
            return;
        };
        // The link service counts a drop under its reason.
        let _ = record.link.send(now, packet, 0, &self.pool, &mut self.encoded);
        for buffer in self.encoded.drain(..) {
            if ring.push(Frame::new(from, 0, buffer)).is_err() {
                record.link.counters().link_drops.add(reason, 1);
            }
        }
        self.timers.note(record);
    }
}

/// Copies frames that are about to leave by a face, if frames are captured.
#[inline]
fn capture_sent(capture: &mut Option<Box<CaptureRecorder>>, record: &FaceRecord, frames: &[PacketBuffer]) {
    if let Some(capture) = capture {
        capture.record(Direction::Sent, frames, |frame| (record.info.id, frame.bytes()));
    }
}

/// Passes frames of one face to its port, or enqueues them on the ring to its link. Frames that do not fit into the
/// ring are dropped and counted.
fn send_frames(
    rings: &WorkerRings,
    ports: &mut PortSet,
    pool: &BufferPool,
    record: &FaceRecord,
    frames: &mut Vec<PacketBuffer>,
    stamps: &mut FrameStamps,
) {
    let face = record.link.face();
    let ring = match &record.output {
        Output::Port(output) => {
            stamps.leave_by_port();
            return ports.send(face, output, frames, pool);
        }
        Output::Sockets => &rings.to_sockets,
        Output::Control => &rings.to_control,
        // Packets of such faces are transferred to the other worker before they reach their link service.
        Output::Worker(_) => return frames.clear(),
    };
    let mut stamps = stamps.leave_by_ring();
    for (place, buffer) in frames.drain(..).enumerate() {
        let frame = Frame { stamp: stamps(place), ..Frame::new(record.info.id, 0, buffer) };
        if ring.push(frame).is_err() {
            record.link.counters().link_drops.add(LinkDrop::SendQueueFull, 1);
            if ring.refused() == 1 {
                warn!(face = %record.info.id, "the ring from the worker to the links is full: packets are dropped");
            }
        }
    }
}
