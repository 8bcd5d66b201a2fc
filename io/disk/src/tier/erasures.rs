//! Erasing Data on the disk: at once for this worker, and in the log for the time after a restart, as soon as the
//! disk takes it.

use namehop_packet::Timestamp;

use super::DiskTier;
use crate::format::RecordKind;

/// Maximum number of erasures that wait to be written while the disk does not work.
const MAX_UNWRITTEN: usize = 64;

impl DiskTier {
    /// Erases all Data under a prefix for this worker, and queues the erasure to be written.
    pub(super) fn erase_under(&mut self, prefix: &[u8]) {
        let mut prefix = prefix;
        if self.index.is_some() {
            prefix = self.forget_under(prefix);
        }
        if self.unwritten.len() >= MAX_UNWRITTEN {
            // One erasure that covers all names.
            self.unwritten.clear();
            prefix = &[];
        }
        if !self.unwritten.iter().any(|unwritten| **unwritten == *prefix) {
            self.unwritten.push_back(prefix.into());
        }
    }

    /// Invalidates the records that this worker has written under a prefix so far. Returns the prefix that was
    /// erased, which may be shorter.
    fn forget_under<'a>(&mut self, prefix: &'a [u8]) -> &'a [u8] {
        let extent = self.shared.extent();
        // Positions only grow: the rest of the chunk lies behind all records of this worker.
        let before = if self.chunk.is_empty() { extent.cursor } else { self.chunk.start };
        self.erased.add(prefix, before, extent)
    }

    /// Tells the disk thread when erasures that are not on the disk begin or cease to exist.
    pub(super) fn note_erasing(&mut self) {
        let is_erasing = !self.unwritten.is_empty() || self.erasing_runs > 0;
        if is_erasing != self.is_erasing {
            self.is_erasing = is_erasing;
            self.shared.set_erasing(is_erasing);
        }
    }

    /// Writes erasures into the log, as far as the disk works.
    pub(super) fn write_erasures(&mut self) {
        while self.index.is_some()
            && self.is_working()
            && let Some(prefix) = self.unwritten.pop_front()
        {
            if self.append(RecordKind::Erasure, Timestamp::default(), &prefix).is_none() {
                return self.unwritten.push_front(prefix);
            }
        }
    }
}
