//! The path MTU of one face, shared by all workers: the discovered size, and whether large frames are sent.
//!
//! The home worker of the face discovers the size (`link_service::path_mtu`). Every worker obeys it, and every worker
//! that sends a large frame notes that here.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The size while no limit is known.
const UNLIMITED: u32 = u32::MAX;

/// No large frame was sent. The first one is reported to the home worker.
const NONE: u8 = 0;
/// No large frame was sent since the home worker looked. It will look again by itself.
const WATCHED: u8 = 1;
/// A large frame was sent.
const LARGE: u8 = 2;

/// The path MTU state of one face.
#[derive(Debug)]
pub(crate) struct PathMtu {
    /// Number of the path in the upper half, size in bytes or [`UNLIMITED`] in the lower half.
    found: AtomicU64,
    large: AtomicU8,
}

impl Default for PathMtu {
    fn default() -> Self {
        PathMtu { found: AtomicU64::new(UNLIMITED.into()), large: AtomicU8::new(NONE) }
    }
}

impl PathMtu {
    /// Returns the largest frame that the path is known to carry, in bytes; [`u32::MAX`] if no limit is known.
    pub(super) fn bytes(&self) -> u32 {
        self.found.load(Ordering::Relaxed) as u32
    }

    /// Returns the number of the path. It changes with [`PathMtu::forget`].
    pub(crate) fn path(&self) -> u32 {
        (self.found.load(Ordering::Relaxed) >> 32) as u32
    }

    /// Sets the size in bytes that was found on the path with this number. Returns whether the size has changed; false
    /// if the face has another path by now.
    pub(crate) fn set(&self, path: u32, bytes: u16) -> bool {
        let next = u64::from(path) << 32 | u64::from(bytes);
        let update = |found: u64| (found >> 32 == u64::from(path) && found != next).then_some(next);
        self.found.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update).is_ok()
    }

    /// Clears the size, because the face has another path or another peer.
    pub(super) fn forget(&self) {
        let next = |found: u64| Some(((found >> 32) + 1) << 32 | u64::from(UNLIMITED));
        // The closure always returns `Some`.
        let _ = self.found.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        self.large.store(NONE, Ordering::Relaxed);
    }

    /// Whether a large frame was sent since the home worker looked.
    #[inline]
    pub(crate) fn has_large(&self) -> bool {
        self.large.load(Ordering::Relaxed) == LARGE
    }

    /// Notes that a large frame is sent. Returns true if the home worker does not look by itself and is to be told.
    pub(crate) fn note_large(&self) -> bool {
        self.large.swap(LARGE, Ordering::Relaxed) == NONE
    }

    /// Clears the note of a large frame; the home worker will look for the next one by itself.
    pub(crate) fn watch(&self) {
        self.large.store(WATCHED, Ordering::Relaxed);
    }

    /// Ends that the home worker looks by itself. Returns whether a large frame was sent meanwhile.
    pub(crate) fn end_watch(&self) -> bool {
        // The exchange fails if the state is another one, which is kept.
        let _ = self.large.compare_exchange(WATCHED, NONE, Ordering::Relaxed, Ordering::Relaxed);
        self.has_large()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_belongs_to_its_path() {
        let mtu = PathMtu::default();
        assert_eq!((mtu.bytes(), mtu.path()), (UNLIMITED, 0));
        assert!(mtu.set(0, 1252) && !mtu.set(0, 1252) && mtu.set(0, 1272));
        assert_eq!(mtu.bytes(), 1272);
        mtu.forget();
        assert_eq!((mtu.bytes(), mtu.path()), (UNLIMITED, 1));
        assert!(!mtu.set(0, 1252), "it was found on the previous path");
        assert_eq!(mtu.bytes(), UNLIMITED);
    }

    #[test]
    fn the_home_worker_is_told_of_a_large_frame_unless_it_looks_by_itself() {
        let mtu = PathMtu::default();
        assert!(!mtu.has_large() && mtu.note_large() && mtu.has_large());
        assert!(!mtu.note_large(), "it was told already");
        mtu.watch();
        assert!(!mtu.has_large() && !mtu.note_large() && mtu.end_watch());
        mtu.watch();
        assert!(!mtu.end_watch() && mtu.note_large());
        mtu.forget();
        assert!(!mtu.has_large());
    }
}
