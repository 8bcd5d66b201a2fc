//! Tables: what is matched and how, and in which order keys are packed into one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How a key is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Match {
    Exact,
    Lpm,
    Ternary,
    Range,
    /// Is not compared.
    Selector,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Key {
    pub name: Arc<str>,
    pub kind: Match,
    pub width: u32,
    pub signed: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Action {
    pub name: Arc<str>,
    /// Widths of the values that an entry has for it.
    pub arguments: Vec<u32>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// As the control plane calls it.
    pub path: String,
    /// The instance of the control that it is in, and its place there.
    pub owner: (usize, usize),
    pub keys: Vec<Key>,
    pub actions: Vec<Action>,
    /// How many entries it may have.
    pub size: u64,
    pub cells: Cells,
    /// The action profile or selector that its entries take their actions from, by its place.
    pub profile: Option<usize>,
    /// With a selector: the table of the members of groups. The last action of this one, behind those of the program, stands for a group:
    /// its values are the number of the group there, and how many places it has.
    pub members: Option<usize>,
    /// It is such a table of members: of this one.
    pub members_of: Option<usize>,
}

/// What each entry of a table has for itself: a cell of a counter and a meter, by their places. Its number stands before the values of
/// the entry.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Cells {
    pub counter: Option<usize>,
    pub meter: Option<usize>,
    /// Entries can time out when they are not used, which the counter tells.
    pub timeout: bool,
}

impl Cells {
    /// Bits of the number of a cell.
    pub const BITS: u32 = 32;
    /// The number of no cell, which default actions have.
    pub const NONE: u32 = u32::MAX;

    pub fn are_there(self) -> bool {
        self.counter.is_some() || self.meter.is_some()
    }
}

/// How keys are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// One hash table.
    Exact,
    /// One prefix of up to 32 bits: two levels of results. Or exact keys of few bits: a result for each.
    Direct,
    /// One prefix, behind exact keys if there are any.
    Trie,
    /// A hash table for each set of masks.
    Tuples,
}

impl Table {
    /// The widest prefix for which there is a direct table.
    const DIRECT_BITS: u32 = 32;
    /// The most bits of exact keys, and of what an entry has for its action (`P4_INLINE_BITS`), for which there is one.
    const EXACT_BITS: u32 = 16;
    const RESULT_BITS: u32 = 22;
    /// The most bits that a trie counts.
    const TRIE_BITS: u32 = 32_768;

    /// The keys that are compared, in the order in which they are packed: prefixes behind all others.
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

    /// How many bits a packed key is from the low end of its words: keys of prefixes are at the high end.
    pub fn key_shift(&self) -> u32 {
        match self.kind() {
            TableKind::Direct | TableKind::Trie => self.key_words() * 64 - self.key_bits(),
            TableKind::Exact | TableKind::Tuples => 0,
        }
    }

    /// Whether entries have priorities. In other tables nothing but keys tells entries apart.
    pub fn has_priorities(&self) -> bool {
        self.keys.iter().any(|key| matches!(key.kind, Match::Ternary | Match::Range))
    }

    /// Bits of the keys that are exact.
    pub fn exact_bits(&self) -> u32 {
        self.keys.iter().filter(|key| key.kind == Match::Exact).map(|key| key.width).sum()
    }

    /// Bits before the values of an entry: the number of its cell, if it has one.
    pub fn cell_bits(&self) -> u32 {
        if self.cells.are_there() { Cells::BITS } else { 0 }
    }

    /// Bits that an entry has for an action.
    pub fn bits_of(&self, action: usize) -> u32 {
        let arguments = self.actions.get(action).map_or(0, |action| action.arguments.iter().sum());
        self.cell_bits() + arguments
    }

    /// Bits that an entry has for its action, at most.
    pub fn data_bits(&self) -> u32 {
        (0..self.actions.len()).map(|action| self.bits_of(action)).max().unwrap_or(0)
    }

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
