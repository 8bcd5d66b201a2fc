//! Content-store policies: which packet leaves when the store is full.
//!
//! A policy knows packets only as small numbers below its capacity (slots of the Content Store) and orders them. It
//! holds no packets, so the engine and simulations run the same code. All operations are O(1) and none allocates.

#![forbid(unsafe_code)]

mod list;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use list::{OrderedNumbers, Place};
use namehop_table::TableError;

/// Order in which packets leave a full store.
///
/// The store tells it what happens to each packet; ids are below the capacity the policy was made with, and every
/// method panics on one that is not.
pub trait EvictionPolicy {
    /// The packet entered the store; it was not there.
    fn admitted(&mut self, id: u32);
    /// The packet answered an Interest. Nothing happens if it is not in the store.
    fn hit(&mut self, id: u32);
    /// The packet left the store, for whatever reason. Nothing happens if it is not in the store.
    fn removed(&mut self, id: u32);
    /// The packet to evict next; `None` when the store is empty. It stays in the order until
    /// [`removed`](Self::removed) is called for it.
    fn victim(&mut self) -> Option<u32>;
    /// The packet to evict after those that `ahead` has passed: what [`victim`](Self::victim) will say later if nothing else
    /// happens meanwhile, and a guess if something does. `None` at the end of the order, or when it is not known.
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32>;
    /// Asks for the memory that [`admitted`](Self::admitted) and [`hit`](Self::hit) look at first. Any id may be given.
    fn prefetch(&self, id: u32);
    /// Asks for what else [`hit`](Self::hit) needs. Reads what [`prefetch`](Self::prefetch) asks for. Any id may be given.
    fn prefetch_hit(&self, id: u32);
    /// Packets in the store.
    fn len(&self) -> usize;
    /// Is the store empty?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How far a look at the packets to be evicted next has come; at first, before all of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ahead(Option<Place>);

/// First in, first out: the packet that entered first leaves first.
pub type Fifo = InOrder<false>;

/// Least recently used: the packet whose last hit (or entry) lies longest ago leaves first.
pub type Lru = InOrder<true>;

/// Packets leave in the order in which they entered; with `BY_USE`, in which they entered or were last used.
#[derive(Debug)]
pub struct InOrder<const BY_USE: bool> {
    order: OrderedNumbers,
}

impl<const BY_USE: bool> InOrder<BY_USE> {
    /// A policy for ids below `capacity`.
    ///
    /// # Errors
    /// When the memory for the order cannot be had.
    pub fn new(capacity: usize) -> Result<Self, TableError> {
        Ok(InOrder { order: OrderedNumbers::new(capacity)? })
    }
}

impl<const BY_USE: bool> EvictionPolicy for InOrder<BY_USE> {
    #[inline]
    fn admitted(&mut self, id: u32) {
        self.order.push_back(id);
    }

    #[inline]
    fn hit(&mut self, id: u32) {
        if BY_USE {
            self.order.move_back(id);
        }
    }

    #[inline]
    fn removed(&mut self, id: u32) {
        self.order.remove(id);
    }

    #[inline]
    fn victim(&mut self) -> Option<u32> {
        self.order.front()
    }

    #[inline]
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        let (id, place) = self.order.behind(ahead.0)?;
        ahead.0 = Some(place);
        Some(id)
    }

    #[inline]
    fn prefetch(&self, id: u32) {
        self.order.prefetch_note(id);
    }

    #[inline]
    fn prefetch_hit(&self, id: u32) {
        if BY_USE {
            self.order.prefetch_block(id);
        }
    }

    fn len(&self) -> usize {
        self.order.len()
    }
}

/// Names of the policies, as in a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PolicyKind {
    /// [`Fifo`], written `fifo`.
    Fifo,
    /// [`Lru`], written `lru`.
    #[default]
    Lru,
}

impl PolicyKind {
    /// All policies.
    pub const ALL: [PolicyKind; 2] = [PolicyKind::Fifo, PolicyKind::Lru];

    /// How it is written in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyKind::Fifo => "fifo",
            PolicyKind::Lru => "lru",
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// There is no policy with this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPolicy(pub String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown content store policy '{}', expected", self.0)?;
        for (position, kind) in PolicyKind::ALL.iter().enumerate() {
            let separator = if position == 0 { "" } else { " or" };
            write!(f, "{separator} '{kind}'")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for PolicyKind {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        PolicyKind::ALL
            .into_iter()
            .find(|kind| text.eq_ignore_ascii_case(kind.name()))
            .ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}

/// Any of the policies, chosen at run time.
#[derive(Debug)]
pub enum Policy {
    /// First in, first out.
    Fifo(Fifo),
    /// Least recently used.
    Lru(Lru),
}

impl Policy {
    /// The policy of this kind for ids below `capacity`.
    ///
    /// # Errors
    /// When the memory for the order cannot be had.
    pub fn new(kind: PolicyKind, capacity: usize) -> Result<Self, TableError> {
        Ok(match kind {
            PolicyKind::Fifo => Policy::Fifo(Fifo::new(capacity)?),
            PolicyKind::Lru => Policy::Lru(Lru::new(capacity)?),
        })
    }

    /// Which one it is.
    pub fn kind(&self) -> PolicyKind {
        match self {
            Policy::Fifo(_) => PolicyKind::Fifo,
            Policy::Lru(_) => PolicyKind::Lru,
        }
    }
}

impl EvictionPolicy for Policy {
    fn admitted(&mut self, id: u32) {
        match self {
            Policy::Fifo(policy) => policy.admitted(id),
            Policy::Lru(policy) => policy.admitted(id),
        }
    }

    fn hit(&mut self, id: u32) {
        match self {
            Policy::Fifo(policy) => policy.hit(id),
            Policy::Lru(policy) => policy.hit(id),
        }
    }

    fn removed(&mut self, id: u32) {
        match self {
            Policy::Fifo(policy) => policy.removed(id),
            Policy::Lru(policy) => policy.removed(id),
        }
    }

    fn victim(&mut self) -> Option<u32> {
        match self {
            Policy::Fifo(policy) => policy.victim(),
            Policy::Lru(policy) => policy.victim(),
        }
    }

    #[inline]
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        match self {
            Policy::Fifo(policy) => policy.upcoming(ahead),
            Policy::Lru(policy) => policy.upcoming(ahead),
        }
    }

    #[inline]
    fn prefetch(&self, id: u32) {
        match self {
            Policy::Fifo(policy) => policy.prefetch(id),
            Policy::Lru(policy) => policy.prefetch(id),
        }
    }

    #[inline]
    fn prefetch_hit(&self, id: u32) {
        match self {
            Policy::Fifo(policy) => policy.prefetch_hit(id),
            Policy::Lru(policy) => policy.prefetch_hit(id),
        }
    }

    fn len(&self) -> usize {
        match self {
            Policy::Fifo(policy) => policy.len(),
            Policy::Lru(policy) => policy.len(),
        }
    }
}
