//! Transfers between workers: packets that arrived at one worker and belong to another, and packets to send on a face
//! that another worker serves. Workers transfer network packets; frames are transferred only between the queues of a
//! port. The worker that has a port serves its first queue, and other workers serve further queues. A frame on a
//! further queue that needs the state of a link, or has no face, goes unmodified to the worker that has the port.
//!
//! Each ordered pair of workers has two rings: one for usual packets, which take one cache line each ([`Parcel`]), and
//! one for everything else. Nearly the whole cost of a transfer is cache lines that one core has written and another
//! reads. All transfers of a poll iteration become visible together at its end. When a ring is full the packet is
//! dropped and counted. The last quarter of a ring is reserved for Data and Nacks: dropping one wastes the work done
//! for its Interest, while a lost Interest is sent again.
//!
//! A transfer carries the buffer and link fields but no parse results, because they would save next to nothing: the
//! receiving worker parses only the first components of a name, and the owner decodes the packet.
//!
//! Packets that wait too long in a ring are marked as congested, by the CoDel control law (RFC 8289).

mod parcel;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use namehop_client::nfd::HandoverCounters;
use namehop_engine::dispatch::{NameDispatch, Owners, SAMPLED, WorkerSet};
use namehop_face::counters::{LinkDrop, LinkDropTotals};
use namehop_face::link_service::{CongestionMarker, DroppedInterest};
use namehop_face::sampling::SampleGaps;
use namehop_face::wait_watch::{INTERVAL_NS, TARGET_NS};
use namehop_face::wake::Waker;
use namehop_packet::in_place::{extract_in_place, push_in_place};
use namehop_packet::{
    BufferPool, FaceId, Incoming, IncomingBurst, LinkFields, Outgoing, PacketBuffer, PacketKind, Timestamp,
};
use namehop_port::faces::PortId;
use namehop_table::{HandoverReceiver, HandoverSender, handover_ring};
use namehop_wire::tlv::types;

use parcel::{Parcel, Unpacked};

/// Packets in the ring from one worker to another: some tenths of a millisecond of traffic at full speed. A longer ring
/// would take more of the L2 cache, through which all of it passes.
const RING_PACKETS: usize = 1024;
/// Slots of the ring for everything else. Fragments that arrive on a further queue of a port pass it, six for each
/// packet of 8000 bytes. The ring must hold a consumer's whole window while the worker with the port waits for its CPU.
const RING_OTHERS: usize = 4096;
/// One in this many slots of a ring is reserved for Data and Nacks.
const RESERVED_SHARE: usize = 4;
/// One in this many slots of a ring is closed to frames and reserved for packets.
const FRAMES_SHARE: usize = 2;

/// What one worker transfers to another.
#[derive(Debug)]
pub(super) enum Handed {
    /// A packet that belongs to the receiving worker.
    Incoming(Incoming),
    /// A copy of Data of another worker, which Interests of the receiving worker may be waiting for.
    Offered(Incoming),
    /// A packet to send on a face that the receiving worker serves.
    Outgoing(Outgoing),
    /// An Interest of the receiving worker that link reliability declared lost.
    Dropped(DroppedInterest),
    /// A face of which the first frame arrived at the sending worker.
    NewFace(FaceId),
    /// A frame of a port of the receiving worker that arrived on a further queue.
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

    /// Returns `Some(n)` if one in `n` slots of a ring is closed to this item. `kind` must be [`Handed::kind`] of it.
    fn share_for_others(&self, kind: PacketKind) -> Option<usize> {
        match self {
            // Any host on the link can send such frames.
            Handed::Frame(..) => Some(FRAMES_SHARE),
            _ => (kind == PacketKind::Interest).then_some(RESERVED_SHARE),
        }
    }

    /// Returns the link fields that carry a congestion mark, if the item has them.
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

/// An item in the ring for everything else, with the time at which it was enqueued.
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
    /// Congestion markers of the two rings.
    markers: [CongestionMarker; 2],
}

impl FromWorker {
    fn is_empty(&self) -> bool {
        self.parcels.is_empty() && self.others.is_empty()
    }
}

/// Items that a worker received from the others in one poll iteration, except its own packets and packets to send.
#[derive(Default)]
pub(super) struct Received {
    /// Data that Interests of this worker may be waiting for.
    pub(super) offered: Vec<Incoming>,
    /// Interests of this worker that link reliability declared lost.
    pub(super) dropped: Vec<DroppedInterest>,
    /// Faces of which the first frame arrived at another worker.
    pub(super) faces: Vec<FaceId>,
    /// Frames of this worker's ports that arrived on further queues.
    pub(super) frames: Vec<(PortId, PacketBuffer)>,
}

impl Received {
    pub(super) fn is_empty(&self) -> bool {
        self.offered.is_empty() && self.dropped.is_empty()
    }
}

/// One worker's ends of all rings between workers.
pub struct Handover {
    dispatch: Arc<NameDispatch>,
    worker: u8,
    /// When the common clock of all workers started.
    pub(super) started: Instant,
    /// Indexed by worker number; `None` at this worker's own number.
    to: Vec<Option<ToWorker>>,
    from: Vec<FromWorker>,
    pub(super) counters: HandoverCounters,
    /// Scratch: indices of packets of a burst that belong to other workers, and their owners.
    of_others: Vec<(u32, u8)>,
    /// Data that arrived at this worker and is also offered to it.
    offered_to_self: Vec<Incoming>,
    /// Misdirected packets that belong to this worker after all.
    returned: Vec<Incoming>,
    /// Packets until the next one is sampled for the load of its dispatch entry.
    until_sample: u32,
    gaps: SampleGaps,
}

impl Handover {
    /// Bytes that a usual packet takes in a ring, besides its buffer.
    pub const PARCEL_BYTES: usize = size_of::<Parcel>();

    /// Creates one `Handover` for each worker and connects them. `wakers` holds the waker of each worker.
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

    /// Returns the number of this worker.
    pub fn worker(&self) -> usize {
        self.worker.into()
    }

    /// Returns the name dispatch table, which all workers share.
    pub fn dispatch(&self) -> &Arc<NameDispatch> {
        &self.dispatch
    }

    /// Returns the number of dispatch entries that belong to this worker.
    pub(super) fn dispatch_entries(&self) -> u64 {
        self.dispatch.entries_by_worker().get(self.worker()).copied().unwrap_or(0)
    }

    /// Transfers packets of other workers to their owners; the rest stays in `incoming`. Buffers for copies of Data
    /// that is offered to several workers come from `pool`. Drops are counted in `drops`.
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
            // A packet without a name stays with the worker that received it, which drops it.
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
            // The next packet overwrites this entry if it belongs to this worker: a branch would be unpredictable.
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

    /// Transfers a misdirected packet: its PIT token named this worker but led nowhere, and was removed.
    #[cold]
    pub(super) fn redirect(&mut self, now: Timestamp, packet: Incoming, pool: &BufferPool, drops: &LinkDropTotals) {
        let owners = self.dispatch.owners(packet.buffer.bytes(), &packet.fields);
        let Some(Owners { owner, others }) = owners.filter(|owners| owners.owner != self.worker) else {
            // The dispatch entry was moved to this worker meanwhile.
            return self.returned.push(packet);
        };
        for other in others.iter() {
            self.offer(now, other, &packet, pool, drops);
        }
        self.hand_over(now, owner.into(), Handed::Incoming(packet), drops);
    }

    /// Offers a copy of Data to another worker, which may be this one.
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

    /// Enqueues an item to another worker, which sees it after the next [`publish`](Self::publish). If the ring is full
    /// the item is dropped and counted in `drops`. Always inlined, because the caller knows the variant.
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

    /// Announces a face to all other workers when its first frame arrived here. Otherwise the peer could register a
    /// prefix, and an Interest for it could reach a worker before the control thread's command to add the face: the
    /// worker would have no next hop. If a ring is full, the command alone adds the face there.
    #[cold]
    pub(super) fn announce_face(&mut self, now: Timestamp, face: FaceId) {
        for to in self.to.iter_mut().flatten() {
            let news = || Waiting { since: now, kind: PacketKind::Interest, what: Handed::NewFace(face) };
            // Not counted as a drop: the control thread announces the face too.
            let _ = to.others.push_with(RING_OTHERS / RESERVED_SHARE, news);
        }
    }

    /// Returns the worker that owns an Interest which this router sent.
    pub(super) fn owner_of_interest(&self, packet: &[u8]) -> usize {
        self.dispatch.owners(packet, &LinkFields::default()).map_or(self.worker, |owners| owners.owner).into()
    }

    /// Receives what the other workers transferred, up to `limit` items from each ring.
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

    /// Publishes the transfers of this poll iteration to the other workers and wakes sleeping ones.
    pub(super) fn publish(&mut self) {
        for to in self.to.iter_mut().flatten() {
            // The receiver reads parcels before other items. So publish `others` first: a receiver that sees a packet
            // then also sees the announcement of its face.
            if to.others.publish() | to.parcels.publish() {
                to.waker.wake();
            }
        }
    }

    /// Returns whether another worker has transferred something to this one.
    pub(super) fn has_work(&self) -> bool {
        !self.returned.is_empty() || !self.offered_to_self.is_empty() || self.from.iter().any(|from| !from.is_empty())
    }
}
