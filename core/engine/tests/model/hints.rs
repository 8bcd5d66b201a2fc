//! The model's limit on the number of forwarding hints for one name.

use std::collections::BTreeSet;

use super::packets::Name;
use super::{FaceNumber, Model};

/// Maximum number of forwarding hints in use with one name.
const MAX_HINTS: usize = 8;

impl Model {
    /// Makes room for a PIT entry from `face`, and records its age.
    pub(super) fn make_room_for_entry(&mut self, name: &Name, hint: &Name, face: FaceNumber) {
        if !self.make_room_for_cached(name, hint) {
            let hints = self.hints_of(name);
            let is_own = |hint: &&Name| {
                let mut entries = self.pit.iter().filter(|entry| entry.name == *name && entry.hint == **hint);
                entries.all(|entry| entry.in_records.iter().all(|record| record.face == face))
            };
            let own = self.oldest(name, hints.iter().filter(is_own));
            if let Some(victim) = own.or_else(|| self.oldest(name, hints.iter())) {
                for entry in self.pit.iter_mut().filter(|entry| entry.name == *name && entry.hint == victim) {
                    entry.expiry_ms = self.now_ms;
                }
                self.end_due_entries();
                self.content.retain(|cached| cached.data.name != *name || cached.hint != victim);
            }
        }
        self.opened += 1;
        self.ages.insert((name.clone(), hint.clone()), self.opened);
    }

    /// Makes room for Data cached under a hint, by evicting cached Data without pending Interests. Returns `false` if
    /// there is none.
    pub(super) fn make_room_for_cached(&mut self, name: &Name, hint: &Name) -> bool {
        let hints = self.hints_of(name);
        if hint.is_empty() || hints.contains(hint) || hints.len() < MAX_HINTS {
            return true;
        }
        let is_pending = |hint: &Name| self.pit.iter().any(|entry| entry.name == *name && entry.hint == *hint);
        let victim = self.oldest(name, hints.iter().filter(|hint| !is_pending(hint)));
        if let Some(victim) = &victim {
            self.content.retain(|cached| cached.data.name != *name || cached.hint != *victim);
        }
        victim.is_some()
    }

    fn hints_of(&self, name: &Name) -> BTreeSet<Name> {
        let pending = self.pit.iter().filter(|entry| entry.name == *name).map(|entry| &entry.hint);
        let cached = self.content.iter().filter(|cached| cached.data.name == *name).map(|cached| &cached.hint);
        pending.chain(cached).filter(|hint| !hint.is_empty()).cloned().collect()
    }

    fn oldest<'a>(&self, name: &Name, hints: impl Iterator<Item = &'a Name>) -> Option<Name> {
        hints.min_by_key(|hint| self.ages.get(&(name.clone(), (*hint).clone()))).cloned()
    }
}
