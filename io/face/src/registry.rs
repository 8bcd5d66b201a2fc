//! The faces that exist, shared by all threads.
//!
//! A [`Face`] holds the properties that the management protocol shows and changes (NFD management protocol, face
//! management). The remote address and the kind never change; the local address has a lock, and all other properties
//! are atomics. The [`FaceTable`] assigns face ids. Its lock is taken by management and by the threads that create
//! faces, but never per packet: the worker keeps its own array.

mod face;
mod link_options;
mod params;
mod path_mtu;
mod pit_tokens;
mod probe_interests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use namehop_packet::FaceId;

use crate::counters::LinkDropTotals;
use crate::uri::FaceUri;

pub use face::Face;
pub use link_options::LinkOptions;
pub use params::{
    BASE_PACKET_BYTES, DEFAULT_CONGESTION_THRESHOLD_BYTES, DEFAULT_MARKING_INTERVAL_NS, FaceFlags, FaceParams,
    FacePersistency, FaceUpdate, MIN_MTU_BYTES, RejectedProperties, udp_header_bytes,
};
pub(crate) use path_mtu::PathMtu;
pub use pit_tokens::PitTokenMode;

/// Maximum number of faces, apart from the reserved ones: one for each slot from 256.
pub const MAX_USER_FACES: usize = 65_536 - FIRST_USER_SLOT;
const FIRST_USER_SLOT: usize = FaceId::FIRST_USER.slot();
/// Number of released slots that are kept unused before the first is reused. So ids stay short and readable while new
/// slots are left, and arrays indexed by slot stay small.
const RESTING_SLOTS: usize = 1024;

/// Default limit of partial packets of all faces together: a quarter of a pool of 8,192 large buffers.
pub const DEFAULT_PARTIAL_PACKETS_OF_ALL_FACES: usize = 2048;

/// Why a face was not inserted into the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FaceTableError {
    /// Every slot is in use.
    #[error("the face table is full: {limit} faces exist; destroy some or raise the limit")]
    Full {
        /// Maximum number of faces.
        limit: usize,
    },
    /// The id is not one of the reserved ones.
    #[error("face id {0} is not reserved (1, 254 and 255 are)")]
    NotReserved(FaceId),
    /// The reserved id is in use.
    #[error("face id {0} exists already")]
    Exists(FaceId),
}

#[derive(Debug, Default)]
struct Faces {
    by_id: BTreeMap<FaceId, Arc<Face>>,
    by_remote: HashMap<FaceUri, Vec<FaceId>>,
    user_faces: usize,
    /// How often each user slot was released, modulo 65,536; its length is the number of slots ever used.
    reuse: Vec<u16>,
    /// Released slots, oldest first, so that an id is reused as late as possible.
    free: VecDeque<u16>,
}

impl Faces {
    fn enter(&mut self, face: Face) -> Arc<Face> {
        let (id, face) = (face.id(), Arc::new(face));
        self.by_id.insert(id, Arc::clone(&face));
        let same_remote = self.by_remote.entry(face.remote_uri().clone());
        same_remote.or_default().push(id);
        face
    }
}

/// All faces, by id.
#[derive(Debug)]
pub struct FaceTable {
    faces: RwLock<Faces>,
    limit: usize,
    resting_slots: usize,
    link_drops: Arc<LinkDropTotals>,
    reassembly_limit: AtomicUsize,
    workers: AtomicUsize,
}

impl Default for FaceTable {
    fn default() -> Self {
        FaceTable::new()
    }
}

/// One in this many faces is reserved.
const KEPT_FRACTION: usize = 4;
/// Minimum number of reserved faces, unless that is more than half.
const LEAST_KEPT: usize = 16;

/// Returns how many of `limit` faces unsolicited peers on other hosts may have. The others are reserved for
/// applications on this host and for faces created by configuration or command.
pub fn max_unsolicited_faces(limit: usize) -> usize {
    limit - (limit / KEPT_FRACTION).max(LEAST_KEPT).min(limit / 2)
}

impl FaceTable {
    /// Creates an empty table for [`MAX_USER_FACES`] faces.
    pub fn new() -> Self {
        FaceTable::with_limit(MAX_USER_FACES)
    }

    /// Creates an empty table for at most `limit` faces besides the reserved ones (clamped to [`MAX_USER_FACES`]).
    pub fn with_limit(limit: usize) -> Self {
        FaceTable::with_resting_slots(limit, RESTING_SLOTS)
    }

    fn with_resting_slots(limit: usize, resting_slots: usize) -> Self {
        FaceTable {
            faces: RwLock::default(),
            limit: limit.min(MAX_USER_FACES),
            resting_slots,
            link_drops: Arc::default(),
            reassembly_limit: AtomicUsize::new(DEFAULT_PARTIAL_PACKETS_OF_ALL_FACES),
            workers: AtomicUsize::new(1),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Faces> {
        self.faces.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Faces> {
        self.faces.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inserts a new face under a fresh id. Does not check whether a face with the same address exists: see
    /// [`FaceTable::find_by_remote`].
    ///
    /// # Errors
    /// [`FaceTableError::Full`].
    pub fn insert(&self, params: FaceParams) -> Result<Arc<Face>, FaceTableError> {
        let mut faces = self.write();
        if faces.user_faces >= self.limit {
            return Err(FaceTableError::Full { limit: self.limit });
        }
        let all_made = faces.reuse.len() >= MAX_USER_FACES;
        let recycled = if all_made || faces.free.len() > self.resting_slots { faces.free.pop_front() } else { None };
        let slot = match recycled {
            Some(slot) => usize::from(slot),
            None => {
                faces.reuse.push(0);
                FIRST_USER_SLOT + faces.reuse.len() - 1
            }
        };
        let reuse = faces.reuse[slot - FIRST_USER_SLOT];
        faces.user_faces += 1;
        let id = FaceId((u32::from(reuse) << 16) | slot as u32);
        Ok(faces.enter(self.make(id, params)))
    }

    /// Inserts one of the faces with a reserved id: internal, content store or null.
    ///
    /// # Errors
    /// If the id is not reserved, or is in use.
    pub fn insert_reserved(&self, id: FaceId, params: FaceParams) -> Result<Arc<Face>, FaceTableError> {
        if !is_reserved(id) {
            return Err(FaceTableError::NotReserved(id));
        }
        let mut faces = self.write();
        if faces.by_id.contains_key(&id) {
            return Err(FaceTableError::Exists(id));
        }
        Ok(faces.enter(self.make(id, params)))
    }

    fn make(&self, id: FaceId, params: FaceParams) -> Face {
        Face::new(id, params, self.workers(), &self.link_drops)
    }

    /// Sets the limit of partial packets of all faces together; it applies to workers that start later. Each partial
    /// packet holds a buffer of the pool, so a quarter of the pool's large buffers leaves enough for everything else.
    /// Initially [`DEFAULT_PARTIAL_PACKETS_OF_ALL_FACES`].
    pub fn set_reassembly_limit(&self, partial_packets: usize) {
        self.reassembly_limit.store(partial_packets, Ordering::Relaxed);
    }

    /// Sets the number of workers; initially one. Call it before the first face is created, because each face has
    /// counters for every worker.
    pub fn set_workers(&self, workers: usize) {
        self.workers.store(workers.max(1), Ordering::Relaxed);
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    /// Returns the limit of partial packets of all faces together.
    pub fn reassembly_limit(&self) -> usize {
        self.reassembly_limit.load(Ordering::Relaxed)
    }

    /// Returns the link drops of all faces, closed ones included.
    pub fn link_drops(&self) -> &LinkDropTotals {
        &self.link_drops
    }

    /// Returns the face with this id.
    pub fn get(&self, id: FaceId) -> Option<Arc<Face>> {
        self.read().by_id.get(&id).cloned()
    }

    /// Returns the faces with this remote address, oldest first.
    pub fn find_by_remote(&self, remote: &FaceUri) -> Vec<Arc<Face>> {
        let faces = self.read();
        let ids = faces.by_remote.get(remote).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(|id| faces.by_id.get(id).cloned()).collect()
    }

    /// Removes a face and releases its slot. Other threads may hold the face a little longer.
    pub fn remove(&self, id: FaceId) -> Option<Arc<Face>> {
        let mut faces = self.write();
        let face = faces.by_id.remove(&id)?;
        if let Some(ids) = faces.by_remote.get_mut(face.remote_uri()) {
            ids.retain(|&other| other != id);
            if ids.is_empty() {
                faces.by_remote.remove(face.remote_uri());
            }
        }
        if !is_reserved(id) {
            let slot = id.slot();
            let reuse = &mut faces.reuse[slot - FIRST_USER_SLOT];
            *reuse = reuse.wrapping_add(1);
            faces.free.push_back(slot as u16);
            faces.user_faces -= 1;
        }
        Some(face)
    }

    /// Returns all faces, in order of id.
    pub fn snapshot(&self) -> Vec<Arc<Face>> {
        self.read().by_id.values().cloned().collect()
    }

    /// Returns the number of faces, the reserved ones included.
    pub fn len(&self) -> usize {
        self.read().by_id.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

const fn is_reserved(id: FaceId) -> bool {
    matches!(id, FaceId::INTERNAL | FaceId::CONTENT_STORE | FaceId::NULL)
}
