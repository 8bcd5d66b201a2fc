//! Interests that wait for the disk, the second tier of the Content Store.
//!
//! They wait as they came in, without a PIT entry: when the disk has answered, or has taken too long, they have their turn in the
//! pipelines once more. Several may wait for one read. There is room for [`MAX_WAITING`], and who finds none goes on as if the
//! disk had nothing. One face gets half of what the disk reads at a time, and beyond that only while it has few that wait, so
//! that there is something left for the others. Strangers, who may have any number of faces, have half of all that to share in the
//! same way: the other half is for local applications and for peers that this router was told of.

use std::collections::HashMap;

use namehop_disk::ReadId;
use namehop_hash::PrefixHashes;
use namehop_packet::{FaceId, Incoming};

use crate::parse::Parsed;

/// Interests that may wait at a time.
const MAX_WAITING: usize = 1024;
/// Interests that wait before faces with many of them get no more room: half of the reads.
const SHARED_BY_ALL: usize = ReadId::COUNT / 2;
/// Interests of one face that count as few.
const FACE_SHARE: u16 = 16;
/// Strangers get one in so many of the places, and of those that are shared by all.
const STRANGERS_PART: usize = 2;
/// No place.
const NONE: u32 = u32::MAX;

/// An Interest in its place, or a free place.
struct Place {
    interest: Option<Incoming>,
    /// Did it come in on the face of a stranger?
    is_strangers: bool,
    /// The one behind it that waits for the same read, or the next free place.
    next: u32,
}

/// First and last of those who wait for one read.
#[derive(Clone, Copy)]
struct Queue {
    first: u32,
    last: u32,
}

const EMPTY: Queue = Queue { first: NONE, last: NONE };

/// See the module's description.
pub(crate) struct DiskReads {
    queues: Box<[Queue]>,
    places: Box<[Place]>,
    free: u32,
    waiting: usize,
    /// Those of them that strangers have sent.
    waiting_of_strangers: usize,
    /// How many of them came in on each face; faces without any are not in it. It has room for all, so it does not grow.
    by_face: HashMap<FaceId, u16>,
    /// By entry of the name dispatch table: what lies on the disk before this position was written before its names were
    /// another worker's. Empty until an entry comes back.
    valid_from: Vec<u64>,
    /// Scratch for the packet that has its turn.
    pub(crate) parsed: Parsed,
    pub(crate) hashes: PrefixHashes,
}

impl DiskReads {
    /// Nobody waits.
    pub(crate) fn new() -> Self {
        let next = |place: usize| if place + 1 < MAX_WAITING { place as u32 + 1 } else { NONE };
        DiskReads {
            queues: vec![EMPTY; ReadId::COUNT].into(),
            places: (0..MAX_WAITING)
                .map(|place| Place { interest: None, is_strangers: false, next: next(place) })
                .collect(),
            free: 0,
            waiting: 0,
            waiting_of_strangers: 0,
            by_face: HashMap::with_capacity(2 * MAX_WAITING),
            valid_from: Vec::new(),
            parsed: Parsed::default(),
            hashes: PrefixHashes::new(),
        }
    }

    /// Interests that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// Is there room for one more of this face?
    pub(crate) fn has_room(&self, face: FaceId, is_stranger: bool) -> bool {
        let (waiting, part) = match is_stranger {
            true => (self.waiting_of_strangers, STRANGERS_PART),
            false => (self.waiting - self.waiting_of_strangers, 1),
        };
        let has_few = || self.by_face.get(&face).is_none_or(|&waiting| waiting < FACE_SHARE);
        self.free != NONE && waiting < MAX_WAITING / part && (waiting < SHARED_BY_ALL / part || has_few())
    }

    /// An Interest waits for a read. There [is room](Self::has_room); if not, it is given back.
    pub(crate) fn push(&mut self, read: ReadId, interest: Incoming, is_stranger: bool) -> Option<Incoming> {
        let taken = self.free;
        let Some(place) = self.places.get_mut(taken as usize) else { return Some(interest) };
        self.free = std::mem::replace(&mut place.next, NONE);
        *self.by_face.entry(interest.face).or_default() += 1;
        (place.interest, place.is_strangers) = (Some(interest), is_stranger);
        self.waiting += 1;
        self.waiting_of_strangers += usize::from(is_stranger);
        let queue = &mut self.queues[read.index()];
        let last = std::mem::replace(&mut queue.last, taken);
        match self.places.get_mut(last as usize) {
            Some(before) => before.next = taken,
            None => queue.first = taken,
        }
        None
    }

    /// The next Interest that waits for a read, in the order in which they came.
    pub(crate) fn pop(&mut self, read: ReadId) -> Option<Incoming> {
        let queue = &mut self.queues[read.index()];
        let taken = queue.first;
        let place = self.places.get_mut(taken as usize)?;
        queue.first = std::mem::replace(&mut place.next, self.free);
        self.free = taken;
        if queue.first == NONE {
            queue.last = NONE;
        }
        self.waiting -= 1;
        self.waiting_of_strangers -= usize::from(place.is_strangers);
        let interest = place.interest.take()?;
        if let Some(waiting) = self.by_face.get_mut(&interest.face) {
            *waiting -= 1;
            if *waiting == 0 {
                self.by_face.remove(&interest.face);
            }
        }
        Some(interest)
    }

    /// Entries of the name dispatch table, of so many, come to this worker: what it wrote to the disk before a position does not
    /// count for their names any more.
    pub(crate) fn start_anew(&mut self, entries: &[usize], of: usize, position: u64) {
        self.valid_from.resize(of, 0);
        for &entry in entries {
            if let Some(valid_from) = self.valid_from.get_mut(entry) {
                *valid_from = position;
            }
        }
    }

    /// Does what lies at this position count for the names of an entry?
    pub(crate) fn is_valid(&self, entry: usize, position: u64) -> bool {
        self.valid_from.get(entry).is_none_or(|&valid_from| position >= valid_from)
    }
}
