//! Tables: keys and match kinds, and the order in which keys are packed into one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CounterId, MeterId, ProfileId, TableId};

/// How a key is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Match {
    /// The whole value.
    Exact,
    /// The first bits of the value: the longest prefix wins.
    Lpm,
    /// Bits chosen by a mask: the highest priority wins.
    Ternary,
    /// All values between two bounds: the highest priority wins.
    Range,
    /// Not compared; chooses the member of a group.
    Selector,
}

/// A key of a table, or a field of a value set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Key {
    /// The control plane's name.
    pub name: Arc<str>,
    /// How it is matched.
    pub kind: Match,
    /// Width in bits.
    pub width: u32,
    /// True for a signed integer.
    pub signed: bool,
}

/// An action of a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Action {
    /// The name of the function.
    pub name: Arc<str>,
    /// Widths of its arguments in an entry.
    pub arguments: Vec<u32>,
}

/// A table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// The control plane's name.
    pub path: String,
    /// The instance of its control, and the index in it.
    pub owner: (usize, usize),
    /// Its keys, in the order of the program.
    pub keys: Vec<Key>,
    /// Its actions, in the order of the program.
    pub actions: Vec<Action>,
    /// Maximum number of entries.
    pub size: u64,
    /// What each of its entries counts and meters.
    pub cells: Cells,
    /// Index of the action profile or selector that its entries take their actions from.
    pub profile: Option<ProfileId>,
    /// With a selector: the table of group members. This table's last action, behind the program's own, stands for a
    /// group; its arguments are the number of the group and the number of its slots.
    pub members: Option<TableId>,
    /// If this is a table of group members: the table that it belongs to.
    pub members_of: Option<TableId>,
}

/// Direct objects of a table: each entry has a cell in this counter and this meter. The number of the cell precedes the
/// action data of the entry.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Cells {
    /// The counter of its entries.
    pub counter: Option<CounterId>,
    /// The meter of its entries.
    pub meter: Option<MeterId>,
    /// Entries can have an idle timeout, which is detected by the counter.
    pub timeout: bool,
}

impl Cells {
    /// Width of a cell number, in bits.
    pub const BITS: u32 = 32;
    /// The number for no cell, which default actions have.
    pub const NONE: u32 = u32::MAX;

    /// True if entries have cells.
    pub fn are_there(self) -> bool {
        self.counter.is_some() || self.meter.is_some()
    }
}

/// Data structure of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// One hash table.
    Exact,
    /// An array of results, for one prefix of up to 32 bits (in two levels) or for exact keys of few bits.
    Direct,
    /// A trie for one prefix, which may follow exact keys.
    Trie,
    /// Tuple space search: one hash table for each set of masks.
    Tuples,
}

impl Table {
    /// The widest prefix for which there is a direct table.
    const DIRECT_BITS: u32 = 32;
    /// Limits of a direct table for exact keys: bits of the keys, and bits of action data (`P4_INLINE_BITS`).
    const EXACT_BITS: u32 = 16;
    const RESULT_BITS: u32 = 22;
    /// The longest key of a trie, in bits.
    const TRIE_BITS: u32 = 32_768;

    /// The keys that are compared, in the order in which they are packed: prefixes follow all others.
    pub fn packed(&self) -> impl Iterator<Item = usize> {
        let of = |prefix: bool| {
            (0..self.keys.len()).filter(move |place| {
                let kind = self.keys[*place].kind;
                kind != Match::Selector && (kind == Match::Lpm) == prefix
            })
        };
        of(false).chain(of(true))
    }

    /// Bits of all keys that are compared.
    pub fn key_bits(&self) -> u32 {
        self.packed().map(|place| self.keys[place].width).sum()
    }

    /// Words of a packed key.
    pub fn key_words(&self) -> u32 {
        self.key_bits().div_ceil(64).max(1)
    }

    /// Distance of a packed key from the low end of its words, in bits: keys with prefixes are at the high end.
    pub fn key_shift(&self) -> u32 {
        match self.kind() {
            TableKind::Direct | TableKind::Trie => self.key_words() * 64 - self.key_bits(),
            TableKind::Exact | TableKind::Tuples => 0,
        }
    }

    /// True if entries have priorities. In other tables, only keys distinguish entries.
    pub fn has_priorities(&self) -> bool {
        self.keys.iter().any(|key| matches!(key.kind, Match::Ternary | Match::Range))
    }

    /// Bits of the exact keys.
    pub fn exact_bits(&self) -> u32 {
        self.keys.iter().filter(|key| key.kind == Match::Exact).map(|key| key.width).sum()
    }

    /// Bits before the action data of an entry: the number of its cell, if it has one.
    pub fn cell_bits(&self) -> u32 {
        if self.cells.are_there() { Cells::BITS } else { 0 }
    }

    /// Bits of action data for an action, including the cell number.
    pub fn bits_of(&self, action: usize) -> u32 {
        let arguments = self.actions.get(action).map_or(0, |action| action.arguments.iter().sum());
        self.cell_bits() + arguments
    }

    /// Maximum number of bits of action data of an entry.
    pub fn data_bits(&self) -> u32 {
        (0..self.actions.len()).map(|action| self.bits_of(action)).max().unwrap_or(0)
    }

    /// Chooses the data structure that suits the keys.
    pub fn kind(&self) -> TableKind {
        let count = |kind: Match| self.keys.iter().filter(|key| key.kind == kind).count();
        let (prefixes, exact, bits) = (count(Match::Lpm), count(Match::Exact), self.key_bits());
        if self.has_priorities() || prefixes > 1 {
            TableKind::Tuples
        } else if prefixes == 0 {
            let is_small = (1..=Self::EXACT_BITS).contains(&bits) && self.data_bits() <= Self::RESULT_BITS;
            if is_small { TableKind::Direct } else { TableKind::Exact }
        } else if bits > Self::TRIE_BITS {
            TableKind::Tuples
        } else if exact == 0 && bits <= Self::DIRECT_BITS {
            TableKind::Direct
        } else {
            TableKind::Trie
        }
    }
}
