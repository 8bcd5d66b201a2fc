//! Numbers of the parts of a program, one type for each kind of part, and lists that are indexed by them.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// The number of an element of an [`IndexVec`].
pub trait Id: Copy {
    /// The number of the element at a position.
    fn new(position: usize) -> Self;

    /// The position of the element in its list.
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(usize);

        impl Id for $name {
            fn new(position: usize) -> Self {
                $name(position)
            }

            fn index(self) -> usize {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )* };
}

ids! {
    /// A variable of a program.
    Var;
    /// A block, as the target of jumps.
    Label;
    /// The machine of a parser's states.
    MachineId;
    /// A state of a machine.
    StateId;
    /// A table of a program.
    TableId;
    /// A register of a program.
    RegisterId;
    /// A counter of a program.
    CounterId;
    /// A meter of a program.
    MeterId;
    /// An action profile or selector of a program.
    ProfileId;
    /// A value set of a program.
    ValueSetId;
    /// A type of digests of a program.
    DigestId;
}

impl Var {
    /// Headers, user metadata and standard metadata: the first variables, which live as long as a packet.
    pub const HEADERS: Var = Var(0);
    pub const METADATA: Var = Var(1);
    pub const STANDARD: Var = Var(2);
    pub const OF_PACKET: [Var; 3] = [Var::HEADERS, Var::METADATA, Var::STANDARD];
}

/// A list with elements numbered by `I`, from 0.
#[derive(Clone, Debug)]
pub struct IndexVec<I, T> {
    items: Vec<T>,
    id: PhantomData<I>,
}

impl<I: Id, T> IndexVec<I, T> {
    pub const fn new() -> Self {
        IndexVec { items: Vec::new(), id: PhantomData }
    }

    /// Appends an element and returns its number.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::new(self.items.len() - 1)
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::new)
    }

    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }

    /// The elements with their numbers.
    pub fn enumerated(&self) -> impl Iterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(position, item)| (I::new(position), item))
    }

    /// The number of the first element for which a condition holds.
    pub fn find(&self, holds: impl FnMut(&T) -> bool) -> Option<I> {
        self.items.iter().position(holds).map(I::new)
    }
}

impl<I: Id, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I: Id, T> Extend<T> for IndexVec<I, T> {
    fn extend<L: IntoIterator<Item = T>>(&mut self, items: L) {
        self.items.extend(items);
    }
}

impl<I: Id, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<L: IntoIterator<Item = T>>(items: L) -> Self {
        IndexVec { items: items.into_iter().collect(), id: PhantomData }
    }
}

impl<'v, I, T> IntoIterator for &'v IndexVec<I, T> {
    type Item = &'v T;
    type IntoIter = std::slice::Iter<'v, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}
