//! What workers hand to each other: packets that came to one worker and belong to another, and packets whose face another one
//! serves. Mostly network packets are handed over. Frames are where a port has several queues: what comes to a further one and
//! needs the state of a link, or has no face, goes as it is to the worker that has the port.
//!
//! There are two rings for each pair of workers and each direction: one for packets of the usual kind, each of which takes one cache line
//! there ([`Parcel`]), and one for all else. Cache lines that one processor has written and another one reads are nearly all that a
//! hand-over costs. What a worker hands over in a turn becomes visible at the end of the turn, all at once. When a ring is full the packet
//! is dropped and counted; the last quarter of a ring is kept for Data and Nacks, because with them goes the work that was done for their
//! Interests, while a lost Interest is sent again.
//!
//! What was found out about a packet is not handed over but its buffer, for that is next to nothing:
//! the worker that receives a packet looks only for the first components of its name, and the one that it belongs to decodes it.
//!
//! A queue in which packets wait for too long marks them as congested, by the law of CoDel (RFC 8289).

mod parcel;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use namehop_engine::dispatch::{NameDispatch, Owners, SAMPLED, WorkerSet};
use namehop_face::counters::{LinkDrop, LinkDropTotals};
use namehop_face::link_service::{CongestionMarker, DroppedInterest};
use namehop_face::port::PortId;
use namehop_face::sampling::SampleGaps;
use namehop_face::wait_watch::{INTERVAL_NS, TARGET_NS};
use namehop_face::wake::Waker;
use namehop_manage::server::HandoverCounters;
use namehop_packet::in_place::{extract_in_place, push_in_place};
use namehop_packet::{
    BufferPool, FaceId, Incoming, IncomingBurst, LinkFields, Outgoing, PacketBuffer, PacketKind, Timestamp,
};
use namehop_table::{HandoverReceiver, HandoverSender, handover_ring};
use namehop_wire::tlv::types;

use parcel::{Parcel, Unpacked};

/// Packets that fit into the ring from one worker to another: some tenths of a millisecond of traffic at full speed. A longer ring
/// would take more of the second-level cache, through which all of it passes.
const RING_PACKETS: usize = 1024;
/// Places of the ring for all else. Fragments that come to a further queue of a port go through it, six for each packet of 8000 bytes, and
/// all of a consumer's window may come in while the worker with the port waits for its processor.
const RING_OTHERS: usize = 4096;
/// One in so many places of a ring is kept for Data and Nacks.
const RESERVED_SHARE: usize = 4;
/// One in so many is kept for packets.
const FRAMES_SHARE: usize = 2;

/// What one worker gives another.
#[derive(Debug)]
pub(super) enum Handed {
    /// It belongs to that worker.
    Incoming(Incoming),
    /// Data of others that Interests of that worker may wait for.
    Offered(Incoming),
    /// It leaves through a face that that worker serves.
    Outgoing(Outgoing),
    /// An Interest of that worker which link reliability gave up.
    Dropped(DroppedInterest),
    /// A face whose first frame has come.
    NewFace(FaceId),
    /// A frame of a port of that worker which came to a further queue.
    Frame(PortId, PacketBuffer),
}

impl Handed {
    fn kind(&self) -> PacketKind {
        match self {
            Handed::Incoming(packet) | Handed::Offered(packet) => kind_of(packet),
            Handed::Outgoing(packet) => packet.kind,
            Handed::Dropped(_) | Handed::NewFace(_) | Handed::Frame(..) => PacketKind::Interest,
        }
    }

    /// One in so many places of a ring is kept for others. `kind` is its own.
    fn share_for_others(&self, kind: PacketKind) -> Option<usize> {
        match self {
            // Anybody on the link can send such frames.
            Handed::Frame(..) => Some(FRAMES_SHARE),
            _ => (kind == PacketKind::Interest).then_some(RESERVED_SHARE),
        }
    }

    /// Where a mark of congestion goes.
    fn fields_mut(&mut self) -> Option<&mut LinkFields> {
        match self {
            Handed::Incoming(packet) | Handed::Offered(packet) => Some(&mut packet.fields),
            Handed::Outgoing(packet) => Some(&mut packet.fields),
            Handed::Dropped(_) | Handed::NewFace(_) | Handed::Frame(..) => None,
        }
    }
}

fn kind_of(packet: &Incoming) -> PacketKind {
    match packet.buffer.bytes().first() {
        Some(&first) if u32::from(first) == types::DATA => PacketKind::Data,
        _ if packet.fields.nack.is_some() => PacketKind::Nack,
        _ => PacketKind::Interest,
    }
}

/// In the ring for what is no usual packet: what, and since when.
struct Waiting {
    since: Timestamp,
    kind: PacketKind,
    what: Handed,
}

struct ToWorker {
    parcels: HandoverSender<Parcel>,
    others: HandoverSender<Waiting>,
    waker: Arc<Waker>,
}

struct FromWorker {
    parcels: HandoverReceiver<Parcel>,
    others: HandoverReceiver<Waiting>,
    /// Of the two rings.
    markers: [CongestionMarker; 2],
}

impl FromWorker {
    fn is_empty(&self) -> bool {
        self.parcels.is_empty() && self.others.is_empty()
    }
}

/// What a worker gets from the others in a turn.
#[derive(Default)]
pub(super) struct Received {
    /// Data that Interests of this worker may wait for.
    pub(super) offered: Vec<Incoming>,
    /// Interests of this worker that link reliability gave up.
    pub(super) dropped: Vec<DroppedInterest>,
    /// Faces whose first frames have come to other workers.
    pub(super) faces: Vec<FaceId>,
    /// Frames of this worker's ports that came to further queues.
    pub(super) frames: Vec<(PortId, PacketBuffer)>,
}

impl Received {
    pub(super) fn is_empty(&self) -> bool {
        self.offered.is_empty() && self.dropped.is_empty()
    }
}

/// One worker's ends of all rings.
pub struct Handover {
    dispatch: Arc<NameDispatch>,
    worker: u8,
    /// When the clock of all workers started.
    pub(super) started: Instant,
    /// By number of the worker; `None` in this one's own place.
    to: Vec<Option<ToWorker>>,
    from: Vec<FromWorker>,
    pub(super) counters: HandoverCounters,
    /// Scratch: which packets of a burst belong to other workers, and to whom.
    of_others: Vec<(u32, u8)>,
    /// Data that came to this worker and is offered to it besides.
    offered_to_self: Vec<Incoming>,
    /// Packets that turned out to belong to this worker after all.
    returned: Vec<Incoming>,
    /// Packets until one is counted for its entry.
    until_sample: u32,
    gaps: SampleGaps,
}

impl Handover {
    /// Bytes that a usual packet takes in a ring, besides its buffer.
    pub const PARCEL_BYTES: usize = size_of::<Parcel>();

    /// Connects all workers of a table, whose wakers these are, with each other.
    pub fn connect(dispatch: &Arc<NameDispatch>, wakers: &[Arc<Waker>]) -> Vec<Handover> {
        let started = Instant::now();
        let mut all: Vec<Handover> = (0..wakers.len())
            .map(|worker| Handover {
                dispatch: Arc::clone(dispatch),
                worker: worker as u8,
                started,
                to: Vec::new(),
                from: Vec::new(),
                counters: HandoverCounters::default(),
                of_others: Vec::new(),
                offered_to_self: Vec::new(),
                returned: Vec::new(),
                until_sample: SAMPLED.get(),
                gaps: SampleGaps::new(SAMPLED, worker as u64),
            })
            .collect();
        for sender in 0..all.len() {
            for (receiver, waker) in wakers.iter().enumerate() {
                if receiver == sender {
                    all[sender].to.push(None);
                    continue;
                }
                let (parcels, others) = (handover_ring(RING_PACKETS), handover_ring(RING_OTHERS));
                let waker = Arc::clone(waker);
                all[sender].to.push(Some(ToWorker { parcels: parcels.0, others: others.0, waker }));
                let markers = Default::default();
                all[receiver].from.push(FromWorker { parcels: parcels.1, others: others.1, markers });
            }
        }
        all
    }

    /// Number of this worker.
    pub fn worker(&self) -> usize {
        self.worker.into()
    }

    /// The table that all share.
    pub fn dispatch(&self) -> &Arc<NameDispatch> {
        &self.dispatch
    }

    /// Entries of the table that belong to this worker.
    pub(super) fn dispatch_entries(&self) -> u64 {
        self.dispatch.entries_by_worker().get(self.worker()).copied().unwrap_or(0)
    }

    /// Hands over what belongs to others; the rest stays in `incoming`. Buffers for Data that several workers are to have come from
    /// `pool`. What is lost counts in `drops`.
    pub(super) fn divide(
        &mut self,
        now: Timestamp,
        incoming: &mut IncomingBurst,
        pool: &BufferPool,
        drops: &LinkDropTotals,
    ) {
        for packets in incoming.kinds() {
            self.divide_kind(now, packets, pool, drops);
        }
    }

    fn divide_kind(&mut self, now: Timestamp, packets: &mut Vec<Incoming>, pool: &BufferPool, drops: &LinkDropTotals) {
        let mut count = 0;
        for (position, packet) in packets.iter().enumerate() {
            // What has no name is dropped by whoever has it.
            let owners = self.dispatch.owners(packet.buffer.bytes(), &packet.fields);
            let Owners { owner, others } =
                owners.unwrap_or(Owners { owner: self.worker, others: WorkerSet::default() });
            self.until_sample -= 1;
            if self.until_sample == 0 {
                self.until_sample = self.gaps.next_gap();
                self.dispatch.note_load(packet.buffer.bytes());
            }
            for other in others.iter() {
                self.offer(now, other, packet, pool, drops);
            }
            // The next one takes its place if it belongs to this worker: a branch could not be foretold.
            self.of_others.truncate(count);
            self.of_others.push((position as u32, owner));
            count += usize::from(owner != self.worker);
        }
        self.of_others.truncate(count);
        let of_others = std::mem::take(&mut self.of_others);
        extract_in_place(packets, &of_others, |packet, owner| {
            self.hand_over(now, owner.into(), Handed::Incoming(packet), drops);
        });
        self.of_others = of_others;
    }

    /// Hands over a packet that came to this worker because of a PIT token that leads nowhere, and was taken off.
    #[cold]
    pub(super) fn redirect(&mut self, now: Timestamp, packet: Incoming, pool: &BufferPool, drops: &LinkDropTotals) {
        let owners = self.dispatch.owners(packet.buffer.bytes(), &packet.fields);
        let Some(Owners { owner, others }) = owners.filter(|owners| owners.owner != self.worker) else {
            // Its entry was moved meanwhile.
            return self.returned.push(packet);
        };
        for other in others.iter() {
            self.offer(now, other, &packet, pool, drops);
        }
        self.hand_over(now, owner.into(), Handed::Incoming(packet), drops);
    }

    /// Gives a copy of Data to another worker, which may be this one.
    #[cold]
    fn offer(&mut self, now: Timestamp, other: u8, packet: &Incoming, pool: &BufferPool, drops: &LinkDropTotals) {
        let Some(buffer) = pool.copy_of(packet.buffer.bytes()) else { return drops.add(LinkDrop::NoBuffer, 1) };
        let LinkFields { pit_token, congestion_mark, no_cache, ref announcement, .. } = packet.fields;
        let announcement = announcement.as_ref().and_then(|announcement| pool.copy_of(announcement.bytes()));
        let fields = LinkFields { pit_token, congestion_mark, no_cache, announcement, ..LinkFields::default() };
        let copy = Incoming { face: packet.face, buffer, fields };
        if other == self.worker {
            self.offered_to_self.push(copy);
        } else {
            self.hand_over(now, other.into(), Handed::Offered(copy), drops);
        }
    }

    /// Puts something into a ring to another worker, who gets it with the next
    /// [`publish`](Self::publish). Part of its caller, who knows what it is.
    #[inline(always)]
    pub(super) fn hand_over(&mut self, now: Timestamp, worker: usize, what: Handed, drops: &LinkDropTotals) {
        let kind = what.kind();
        let reserved = |places: usize| what.share_for_others(kind).map_or(0, |share| places / share);
        let (reserved, reserved_of_others) = (reserved(RING_PACKETS), reserved(RING_OTHERS));
        let is_accepted = match self.to.get_mut(worker) {
            Some(Some(to)) => match what {
                Handed::Incoming(packet) if Parcel::takes_incoming(&packet) => {
                    to.parcels.push_with(reserved, || Parcel::of_incoming(packet, now, kind))
                }
                Handed::Outgoing(packet) if Parcel::takes_outgoing(&packet) => {
                    to.parcels.push_with(reserved, || Parcel::of_outgoing(packet, now))
                }
                what => to.others.push_with(reserved_of_others, || Waiting { since: now, kind, what }),
            },
            _ => false,
        };
        if is_accepted {
            self.counters.handed_out += 1;
        } else {
            self.counters.dropped(kind);
            drops.add(LinkDrop::HandoverFull, 1);
        }
    }

    /// Tells all others of a face whose first frame has come here. Otherwise its peer might register a prefix, and ask for something,
    /// before they hear of the face from the control thread, and there would be no next hop. A ring that is full leaves it to that.
    #[cold]
    pub(super) fn announce_face(&mut self, now: Timestamp, face: FaceId) {
        for to in self.to.iter_mut().flatten() {
            let news = || Waiting { since: now, kind: PacketKind::Interest, what: Handed::NewFace(face) };
            // Not counted: nothing is lost.
            let _ = to.others.push_with(RING_OTHERS / RESERVED_SHARE, news);
        }
    }

    /// The worker that an Interest of this router belongs to.
    pub(super) fn owner_of_interest(&self, packet: &[u8]) -> usize {
        self.dispatch.owners(packet, &LinkFields::default()).map_or(self.worker, |owners| owners.owner).into()
    }

    /// Takes what the others have handed over, up to `limit` from each.
    pub(super) fn receive(
        &mut self,
        now: Timestamp,
        limit: usize,
        incoming: &mut IncomingBurst,
        outgoing: &mut Vec<Outgoing>,
        received: &mut Received,
    ) {
        for packet in self.returned.drain(..) {
            incoming.push(kind_of(&packet), || packet);
        }
        received.offered.append(&mut self.offered_to_self);
        let counters = &mut self.counters;
        for FromWorker { parcels, others, markers: [of_parcels, of_others] } in &mut self.from {
            let is_late = |marker: &mut CongestionMarker, since| {
                marker.should_mark(now, now.since_ns(since), TARGET_NS, INTERVAL_NS)
            };
            let count = parcels.receive(limit, |parcel| {
                let (kind, is_congested) = (parcel.kind, is_late(of_parcels, parcel.since));
                counters.congestion_marks += u64::from(is_congested);
                match parcel.unpack(is_congested) {
                    Unpacked::Incoming(packet) => incoming.push(kind, || packet),
                    Unpacked::Outgoing(packet) => push_in_place(outgoing, || packet),
                }
            });
            counters.handed_in += count as u64;
            if others.is_empty() {
                continue;
            }
            let mut announcements = 0;
            let count = others.receive(limit, |Waiting { since, kind, mut what }| {
                if is_late(of_others, since)
                    && let Some(fields) = what.fields_mut().filter(|fields| fields.congestion_mark == 0)
                {
                    fields.congestion_mark = 1;
                    counters.congestion_marks += 1;
                }
                match what {
                    Handed::Incoming(packet) => incoming.push(kind, || packet),
                    Handed::Offered(packet) => received.offered.push(packet),
                    Handed::Outgoing(packet) => outgoing.push(packet),
                    Handed::Dropped(interest) => received.dropped.push(interest),
                    Handed::Frame(port, frame) => received.frames.push((port, frame)),
                    Handed::NewFace(face) => {
                        announcements += 1;
                        received.faces.push(face);
                    }
                }
            });
            counters.handed_in += (count - announcements) as u64;
        }
    }

    /// Shows the others what was handed over in this turn, and wakes those who sleep.
    pub(super) fn publish(&mut self) {
        for to in self.to.iter_mut().flatten() {
            // Both, and the announcement of a face before its packets: the receiver looks for these first, and for the others behind that.
            if to.others.publish() | to.parcels.publish() {
                to.waker.wake();
            }
        }
    }

    /// Has any other worker handed over something?
    pub(super) fn has_work(&self) -> bool {
        !self.returned.is_empty() || !self.offered_to_self.is_empty() || self.from.iter().any(|from| !from.is_empty())
    }
}
