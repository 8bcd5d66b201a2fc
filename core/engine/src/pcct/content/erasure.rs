//! Erasing cached Data by name, in bounded parts, so that forwarding never waits for it.

use super::ContentStore;
use crate::pcct::names::NameTable;

/// Progress of an erasure of cached Data; see [`Engine::cs_erase`](crate::Engine::cs_erase).
#[derive(Debug, Clone, Copy, Default)]
pub struct CsErasure {
    /// `None` before the first step.
    walk: Option<CsErasureWalk>,
}

/// A walk once around the entries that existed at the first step.
#[derive(Debug, Clone, Copy)]
struct CsErasureWalk {
    next: u32,
    total: u32,
    left: u32,
}

impl CsErasure {
    /// Returns whether the first step was done.
    pub(crate) fn has_begun(&self) -> bool {
        self.walk.is_some()
    }

    /// Returns whether every entry was examined.
    pub fn is_complete(&self) -> bool {
        self.walk.is_some_and(|walk| walk.left == 0)
    }
}

impl ContentStore {
    /// Removes up to `limit` cached Data packets for which `is_meant` returns `true` for the name, and returns their
    /// number. Examines at most `portion` entries and records in `erasure` where to continue.
    pub(crate) fn erase(
        &mut self,
        names: &mut NameTable,
        is_meant: impl Fn(&[u8]) -> bool,
        limit: usize,
        portion: usize,
        erasure: &mut CsErasure,
    ) -> usize {
        let total = names.touched();
        let start = CsErasureWalk { next: self.next_to_erase, total, left: total };
        let walk = erasure.walk.get_or_insert(start);
        let mut erased = 0;
        for _ in 0..portion {
            if erased >= limit || walk.left == 0 {
                break;
            }
            let index = if walk.next < walk.total { walk.next } else { 0 };
            walk.next = index + 1;
            walk.left -= 1;
            if names.entry(index).in_use() && names.entry(index).has_data() && is_meant(names.name(index)) {
                self.forget_in_tier(names, index);
                self.remove(names, index);
                erased += 1;
            }
        }
        self.next_to_erase = walk.next;
        erased
    }
}
