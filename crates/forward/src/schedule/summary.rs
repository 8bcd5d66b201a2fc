//! What is known of a packet ahead of its turn. The engine keeps one of these for each packet of a burst and uses it again.

use namehop_hash::{HashKey, PrefixHashes, hash_prefixes};
use namehop_wire::NameRef;

use super::MAX_BURST;
use crate::counters::DropReason;

/// What the hint plane notes of one packet, beside the hashes of its name.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Are the hashes there?
    pub(super) is_hashed: bool,
    /// Nonce, as far as one was seen.
    pub(super) nonce: Option<u32>,
    pub(super) can_be_prefix: bool,
    /// Entry of the PIT-CS composite table that the packet probably concerns.
    pub(super) entry: Option<u32>,
    /// Will the packet probably make a new entry?
    pub(super) makes_entry: bool,
    /// Cached Data that the packet will probably displace.
    pub(super) victim: Option<u32>,
}

/// Summaries and hashes of a burst, by position. Hashes lie together because a group of names is hashed at once.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(super) summaries: Box<[Summary]>,
    pub(super) hashes: Box<[PrefixHashes]>,
}

impl Scratch {
    /// For bursts of up to [`MAX_BURST`] packets.
    pub(crate) fn new() -> Self {
        Scratch {
            summaries: (0..MAX_BURST).map(|_| Summary::default()).collect(),
            hashes: (0..MAX_BURST).map(|_| PrefixHashes::new()).collect(),
        }
    }

    /// What is known of the packet at this position.
    #[inline]
    pub(super) fn known(&mut self, position: usize) -> Known<'_> {
        Known { summary: &mut self.summaries[position], hashes: &mut self.hashes[position] }
    }

    /// The packet at this position and its hashes, if there are any that are of use.
    #[inline]
    pub(super) fn hints(&mut self, position: usize) -> (&mut Summary, Option<&PrefixHashes>) {
        let (summary, hashes) = (&mut self.summaries[position], &self.hashes[position]);
        let usable = summary.is_hashed && hashes.result().is_ok();
        (summary, usable.then_some(hashes))
    }
}

/// What is known of the packet that has its turn.
pub(crate) struct Known<'a> {
    summary: &'a mut Summary,
    hashes: &'a mut PrefixHashes,
}

impl Known<'_> {
    /// Nothing.
    #[inline]
    pub(super) fn forget(&mut self) {
        *self.summary = Summary::default();
    }

    /// The hashes of the packet's name, computed unless they are there already.
    ///
    /// # Errors
    /// When the name has too many components.
    #[inline]
    pub(crate) fn hashes(&mut self, key: &HashKey, name: NameRef<'_>) -> Result<&PrefixHashes, DropReason> {
        if !self.summary.is_hashed {
            // The result is kept with the hashes.
            let _ = hash_prefixes(key, name.value(), self.hashes);
            self.summary.is_hashed = true;
        }
        self.hashes.result().map_err(|_| DropReason::NameTooDeep)?;
        debug_assert_eq!(self.hashes.full(), namehop_hash::hash_name(key, name.value()));
        Ok(self.hashes)
    }
}
