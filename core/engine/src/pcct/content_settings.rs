//! Changes of the Content Store's capacity and policy while it is in use.
//!
//! A change takes effect at once. Its consequences for the cached packets, evictions and the move to the new policy,
//! are worked off in bounded parts, so that forwarding never waits for them.

use namehop_store::{Arrival, Parameters, Policy, PolicyChoice, Progress};
use namehop_table::TableError;

use super::Pcct;
use super::prefix_index::PrefixIndex;

impl Pcct {
    /// Changes the capacity and the policy; `None` leaves a setting unchanged. The capacity may be limited to what the
    /// reserved address space allows. [`settle_content`](Self::settle_content) does the rest. After an error nothing
    /// has changed.
    pub(crate) fn configure_content(
        &mut self,
        capacity_packets: Option<usize>,
        policy: Option<PolicyChoice>,
    ) -> Result<(), TableError> {
        let choice = policy.unwrap_or(self.content.policy());
        let (capacity, entry_limit) = self.content_limits(capacity_packets.unwrap_or(self.content.capacity));
        if capacity == self.content.capacity && choice == self.content.policy() {
            return Ok(());
        }
        // Policies are created for a capacity. With another capacity, they lose their history of names that are not
        // cached.
        let slots = entry_limit.max(self.entry_limit);
        let policy = Policy::of(choice.kind, &Parameters { slots, capacity, tuning: choice.tuning })?;
        if entry_limit > self.entry_limit {
            let index = PrefixIndex::new(capacity)?;
            self.raise_entry_limit(entry_limit)?;
            self.content.index = index;
        }
        self.content.capacity = capacity;
        self.content.policy.change_to(policy);
        Ok(())
    }

    /// Evicts or moves up to `portion` packets after a change of settings. At the end, returns the previous policy;
    /// freeing its memory takes time.
    pub(crate) fn settle_content(&mut self, portion: usize) -> Progress {
        for _ in 0..portion {
            if self.content.len() <= self.content.capacity {
                break;
            }
            self.evict_data();
        }
        if self.content.len() > self.content.capacity {
            return Progress::Going;
        }
        let entries = &self.entries;
        self.content.policy.go_on(portion, |packet| {
            let entry = &entries[packet];
            let (name_hash, fresh_until) = (entry.name_hash, entry.fresh_until.0);
            // Whether cached Data was solicited is unknown here.
            Arrival { name_hash, now: 0, fresh_until, is_solicited: true }
        })
    }
}
