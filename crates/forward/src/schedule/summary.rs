//! What is known of a packet ahead of its turn. One of these per packet of a burst is kept by the engine and used again.

use namehop_hash::{HashKey, PrefixHashes, hash_prefixes};
use namehop_wire::NameRef;

use crate::counters::DropReason;

/// What became of hashing a packet's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hashed {
    /// Not tried.
    No,
    /// The hashes are there.
    Yes,
    /// The name has too many components.
    TooDeep,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Summary {
    hashes: PrefixHashes,
    hashed: Hashed,
    /// Nonce, as far as the hint plane has seen one.
    pub(super) nonce: Option<u32>,
    pub(super) can_be_prefix: bool,
    /// Entry of the PIT-CS composite table that the packet probably concerns.
    pub(super) entry: Option<u32>,
    /// Will the packet probably make a new entry?
    pub(super) makes_entry: bool,
    /// Cached Data that the packet will probably displace.
    pub(super) victim: Option<u32>,
}

impl Summary {
    /// Nothing is known.
    pub(crate) fn new() -> Self {
        Summary {
            hashes: PrefixHashes::new(),
            hashed: Hashed::No,
            nonce: None,
            can_be_prefix: false,
            entry: None,
            makes_entry: false,
            victim: None,
        }
    }

    /// Forgets everything.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.hashed = Hashed::No;
        self.nonce = None;
        self.can_be_prefix = false;
        self.entry = None;
        self.makes_entry = false;
        self.victim = None;
    }

    /// Hashes what looks like the packet's name.
    #[inline]
    pub(super) fn hash(&mut self, key: &HashKey, name_value: &[u8]) {
        self.hashed = match hash_prefixes(key, name_value, &mut self.hashes) {
            Ok(()) => Hashed::Yes,
            Err(_) => Hashed::TooDeep,
        };
    }

    /// The hashes, if there are any yet.
    #[inline]
    pub(super) fn known_hashes(&self) -> Option<&PrefixHashes> {
        (self.hashed == Hashed::Yes).then_some(&self.hashes)
    }

    /// The hashes of the packet's name, computed unless they are there already.
    ///
    /// # Errors
    /// When the name has too many components.
    #[inline]
    pub(crate) fn hashes(&mut self, key: &HashKey, name: NameRef<'_>) -> Result<&PrefixHashes, DropReason> {
        if self.hashed == Hashed::No {
            self.hash(key, name.value());
        }
        match self.hashed {
            Hashed::TooDeep => Err(DropReason::NameTooDeep),
            _ => {
                debug_assert_eq!(self.hashes.full(), namehop_hash::hash_name(key, name.value()));
                Ok(&self.hashes)
            }
        }
    }
}
