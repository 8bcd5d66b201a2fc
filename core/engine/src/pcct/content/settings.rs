//! Changes of the Content Store's capacity and policy while it is in use.
//!
//! A change takes effect at once. Its consequences for the cached packets, evictions and the move to the new policy,
//! are worked off in bounded parts, so that forwarding never waits for them.

use namehop_store::{Arrival, Parameters, Policy, PolicyChoice, Progress};
use namehop_table::TableError;

use super::ContentStore;
use super::prefix_index::PrefixIndex;
use crate::pcct::names::NameTable;

impl ContentStore {
    /// Changes the capacity and the policy, for a table of names that is enlarged to `entry_limit` entries if it has
    /// fewer. [`settle`](Self::settle) does the rest. After an error nothing has changed.
    pub(in crate::pcct) fn configure(
        &mut self,
        names: &mut NameTable,
        capacity: usize,
        entry_limit: usize,
        choice: PolicyChoice,
    ) -> Result<(), TableError> {
        if capacity == self.capacity && choice == self.policy() {
            return Ok(());
        }
        // Policies are created for a capacity. With another capacity, they lose their history of names that are not
        // cached.
        let slots = entry_limit.max(names.entry_limit());
        let policy = Policy::of(choice.kind, &Parameters { slots, capacity, tuning: choice.tuning })?;
        if entry_limit > names.entry_limit() {
            let index = PrefixIndex::new(capacity)?;
            names.raise_entry_limit(entry_limit)?;
            self.index = index;
        }
        self.capacity = capacity;
        self.policy.change_to(policy);
        Ok(())
    }

    /// Evicts or moves up to `portion` packets after a change of settings. At the end, returns the previous policy;
    /// freeing its memory takes time.
    pub(crate) fn settle(&mut self, names: &mut NameTable, portion: usize) -> Progress {
        for _ in 0..portion {
            if self.len() <= self.capacity {
                break;
            }
            self.evict_one(names);
        }
        if self.len() > self.capacity {
            return Progress::Going;
        }
        self.policy.go_on(portion, |packet| {
            let entry = names.entry(packet);
            let (name_hash, fresh_until) = (entry.name_hash, entry.fresh_until.0);
            // Whether cached Data was solicited is unknown here.
            Arrival { name_hash, now: 0, fresh_until, is_solicited: true }
        })
    }
}
