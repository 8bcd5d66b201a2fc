//! The worker's face records: one for each face, in an array indexed by the slot of the face id.
//!
//! Only [`FacesOfEngine::add`], [`FacesOfEngine::update`] and [`FacesOfEngine::remove`] add, change and remove faces.
//! Each updates the engine together with the record, so that the two cannot disagree. The engine has its own array
//! because it mostly reads the faces of downstreams and next hops, not the incoming face, and needs only eight bytes of
//! each. A cache line holds eight faces there, whereas a record here takes two lines.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use namehop_engine::engine::Engine;
use namehop_face::capture::Direction;
use namehop_face::counters::LinkDrop;
use namehop_face::link_service::{DroppedInterest, LinkService, Reassembler};
use namehop_face::registry::{Face, FaceTable};
use namehop_face::ring::Frame;
use namehop_face::uri::FaceUri;
use namehop_packet::{BufferPool, FaceId, FaceInfo, PacketBuffer, Timestamp};
use namehop_port::faces::{self, PortOutput, PortSet};
use tracing::warn;

use super::links::Links;

/// The worker's record of a face.
pub(super) struct FaceRecord {
    /// The engine has a copy of this.
    pub(super) info: FaceInfo,
    /// The NDNLPv2 link service of the face.
    pub(super) link: LinkService,
    /// The destination of its frames.
    pub(super) output: Output,
    /// The face is listed in [`LinkTimers`].
    is_timed: bool,
}

impl FaceRecord {
    /// Returns the worker that sends frames of this face, if it is not this worker.
    #[inline]
    pub(super) fn sent_by(&self, ports: &mut PortSet) -> Option<usize> {
        match &self.output {
            Output::Sockets | Output::Control => None,
            Output::Port(output) => {
                let face = self.link.face();
                (!ports.sends_for(face, output)).then(|| face.home_worker())
            }
            Output::Worker(home) => Some((*home).into()),
        }
    }

    /// Returns the bytes queued for sending on the link, as far as this worker can see them.
    #[inline]
    pub(super) fn queued_bytes(&self, ports: &PortSet) -> usize {
        match &self.output {
            Output::Port(output) => ports.backlog_bytes(output),
            _ => self.link.face().send_queue_bytes.load(Ordering::Relaxed),
        }
    }

    /// Passes frames of this face to its port, or enqueues them on the ring to its link, and captures them. Frames that
    /// do not fit into the ring are dropped and counted.
    #[inline]
    pub(super) fn send(&self, links: &mut Links, frames: &mut Vec<PacketBuffer>, pool: &BufferPool) {
        if let Some(capture) = &mut links.capture {
            capture.record(Direction::Sent, frames, |frame| (self.info.id, frame.bytes()));
        }
        let ring = match &self.output {
            Output::Port(output) => {
                links.stamps.leave_by_port();
                return links.ports.send(self.link.face(), output, frames, pool);
            }
            Output::Sockets => &links.rings.to_sockets,
            Output::Control => &links.rings.to_control,
            // Packets of such faces are transferred to the other worker before they reach their link service.
            Output::Worker(_) => return frames.clear(),
        };
        let mut stamps = links.stamps.leave_by_ring();
        for (place, buffer) in frames.drain(..).enumerate() {
            let frame = Frame { stamp: stamps(place), ..Frame::new(self.info.id, 0, buffer) };
            if ring.push(frame).is_err() {
                self.link.counters().link_drops.add(LinkDrop::SendQueueFull, 1);
                if ring.refused() == 1 {
                    warn!(face = %self.info.id, "the ring from the worker to the links is full: packets are dropped");
                }
            }
        }
    }
}

const _: () = assert!(size_of::<FaceRecord>() <= 128 && size_of::<FaceInfo>() == 8);

/// Where the frames of a face are sent.
pub(super) enum Output {
    /// To the ring of the socket thread.
    Sockets,
    /// To a ring of the control thread.
    Control,
    /// To a port on which this worker has a queue.
    Port(PortOutput),
    /// To the worker with this number, as packets: it has the port of the face, or the state of its link. A `u16`, so
    /// that a record of a face fills two cache lines.
    Worker(u16),
}

impl Output {
    /// Returns the output of a face in this worker. `None` for a face on a port of this worker, which gets its output
    /// with the port.
    pub(super) fn without_port(face: &Face, worker: usize) -> Option<Output> {
        let home = face.home_worker();
        let to_home = || Output::Worker(home as u16);
        match face.remote_uri() {
            FaceUri::Internal => Some(Output::Control),
            uri if uri.is_on_port(Some(&face.local_uri())) => (home != worker).then(to_home),
            // Reliability remembers sent packets until they are acknowledged, so one worker must send all of them.
            _ if face.link_options().reliability && home != worker => Some(to_home()),
            _ => Some(Output::Sockets),
        }
    }
}

/// The records of all faces, indexed by the slot of the face id.
#[derive(Default)]
pub(super) struct FaceRecords(Vec<Option<FaceRecord>>);

impl FaceRecords {
    /// Returns the record of the face with this id.
    #[inline]
    pub(super) fn get(&mut self, id: FaceId) -> Option<&mut FaceRecord> {
        self.0.get_mut(id.slot())?.as_mut().filter(|record| record.info.id == id)
    }
}

/// The faces of a worker: its records of them, and the state of their links that is not in a record.
pub(super) struct Faces {
    /// All faces, shared with other threads.
    pub(super) table: Arc<FaceTable>,
    /// This worker's records of the same faces.
    pub(super) records: FaceRecords,
    pub(super) reassembler: Reassembler,
    pub(super) timers: LinkTimers,
    /// The number of the worker.
    pub(super) worker: usize,
}

impl Faces {
    /// Creates the faces of the worker with this number, without any record.
    pub(super) fn new(table: Arc<FaceTable>, worker: usize) -> Self {
        Faces {
            reassembler: Reassembler::new(worker, table.reassembly_limit() / table.workers()),
            table,
            records: FaceRecords::default(),
            timers: LinkTimers::new(),
            worker,
        }
    }

    /// Returns when a link service or the reassembler has something to do.
    pub(super) fn next_deadline(&self) -> Timestamp {
        self.timers.next_deadline().min(self.reassembler.next_deadline())
    }
}

/// The faces together with the engine, which has a record of each, too.
pub(super) struct FacesOfEngine<'a> {
    pub(super) faces: &'a mut Faces,
    pub(super) engine: &'a mut Engine,
}

impl FacesOfEngine<'_> {
    /// Adds a face. Does nothing if it exists; removes an older face in the same slot, which has been closed.
    pub(super) fn add(&mut self, face: &Arc<Face>, output: Output) {
        let info = face.to_face_info();
        let slot = info.id.slot();
        let FaceRecords(records) = &mut self.faces.records;
        if records.len() <= slot {
            records.resize_with(slot + 1, || None);
        }
        match records[slot].as_ref().map(|record| record.info.id) {
            Some(id) if id == info.id => return,
            Some(older) => drop(self.remove(older)),
            None => {}
        }
        let link = LinkService::new(Arc::clone(face), self.faces.worker);
        self.faces.records.0[slot] = Some(FaceRecord { info, link, output, is_timed: false });
        self.engine.set_face(info);
        self.engine.set_unsolicited(info.id, face.is_unsolicited());
    }

    /// Adds a face, unless it belongs to a port of this worker.
    pub(super) fn add_without_port(&mut self, face: &Arc<Face>) {
        if let Some(output) = Output::without_port(face, self.faces.worker) {
            self.add(face, output);
        }
    }

    /// Adds a face if its first frame arrived before the control thread's command to add it. Returns whether the face
    /// exists.
    #[cold]
    pub(super) fn add_of_first_frame(&mut self, id: FaceId) -> bool {
        if let Some(face) = self.faces.table.get(id) {
            self.add_without_port(&face);
        }
        self.faces.records.get(id).is_some()
    }

    /// Adds a face if its first packet from another worker arrived before the command to add the face.
    #[inline]
    pub(super) fn expect(&mut self, id: FaceId) {
        if !self.engine.has_face(id) {
            self.add_of_first_frame(id);
        }
    }

    /// Applies the current options of a face, and the state of its link.
    pub(super) fn update(&mut self, id: FaceId) {
        self.note_link(id);
        let Faces { records, timers, worker, .. } = &mut *self.faces;
        let Some(record) = records.get(id) else { return };
        let options = record.link.face().link_options();
        record.link.update(options);
        timers.note(record);
        if !matches!(record.output, Output::Port(_)) {
            record.output = Output::without_port(record.link.face(), *worker).unwrap_or(Output::Sockets);
        }
        self.engine.set_unsolicited(id, record.link.face().is_unsolicited());
    }

    /// Tells the engine the current state of a face's link.
    fn note_link(&mut self, id: FaceId) {
        if let Some(record) = self.faces.records.get(id) {
            let info = record.link.face().to_face_info();
            if info != std::mem::replace(&mut record.info, info) {
                self.engine.set_face(info);
            }
        }
    }

    /// Removes a face and returns its record; `None` if no face has this id.
    pub(super) fn remove(&mut self, id: FaceId) -> Option<FaceRecord> {
        self.faces.records.get(id)?;
        self.faces.reassembler.forget(id);
        self.engine.remove_face(id);
        self.faces.records.0[id.slot()].take()
    }

    /// Removes a face, unless it is on a port of this worker: a change of the port removes it.
    pub(super) fn remove_without_port(&mut self, id: FaceId) {
        if self.faces.records.get(id).is_some_and(|record| !matches!(record.output, Output::Port(_))) {
            self.remove(id);
        }
    }
}

impl faces::FaceRecords for FacesOfEngine<'_> {
    fn add(&mut self, face: &Arc<Face>, output: PortOutput) {
        match self.faces.records.get(face.id()) {
            // A packet from another worker created the record before the port was added.
            Some(record) => record.output = Output::Port(output),
            None => FacesOfEngine::add(self, face, Output::Port(output)),
        }
    }

    fn remove(&mut self, id: FaceId) -> Option<PortOutput> {
        match FacesOfEngine::remove(self, id)?.output {
            Output::Port(output) => Some(output),
            Output::Sockets | Output::Control | Output::Worker(_) => None,
        }
    }

    fn get(&mut self, id: FaceId) -> Option<(&Face, &mut PortOutput)> {
        let FaceRecord { link, output, .. } = self.faces.records.get(id)?;
        match output {
            Output::Port(output) => Some((link.face(), output)),
            Output::Sockets | Output::Control | Output::Worker(_) => None,
        }
    }
}

/// The faces with a running timer of their link service: the few with unacknowledged packets under reliability, or with
/// a path that is probed for its MTU.
pub(super) struct LinkTimers {
    timed: Vec<FaceId>,
    /// At or before the earliest deadline of the listed faces.
    next_deadline: Timestamp,
}

impl LinkTimers {
    pub(super) fn new() -> Self {
        LinkTimers { timed: Vec::new(), next_deadline: Timestamp::NEVER }
    }

    /// Records the deadline of a face after its link service was used.
    #[inline]
    pub(super) fn note(&mut self, record: &mut FaceRecord) {
        let deadline = record.link.next_deadline();
        if deadline != Timestamp::NEVER {
            self.note_deadline(record, deadline);
        }
    }

    fn note_deadline(&mut self, record: &mut FaceRecord, deadline: Timestamp) {
        if !record.is_timed {
            record.is_timed = true;
            self.timed.push(record.info.id);
        }
        self.next_deadline = self.next_deadline.min(deadline);
    }

    /// Returns when [`LinkTimers::run_due`] has something to do.
    pub(super) fn next_deadline(&self) -> Timestamp {
        self.next_deadline
    }

    /// Runs due timers. Calls `send` with each face that had a due timer, with the resulting frames, and with whether
    /// all workers are to update their link service of the face.
    pub(super) fn run_due(
        &mut self,
        now: Timestamp,
        records: &mut FaceRecords,
        pool: &BufferPool,
        dropped: &mut Vec<DroppedInterest>,
        frames: &mut Vec<PacketBuffer>,
        mut send: impl FnMut(&FaceRecord, &mut Vec<PacketBuffer>, bool),
    ) {
        if now < self.next_deadline {
            return;
        }
        let mut next_deadline = Timestamp::NEVER;
        self.timed.retain(|&id| {
            let Some(record) = records.get(id) else { return false };
            if record.link.next_deadline() <= now {
                let has_changed = record.link.tick(now, pool, frames, dropped);
                send(record, frames, has_changed);
            }
            let deadline = record.link.next_deadline();
            next_deadline = next_deadline.min(deadline);
            record.is_timed = deadline != Timestamp::NEVER;
            record.is_timed
        });
        self.next_deadline = next_deadline;
    }
}

#[cfg(test)]
mod tests {
    use namehop_face::registry::{FaceFlags, FaceParams, FaceTable, FaceUpdate};
    use namehop_port::encapsulation::NDN_GROUP;

    use super::super::tests::small_engine;
    use super::*;

    #[test]
    fn records_and_engine_have_the_same_faces() {
        let (mut faces, mut engine) =
            (Faces::new(Arc::new(FaceTable::new()), 0), small_engine(BufferPool::new(16, 1)).0);
        let mut faces = FacesOfEngine { faces: &mut faces, engine: &mut engine };
        let agree = |faces: &mut FacesOfEngine<'_>, id: FaceId, is_there: bool| {
            assert_eq!(faces.faces.records.get(id).is_some(), is_there, "record of {id}");
            assert_eq!(faces.engine.face_drops(id).is_some(), is_there, "face {id} in the engine");
        };
        // The faces come from two tables, so that both have the same slot; their ids differ in the slot's use count.
        let (first_table, second_table) = (FaceTable::new(), FaceTable::new());
        let parameters = || FaceParams::new("udp4://192.0.2.1:6363".parse().expect("URI"), FaceUri::Null);
        let first = first_table.insert(parameters()).expect("room");
        let second = (0..)
            .map(|_| {
                let face = second_table.insert(parameters()).expect("room");
                second_table.remove(face.id());
                face
            })
            .find(|face| face.id() != first.id() && face.id().slot() == first.id().slot())
            .expect("slots are reused");

        assert!(faces.remove(first.id()).is_none());
        faces.add(&first, Output::Sockets);
        faces.add(&first, Output::Control);
        agree(&mut faces, first.id(), true);
        assert!(
            matches!(faces.faces.records.get(first.id()).expect("exists").output, Output::Sockets),
            "a face is added once"
        );
        faces.add(&second, Output::Sockets);
        agree(&mut faces, first.id(), false);
        agree(&mut faces, second.id(), true);
        assert!(faces.remove(first.id()).is_none(), "another face uses its slot");
        agree(&mut faces, second.id(), true);
        assert!(faces.remove(second.id()).is_some());
        agree(&mut faces, second.id(), false);
    }

    #[test]
    fn the_engine_learns_the_state_of_links() {
        let (mut faces, mut engine) =
            (Faces::new(Arc::new(FaceTable::new()), 0), small_engine(BufferPool::new(16, 1)).0);
        let mut faces = FacesOfEngine { faces: &mut faces, engine: &mut engine };
        let table = FaceTable::new();
        let parameters = FaceParams::new("tcp4://192.0.2.1:6363".parse().expect("URI"), FaceUri::Null);
        let face = table.insert(FaceParams { is_up: false, ..parameters }).expect("room");
        faces.add(&face, Output::Sockets);
        for is_up in [false, true, false] {
            face.set_up(is_up);
            faces.note_link(face.id());
            assert_eq!(faces.engine.is_face_up(face.id()), Some(is_up));
            assert_eq!(faces.faces.records.get(face.id()).expect("exists").info.is_up, is_up);
        }
        faces.remove(face.id());
        faces.note_link(face.id());
        assert_eq!(faces.engine.is_face_up(face.id()), None, "a removed face stays removed");
    }

    #[test]
    fn faces_of_ports_get_their_output_with_their_port() {
        let table = FaceTable::new();
        table.set_workers(2);
        let face = |remote: FaceUri, home_worker| {
            let params = FaceParams { home_worker, ..FaceParams::new(remote, FaceUri::Null) };
            table.insert(params).expect("room")
        };
        let output = |remote: FaceUri| Output::without_port(&face(remote, Some(0)), 0);
        assert!(output(FaceUri::Ethernet(NDN_GROUP)).is_none());
        assert!(output(namehop_port::drivers::parse_uri("memif:///a?id=1").expect("URI")).is_none());
        assert!(output(namehop_port::drivers::parse_uri("vxlan4://192.0.2.7?vni=1").expect("URI")).is_none());
        assert!(matches!(output(FaceUri::Internal), Some(Output::Control)));
        assert!(matches!(output("unix:///a".parse().expect("URI")), Some(Output::Sockets)));
        // Packets of faces that another worker serves go to that worker.
        let output = |face: &Face| Output::without_port(face, 0);
        assert!(matches!(output(&face(FaceUri::Ethernet(NDN_GROUP), Some(1))), Some(Output::Worker(1))));
        let socket = face("udp4://192.0.2.1:6363".parse().expect("URI"), Some(1));
        assert!(matches!(output(&socket), Some(Output::Sockets)));
        let reliability = FaceFlags::RELIABILITY;
        socket
            .update(&FaceUpdate { flags: reliability, flags_mask: reliability.0, ..FaceUpdate::default() })
            .expect("allowed");
        assert!(matches!(output(&socket), Some(Output::Worker(1))));
        assert!(matches!(Output::without_port(&socket, 1), Some(Output::Sockets)));
    }
}
