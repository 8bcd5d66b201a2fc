//! Walks over all prefixes, at once or in portions between which the table may change.

use std::sync::atomic::Ordering;

use namehop_hash::PrefixHashes;
use namehop_packet::FaceId;
use namehop_table::WalkCursor;
use namehop_wire::NameRef;

use super::FibWriter;
use crate::fib::{FibError, NextHops};

/// Number of home buckets visited together, so that their misses overlap.
const GROUP: usize = 16;

/// The position of a walk over all prefixes; the default is its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FibCursor {
    /// `None` before the root, which is not in the table.
    table: Option<WalkCursor>,
}

impl FibCursor {
    /// Returns the position as a number that can be stored outside of the program; `None` for the start.
    pub fn number(self) -> Option<u64> {
        self.table.map(WalkCursor::number)
    }

    /// Returns the position with this number. Every number is valid; one that is not from [`number`](Self::number) is
    /// an arbitrary position.
    pub fn from_number(number: u64) -> Self {
        FibCursor { table: Some(WalkCursor::from_number(number)) }
    }
}

impl<S: Send + Sync> FibWriter<S> {
    /// Calls `show` for about `portion` more prefixes with next hops. There may be a few more, and fewer in a sparse
    /// table, because at most `portion` groups of buckets are examined. Returns where to continue, or `None` at the
    /// end.
    ///
    /// A prefix that has next hops during the whole walk is shown at least once, regardless of other changes; some may
    /// be shown again when the table grows.
    pub fn visit_entries(
        &self,
        from: FibCursor,
        portion: usize,
        mut show: impl FnMut(NameRef<'_>, NextHops<'_>),
    ) -> Option<FibCursor> {
        let mut indexes = Vec::new();
        let (mut shown, mut groups) = (0, 0);
        let mut cursor = from;
        while shown < portion && groups < portion {
            groups += 1;
            let next = self.next_group(cursor, &mut indexes);
            for entry in indexes.iter().map(|&index| self.entry(index)).filter(|entry| entry.has_own_nexthops()) {
                if let Ok(name) = NameRef::from_value(entry.value()) {
                    show(name, entry.own_nexthops());
                    shown += 1;
                }
            }
            cursor = next?;
        }
        Some(cursor)
    }

    /// Removes a face from the entries of at least `portion` more prefixes, unless fewer are left. Returns the number
    /// of entries that had it, and where to continue, or `None` at the end. An entry that the face is added to in the
    /// meantime may keep it.
    pub fn remove_face_from_portion(
        &mut self,
        face: FaceId,
        from: FibCursor,
        portion: usize,
    ) -> Result<(usize, Option<FibCursor>), FibError> {
        let mut indexes = Vec::new();
        let (mut looked_at, mut removed) = (0, 0);
        let mut cursor = Some(from);
        while let Some(from) = cursor.filter(|_| looked_at < portion) {
            cursor = self.next_group(from, &mut indexes);
            looked_at += indexes.len().max(1);
            indexes.retain(|&index| self.entry(index).own_nexthops().faces().contains(&face));
            removed += indexes.len();
            // A removal reclaims before it changes anything, so the names are copied from the entries first.
            let names: Vec<Box<[u8]>> = indexes.iter().map(|&index| self.entry(index).value().into()).collect();
            let mut hashes = PrefixHashes::new();
            for value in &names {
                let prefix = self.prefix(value, &mut hashes)?;
                self.drop_face(&prefix, face)?;
            }
        }
        Ok((removed, cursor))
    }

    /// Removes a face from all entries. Returns the number of entries that had it. Examines every entry.
    pub fn remove_face(&mut self, face: FaceId) -> Result<usize, FibError> {
        let (mut total, mut cursor) = (0, Some(FibCursor::default()));
        while let Some(from) = cursor {
            let (removed, next) = self.remove_face_from_portion(face, from, usize::MAX)?;
            total += removed;
            cursor = next;
        }
        Ok(total)
    }

    /// Fills `indexes` with the next entries of a walk, and prefetches them.
    fn next_group(&self, from: FibCursor, indexes: &mut Vec<u32>) -> Option<FibCursor> {
        indexes.clear();
        let next = match from.table {
            None => {
                indexes.push(self.shared.root.load(Ordering::Relaxed));
                Some(WalkCursor::default())
            }
            Some(cursor) => self.table.walk(cursor, GROUP, indexes),
        };
        for &index in &*indexes {
            self.entries.prefetch_line(index, 0);
            self.entries.prefetch_line(index, 1);
        }
        next.map(|cursor| FibCursor { table: Some(cursor) })
    }
}
