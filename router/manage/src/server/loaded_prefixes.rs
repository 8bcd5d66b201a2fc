//! Prefixes that were loaded from a file into the FIB, below the routes.
//!
//! They are too many to be recorded by name and face, as next hops set by command are. Only their faces are recorded.
//! When such a face is destroyed, the whole FIB is searched for it, in portions.

use std::collections::{HashSet, VecDeque};

use namehop_packet::FaceId;

use crate::fib_file::{Added, FileError, PrefixBlock};
use namehop_engine::fib::{FibCursor, FibError};

use super::{ControlPlane, Management};

/// Prefixes processed between two pauses while a destroyed face is removed from all of them.
const PORTION: usize = 4096;

/// Faces of loaded prefixes.
#[derive(Debug, Default)]
pub(super) struct LoadedPrefixes {
    faces: HashSet<FaceId>,
    /// Destroyed faces, and how far the removal of each has progressed.
    removals: VecDeque<(FaceId, FibCursor)>,
}

impl<C: ControlPlane> Management<C> {
    /// Reserves room in the FIB for `prefixes` more prefixes.
    ///
    /// # Errors
    /// When memory is insufficient.
    pub fn reserve_prefixes(&self, prefixes: usize) -> Result<(), FibError> {
        self.control.with_fib(|fib| fib.reserve(prefixes))
    }

    /// Adds the prefixes of a block. `faces` maps the file's words to faces. Next hops through faces that do not exist
    /// are left out. Pending Interests are not sent to the new next hops.
    ///
    /// # Errors
    /// When the block is damaged; prefixes before the fault are added.
    pub fn add_prefixes(&self, block: &PrefixBlock, faces: &[Option<FaceId>]) -> Result<Added, FileError> {
        let loaded = &mut self.loaded_prefixes.borrow_mut().faces;
        for &face in faces.iter().flatten() {
            if !loaded.contains(&face) && self.control.faces().get(face).is_some() {
                loaded.insert(face);
            }
        }
        let face_of = |word: u32| faces.get(word as usize).copied().flatten().filter(|face| loaded.contains(face));
        let added = self.control.with_fib(|fib| block.add_to(fib, face_of));
        self.fib_changed();
        added
    }

    /// Starts removing a destroyed face from the loaded prefixes; must be called for each destroyed face.
    pub(super) fn start_removing_loaded(&self, face: FaceId) {
        let loaded = &mut *self.loaded_prefixes.borrow_mut();
        if loaded.faces.remove(&face) {
            loaded.removals.push_back((face, FibCursor::default()));
            self.due_earlier.notify_one();
        }
    }

    /// Removes destroyed faces from the next portion of the FIB; returns false if there are none to remove.
    pub(super) fn remove_loaded_portion(&self) -> bool {
        let Some((face, from)) = self.loaded_prefixes.borrow_mut().removals.pop_front() else {
            return false;
        };
        match self.control.with_fib(|fib| fib.remove_face_from_portion(face, from, PORTION)) {
            Ok((_, Some(next))) => self.loaded_prefixes.borrow_mut().removals.push_front((face, next)),
            Ok((_, None)) => tracing::info!(%face, "removed a face from the prefixes loaded from a file"),
            Err(error) => tracing::warn!(%face, %error, "cannot remove a face from all prefixes of the FIB"),
        }
        self.fib_changed();
        true
    }
}
