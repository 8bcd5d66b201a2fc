//! Writing to the log: records are gathered in a run, which goes to the disk thread as a whole.

use namehop_packet::Timestamp;

use super::DiskTier;
use crate::format::{self, CHUNK_SLOTS, RecordKind, slots_of};
use crate::messages::{Run, ToDisk};

impl DiskTier {
    /// Appends a record to the run that is to be written. Returns `None` if there is no buffer for it.
    pub(super) fn append(&mut self, kind: RecordKind, fresh_until: Timestamp, body: &[u8]) -> Option<u64> {
        let slots = slots_of(body.len()) as u64;
        let extent = self.shared.extent();
        // Other workers may have gone around the ring while this worker had nothing to write.
        let is_outdated = extent.cursor.saturating_sub(self.chunk.start) > extent.slots / 2;
        if self.chunk.end - self.chunk.start < slots || is_outdated {
            self.finish_run();
            // Without a buffer no chunk is taken.
            if self.runs.is_empty() {
                return None;
            }
            let start = self.shared.take_chunk();
            self.chunk = start..start + CHUNK_SLOTS;
        }
        if self.run.is_none() {
            let mut bytes = self.runs.pop()?;
            bytes.clear();
            self.run = Some(Run { position: self.chunk.start, bytes, has_erasure: false });
        }
        let position = self.chunk.start;
        let run = self.run.as_mut()?;
        format::append(&mut run.bytes, position, kind, fresh_until, body);
        if kind == RecordKind::Erasure && !std::mem::replace(&mut run.has_erasure, true) {
            self.erasing_runs += 1;
        }
        self.chunk.start += slots;
        Some(position)
    }

    /// Sends the current run to the disk thread, if there is one.
    pub(super) fn finish_run(&mut self) {
        if let Some(run) = self.run.take()
            && let Err(ToDisk::Write(run)) = self.to_disk.push(ToDisk::Write(run), 0)
        {
            // Cannot happen, because the ring has room for all buffers; the index would refer to records that were
            // not written.
            self.take_back(run.bytes, run.has_erasure, false);
        }
    }

    /// Takes a write buffer back.
    pub(super) fn take_back(&mut self, buffer: Vec<u8>, has_erasure: bool, is_written: bool) {
        self.runs.push(buffer);
        if has_erasure {
            self.erasing_runs -= 1;
            if !is_written {
                // Erased Data must not come back after a restart.
                self.unwritten.clear();
                self.unwritten.extend(self.erased.prefixes());
            }
        }
    }
}
