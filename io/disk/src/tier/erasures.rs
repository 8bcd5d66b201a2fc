//! Erasing what is on the disk: at once for this worker, and in the log for the time after a restart, as soon as the disk takes it.

use namehop_packet::Timestamp;

use super::DiskTier;
use crate::format::Kind;

/// Erasures that wait to be written while the disk does not work.
const MAX_UNWRITTEN: usize = 64;

impl DiskTier {
    /// Erases all Data under a prefix, given as the VALUE of its name. A restart does not bring it back once
    /// [`erasing_workers`](crate::DiskStatus::erasing_workers) is 0.
    pub fn erase(&mut self, prefix: &[u8]) {
        let mut prefix = prefix;
        if self.index.is_some() {
            prefix = self.forget_under(prefix);
        }
        if self.unwritten.len() >= MAX_UNWRITTEN {
            // One that stands for all.
            self.unwritten.clear();
            prefix = &[];
        }
        if !self.unwritten.iter().any(|unwritten| **unwritten == *prefix) {
            self.unwritten.push_back(prefix.into());
        }
        self.write_erasures();
        self.note_erasing();
    }

    /// What this worker has written so far under a prefix is worth nothing from now on. Returns the prefix that holds for.
    pub(super) fn forget_under<'a>(&mut self, prefix: &'a [u8]) -> &'a [u8] {
        let extent = self.shared.extent();
        // Positions only grow: what is left of the chunk lies behind all that this worker has written.
        let before = if self.chunk.is_empty() { extent.cursor } else { self.chunk.start };
        self.erased.add(prefix, before, extent)
    }

    /// Tells the disk's thread when there begin to be, or cease to be, erasures that are not on the disk.
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
            if self.append(Kind::Erasure, Timestamp::default(), &prefix).is_none() {
                return self.unwritten.push_front(prefix);
            }
        }
    }

    /// Is the Data with this name VALUE, which was read from a position, erased?
    pub fn is_erased(&self, name: &[u8], position: u64) -> bool {
        self.erased.covers(name, position)
    }
}
