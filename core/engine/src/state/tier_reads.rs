//! Interests that wait for a read from the second tier of the Content Store.
//!
//! They wait as received, without a PIT entry. When the read finishes or times out, they pass the pipelines once more.
//! Several Interests may wait for one read. At most [`MAX_WAITING`] wait at a time; further Interests are processed as
//! if the tier had no match.
//!
//! While fewer Interests wait than half of the reads in flight that the tier allows, any face may add one. Beyond that,
//! only a face with few waiting Interests may, so that one face cannot take all slots. Unsolicited remote peers, which
//! can open any number of faces, share half of all these limits in the same way. The other half is for local
//! applications and configured peers.

use std::collections::HashMap;

use namehop_hash::PrefixHashes;
use namehop_packet::{FaceId, Incoming};

use crate::parse::Parsed;
use crate::second_tier::ReadId;

/// Maximum number of Interests that wait at a time.
const MAX_WAITING: usize = 1024;
/// Number of waiting Interests from which faces with many of them get no more room: half of the reads.
const SHARED_BY_ALL: usize = ReadId::COUNT / 2;
/// A face with fewer waiting Interests than this has few.
const FACE_SHARE: u16 = 16;
/// Unsolicited remote peers get one part in this number of both limits.
const UNSOLICITED_PART: usize = 2;
/// Index that means none.
const NONE: u32 = u32::MAX;

/// A slot with a waiting Interest, or a free slot.
struct WaitSlot {
    interest: Option<Incoming>,
    /// Whether it was received from an unsolicited remote peer.
    is_unsolicited: bool,
    /// Index of the next Interest that waits for the same read, or of the next free slot.
    next: u32,
}

/// First and last of the Interests that wait for one read.
#[derive(Clone, Copy)]
struct Queue {
    first: u32,
    last: u32,
}

const EMPTY: Queue = Queue { first: NONE, last: NONE };

/// The Interests that wait for reads. See the module documentation.
pub(crate) struct TierReads {
    queues: Box<[Queue]>,
    slots: Box<[WaitSlot]>,
    free: u32,
    waiting: usize,
    /// Number of them that came from unsolicited remote peers.
    waiting_unsolicited: usize,
    /// Number of them by face; faces without any have no entry. The map has capacity for the maximum, so it does not
    /// grow.
    by_face: HashMap<FaceId, u16>,
    /// By entry of the name dispatch table: positions before this one are stale, because another worker has owned
    /// these names since they were written. Empty until an entry returns to this worker.
    valid_from: Vec<u64>,
    /// Scratch for the packet that is being processed.
    pub(crate) parsed: Parsed,
    pub(crate) hashes: PrefixHashes,
}

impl TierReads {
    /// Creates an empty list.
    pub(crate) fn new() -> Self {
        let next = |slot: usize| if slot + 1 < MAX_WAITING { slot as u32 + 1 } else { NONE };
        TierReads {
            queues: vec![EMPTY; ReadId::COUNT].into(),
            slots: (0..MAX_WAITING)
                .map(|slot| WaitSlot { interest: None, is_unsolicited: false, next: next(slot) })
                .collect(),
            free: 0,
            waiting: 0,
            waiting_unsolicited: 0,
            by_face: HashMap::with_capacity(2 * MAX_WAITING),
            valid_from: Vec::new(),
            parsed: Parsed::default(),
            hashes: PrefixHashes::new(),
        }
    }

    /// Returns the number of waiting Interests.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// Returns whether one more Interest of this face may wait.
    pub(crate) fn has_room(&self, face: FaceId, is_unsolicited: bool) -> bool {
        let (waiting, part) = match is_unsolicited {
            true => (self.waiting_unsolicited, UNSOLICITED_PART),
            false => (self.waiting - self.waiting_unsolicited, 1),
        };
        let has_few = || self.by_face.get(&face).is_none_or(|&waiting| waiting < FACE_SHARE);
        self.free != NONE && waiting < MAX_WAITING / part && (waiting < SHARED_BY_ALL / part || has_few())
    }

    /// Appends an Interest to the queue of a read. If there [is no room](Self::has_room), it is returned.
    pub(crate) fn push(&mut self, read: ReadId, interest: Incoming, is_unsolicited: bool) -> Option<Incoming> {
        let taken = self.free;
        let Some(slot) = self.slots.get_mut(taken as usize) else { return Some(interest) };
        self.free = std::mem::replace(&mut slot.next, NONE);
        *self.by_face.entry(interest.face).or_default() += 1;
        (slot.interest, slot.is_unsolicited) = (Some(interest), is_unsolicited);
        self.waiting += 1;
        self.waiting_unsolicited += usize::from(is_unsolicited);
        let queue = &mut self.queues[read.index()];
        let last = std::mem::replace(&mut queue.last, taken);
        match self.slots.get_mut(last as usize) {
            Some(before) => before.next = taken,
            None => queue.first = taken,
        }
        None
    }

    /// Removes and returns the oldest Interest that waits for a read.
    pub(crate) fn pop(&mut self, read: ReadId) -> Option<Incoming> {
        let queue = &mut self.queues[read.index()];
        let taken = queue.first;
        let slot = self.slots.get_mut(taken as usize)?;
        queue.first = std::mem::replace(&mut slot.next, self.free);
        self.free = taken;
        if queue.first == NONE {
            queue.last = NONE;
        }
        self.waiting -= 1;
        self.waiting_unsolicited -= usize::from(slot.is_unsolicited);
        let interest = slot.interest.take()?;
        if let Some(waiting) = self.by_face.get_mut(&interest.face) {
            *waiting -= 1;
            if *waiting == 0 {
                self.by_face.remove(&interest.face);
            }
        }
        Some(interest)
    }

    /// Marks as stale all that this worker wrote to the tier before `position` for these entries of the name dispatch
    /// table, which return to this worker. The table has `of` entries.
    pub(crate) fn invalidate_before(&mut self, entries: &[usize], of: usize, position: u64) {
        self.valid_from.resize(of, 0);
        for &entry in entries {
            if let Some(valid_from) = self.valid_from.get_mut(entry) {
                *valid_from = position;
            }
        }
    }

    /// Returns whether the record at this position is valid for the names of a dispatch entry.
    pub(crate) fn is_valid(&self, entry: usize, position: u64) -> bool {
        self.valid_from.get(entry).is_none_or(|&valid_from| position >= valid_from)
    }
}
