//! Keys of entries, and what a lookup by key finds.

use namehop_hash::PrefixHashes;
use namehop_wire::tlv::types;

/// The key of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'a> {
    /// Name VALUE.
    pub(crate) name: &'a [u8],
    pub(crate) name_hash: u64,
    /// Number of components of the name.
    pub(crate) depth: usize,
    /// Whether the last component is an implicit digest.
    pub(crate) names_digest: bool,
    /// VALUE of the chosen delegation; empty without a forwarding hint.
    pub(crate) delegation: &'a [u8],
    /// Low half of the hash of `delegation`; 0 if it is empty.
    pub(crate) delegation_hash: u32,
}

impl<'a> Key<'a> {
    /// Returns the key of a name and a delegation with its hash. `hashes` must be the prefix hashes of the name.
    #[inline(always)]
    pub(crate) fn new(name: &'a [u8], hashes: &PrefixHashes, delegation: &'a [u8], delegation_hash: u32) -> Self {
        let depth = hashes.depth();
        // Component types are in their shortest form, so the first byte of the component is its type or above 252.
        let names_digest =
            depth > 0 && u32::from(name[hashes.value_bytes(depth - 1)]) == types::IMPLICIT_SHA256_DIGEST_COMPONENT;
        Key { name, name_hash: hashes.full(), depth, names_digest, delegation, delegation_hash }
    }
}

/// The reason why no entry was inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoEntry {
    /// Interests with this name are already pending under [`MAX_HINTS`] hints.
    TooManyHints,
    /// All entries are in use.
    TableFull,
    /// There is no memory for the long name.
    NoMemory,
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The entry with this name and delegation.
    Exact(u32),
    /// An entry with this name; none has this delegation.
    Variant(u32),
    /// No entry with this name.
    Nothing,
}

impl Found {
    /// Returns the entry with this name and delegation.
    #[inline]
    pub(crate) fn exact(self) -> Option<u32> {
        match self {
            Found::Exact(entry) => Some(entry),
            Found::Variant(_) | Found::Nothing => None,
        }
    }
}
