//! Lookup of cached Data for an Interest: by its exact name, by an implicit digest, by a prefix.

use namehop_hash::PrefixHashes;
use namehop_packet::Timestamp;

use super::{ContentStore, DIGEST_BYTES, spread};
use crate::pcct::entry::Selectors;
use crate::pcct::key::Key;
use crate::pcct::names::NameTable;

/// The parameters of a cache lookup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query<'a> {
    pub(crate) key: &'a Key<'a>,
    pub(crate) hashes: &'a PrefixHashes,
    pub(crate) selectors: Selectors,
}

impl Query<'_> {
    /// Returns whether the query matches Data only by its exact name, not by a prefix or a digest.
    #[inline(always)]
    pub(crate) fn is_by_name(&self) -> bool {
        !self.key.names_digest && !self.selectors.can_be_prefix
    }
}

impl ContentStore {
    /// Finds cached Data that answers an Interest. `exact` is the entry with the Interest's own name and hint.
    // Without the attribute, some callers call it, and store the query for that: 40 instructions more an Interest.
    #[inline(always)]
    pub(crate) fn find(
        &mut self,
        names: &mut NameTable,
        query: &Query<'_>,
        exact: Option<u32>,
        now: Timestamp,
    ) -> Option<u32> {
        let must_be_fresh = query.selectors.must_be_fresh;
        if let Some(exact) = exact.filter(|&entry| may_answer(names, entry, must_be_fresh, now)) {
            return Some(exact);
        }
        if query.is_by_name() { None } else { self.find_of_other_name(names, query, now) }
    }

    /// Finds cached Data for an Interest that names an implicit digest or has CanBePrefix.
    fn find_of_other_name(&mut self, names: &mut NameTable, query: &Query<'_>, now: Timestamp) -> Option<u32> {
        let Query { key, hashes, selectors: Selectors { must_be_fresh, can_be_prefix } } = *query;
        let depth = hashes.depth();
        if key.names_digest && depth > 0 {
            let name = &key.name[..hashes.value_bytes(depth - 1)];
            let wanted = &key.name[key.name.len() - DIGEST_BYTES..];
            let found = names.find(hashes.get(depth - 1), name, key.delegation);
            if let Some(found) = found.filter(|&entry| may_answer(names, entry, must_be_fresh, now))
                && self.digest(names, found) == *wanted
            {
                return Some(found);
            }
        }
        if can_be_prefix {
            self.index.note_wanted(depth, now);
            let hash = hashes.full() ^ spread(key.delegation_hash);
            return self.index.find(hash, |entry| {
                may_answer(names, entry, must_be_fresh, now)
                    && names.name(entry).starts_with(key.name)
                    && names.delegation(entry) == key.delegation
            });
        }
        None
    }
}

/// Returns whether the Data of an entry answers an Interest for it now.
#[inline]
fn may_answer(names: &NameTable, index: u32, must_be_fresh: bool, now: Timestamp) -> bool {
    let entry = names.entry(index);
    entry.in_use() && entry.has_data() && (!must_be_fresh || entry.fresh_until > now)
}
