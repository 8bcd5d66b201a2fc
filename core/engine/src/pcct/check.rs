//! Self-check of the table: compares redundant state.

use namehop_packet::FaceId;

use super::{MAX_HINTS, Pcct, PitRef};

/// Redundant state of an engine's tables that does not agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvariantError {
    /// A count differs from what is there.
    #[error("{what}: {counted} counted, {found} found")]
    Count {
        /// What is counted.
        what: &'static str,
        /// The count.
        counted: usize,
        /// The number found.
        found: usize,
    },
    /// An entry of the table of names is wrong.
    #[error("entry {entry} {fault}")]
    Entry {
        /// Index of the entry.
        entry: u32,
        /// What is wrong.
        fault: &'static str,
    },
    /// A PIT slot is wrong.
    #[error("slot {slot} of entry {entry} {fault}")]
    Slot {
        /// Index of the entry.
        entry: u32,
        /// Index of the slot.
        slot: u32,
        /// What is wrong.
        fault: &'static str,
    },
    /// A face holds more PIT slots than the recorded maximum of its group.
    #[error("face {face} holds more PIT slots than the recorded maximum of its group")]
    MoreThanMost {
        /// The face.
        face: FaceId,
    },
}

impl InvariantError {
    pub(super) fn of_entry(entry: u32, fault: &'static str) -> Self {
        InvariantError::Entry { entry, fault }
    }

    pub(super) fn of_slot(PitRef { entry, slot }: PitRef, fault: &'static str) -> Self {
        InvariantError::Slot { entry, slot, fault }
    }
}

/// Compares a count with the number found.
pub(super) fn agree(what: &'static str, counted: usize, found: usize) -> Result<(), InvariantError> {
    if counted == found { Ok(()) } else { Err(InvariantError::Count { what, counted, found }) }
}

impl Pcct {
    /// Compares all counts, lists and arenas with each other. Takes time linear in the size of the table.
    ///
    /// # Errors
    /// Returns the first difference found.
    pub(crate) fn check_invariants(&self) -> Result<(), InvariantError> {
        let names = &self.names;
        let (mut entries, mut long_names) = (0, 0);
        for index in names.used_entries() {
            let entry = names.entry(index);
            entries += 1;
            long_names += usize::from(entry.long_key().is_some());
            if names.find(entry.name_hash, names.name(index), names.delegation(index)) != Some(index) {
                return Err(InvariantError::of_entry(index, "is not found by its key"));
            }
            if !entry.has_slots() && !entry.has_data() {
                return Err(InvariantError::of_entry(index, "has neither PIT slots nor Data"));
            }
            if names.variants(index).any(|other| names.name(other) != names.name(index)) {
                return Err(InvariantError::of_entry(index, "is in the ring of another name"));
            }
            if names.hinted(index).count() > MAX_HINTS {
                return Err(InvariantError::of_entry(index, "has too many delegations under its name"));
            }
        }
        agree("entries in the arena", names.len(), entries)?;
        agree("entries in the bucket table", names.bucket_entries(), entries)?;
        let memory_blocks = long_names + self.pit.packets(names);
        agree("long names and Interest copies", names.memory_blocks(), memory_blocks)?;
        names.check_memory()?;
        self.pit.check_invariants(names)?;
        self.content.check_invariants(names)
    }
}
