//! One poll iteration of a worker: frames from rings and ports become packets, the engine forwards them, and the
//! packets to send become frames, which go to ports, to the rings of the sockets and of the control thread, or to the
//! workers that have the ports.

use namehop_engine::engine::Engine;
use namehop_face::capture::Direction;
use namehop_face::counters::LinkDrop;
use namehop_face::ring::Frame;
use namehop_packet::{FaceId, FaceScope, Incoming, Outgoing, Timestamp};

use super::faces::{Faces, FacesOfEngine};
use super::handover::Handed;
use super::links::Links;
use super::{BURST, Worker};

impl Worker {
    /// Runs one poll iteration: commands, a burst from each ring and each port, due timers, sending. Returns whether
    /// there were commands, packets or unfinished work.
    pub fn turn(&mut self, now: Timestamp) -> bool {
        self.turn_with(now, Engine::process)
    }

    /// The same with another function in place of [`Engine::process`], with the same contract, for measurements.
    /// Packets that other workers offer are processed by the engine in any case.
    #[inline(always)]
    pub fn turn_with(
        &mut self,
        now: Timestamp,
        process: impl FnOnce(&mut Engine, Timestamp, &mut Vec<Incoming>, &mut Vec<Outgoing>),
    ) -> bool {
        let mut worked = self.obey(now);
        worked |= self.take_frames(now);
        self.receive(now);
        worked |= self.exchange(now);
        process(&mut self.engine, now, self.burst.incoming.in_order(), &mut self.burst.outgoing);
        self.process_handed(now);
        self.run_link_timers(now);
        self.transmit(now);
        self.flush();
        worked
    }

    /// Takes a burst of frames from each ring and each port, after changes of the ports were made. Returns whether
    /// there were frames or changes.
    #[inline]
    fn take_frames(&mut self, now: Timestamp) -> bool {
        let Worker { engine, pool, faces, links, burst, .. } = self;
        let Links { rings, ports, watches, latency, capture, .. } = links;
        let mut faces = FacesOfEngine { faces, engine };
        let mut worked = ports.apply_changes(&mut faces);
        rings.from_control.pop_burst(&mut burst.frames, BURST);
        for (ring, watch) in [&rings.from_streams, &rings.from_datagrams].into_iter().zip(watches) {
            let taken = ring.pop_burst(&mut burst.frames, BURST);
            let waiting = if taken < BURST { 0 } else { ring.len() };
            if watch.note(now, taken, waiting) {
                burst.congested.push(burst.frames.len() - 1);
            }
        }
        let from_rings = burst.frames.len();
        // Another core wrote these frames, or this one did long ago. Ports prefetch their own frames.
        burst.frames.iter().for_each(|frame| frame.buffer.prefetch());
        worked |= ports.receive(now, &mut burst.frames, &mut faces, pool);
        burst.congested.extend(ports.congested_frames());
        if let Some(latency) = latency {
            latency.stamp_all(&mut burst.frames[from_rings..]);
        }
        if let Some(capture) = capture {
            capture.record(Direction::Received, &burst.frames, |frame| (frame.face, frame.buffer.bytes()));
        }
        worked | !burst.frames.is_empty()
    }

    /// Runs the link services over the received frames. Consecutive frames of one face share one lookup of its record.
    fn receive(&mut self, now: Timestamp) {
        let Worker { engine, pool, faces, others, burst, activity, .. } = self;
        let count = burst.frames.len();
        let mut marks = burst.congested.drain(..);
        let mut next_mark = marks.next().unwrap_or(usize::MAX);
        let mut rest = burst.frames.drain(..);
        while let Some(id) = rest.as_slice().first().map(|frame| frame.face) {
            let Faces { records, reassembler, timers, .. } = faces;
            let Some(record) = records.get(id) else {
                if !(FacesOfEngine { faces, engine }).add_of_first_frame(id) {
                    // The face was closed while its last frames were in the ring.
                    faces.table.link_drops().add(LinkDrop::LinkDown, 1);
                    rest.next();
                } else if let Some(others) = others {
                    others.handover.announce_face(now, id);
                }
                continue;
            };
            while rest.as_slice().first().is_some_and(|frame| frame.face == id)
                && let Some(Frame { endpoint, buffer, stamp, .. }) = rest.next()
            {
                let is_congested = count - rest.len() > next_mark;
                let is_noted = stamp.is_some() || is_congested;
                let before = is_noted.then(|| burst.incoming.kinds().map(|packets| packets.len()));
                // The link service counts a drop under its reason.
                let _ = record.link.receive(now, buffer, endpoint, pool, reassembler, &mut burst.incoming);
                let Some(before) = before else { continue };
                if stamp.is_some() {
                    burst.incoming.stamp_added(before, stamp);
                }
                // A frame that completes no packet leaves the mark to the next frame.
                if is_congested && burst.incoming.kinds().map(|packets| packets.len()) != before {
                    activity.congestion_marks += burst.incoming.mark_added(before);
                    next_mark = marks.next().unwrap_or(usize::MAX);
                }
            }
            timers.note(record);
        }
    }

    fn run_link_timers(&mut self, now: Timestamp) {
        let Worker { pool, faces, links, burst, .. } = self;
        let Faces { records, reassembler, timers, .. } = faces;
        reassembler.expire(now);
        let (dropped, encoded) = (&mut burst.dropped_interests, &mut burst.encoded);
        timers.run_due(now, records, pool, dropped, encoded, |record, frames, has_changed| {
            record.send(links, frames, pool);
            if has_changed {
                links.announce_change(record.link.face());
            }
        });
        self.pass_on_dropped(now);
    }

    /// Runs the link services over the packets to send. Consecutive packets to one face are sent together.
    fn transmit(&mut self, now: Timestamp) {
        let mut outgoing = std::mem::take(&mut self.burst.outgoing);
        let mut rest = outgoing.drain(..);
        while let Some(id) = rest.as_slice().first().map(|packet| packet.face) {
            if id == FaceId::INTERNAL {
                rest.next().into_iter().for_each(|packet| self.send_to_control(now, packet));
                continue;
            }
            let Worker { pool, faces, links, others, burst, .. } = self;
            let Faces { table, records, timers, .. } = faces;
            let Some(record) = records.get(id) else {
                table.link_drops().add(LinkDrop::LinkDown, 1);
                rest.next();
                continue;
            };
            if let Some(others) = others
                && let Some(home) = record.sent_by(&mut links.ports)
            {
                while rest.as_slice().first().is_some_and(|packet| packet.face == id)
                    && let Some(packet) = rest.next()
                {
                    others.handover.hand_over(now, home, Handed::Outgoing(packet), table.link_drops());
                }
                continue;
            }
            let queued = record.queued_bytes(&links.ports);
            while rest.as_slice().first().is_some_and(|packet| packet.face == id)
                && let Some(packet) = rest.next()
            {
                let (stamp, before) = (packet.stamp(), burst.encoded.len());
                // The link service counts a drop under its reason.
                let _ = record.link.send(now, packet, queued, pool, &mut burst.encoded);
                if stamp.is_some() && burst.encoded.len() > before {
                    links.stamps.put_on(burst.encoded.len() - 1, stamp);
                }
            }
            record.send(links, &mut burst.encoded, pool);
            timers.note(record);
        }
        drop(rest);
        self.burst.outgoing = outgoing;
    }

    /// Enqueues a packet to the control thread, on the ring for applications on this host or the one for other hosts.
    /// If the ring is full the packet is dropped and counted.
    fn send_to_control(&mut self, now: Timestamp, packet: Outgoing) {
        let Worker { pool, faces, links, burst, .. } = self;
        let Faces { table, records, timers, .. } = faces;
        let from = packet.fields.incoming_face_id.unwrap_or_default();
        let is_local = records.get(from).is_some_and(|record| record.info.scope == FaceScope::Local);
        let (ring, reason) = match is_local {
            true => (&links.rings.to_control, LinkDrop::SendQueueFull),
            false => (&links.rings.to_control_from_neighbours, LinkDrop::TooManyCommands),
        };
        let Some(record) = records.get(FaceId::INTERNAL) else {
            table.link_drops().add(LinkDrop::LinkDown, 1);
            return;
        };
        // The link service counts a drop under its reason.
        let _ = record.link.send(now, packet, 0, pool, &mut burst.encoded);
        for buffer in burst.encoded.drain(..) {
            if ring.push(Frame::new(from, 0, buffer)).is_err() {
                record.link.counters().link_drops.add(reason, 1);
            }
        }
        timers.note(record);
    }

    /// Sends what the ports have queued, shows the other workers what was transferred to them, passes the engine's
    /// events on, and wakes the threads that have something to do.
    #[inline]
    fn flush(&mut self) {
        let Worker { engine, faces, links, commands, others, .. } = self;
        links.port_retry = links.ports.flush(&mut FacesOfEngine { faces, engine });
        links.stamps.note_sent(links.latency.as_deref_mut());
        if let Some(others) = others {
            others.handover.publish();
        }
        commands.pass_on(engine.take_events());
        links.wake_receivers(commands.has_events());
    }
}
